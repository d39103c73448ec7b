"""What the demo shows on a terminal: a table of pods, the latest notifications, and a line for each informer.

The loop takes a snapshot, which is cheap; a thread of its own turns it into text and writes it, which is neither cheap
nor certain to end soon. So the screen can be slow, or stopped with Ctrl-S, and the informers do not notice.
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

_STATUSES = {"Running": "green", "Succeeded": "blue", "Pending": "yellow", "Terminating": "magenta"}
_STATES = {"watching": "green", "syncing": "cyan", "new": "cyan", "stopped": "bright_black"}
_FRESH = 2.0


@dataclass(frozen=True, slots=True)
class PodRow:
    """One pod, as the cache has it."""

    key: str
    status: str
    ready: str
    node: str
    version: str
    age: float
    changed: float


@dataclass(frozen=True, slots=True)
class InformerRow:
    """One informer: what it does, and how well."""

    resource: str
    phase: str
    reason: str
    objects: int
    events: int
    rate: float
    staleness: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is shown.

    Attributes:
        title: of the whole.
        pods: most recently changed first.
        lines: the latest notifications, oldest first, in colour.
        informers: one each.
    """

    title: str
    pods: Sequence[PodRow]
    lines: Sequence[str]
    informers: Sequence[InformerRow]


def picture(snapshot: Snapshot, height: int) -> Layout:
    """The snapshot, drawn to fit a terminal of so many lines."""
    lines = snapshot.lines[-max(height // 4, 3) :]
    room = height - 1 - len(lines) - 2 - len(snapshot.informers)
    layout = Layout()
    layout.split_column(
        Layout(Text(snapshot.title, style="bold", no_wrap=True, overflow="ellipsis"), size=1),
        Layout(_pods(snapshot.pods, room)),
        Layout(_told(lines), size=len(lines) + 2),
        Layout(_status(snapshot.informers), size=len(snapshot.informers)),
    )
    return layout


def _told(lines: Sequence[str]) -> Panel:
    text = Text("\n", no_wrap=True, overflow="ellipsis").join(Text.from_ansi(line) for line in lines)
    text.no_wrap, text.overflow = True, "ellipsis"
    return Panel(text, title="what handlers are told", title_align="left", border_style="bright_black")


def _pods(pods: Sequence[PodRow], room: int) -> Table:
    table = Table(box=SIMPLE_HEAD, expand=True, pad_edge=False, header_style="bold cyan")
    table.add_column("POD", ratio=4, no_wrap=True)
    table.add_column("STATUS", ratio=2, no_wrap=True)
    table.add_column("READY", justify="right")
    table.add_column("NODE", ratio=2, no_wrap=True)
    table.add_column("VERSION", justify="right")
    table.add_column("AGE", justify="right")
    table.add_column("CHANGED", justify="right")
    # The heading takes three lines, and what is left out one.
    shown = pods if len(pods) <= room - 3 else pods[: max(room - 4, 1)]
    for pod in shown:
        table.add_row(
            _cell(pod.key),
            _cell(pod.status, _STATUSES.get(pod.status, "red")),
            pod.ready,
            _cell(pod.node),
            _cell(pod.version),
            duration(pod.age),
            f"{duration(pod.changed)} ago",
            style="bold" if pod.changed < _FRESH else "",
        )
    if len(pods) > len(shown):
        table.add_row(Text(f"and {len(pods) - len(shown)} more", style="dim"))
    return table


def _status(informers: Sequence[InformerRow]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    for _ in range(4):
        grid.add_column(justify="right", no_wrap=True)
    for row in informers:
        style = _STATES.get(row.phase, "red")
        state = row.phase.replace("_", " ") + (f": {row.reason}" if row.reason else "")
        grid.add_row(
            _cell(f"● {row.resource}", style),
            _cell(state, style),
            f"{row.objects} objects",
            f"{row.events} events",
            f"{row.rate:.1f}/s",
            "never heard" if row.staleness is None else f"heard {duration(row.staleness)} ago",
        )
    return grid


def _cell(text: str, style: str = "") -> Text:
    """What a server says, neither obeyed by the terminal nor taken for markup."""
    return Text(visible(text), style=style)


def duration(seconds: float) -> str:
    """A length of time on few characters."""
    seconds = max(seconds, 0.0)
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"


class Screen:
    """Draws snapshots on the terminal, in a thread of its own; those that come while it draws are skipped."""

    def __init__(self) -> None:
        self._snapshots: queue.SimpleQueue[Snapshot | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._draw, name="screen", daemon=True)
        self._thread.start()

    def show(self, snapshot: Snapshot) -> None:
        """Shows this as soon as possible. Does not wait."""
        self._snapshots.put(snapshot)

    def close(self, patience: float) -> None:
        """Gives the terminal back, within so many seconds if that can be done."""
        self._snapshots.put(None)
        self._thread.join(patience)

    def _draw(self) -> None:
        console = Console()
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while (snapshot := self._latest()) is not None:
                live.update(picture(snapshot, console.height), refresh=True)

    def _latest(self) -> Snapshot | None:
        snapshot = self._snapshots.get()
        while snapshot is not None and not self._snapshots.empty():
            snapshot = self._snapshots.get()
        return snapshot
