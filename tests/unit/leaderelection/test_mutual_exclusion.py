"""Random faults of candidates, server and network: at no time do two candidates lead.

Each candidate has its own link to the server. Faults hit links, the Lease and candidates. A request arrives even if the
sender has stopped waiting for it, up to some seconds later, as on a real network.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import LeaderElectionOptions, LeaderElector
from aioinformer.errors import TransportError
from aioinformer.leaderelection import LeadershipLost
from tests.support.lease_server import Answer, LeaseServer
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest

CANDIDATES = 3
TIMES = LeaderElectionOptions()
#: How many seconds the guarded code may take to end.
GRACE = TIMES.lease_duration - TIMES.renew_deadline


def faults(*kinds: str) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    fault = st.tuples(st.sampled_from(kinds), st.integers(0, CANDIDATES - 1), st.integers(1, 40))
    return st.lists(fault, max_size=15)


NETWORK = ("refused", "silent", "answers lost", "slow", "edited")


class Link:
    """The network between one candidate and the server."""

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self._requests: set[asyncio.Task[Answer]] = set()
        self.fault = ""

    async def request(self, request: HttpRequest) -> Answer:
        fault = self.fault
        if fault == "refused":
            raise TransportError("connection refused")
        transmission = asyncio.create_task(self._transmit(request, fault))
        self._requests.add(transmission)
        transmission.add_done_callback(self._requests.discard)
        answer = await asyncio.shield(transmission)
        if fault == "answers lost":
            await asyncio.Event().wait()
        return answer

    async def _transmit(self, request: HttpRequest, fault: str) -> Answer:
        await asyncio.sleep({"silent": 7.0, "slow": 2.0}.get(fault, 0.01))
        answer = await self._server.request(request)
        await asyncio.sleep({"silent": 7.0, "slow": 2.0}.get(fault, 0.01))
        return answer

    async def close(self) -> None:
        if self._requests:
            await asyncio.wait(self._requests)


class Election:
    """The candidates, and those that lead."""

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
        """Run until cancelled, then take nearly all of the permitted time to end."""
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(GRACE - 0.1)

    async def inject(self, fault: str, number: int, seconds: int) -> None:
        link = self.links[number]
        if fault == "edited" and self.server.lease is not None:
            spec = {**self.server.lease["spec"], "leaseDurationSeconds": 1}  # shorter than the time between renewals
            self.server.put({"metadata": {"name": "it", "labels": {"edited": "yes"}}, "spec": spec})
        elif fault == "deleted" and self.server.lease is not None:
            self.server.delete()
        elif fault == "cancelled":
            self.tasks[number].cancel()
            await asyncio.sleep(seconds)
            if self.tasks[number].done():
                self.tasks[number] = asyncio.create_task(self.compete(number))
            return
        else:
            link.fault = fault
        await asyncio.sleep(seconds)
        if seconds % 2:  # some faults last until the next one
            link.fault = ""


async def run_election(faults: list[tuple[str, int, int]]) -> None:
    election = Election()
    await asyncio.sleep(5)
    for fault in faults:
        await election.inject(*fault)
        for task in election.tasks:
            assert not task.done() or task.cancelled() or task.exception() is None, task.exception()
    for link in election.links:
        link.fault = ""
    await asyncio.sleep(60)
    alive = [task for task in election.tasks if not task.done()]
    assert not alive or election.leaders, "no candidate leads after the faults have ended"
    if all(fault != "deleted" for fault, _, _ in faults):
        assert election.tokens == sorted(set(election.tokens)), "two terms have the same number"
    for task in election.tasks:
        task.cancel()
    for result in await asyncio.gather(*election.tasks, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError), result
    for link in election.links:
        await link.close()


def run(faults: list[tuple[str, int, int]]) -> None:
    loop = VirtualTimeLoop()
    try:
        loop.run_until_complete(run_election(faults))
    finally:
        loop.close()


@settings(max_examples=40, deadline=None)
@given(faults(*NETWORK, "cancelled"))
def test_no_two_candidates_lead_at_the_same_time(faults: list[tuple[str, int, int]]) -> None:
    run(faults)


@pytest.mark.behaviour("C-75", "C-110")
@settings(max_examples=20, deadline=None)
@given(faults(*NETWORK, "deleted"))  # a candidate that starts now has observed no term, and creates a deleted Lease
def test_no_two_candidates_lead_when_the_lease_is_deleted(faults: list[tuple[str, int, int]]) -> None:
    run(faults)
