"""The terminal screen of the demo: a table of pods, the latest notifications, and a line for each informer.

The event loop only takes snapshots, which is cheap. A thread formats and writes them. So a terminal that is slow, or
stopped with Ctrl-S, does not delay the informers.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from aioinformer.logs import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATUS_STYLES = {"Running": "green", "Succeeded": "blue", "Pending": "yellow", "Terminating": "magenta"}
_PHASE_STYLES = {"watching": "green", "syncing": "cyan", "new": "cyan", "stopped": "bright_black"}
_HIGHLIGHT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod in the cache; `age` and `changed` are seconds ago."""

    key: str
    status: str
    ready: str
    node: str
    version: str
    age: float
    changed: float


@dataclass(frozen=True, slots=True)
class InformerRow:
    """The state and the figures of one informer; `staleness` is seconds since its last event."""

    resource: str
    phase: str
    reason: str
    objects: int
    events: int
    rate: float
    staleness: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The contents of the screen.

    Attributes:
        pods: the pods, most recently changed first.
        lines: the latest notifications with their colours, oldest first.
    """

    title: str
    pods: Sequence[PodRow]
    lines: Sequence[str]
    informers: Sequence[InformerRow]


def layout(snapshot: Snapshot, height: int) -> Layout:
    """Return the snapshot as a layout for a terminal of `height` lines."""
    lines = snapshot.lines[-max(height // 4, 3) :]
    pods_height = height - 1 - len(lines) - 2 - len(snapshot.informers)
    whole = Layout()
    whole.split_column(
        Layout(Text(snapshot.title, style="bold", no_wrap=True, overflow="ellipsis"), size=1),
        Layout(_pod_table(snapshot.pods, pods_height)),
        Layout(_notifications(lines), size=len(lines) + 2),
        Layout(_informer_table(snapshot.informers), size=len(snapshot.informers)),
    )
    return whole


def _notifications(lines: Sequence[str]) -> Panel:
    text = Text("\n", no_wrap=True, overflow="ellipsis").join(Text.from_ansi(line) for line in lines)
    text.no_wrap = True
    text.overflow = "ellipsis"
    return Panel(text, title="notifications", title_align="left", border_style="bright_black")


def _pod_table(pods: Sequence[PodRow], height: int) -> Table:
    table = Table(box=SIMPLE_HEAD, expand=True, pad_edge=False, header_style="bold cyan")
    table.add_column("POD", ratio=1, no_wrap=True)
    table.add_column("STATUS", no_wrap=True)
    table.add_column("READY", justify="right")
    table.add_column("NODE", no_wrap=True)
    table.add_column("VERSION", justify="right")
    table.add_column("AGE", justify="right")
    table.add_column("CHANGED", justify="right")
    # The heading takes three lines, and the count of hidden pods one.
    shown = pods if len(pods) <= height - 3 else pods[: max(height - 4, 1)]
    for pod in shown:
        table.add_row(
            _cell(pod.key),
            _cell(pod.status, _STATUS_STYLES.get(pod.status, "red")),
            pod.ready,
            _cell(pod.node),
            _cell(pod.version),
            duration(pod.age),
            f"{duration(pod.changed)} ago",
            style="bold" if pod.changed < _HIGHLIGHT_SECONDS else "",
        )
    if len(pods) > len(shown):
        table.add_row(Text(f"and {len(pods) - len(shown)} more", style="dim"))
    return table


def _informer_table(informers: Sequence[InformerRow]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    for _ in range(4):
        grid.add_column(justify="right", no_wrap=True)
    for row in informers:
        style = _PHASE_STYLES.get(row.phase, "red")
        state = row.phase.replace("_", " ") + (f": {row.reason}" if row.reason else "")
        grid.add_row(
            _cell(f"● {row.resource}", style),
            _cell(state, style),
            f"{row.objects} objects",
            f"{row.events} events",
            f"{row.rate:.1f}/s",
            "no event yet" if row.staleness is None else f"last event {duration(row.staleness)} ago",
        )
    return grid


def _cell(text: str, style: str = "") -> Text:
    """Return text of the server as a cell, with visible control characters and without markup."""
    return Text(visible(text), style=style)


def duration(seconds: float) -> str:
    """Return a duration as short text, such as `2m05s`."""
    seconds = max(seconds, 0.0)
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


class Screen:
    """Draws snapshots on the terminal in a thread; snapshots that arrive while it draws are skipped."""

    def __init__(self) -> None:
        self._snapshots: queue.SimpleQueue[Snapshot | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._draw, name="screen", daemon=True)
        self._thread.start()

    def show(self, snapshot: Snapshot) -> None:
        """Draw the snapshot as soon as possible, without waiting."""
        self._snapshots.put(snapshot)

    def close(self, patience: float) -> None:
        """Restore the terminal, waiting up to `patience` seconds."""
        self._snapshots.put(None)
        self._thread.join(patience)

    def _draw(self) -> None:
        console = Console()
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while (snapshot := self._latest()) is not None:
                live.update(layout(snapshot, console.height), refresh=True)

    def _latest(self) -> Snapshot | None:
        snapshot = self._snapshots.get()
        while snapshot is not None and not self._snapshots.empty():
            snapshot = self._snapshots.get()
        return snapshot
