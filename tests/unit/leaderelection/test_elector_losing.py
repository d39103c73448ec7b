"""The elector on virtual time: how leadership is lost, and how the guarded code ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from aioinformer.errors import TransportError
from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term
from aioinformer.leaderelection.lease import LeaderElectionOptions
from tests.support.lease_server import LeaseServer, refusal
from tests.support.stalling_loop import stall
from tests.unit.leaderelection.candidates import candidate, led_for, now, work

# Losing the leadership.


@pytest.mark.conformance("LE-06")
@pytest.mark.parametrize("failure", ["down", "silent", "lost_answers"])
async def test_leader_stops_at_the_deadline_without_renewal(failure: str) -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(61, setattr, server, failure, True)
    assert 69 <= await led_for(candidate(server, options=LeaderElectionOptions(release=False))) <= 71


async def test_leader_stops_before_another_candidate_leads() -> None:
    server = LeaseServer()
    leaders: set[str] = set()
    most = 0

    async def lead(elector: LeaderElector) -> None:
        nonlocal most
        while True:
            try:
                async with elector.leading():
                    leaders.add(elector.identity)
                    most = max(most, len(leaders))
                    try:
                        await asyncio.sleep(1e6)
                    finally:
                        await asyncio.sleep(4)  # the guarded code takes time to end
                        leaders.remove(elector.identity)
            except LeadershipLost:
                continue

    tasks = [asyncio.create_task(lead(candidate(server, f"candidate {number}"))) for number in range(3)]
    served = []
    for _ in range(5):
        await asyncio.sleep(60)
        served.append(server.spec["leaseTransitions"])
        server.silent = True
        await asyncio.sleep(30)
        server.silent = False
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert most == 1
    assert len(set(served)) == 5
    assert served == sorted(served)


@pytest.mark.conformance("LE-07")
@pytest.mark.parametrize("holder", ["other", ""])
async def test_leader_stops_at_once_when_another_record_is_read(holder: str) -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(5, server.take, holder)
    start = now()
    with pytest.raises(LeadershipLost, match=r"me has lost lease default/it(: other leads)?$"):
        await candidate(server).run(work)
    assert now() - start < 8
    assert server.holder == holder


async def test_two_processes_with_one_identity_never_lead_together() -> None:
    server = LeaseServer()
    async with candidate(server).leading():
        task = asyncio.create_task(led_for(candidate(server)))
        await asyncio.sleep(100)
        assert server.spec["leaseTransitions"] == 0
        task.cancel()
        await asyncio.wait([task])


async def test_loss_has_the_error_of_the_last_renewal_as_cause() -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(5, setattr, server, "down", True)
    with pytest.raises(LeadershipLost) as raised:
        await candidate(server).run(work)
    assert isinstance(raised.value.__cause__, TransportError)


async def test_loss_to_another_candidate_has_no_cause() -> None:
    server = LeaseServer()
    server.refusals.append(refusal(500, "InternalError"))
    asyncio.get_running_loop().call_later(5, server.take, "other")
    with pytest.raises(LeadershipLost) as raised:
        await candidate(server).run(work)
    assert raised.value.__cause__ is None


async def test_crash_of_the_renewal_cancels_the_block_at_once() -> None:
    server = LeaseServer()
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


async def test_timeout_error_of_the_block_is_no_loss() -> None:
    server = LeaseServer()
    with pytest.raises(TimeoutError):
        async with candidate(server).leading():
            raise TimeoutError
    assert server.holder == ""


async def test_error_of_the_block_is_raised_unchanged() -> None:
    server = LeaseServer()
    with pytest.raises(LookupError):
        async with candidate(server).leading():
            raise LookupError
    assert server.holder == ""


async def test_elector_leads_again_with_a_higher_token_after_a_loss() -> None:
    server = LeaseServer()
    elector = candidate(server)
    asyncio.get_running_loop().call_later(5, server.take, "other")
    with pytest.raises(LeadershipLost):
        await elector.run(work)
    async with elector.leading() as term:
        assert term.token == 2


async def test_elector_leads_again_with_a_higher_token_after_an_outage() -> None:
    server = LeaseServer()
    elector = candidate(server)
    asyncio.get_running_loop().call_later(5, setattr, server, "down", True)
    with pytest.raises(LeadershipLost):
        await elector.run(work)
    server.down = False
    async with elector.leading() as term:
        assert term.token == 1


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


async def test_block_is_cancelled_without_renewal_after_a_stall() -> None:
    server = LeaseServer()
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


async def test_short_stall_keeps_the_leadership() -> None:
    server = LeaseServer()
    async with candidate(server).leading() as term:
        for _ in range(20):
            await asyncio.sleep(5)
            stall(6)
            term.check()
