"""Every fault against an informer with its usual options: what it asks, what it shows, what it tells.

Each row has a server and an informer of its own. Objects change all the time; the fault begins when the informer has
synced, lasts for some seconds, and is over; then the informer is given the time it needs. What was told is held against
what can be true by a witness.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from aioinformer.options import ReflectorOptions
from aioinformer.state import Phase
from aioinformer.testing import FAULTS, ApiServer
from aioinformer.transport.http import HttpTransport
from tests.faults.churn import Following
from tests.faults.witness import truth

#: So long a fault lasts, in seconds.
LASTS = 4.0
#: So long may it take to catch up: longer than the longest that is waited for by default.
PATIENCE = 150.0
_QUIET = {Phase.SYNCING, Phase.WATCHING, Phase.STOPPED}


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        says: what goes wrong, for people.
        fault: its name.
        params: its parameters.
        first: another fault that comes before, so that there is something to be asked.
        lasts: in seconds, if not as long as the others.
    """

    says: str
    fault: str
    params: dict[str, Any] = field(default_factory=dict)
    first: str = ""
    lasts: float = LASTS


ROWS = [
    Row("a watch ends after two events, always", "watch_close", {"events": 2}),
    Row("a watch ends with nothing, always", "watch_close"),
    Row("a bookmark from the future, then the watch ends", "version_only_bookmark", {"times": 1}, "watch_close"),
    Row("`ERROR` event 410 on every watch", "expired"),
    Row("410 as the answer to every list and watch", "expired", {"as_status": True}, "watch_close"),
    Row("`ERROR` event 500 on every watch", "error_event"),
    Row("500 as text", "server_error", {"text": True}, "watch_close"),
    Row("503 with `Retry-After: 1`", "unavailable", {}, "watch_close"),
    Row("429 with `Retry-After: 2`", "throttle", {"retry_after": 2}, "watch_close"),
    Row("the connection breaks in the middle of a line", "cut"),
    Row("a line of 3 MiB", "huge_line", {"size": 3 * 2**20, "times": 1}),
    Row("a line of 5 MiB", "huge_line", {"size": 5 * 2**20, "times": 1}),
    Row("the history is compacted while the server is away", "restart", {"downtime": 1.0}),
    Row("nobody listens", "outage"),
    Row("connections stay open, and not another byte comes", "black_hole", {}, "watch_close", 85.0),
    Row("401", "unauthorized", {}, "watch_close"),
    Row("403", "forbidden", {}, "watch_close"),
    Row("404", "not_found", {}, "watch_close"),
    Row("405", "method_not_allowed", {"verbs": "watch"}, "watch_close"),
    Row("a proxy's web page with status 200", "html", {}, "watch_close"),
    Row("a proxy's web page with status 502", "html", {"status": 502}, "watch_close"),
    Row("a line that is no JSON", "garbage"),
    Row("an object whose metadata cannot be read", "undecodable_object", {"namespace": "default", "name": "broken"}),
    Row("an event of a type that nobody knows", "unknown_event_type"),
    Row("504 'Too large resource version'", "too_large", {}, "watch_close"),
    Row("answers begin a second late", "latency", {"seconds": 1.0}, "watch_close"),
    Row("watches drip", "slow", {"seconds": 0.05}, "watch_close"),
    Row("no bookmarks", "no_bookmarks"),
    Row("streaming lists are refused", "refuse_send_initial_events", {}, "expired"),
    Row("streaming lists are taken for watches", "ignore_send_initial_events", {}, "expired", 40.0),
    Row("a page breaks off in its middle", "half_page", {}, "expired"),
    Row("a backup is restored, and its lost versions are given out anew at once", "restore", {"back": 10}),
]


@dataclass
class Cell:
    """What happened.

    Attributes:
        says: the row's words.
        seconds: how long the fault lasted.
        lists: requested while it lasted.
        watches: requested while it lasted.
        busiest: the most requests in one second.
        shown: the phases that were shown until it had caught up, and were not all well.
        caught_up: seconds from the end of the fault until everything was told.
        lost: objects that are told or cached otherwise than they are.
        untrue: notifications that cannot be true: doubled, reordered, of what was not.
    """

    says: str
    seconds: float
    lists: int
    watches: int
    busiest: int
    shown: list[str]
    caught_up: float
    lost: int
    untrue: int


async def measured(row: Row, lasts: float | None = None) -> Cell:
    """Lets it happen."""
    seconds = row.lasts if lasts is None else lasts
    clock = asyncio.get_running_loop().time
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(bookmark_interval=0.5))
        transport = await stack.enter_async_context(HttpTransport(server.url))
        streaming = row.fault != "half_page"
        follower = Following(server, transport, Random(row.says), ReflectorOptions(streaming_list=streaming), "delta")
        follower.change(40)
        await stack.enter_async_context(follower.informer)
        await follower.catch_up()
        server.requests.clear()
        follower.states.clear()
        follower.witness.versions_go_back = row.fault == "restore"
        async with AsyncExitStack() as failing:
            await failing.enter_async_context(server.fault(row.fault, **row.params))
            if row.first and FAULTS[row.first].sort == "stream":
                await server.fault(row.first, times=1)
            elif row.first:
                await server.fault(row.first, times=2)
            end = clock() + seconds
            while clock() < end:
                follower.change(1)
                await asyncio.sleep(0.05)
            asked = [entry for entry in server.requests if entry.verb in ("list", "watch")]
        over = clock()
        async with asyncio.timeout(PATIENCE):
            await follower.catch_up(f"after-{row.fault.replace('_', '-')}")
            await follower.until(lambda state: state.healthy or state.phase is Phase.DEGRADED)
        there = truth(server.list("configmaps"))
        cached = truth([obj.to_dict() for obj in follower.informer.get_store().list()])
        told = follower.witness.present
        return Cell(
            row.says,
            seconds,
            sum(entry.verb == "list" for entry in asked),
            sum(entry.verb == "watch" for entry in asked),
            max((sum(begin.at <= entry.at < begin.at + 1 for entry in asked) for begin in asked), default=0),
            sorted({str(state.phase) for state in follower.states if state.phase not in _QUIET}),
            round(clock() - over, 1),
            len({key for key, _ in ({*there.items()} ^ {*cached.items()}) | ({*there.items()} ^ {*told.items()})}),
            len(follower.witness.lies),
        )


async def matrix(at_a_time: int = 8) -> list[dict[str, Any]]:
    """All rows, some at a time."""
    turns = asyncio.Semaphore(at_a_time)

    async def one(row: Row) -> Cell:
        async with turns:
            return await measured(row)

    return [asdict(cell) for cell in await asyncio.gather(*(one(row) for row in ROWS))]
