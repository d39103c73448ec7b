"""Measures how an informer with default options behaves during each fault: requests, phases, notifications.

Each row has a server and an informer of its own. Objects change continuously. The fault begins after the informer has
synced, and lasts for some seconds. Then the measurement waits until the informer has caught up. A witness checks each
notification against the previous ones.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aioinformer import HttpTransport, ListWatch, Resource, RunOptions, SharedIndexInformer
from aioinformer.backoff import BackoffOptions
from aioinformer.models import core_v1
from aioinformer.reflector import Phase
from aioinformer.testing import FAULTS, ApiServer
from tests.support.witness import Witness, truth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.informer import QueueName
    from aioinformer.reflector import InformerState


#: Short times, for tests of other things.
QUICK: dict[str, Any] = {
    "backoff": BackoffOptions(initial=0.02, cap=0.1),
    "idle_timeout": 2.0,
    "page_size": 7,
    "max_frame": 1_000_000,
}

_NAMES = [f"c{number}" for number in range(60)]


class WatchedServer:
    """A server, an informer of its ConfigMaps, and a handler that checks the notifications.

    Attributes:
        server: the server.
        informer: the informer.
        witness: the handler.
        states: the states that the informer has reported.
    """

    def __init__(
        self, server: ApiServer, transport: HttpTransport, random: Random, options: RunOptions, queue: QueueName
    ) -> None:
        resource: Resource[Any] = core_v1.CONFIG_MAPS
        self.server = server
        self.informer: SharedIndexInformer[Any] = SharedIndexInformer(
            ListWatch(transport, resource), options=replace(options, queue=queue)
        )
        self.witness = Witness()
        self.states: list[InformerState] = []
        self._registration = self.informer.add_event_handler(self.witness)
        self._random = random
        self._changed = asyncio.Event()
        self.informer.add_state_handler(self._saw)

    def change(self, times: int) -> None:
        """Create, update and delete random objects."""
        for _ in range(times):
            names = [obj["metadata"]["name"] for obj in self.server.list("configmaps")]
            action = self._random.choice(["create", "update", "update", "delete"] if names else ["create"])
            if action == "create":
                name = self._random.choice([name for name in _NAMES if name not in names])
                self.server.create("configmaps", {"metadata": {"name": name}})
            elif action == "update":
                self._touch(self._random.choice(names))
            else:
                self.server.delete("configmaps", self._random.choice(names))

    async def catch_up(self, marker: str = "last") -> None:
        """Wait until all changes so far have been delivered. The fault must be over or harmless.

        Args:
            marker: an object that is not changed otherwise; it is created if necessary.
        """
        await self.witness.wait_for_version(f"default/{marker}", self._touch(marker))
        # Objects of a list are delivered in any order, but before the next change of the marker.
        await self.witness.wait_for_version(f"default/{marker}", self._touch(marker))

    async def until(self, holds: Callable[[InformerState], bool]) -> None:
        """Wait until a condition holds for the state of the informer."""
        while not holds(self.informer.state):
            self._changed.clear()
            await self._changed.wait()

    def assert_consistent(self) -> None:
        """Check that the cache and the notifications match the server, and that notifications were consistent."""
        there = truth(self.server.list("configmaps"))
        cached = truth([obj.to_dict() for obj in self.informer.get_store().list()])
        assert cached == there
        assert self.witness.present == there
        assert self.witness.violations == []
        assert self._registration.errors == 0

    def _saw(self, state: InformerState) -> None:
        self.states.append(state)
        self._changed.set()

    def _touch(self, name: str) -> str:
        names = [obj["metadata"]["name"] for obj in self.server.list("configmaps")]
        if name not in names:
            obj = self.server.create("configmaps", {"metadata": {"name": name}})
        else:
            patch = {"data": {"random": str(self._random.random())}}
            obj = self.server.patch("configmaps", name, patch)
        return str(obj["metadata"]["resourceVersion"])


@asynccontextmanager
async def watched_server(random: Random, *, queue: QueueName = "delta", **options: Any) -> AsyncIterator[WatchedServer]:
    """Provide a server with objects, and an informer that is not started yet.

    Args:
        random: chooses the changes.
        queue: the queue of the informer.
        options: options of the reflector, in addition to `QUICK`.
    """
    async with (
        ApiServer(bookmark_interval=0.1) as server,
        HttpTransport(server.url, header_timeout=0.5) as transport,
    ):
        watched = WatchedServer(server, transport, random, RunOptions(**{**QUICK, **options}), queue)
        watched.change(40)
        yield watched


#: Seconds that a fault lasts.
LASTS = 4.0
#: Seconds that the informer may take to catch up: longer than the longest delay with default options.
PATIENCE = 150.0
_QUIET = {Phase.SYNCING, Phase.WATCHING, Phase.STOPPED}


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        title: describes the fault.
        fault: its name.
        params: its parameters.
        first: another fault that happens first, so that the informer sends requests.
        lasts: in seconds.
    """

    title: str
    fault: str
    params: dict[str, Any] = field(default_factory=dict)
    first: str = ""
    lasts: float = LASTS


