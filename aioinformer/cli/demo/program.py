"""`aioinformer demo`: the embedded API server with a living workload, and what informers see of it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import Columns, TextForm
from aioinformer.cli.output.stderr_log import LineHandler, log_to
from aioinformer.cli.program import Program
from aioinformer.cli.serve import kubeconfig_file, listening, written
from aioinformer.handlers.notifications import ResourceEventHandlerDetailedFuncs
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.resources import catalog
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of
from aioinformer.testing import ApiServer
from aioinformer.testing.server.workload import Workload
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
"""Group, version and plural of what is watched."""

_FRAME = 0.25
_WINDOW = 5.0
_LINES = 40
_FAREWELL = 0.5


class Feed:
    """One informer of the demo: its handler, and its figures."""

    def __init__(self, informer: SharedIndexInformer[Any], form: TextForm, write: Callable[[bytes], None]) -> None:
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
        self._tell(key_of(obj), self._form.add(obj, initial))

    def on_update(self, old: Any, new: Any) -> None:
        self._tell(key_of(new), self._form.update(old, new))

    def on_delete(self, obj: Any) -> None:
        self._tell(key_of(obj), self._form.delete(obj))
        self.changed.pop(key_of(obj), None)

    @property
    def shows_pods(self) -> bool:
        """Whether this is the one whose objects are listed on the screen."""
        return self.informer.resource.kind == "Pod"

    async def tell_synced(self) -> None:
        """Prints when the initial list has been told."""
        await self._registration.wait_for_sync()
        self._write(self._form.synced(self._initial, self.informer.initial_resource_version))

    def row(self) -> InformerRow:
        """The informer's figures of now."""
        from aioinformer.cli.demo.view import InformerRow

        now = time.monotonic()
        while self._recent and self._recent[0] < now - _WINDOW:
            self._recent.popleft()
        state = self.informer.state
        return InformerRow(
            resource=self.informer.resource.plural,
            phase=str(state.phase),
            reason=state.reason,
            objects=len(self.informer.get_indexer()),
            events=self.events,
            rate=len(self._recent) / _WINDOW,
            staleness=None if state.last_event is None else time.time() - state.last_event,
        )

    def _tell(self, key: str, line: bytes) -> None:
        now = time.monotonic()
        self.events += 1
        self._recent.append(now)
        self.changed[key] = now
        self._write(line)


class DemoProgram(Program):
    """Runs server, workload and informers until the end.

    Args:
        kubeconfig: file to write, None for none.
        duration: seconds, None for ever.
        write: takes each line of stdout.
        palette: colours of the lines.
        clock: the time of day, as text.
        live: draw on the terminal instead of printing lines.
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
    ) -> None:
        super().__init__()
        self._kubeconfig = kubeconfig
        self._duration = duration
        self._palette = palette
        self._clock = clock
        self._live = live
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._out = write
        self._write = self._keep if live else write
        self._feeds: list[Feed] = []

    async def run(self) -> int:
        started = time.monotonic()
        work = asyncio.create_task(self._work(), name="demo")
        code = await self.unwind(work, await self.until_end(work, self._duration, 0))
        if self._live:
            told = sum(feed.events for feed in self._feeds)
            self._out(f"{told} notifications in {time.monotonic() - started:.0f} s\n".encode())
        return code

    async def _work(self) -> None:
        server = ApiServer(guarded=True)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(listening(server))
            if self._kubeconfig is not None:
                written(server, stack.enter_context(kubeconfig_file(self._kubeconfig)))
            transport = await stack.enter_async_context(HttpTransport(server.url))
            columns = Columns()
            for group, version, plural in RESOURCES:
                resource = catalog.find(group, version, plural)
                assert resource is not None, f"{plural} are built in"
                form = TextForm(self._palette, self._clock, plural, columns=columns)
                informer = SharedIndexInformer(ListWatch(transport, resource))
                self._feeds.append(Feed(informer, form, self._write))
            story = await stack.enter_async_context(AsyncExitStack())
            await story.enter_async_context(Workload(server))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            # The story ends before those who follow it, so that nothing is written to a watch that is being closed.
            stack.push_async_callback(story.aclose)
            for feed in self._feeds:
                tasks.create_task(feed.informer.run(), name=feed.informer.name)
                tasks.create_task(feed.tell_synced(), name=f"{feed.informer.name}: wait for the initial list")
            if self._live:
                tasks.create_task(self._draw(server.url), name="demo: screen")
            await asyncio.get_running_loop().create_future()

    async def _draw(self, url: str) -> None:
        """Shows a picture every quarter of a second, and the log within it."""
        from aioinformer.cli.demo.view import Screen, Snapshot

        title = f"aioinformer demo: an embedded API server at {url}, and {len(RESOURCES)} informers. Ctrl-C ends it."
        screen = Screen()
        with log_to(LineHandler(self._keep, self._palette)):
            try:
                while True:
                    pods = [row for feed in self._feeds if feed.shows_pods for row in pod_rows(feed)]
                    screen.show(Snapshot(title, pods, list(self._lines), [feed.row() for feed in self._feeds]))
                    await asyncio.sleep(_FRAME)
            finally:
                screen.close(_FAREWELL)

    def _keep(self, line: bytes) -> None:
        self._lines.extend(line.decode().splitlines())


def pod_rows(feed: Feed) -> list[PodRow]:
    """The pods in the cache, most recently changed first."""
    from aioinformer.cli.demo.view import PodRow

    rows = []
    now, today = time.monotonic(), datetime.now(UTC)
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
