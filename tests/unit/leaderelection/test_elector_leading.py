"""The elector on virtual time: how candidates acquire and renew the lease."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from aioinformer.leaderelection.elector import LeaderElector
from tests.support.lease_server import Answer, LeaseServer, refusal
from tests.support.stalling_loop import stall
from tests.unit.leaderelection.candidates import candidate, led_for, now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Endless(Answer):
    """An answer with a head, one chunk of a body, and no end."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"wait"
        await asyncio.Event().wait()


# Acquiring.


@pytest.mark.conformance("LE-07")
async def test_only_candidate_leads_at_once() -> None:
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
async def test_second_candidate_leads_after_the_first_releases() -> None:
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
async def test_candidate_waits_until_the_lease_expires() -> None:
    server = LeaseServer()
    server.take("dead", transitions=3)
    start = now()
    async with candidate(server).leading() as term:
        assert 15 <= now() - start < 18
        assert term.token == 4


@pytest.mark.conformance("LE-04")
@pytest.mark.parametrize(("chance", "pause"), [(0.0, 2.0), (0.999, 4.3976)])
async def test_tries_are_one_retry_period_plus_jitter_apart(chance: float, pause: float) -> None:
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


async def test_candidate_survives_an_outage() -> None:
    server = LeaseServer()
    server.down = True
    asyncio.get_running_loop().call_later(60, setattr, server, "down", False)
    async with candidate(server).leading():
        assert server.holder == "me"


@pytest.mark.conformance("LE-10")
async def test_outage_is_logged_once_and_conflicts_never(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    server.down = True
    server.refusals.append(refusal(409, "Conflict"))
    asyncio.get_running_loop().call_later(60, setattr, server, "down", False)
    async with candidate(server).leading():
        warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert warnings == ["lease default/it: connection refused"]


async def test_unanswered_request_times_out_and_is_retried() -> None:
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
async def test_retry_after_does_not_delay_tries(status: int, reason: str, seconds: str) -> None:
    server = LeaseServer()
    for _ in range(2):
        answer = refusal(status, reason)
        answer.headers = {"Retry-After": seconds, "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}
        server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(4, abs=0.1)


async def test_retry_after_in_the_status_does_not_delay_tries() -> None:
    server = LeaseServer()
    server.refusals.append(Answer(503, {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 600}}))
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(2, abs=0.1)


async def test_request_timeout_covers_an_endless_body() -> None:
    server = LeaseServer()
    server.refusals.append(Endless(503, b"wait"))
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(7, abs=0.1)  # 5 s for the request, 2 s until the next try


async def test_answer_after_the_deadline_makes_no_leader() -> None:
    server = LeaseServer()
    stalls = iter([True, False, False, False])
    server.on_request = lambda verb: stall(11) if verb == "create" and next(stalls) else None
    async with candidate(server).leading() as term:
        assert term.remaining > 9


async def test_candidate_cancelled_during_a_write_releases_the_lease() -> None:
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


# Renewing.


@pytest.mark.conformance("LE-05", "LE-06")
async def test_leader_renews_with_one_write_every_retry_period() -> None:
    server = LeaseServer()
    elector = candidate(server)
    async with elector.leading():
        server.verbs.clear()
        await asyncio.sleep(100.5)
        assert server.verbs == ["update"] * 50
        assert elector.slow_paths == 0


@pytest.mark.conformance("LE-05")
async def test_leader_survives_another_clients_write_to_its_lease() -> None:
    server = LeaseServer()
    elector = candidate(server)
    async with elector.leading():
        assert server.lease is not None
        server.put({**server.lease, "metadata": {"name": "it", "annotations": {"a": "1"}}})
        await asyncio.sleep(60)
        assert server.lease["metadata"]["annotations"] == {"a": "1"}
        assert elector.slow_paths == 0  # the watch has shown the write
        assert elector.is_leader()


@pytest.mark.conformance("LE-06")
async def test_short_outage_keeps_the_leadership() -> None:
    server = LeaseServer()
    async with candidate(server).leading() as term:
        server.down = True
        await asyncio.sleep(7.5)
        server.down = False
        await asyncio.sleep(60)
        term.check()
        assert term.token == 0


async def test_deleted_lease_keeps_the_leadership() -> None:
    server = LeaseServer()
    async with candidate(server).leading():
        server.lease = None
        await asyncio.sleep(60)
        assert server.holder == "me"
