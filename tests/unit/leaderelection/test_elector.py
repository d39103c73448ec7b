"""The elector on virtual time: how candidates acquire, renew and lose the lease, and how the guarded code ends."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import LeaderElectionOptions, LeaderElector
from aioinformer.errors import TransportError
from aioinformer.leaderelection import LeadershipLost, Term
from tests.support.lease_server import Answer, LeaseServer, refusal
from tests.support.stalling_loop import stall
from tests.unit.leaderelection.candidates import candidate, led_for, now, work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Endless(Answer):
    """An answer with a head, one chunk of a body, and no end."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"wait"
        await asyncio.Event().wait()


# Acquiring.


@pytest.mark.conformance("LE-07")
async def test_only_candidate_leads_at_once(server: LeaseServer) -> None:
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


@pytest.mark.parametrize(("seconds", "waited"), [(1, 15), (15, 15), (60, 60)])
async def test_candidate_waits_for_the_longer_duration(server: LeaseServer, seconds: int, waited: int) -> None:
    server.take("other", seconds=seconds)
    elector = candidate(server)
    began = now()
    async with elector.leading():
        assert waited <= now() - began < waited + 3


async def test_lease_without_a_holder_is_free_at_once(server: LeaseServer) -> None:
    server.take("", seconds=20_000)
    began = now()
    async with candidate(server).leading():
        assert now() == began


async def test_long_duration_of_another_holder_is_named(server: LeaseServer, caplog: pytest.LogCaptureFixture) -> None:
    events: list[tuple[Any, ...]] = []
    server.take("other", seconds=20_000)
    elector = candidate(server, event=lambda *event: events.append(event))
    waiting = asyncio.create_task(elector.run(work))
    await asyncio.sleep(60)
    trouble = elector.trouble()
    assert "lease default/it, held by other, has a duration of 20000 s, more than ten times the 15 s" in trouble
    assert "delete the Lease" in trouble
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == [trouble]
    [(about, type_, reason, message)] = events
    assert (about.kind, about.name, type_, reason, message) == ("Lease", "it", "Warning", "LeaseTooLong", trouble)
    server.take("", 2)
    await asyncio.sleep(5)
    assert elector.is_leader()
    assert elector.trouble() == ""
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_events_say_who_leads(server: LeaseServer) -> None:
    events: list[tuple[Any, ...]] = []
    elector = candidate(server, event=lambda *event: events.append(event))
    await led_for(elector, 5.0)
    assert [event[1:] for event in events] == [
        ("Normal", "LeaderElection", "me became leader"),
        ("Normal", "LeaderElection", "me stopped leading"),
    ]
    about = events[0][0]
    assert (about.api_version, about.kind, about.namespace, about.name) == (
        "coordination.k8s.io/v1",
        "Lease",
        "default",
        "it",
    )


async def test_event_that_raises_ends_no_term(server: LeaseServer, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*event: Any) -> None:
        raise RuntimeError("no Events")

    assert await led_for(candidate(server, event=fail), 5.0) == 5.0
    assert "recording an Event raised" in caplog.text
    began = now()
    async with candidate(server, "next").leading():
        assert now() == began  # it was released


@pytest.mark.conformance("LE-03")
async def test_candidate_waits_until_the_lease_expires(server: LeaseServer) -> None:
    server.take("dead", transitions=3)
    start = now()
    async with candidate(server).leading() as term:
        assert 15 <= now() - start < 18
        assert term.token == 4


@pytest.mark.conformance("LE-04")
@pytest.mark.parametrize(("chance", "pause"), [(0.0, 2.0), (0.999, 4.3976)])
async def test_tries_are_one_retry_period_plus_jitter_apart(server: LeaseServer, chance: float, pause: float) -> None:
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


@pytest.mark.conformance("LE-10")
async def test_outage_is_logged_once_and_conflicts_never(server: LeaseServer, caplog: pytest.LogCaptureFixture) -> None:
    server.down = True
    server.refusals.append(refusal(409, "Conflict"))
    asyncio.get_running_loop().call_later(60, setattr, server, "down", False)
    async with candidate(server).leading():
        warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
        assert warnings == ["lease default/it: connection refused"]


@pytest.mark.conformance("LE-10")
async def test_each_outage_is_logged(server: LeaseServer, caplog: pytest.LogCaptureFixture) -> None:
    async with candidate(server).leading():
        for _ in range(2):
            server.down = True
            await asyncio.sleep(5)
            server.down = False
            await asyncio.sleep(60)
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["lease default/it: connection refused"] * 2