ROWS = [
    Row("each watch ends after two events", "watch_close", {"events": 2}),
    Row("each watch ends without an event", "watch_close"),
    Row(
        "a bookmark with a future resourceVersion, then the watch ends",
        "version_only_bookmark",
        {"times": 1},
        "watch_close",
    ),
    Row("`ERROR` event 410 in each watch", "expired"),
    Row("410 in response to each list and watch", "expired", {"as_status": True}, "watch_close"),
    Row("`ERROR` event 500 in each watch", "error_event"),
    Row("500 with a plain text body", "server_error", {"text": True}, "watch_close"),
    Row("503 with `Retry-After: 1`", "unavailable", {}, "watch_close"),
    Row("429 with `Retry-After: 2`", "throttle", {"retry_after": 2}, "watch_close"),
    Row("the connection breaks in the middle of a line", "cut"),
    Row("a line of 3 MiB", "huge_line", {"size": 3 * 2**20, "times": 1}),
    Row("a line of 5 MiB", "huge_line", {"size": 5 * 2**20, "times": 1}),
    Row("the history is compacted while the server is down", "restart", {"downtime": 1.0}),
    Row("the server refuses connections", "outage"),
    Row("connections stay open without further data", "black_hole", {}, "watch_close", 85.0),
    Row("401", "unauthorized", {}, "watch_close"),
    Row("403", "forbidden", {}, "watch_close"),
    Row("404", "not_found", {}, "watch_close"),
    Row("405", "method_not_allowed", {"verbs": "watch"}, "watch_close"),
    Row("a proxy's web page with status 200", "html", {}, "watch_close"),
    Row("a proxy's web page with status 502", "html", {"status": 502}, "watch_close"),
    Row("a line that is not JSON", "garbage"),
    Row("an object whose metadata cannot be decoded", "undecodable_object", {"namespace": "default", "name": "broken"}),
    Row("an event of an unknown type", "unknown_event_type"),
    Row("504 'Too large resource version'", "too_large", {}, "watch_close"),
    Row("responses start a second late", "latency", {"seconds": 1.0}, "watch_close"),
    Row("watches deliver data slowly", "slow", {"seconds": 0.05}, "watch_close"),
    Row("no bookmarks", "no_bookmarks"),
    Row("streaming lists are refused", "refuse_send_initial_events", {}, "expired"),
    Row("streaming lists are treated as plain watches", "ignore_send_initial_events", {}, "expired", 40.0),
    Row("a page breaks off in the middle", "half_page", {}, "expired"),
    Row("a backup is restored, and the lost resourceVersions are reused immediately", "restore", {"back": 10}),
]


@dataclass
class Cell:
    """The measurement of one row.

    Attributes:
        title: of the row.
        seconds: how long the fault lasted.
        lists: requested during the fault.
        watches: requested during the fault.
        busiest: the most requests in one second.
        shown: the unhealthy phases until the informer had caught up.
        caught_up: seconds from the end of the fault until the last change was delivered.
        lost: objects whose state in the cache, or as delivered, differs from the server's.
        untrue: invalid notifications: duplicate, out of order, or of states that did not exist.
    """

    title: str
    seconds: float
    lists: int
    watches: int
    busiest: int
    shown: list[str]
    caught_up: float
    lost: int
    untrue: int


async def measure(row: Row, lasts: float | None = None) -> Cell:
    """Run one row and return its measurement."""
    seconds = row.lasts if lasts is None else lasts
    clock = asyncio.get_running_loop().time
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(bookmark_interval=0.5))
        transport = await stack.enter_async_context(HttpTransport(server.url))
        streaming = row.fault != "half_page"
        watched = WatchedServer(server, transport, Random(row.title), RunOptions(streaming_list=streaming), "delta")
        watched.change(40)
        await stack.enter_async_context(watched.informer)
        await watched.catch_up()
        server.requests.clear()
        watched.states.clear()
        watched.witness.versions_go_back = row.fault == "restore"
        async with AsyncExitStack() as failing:
            await failing.enter_async_context(server.fault(row.fault, **row.params))
            if row.first and FAULTS[row.first].sort == "stream":
                await server.fault(row.first, times=1)
            elif row.first:
                await server.fault(row.first, times=2)
            end = clock() + seconds
            while clock() < end:
                watched.change(1)
                await asyncio.sleep(0.05)
            asked = [entry for entry in server.requests if entry.verb in ("list", "watch")]
        over = clock()
        async with asyncio.timeout(PATIENCE):
            await watched.catch_up(f"after-{row.fault.replace('_', '-')}")
            await watched.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        served = truth(server.list("configmaps"))
        cached = truth([obj.to_dict() for obj in watched.informer.get_store().list()])
        delivered = watched.witness.present
        return Cell(
            row.title,
            seconds,
            sum(entry.verb == "list" for entry in asked),
            sum(entry.verb == "watch" for entry in asked),
            max((sum(begin.at <= entry.at < begin.at + 1 for entry in asked) for begin in asked), default=0),
            sorted({str(state.phase) for state in watched.states if state.phase not in _QUIET}),
            round(clock() - over, 1),
            len(
                {key for key, _ in ({*served.items()} ^ {*cached.items()}) | ({*served.items()} ^ {*delivered.items()})}
            ),
            len(watched.witness.violations),
        )


async def measure_all(parallel: int = 8) -> list[dict[str, Any]]:
    """Run all rows, up to `parallel` at a time, and return their measurements."""
    turns = asyncio.Semaphore(parallel)

    async def one(row: Row) -> Cell:
        async with turns:
            return await measure(row)

    return [asdict(cell) for cell in await asyncio.gather(*(one(row) for row in ROWS))]
