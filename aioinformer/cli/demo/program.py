"""The demo: the embedded API server with a simulated workload, and informers that watch it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import Columns, TextFormat
from aioinformer.cli.output.stderr_log import LineHandler, log_to
from aioinformer.cli.program import Program
from aioinformer.cli.serve import kubeconfig_file, listening, write_kubeconfig
from aioinformer.concurrency import TaskGroup, create_task
from aioinformer.handlers.notifications import ResourceEventHandlerDetailedFuncs
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.resources import catalog
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of
from aioinformer.testing import ApiServer
from aioinformer.testing.server.population import Workload
from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.demo.view import InformerRow, PodRow
    from aioinformer.cli.output.palette import Palette

logger = get_logger("aioinformer.cli")

RESOURCES = (
    ("", "v1", "nodes"),
    ("", "v1", "configmaps"),
    ("apps", "v1", "deployments"),
    ("batch", "v1", "jobs"),
    ("", "v1", "pods"),
)
"""Group, version and plural of the watched resources."""

_FRAME_SECONDS = 0.25
_RATE_WINDOW_SECONDS = 5.0
_KEPT_LINES = 40
_CLOSE_SECONDS = 0.5


class Feed:
    """One informer of the demo, with its handler and its figures.

    Attributes:
        changed: the time of the last notification of each object.
    """

    def __init__(self, informer: SharedIndexInformer[Any], form: TextFormat, write: Callable[[bytes], None]) -> None:
        self.informer = informer
        self.changed: dict[str, float] = {}
        self.events = 0
        self._form = form
        self._write = write
        self._initial = 0
        self._recent: deque[float] = deque()
        self._registration = informer.add_event_handler(
            ResourceEventHandlerDetailedFuncs(on_add=self.on_add, on_update=self.on_update, on_delete=self.on_delete)
        )

    def on_add(self, obj: Any, initial: bool) -> None:
        self._initial += initial
        self._print(key_of(obj), self._form.add(obj, initial))

    def on_update(self, old: Any, new: Any) -> None:
        self._print(key_of(new), self._form.update(old, new))

    def on_delete(self, obj: Any) -> None:
        self._print(key_of(obj), self._form.delete(obj))
        self.changed.pop(key_of(obj), None)

    @property
    def shows_pods(self) -> bool:
        """Whether the screen lists the objects of this informer."""
        return self.informer.resource.kind == "Pod"

    async def print_synced(self) -> None:
        """Print `synced` after the initial list has been delivered."""
        await self._registration.wait_for_sync()
        self._write(self._form.synced(self._initial, self.informer.initial_resource_version))

    def row(self) -> InformerRow:
        """Return the current figures of the informer."""
        from aioinformer.cli.demo.view import InformerRow

        now = time.monotonic()
        while self._recent and self._recent[0] < now - _RATE_WINDOW_SECONDS:
            self._recent.popleft()
        state = self.informer.state
        return InformerRow(
            resource=self.informer.resource.plural,
            phase=str(state.phase),
            reason=state.reason,
            objects=len(self.informer.get_indexer()),
            events=self.events,
            rate=len(self._recent) / _RATE_WINDOW_SECONDS,
            staleness=None if state.last_event is None else time.time() - state.last_event,
        )

    def _print(self, key: str, line: bytes) -> None:
        now = time.monotonic()
        self.events += 1
        self._recent.append(now)
        self.changed[key] = now
        self._write(line)


class DemoProgram(Program):
    """Runs the server, the workload and the informers until the end.

    Args:
        duration: the run time in seconds; None for no limit.
        live: draw on the terminal instead of printing lines.
        width: the width of lines; 0 for output that is not a terminal.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        duration: float | None,
        write: Callable[[bytes], None],
        *,
        palette: Palette,
        clock: Callable[[], str],
        live: bool,
        width: int,
    ) -> None:
        super().__init__()
        self._kubeconfig = kubeconfig
        self._duration = duration
        self._palette = palette
        self._clock = clock
        self._live = live
        self._width = width
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._write = write
        self._write_line = self._keep_line if live else write
        self._feeds: list[Feed] = []

    async def run(self) -> int:
        started = time.monotonic()
        work = create_task(self._work(), name="demo")
        code = await self.stop(work, await self.wait_for_end(work, self._duration, 0))
        if self._live:
            events = sum(feed.events for feed in self._feeds)
            self._write(f"{events} notifications in {time.monotonic() - started:.0f} s\n".encode())
        return code

    async def _work(self) -> None:
        server = ApiServer(guarded=True)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(listening(server))
            if self._kubeconfig is not None:
                write_kubeconfig(server, stack.enter_context(kubeconfig_file(self._kubeconfig)))
            transport = await stack.enter_async_context(HttpTransport(server.url))
            columns = Columns(self._width)
            for group, version, plural in RESOURCES:
                resource = catalog.find(group, version, plural)
                assert resource is not None, f"{plural} are built in"
                form = TextFormat(self._palette, self._clock, plural, columns=columns)
                informer = SharedIndexInformer(ListWatch(transport, resource))
                self._feeds.append(Feed(informer, form, self._write_line))
            workload = await stack.enter_async_context(AsyncExitStack())
            await workload.enter_async_context(Workload(server))
            tasks = await stack.enter_async_context(TaskGroup())
            # End the workload before the informers, so that the server does not write to a watch that is being closed.
            stack.push_async_callback(workload.aclose)
            for feed in self._feeds:
                tasks.create_task(feed.informer.run(), name=feed.informer.name)
                tasks.create_task(feed.print_synced(), name=f"{feed.informer.name}: wait for the initial list")
            if self._live:
                tasks.create_task(self._draw(server.url), name="demo: screen")
            await asyncio.get_running_loop().create_future()

    async def _draw(self, url: str) -> None:
        """Draw the screen every quarter of a second, with log lines among the notifications."""
        from aioinformer.cli.demo.view import Screen, Snapshot

        title = f"aioinformer demo: {len(RESOURCES)} informers, server {url} (Ctrl-C to end)"
        screen = Screen()
        with log_to(LineHandler(self._keep_line, self._palette)):
            try:
                while True:
                    pods = [row for feed in self._feeds if feed.shows_pods for row in pod_rows(feed)]
                    screen.show(Snapshot(title, pods, list(self._lines), [feed.row() for feed in self._feeds]))
                    await asyncio.sleep(_FRAME_SECONDS)
            finally:
                screen.close(_CLOSE_SECONDS)

    def _keep_line(self, line: bytes) -> None:
        self._lines.extend(line.decode().splitlines())


def pod_rows(feed: Feed) -> list[PodRow]:
    """Return the pods in the cache, most recently changed first."""
    from aioinformer.cli.demo.view import PodRow

    rows = []
    now = time.monotonic()
    today = datetime.now(UTC)
    for pod in feed.informer.get_indexer().list():
        containers = (pod.status and pod.status.container_statuses) or ()
        waiting = [each.state.waiting.reason for each in containers if each.state and each.state.waiting]
        phase = (pod.status and pod.status.phase) or ""
        rows.append(
            PodRow(
                key=key_of(pod),
                status="Terminating" if pod.metadata.deletion_timestamp else next(iter(waiting), phase),
                ready=f"{sum(bool(each.ready) for each in containers)}/{len(pod.spec.containers)}",
                node=pod.spec.node_name or "",
                version=pod.metadata.resource_version,
                age=(today - pod.metadata.creation_timestamp).total_seconds(),
                changed=now - feed.changed.get(key_of(pod), now),
            )
        )
    return sorted(rows, key=lambda row: (row.changed, row.key))