@pytest.mark.conformance("LE-04")
@pytest.mark.parametrize(("status", "reason"), [(503, "ServiceUnavailable"), (429, "TooManyRequests")])
@pytest.mark.parametrize("seconds", ["30", "3600", "Wed, 21 Oct 2015 09:28:00 GMT", "in the status"])
async def test_retry_after_does_not_delay_tries(server: LeaseServer, status: int, reason: str, seconds: str) -> None:
    for _ in range(2):
        answer = refusal(status, reason)
        if seconds == "in the status":
            answer = Answer(status, {"kind": "Status", "code": status, "details": {"retryAfterSeconds": 600}})
        else:
            answer.headers = {"Retry-After": seconds, "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}
        server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("answer", ["none", "an endless body"])
async def test_request_without_a_whole_answer_times_out_and_is_repeated(server: LeaseServer, answer: str) -> None:
    if answer == "none":
        server.silent = True
        asyncio.get_running_loop().call_later(6, setattr, server, "silent", False)
    else:
        server.refusals.append(Endless(503, b"wait"))
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(7, abs=0.1)  # 5 s for the request, 2 s until the next try
    assert server.holder == ""


async def test_answer_after_the_deadline_makes_no_leader(server: LeaseServer) -> None:
    stalls = iter([True, False, False, False])
    server.on_request = lambda verb: stall(11) if verb == "create" and next(stalls) else None
    async with candidate(server).leading() as term:
        assert term.remaining > 9


async def test_candidate_cancelled_during_a_write_releases_the_lease(server: LeaseServer) -> None:
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
async def test_leader_renews_with_one_write_every_retry_period(server: LeaseServer) -> None:
    elector = candidate(server)
    async with elector.leading():
        server.verbs.clear()
        await asyncio.sleep(100.5)
        assert server.verbs == ["update"] * 50
        assert elector.slow_paths == 0


@pytest.mark.conformance("LE-05")
async def test_leader_survives_another_clients_write_to_its_lease(server: LeaseServer) -> None:
    elector = candidate(server)
    async with elector.leading():
        assert server.lease is not None
        server.put({**server.lease, "metadata": {"name": "it", "annotations": {"a": "1"}}})
        await asyncio.sleep(60)
        assert server.lease["metadata"]["annotations"] == {"a": "1"}
        assert elector.slow_paths == 0  # the watch has shown the write
        assert elector.is_leader()


@pytest.mark.conformance("LE-06")
async def test_short_outage_keeps_the_leadership(server: LeaseServer) -> None:
    async with candidate(server).leading() as term:
        server.down = True
        await asyncio.sleep(7.5)
        server.down = False
        await asyncio.sleep(60)
        term.check()
        assert term.token == 0


# Losing the leadership.


@pytest.mark.conformance("LE-06")
@pytest.mark.parametrize("failure", ["down", "silent", "lost_answers"])
async def test_leader_stops_at_the_deadline_without_renewal(server: LeaseServer, failure: str) -> None:
    asyncio.get_running_loop().call_later(61, setattr, server, failure, True)
    assert 69 <= await led_for(candidate(server, options=LeaderElectionOptions(release=False))) <= 71


@pytest.mark.conformance("LE-07")
@pytest.mark.parametrize("holder", ["other", ""])
async def test_leader_stops_at_once_when_another_record_is_read(server: LeaseServer, holder: str) -> None:
    server.refusals.append(refusal(500, "InternalError"))
    asyncio.get_running_loop().call_later(5, server.take, holder)
    start = now()
    with pytest.raises(LeadershipLost, match=r"me has lost lease default/it(: other leads)?$") as raised:
        await candidate(server).run(work)
    assert raised.value.__cause__ is None
    assert now() - start < 8
    assert server.holder == holder


async def test_two_processes_with_one_identity_never_lead_together(server: LeaseServer) -> None:
    async with candidate(server).leading():
        task = asyncio.create_task(led_for(candidate(server)))
        await asyncio.sleep(100)
        assert server.spec["leaseTransitions"] == 0
        task.cancel()
        await asyncio.wait([task])


async def test_crash_of_the_renewal_cancels_the_block_at_once(server: LeaseServer) -> None:
    crash = RuntimeError("the transport is broken")
    start = now()

    def broken(verb: str) -> None:
        if now() - start > 3:
            raise crash

    server.on_request = broken
    with pytest.raises(LeadershipLost) as raised:
        await candidate(server).run(work)
    assert raised.value.__cause__ is crash
    assert now() - start < 5


async def test_block_that_ignores_cancellation_raises_the_loss() -> None:
    server = LeaseServer()

    async def ignoring(term: Term) -> None:
        server.down = True
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1e6)

    with pytest.raises(LeadershipLost):
        await candidate(server).run(ignoring)


@pytest.mark.parametrize("error", [TimeoutError, LookupError])
async def test_error_of_the_block_is_raised_unchanged(server: LeaseServer, error: type[Exception]) -> None:
    with pytest.raises(error):
        async with candidate(server).leading():
            raise error
    assert server.holder == ""


async def test_elector_leads_again_with_a_higher_token(server: LeaseServer) -> None:
    elector, loop = candidate(server), asyncio.get_running_loop()
    loop.call_later(5, setattr, server, "down", True)
    with pytest.raises(LeadershipLost) as raised:
        await elector.run(work)
    assert isinstance(raised.value.__cause__, TransportError), "the error of the last renewal"
    server.down = False
    async with elector.leading() as term:
        assert term.token == 1
    loop.call_later(5, server.take, "other", 7)
    with pytest.raises(LeadershipLost):
        await elector.run(work)
    async with elector.leading() as term:
        assert term.token == 8


# A blocked event loop.


async def test_check_raises_after_the_event_loop_was_blocked() -> None:
    elector = candidate(LeaseServer())

    async def blocking(term: Term) -> None:
        await asyncio.sleep(5)
        term.check()
        stall(20)
        assert not elector.is_leader()
        term.check()

    with pytest.raises(LeadershipLost, match="no longer holds"):
        await elector.run(blocking)


async def test_block_is_cancelled_without_renewal_after_a_stall(server: LeaseServer) -> None:
    steps = 0

    async def blocking(term: Term) -> None:
        nonlocal steps
        await asyncio.sleep(5)
        server.take("other")
        stall(20)
        while True:
            await asyncio.sleep(0)
            steps += 1

    with pytest.raises(LeadershipLost):
        await candidate(server).run(blocking)
    assert steps < 5
    assert server.holder == "other"


async def test_short_stall_keeps_the_leadership(server: LeaseServer) -> None:
    async with candidate(server).leading() as term:
        for _ in range(20):
            await asyncio.sleep(5)
            stall(6)
            term.check()
