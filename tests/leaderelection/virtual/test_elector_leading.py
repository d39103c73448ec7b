"""The elector on virtual time: how candidates become the leader, and stay it."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from aioinformer.leaderelection.elector import LeaderElector
from tests.leaderelection.candidates import candidate, led_for, now
from tests.leaderelection.lease_server import Answer, LeaseServer, refusal
from tests.leaderelection.stalling_loop import stall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Endless(Answer):
    """A head, one piece of a body, and silence."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"wait"
        await asyncio.Event().wait()


# Becoming the leader.


@pytest.mark.conformance("LE-07")
async def test_the_only_candidate_leads_at_once() -> None:
    server = LeaseServer()
    elector = candidate(server)
    assert not elector.is_leader()
    async with elector.leading() as term:
        assert server.holder == "me"
        assert elector.is_leader()
        assert elector.leader() == "me"
        assert term.identity == "me"
        assert term.remaining == pytest.approx(10, abs=0.01)
        assert repr(term) == "<term 0 of me>"
    assert not elector.is_leader()


@pytest.mark.conformance("LE-07", "LE-08")
async def test_a_second_candidate_leads_as_soon_as_the_first_has_released() -> None:
    server = LeaseServer()
    first, second = candidate(server, "first"), candidate(server, "second")
    order = []

    async def lead(elector: LeaderElector, seconds: float) -> None:
        async with elector.leading() as term:
            order.append((elector.identity, term.token))
            await asyncio.sleep(seconds)
            order.append((elector.identity, -1))

    start = now()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lead(first, 100))
        tasks.create_task(lead(second, 0))
    assert order == [("first", 0), ("first", -1), ("second", 1), ("second", -1)]
    assert now() - start < 103


@pytest.mark.conformance("LE-03")
async def test_a_candidate_waits_for_the_lease_of_a_dead_leader_to_run_out() -> None:
    server = LeaseServer()
    server.take("dead", transitions=3)
    start = now()
    async with candidate(server).leading() as term:
        assert 15 <= now() - start < 18
        assert term.token == 4


@pytest.mark.conformance("LE-04")
@pytest.mark.parametrize(("chance", "pause"), [(0.0, 2.0), (0.999, 4.3976)])
async def test_candidates_try_every_retry_period_and_up_to_more_than_twice_that(chance: float, pause: float) -> None:
    server = LeaseServer()
    server.take("other", seconds=1000)
    tries: list[float] = []
    server.on_request = lambda verb: tries.append(now())
    task = asyncio.create_task(led_for(LeaderElector(server, "it", identity="me", random=lambda: chance)))
    await asyncio.sleep(20)
    task.cancel()
    await asyncio.wait([task])
    assert [later - earlier for earlier, later in pairwise(tries)] == pytest.approx(
        [pause] * (len(tries) - 1), abs=1e-6
    )


async def test_a_candidate_outlasts_an_outage() -> None:
    server = LeaseServer()
    server.down = True
    asyncio.get_running_loop().call_later(60, setattr, server, "down", False)
    async with candidate(server).leading():
        assert server.holder == "me"


@pytest.mark.conformance("LE-10")
async def test_the_log_tells_of_an_outage_once_and_of_lost_races_never(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    server.down = True
    server.refusals.append(refusal(409, "Conflict"))
    asyncio.get_running_loop().call_later(60, setattr, server, "down", False)
    async with candidate(server).leading():
        warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert warnings == ["lease default/it: connection refused"]


async def test_a_candidate_whose_requests_are_swallowed_tries_again_after_a_time() -> None:
    server = LeaseServer()
    server.silent = True
    asyncio.get_running_loop().call_later(8, setattr, server, "silent", False)
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(14, abs=0.1)  # 5 s, 2 s, 5 s, 2 s
    assert server.holder == ""


@pytest.mark.conformance("LE-04")
@pytest.mark.parametrize(("status", "reason"), [(503, "ServiceUnavailable"), (429, "TooManyRequests")])
@pytest.mark.parametrize("seconds", ["30", "3600", "Wed, 21 Oct 2015 09:28:00 GMT"])
async def test_retry_after_does_not_delay_a_candidate(status: int, reason: str, seconds: str) -> None:
    server = LeaseServer()
    for _ in range(2):
        answer = refusal(status, reason)
        answer.headers = {"Retry-After": seconds, "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}
        server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(4, abs=0.1)


async def test_retry_after_in_the_status_does_not_delay_a_candidate() -> None:
    server = LeaseServer()
    server.refusals.append(Answer(503, {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 600}}))
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(2, abs=0.1)


async def test_a_body_that_never_ends_is_bounded_as_a_request() -> None:
    server = LeaseServer()
    server.refusals.append(Endless(503, b"wait"))
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(7, abs=0.1)  # 5 s for the request, 2 s until the next try


async def test_an_answer_that_took_too_long_makes_no_leader() -> None:
    server = LeaseServer()
    stalls = iter([True, False, False, False])
    server.on_request = lambda verb: stall(11) if verb == "create" and next(stalls) else None
    async with candidate(server).leading() as term:
        assert term.remaining > 9


async def test_who_is_cancelled_while_a_write_is_on_its_way_releases_what_it_may_have() -> None:
    server = LeaseServer()
    server.latency = 4.0
    task = asyncio.create_task(led_for(candidate(server)))
    await asyncio.sleep(7.5)  # get: 4 s; create: done after 2 s more, answered after 4
    assert server.holder == "me"
    task.cancel()
    server.latency = 0.0
    await asyncio.wait([task])
    assert task.cancelled()
    assert server.holder == ""


# Staying it.


@pytest.mark.conformance("LE-05", "LE-06")
async def test_a_leader_renews_by_one_write_every_retry_period() -> None:
    server = LeaseServer()
    elector = candidate(server)
    async with elector.leading():
        server.verbs.clear()
        await asyncio.sleep(100.5)
        assert server.verbs == ["update"] * 50
        assert elector.slow_paths == 0


@pytest.mark.conformance("LE-05")
async def test_a_leader_survives_a_write_that_somebody_else_makes_to_its_lease() -> None:
    server = LeaseServer()
    elector = candidate(server)
    async with elector.leading():
        assert server.lease is not None
        server.put({**server.lease, "metadata": {"name": "it", "annotations": {"a": "1"}}})
        await asyncio.sleep(60)
        assert server.lease["metadata"]["annotations"] == {"a": "1"}
        assert elector.slow_paths == 1
        assert elector.is_leader()


@pytest.mark.conformance("LE-06")
async def test_a_short_outage_ends_no_leadership() -> None:
    server = LeaseServer()
    async with candidate(server).leading() as term:
        server.down = True
        await asyncio.sleep(7.5)
        server.down = False
        await asyncio.sleep(60)
        term.check()
        assert term.token == 0


async def test_a_lease_that_is_deleted_ends_no_leadership() -> None:
    server = LeaseServer()
    async with candidate(server).leading():
        server.lease = None
        await asyncio.sleep(60)
        assert server.holder == "me"
