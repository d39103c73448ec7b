"""Whatever happens to candidates, server and network, no two of them lead at the same time.

Each candidate has a link of its own to the server, and all sorts of things happen to links, Lease and work. What is
sent arrives even if the sender has stopped waiting for it, as on a real network, up to some seconds later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.errors import TransportError
from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost
from aioinformer.leaderelection.lease import LeaderElectionOptions
from tests.leaderelection.lease_server import Answer, LeaseServer
from tests.shell.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from aioinformer.transport import Request

CANDIDATES = 3
TIMES = LeaderElectionOptions()
#: So long guarded work may take to end.
GRACE = TIMES.lease_duration - TIMES.renew_deadline

TROUBLES = st.tuples(
    st.sampled_from(["refused", "silent", "answers lost", "slow", "edited", "cancelled"]),
    st.integers(0, CANDIDATES - 1),
    st.integers(1, 40),
)


class Link:
    """The network between one candidate and the server."""

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self._travelling: set[asyncio.Task[Answer]] = set()
        self.trouble = ""

    async def request(self, request: Request) -> Answer:
        trouble = self.trouble
        if trouble == "refused":
            raise TransportError("connection refused")
        travel = asyncio.create_task(self._travel(request, trouble))
        self._travelling.add(travel)
        travel.add_done_callback(self._travelling.discard)
        answer = await asyncio.shield(travel)
        if trouble == "answers lost":
            await asyncio.Event().wait()
        return answer

    async def _travel(self, request: Request, trouble: str) -> Answer:
        await asyncio.sleep({"silent": 7.0, "slow": 2.0}.get(trouble, 0.01))
        answer = await self._server.request(request)
        await asyncio.sleep({"silent": 7.0, "slow": 2.0}.get(trouble, 0.01))
        return answer

    async def close(self) -> None:
        if self._travelling:
            await asyncio.wait(self._travelling)


class Stage:
    """The candidates, and who of them leads."""

    def __init__(self) -> None:
        self.server = LeaseServer()
        self.links = [Link(self.server) for _ in range(CANDIDATES)]
        self.tasks = [asyncio.create_task(self.compete(number)) for number in range(CANDIDATES)]
        self.leaders: list[int] = []
        self.tokens: list[int] = []

    async def compete(self, number: int) -> None:
        elector = LeaderElector(self.links[number], "it", identity=f"candidate {number}", options=TIMES)
        while True:
            try:
                async with elector.leading() as term:
                    self.tokens.append(term.token)
                    self.leaders.append(number)
                    assert self.leaders == [number], f"{self.leaders} lead together"
                    try:
                        await self.work()
                    finally:
                        self.leaders.remove(number)
            except LeadershipLost:
                continue

    async def work(self) -> None:
        """Does not end until it is cancelled, and then takes as long to end as it may."""
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(GRACE - 0.1)

    async def strike(self, trouble: str, number: int, seconds: int) -> None:
        link = self.links[number]
        if trouble == "edited" and self.server.lease is not None:
            self.server.put({**self.server.lease, "metadata": {"name": "it", "labels": {"edited": "yes"}}})
        elif trouble == "cancelled":
            self.tasks[number].cancel()
            await asyncio.sleep(seconds)
            if self.tasks[number].done():
                self.tasks[number] = asyncio.create_task(self.compete(number))
            return
        else:
            link.trouble = trouble
        await asyncio.sleep(seconds)
        if seconds % 2:  # some troubles last until the next
            link.trouble = ""


async def play(troubles: list[tuple[str, int, int]]) -> None:
    stage = Stage()
    await asyncio.sleep(5)
    for trouble in troubles:
        await stage.strike(*trouble)
        for task in stage.tasks:
            assert not task.done() or task.cancelled() or task.exception() is None, task.exception()
    for link in stage.links:
        link.trouble = ""
    await asyncio.sleep(60)
    alive = [task for task in stage.tasks if not task.done()]
    assert not alive or stage.leaders, "nobody leads though nothing is wrong any more"
    assert stage.tokens == sorted(set(stage.tokens)), "two terms have one number"
    for task in stage.tasks:
        task.cancel()
    for result in await asyncio.gather(*stage.tasks, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError), result
    for link in stage.links:
        await link.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(TROUBLES, max_size=15))
def test_no_two_candidates_lead_at_the_same_time(troubles: list[tuple[str, int, int]]) -> None:
    loop = VirtualTimeLoop()
    try:
        loop.run_until_complete(play(troubles))
    finally:
        loop.close()
