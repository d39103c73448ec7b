"""A Lease that is released, deleted or taken, on virtual time: what candidates and leaders do when they notice it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from aioinformer import LeaderElectionOptions
from aioinformer.leaderelection import LeadershipLost, Term
from aioinformer.leaderelection.watch import ObjectWatch
from tests.support.lease_server import LeaseServer
from tests.support.virtual_time import VirtualTimeLoop
from tests.unit.leaderelection.candidates import candidate, led_for, now, work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import LeaderElector


#: A candidate that takes over within seconds does not do so because of the retry period.
SLOW = LeaderElectionOptions(lease_duration=900, renew_deadline=600.0, retry_period=200.0)


@asynccontextmanager
async def waiting(elector: LeaderElector) -> AsyncIterator[asyncio.Future[float]]:
    """Let the elector wait for the Lease; provide a future that has the time at which it begins to lead."""
    leads: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def lead() -> None:
        async with elector.leading():
            leads.set_result(now())
            await asyncio.sleep(1e6)

    task = asyncio.create_task(lead())
    try:
        await asyncio.sleep(1)
        assert not leads.done()
        yield leads
    finally:
        task.cancel()
        await asyncio.wait([task])
        leads.cancel()


@pytest.mark.behaviour("C-75")
@pytest.mark.parametrize("change", ["released", "released and deleted", "assigned"])
async def test_standby_leads_at_once_when_the_lease_is_free_or_its_own(server: LeaseServer, change: str) -> None:
    server.take("other", seconds=900)
    async with waiting(candidate(server, options=replace(SLOW, coordinated=change == "assigned"))) as leads:
        await asyncio.sleep(50.5)
        changed = now()
        server.take("me" if change == "assigned" else "", seconds=900)
        if change == "released and deleted":
            server.delete()
        assert await leads - changed < 0.1
        assert server.holder == "me"


@pytest.mark.behaviour("C-75")
async def test_write_without_an_answer_is_noticed_by_the_watch(server: LeaseServer) -> None:
    server.take("other", seconds=900)
    async with waiting(candidate(server, options=SLOW)) as leads:
        server.on_request = lambda verb: setattr(server, "lost_answers", verb == "update")
        server.take("")
        released = now()
        await asyncio.sleep(10)
        assert server.holder == "me"
        assert not leads.done()
        server.on_request = lambda verb: None
        server.lost_answers = False
        assert await leads - released < SLOW.request_timeout + 1


@pytest.mark.behaviour("C-76")
async def test_watch_without_permission_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer")
    server = LeaseServer()
    server.take("other", seconds=10_000)
    server.watch_status = 403
    async with waiting(candidate(server)) as leads:
        await asyncio.sleep(1000)
        server.take("")
        released = now()
        assert 0.1 < await leads - released <= 2
    assert [record.levelname for record in caplog.records if "cannot be watched" in record.message] == ["INFO"]
    assert len(server.watch_requests) == 4  # one in five minutes


async def test_broken_watch_is_opened_again(server: LeaseServer) -> None:
    server.take("other", seconds=900)
    async with waiting(candidate(server, options=SLOW)) as leads:
        server.down = True
        server.take("other", transitions=2, seconds=900)
        await asyncio.sleep(30)
        server.down = False
        await asyncio.sleep(10)
        server.take("")
        released = now()
        assert await leads - released < 0.1


async def test_expired_watch_begins_again_at_the_next_try(server: LeaseServer) -> None:
    server.take("other", seconds=900)
    server.watch_status = 410
    async with waiting(candidate(server)):
        await asyncio.sleep(60)
        assert 20 < len(server.watch_requests) < 40
        server.watch_status = 200
        await asyncio.sleep(10)
        assert len(server.watches) == 1


async def test_candidate_competes_without_a_watch_that_crashes(
    server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.take("other", seconds=900)
    server.watch_status = 0
    asyncio.get_running_loop().call_later(10, server.take, "")
    start = now()
    async with candidate(server).leading():
        assert now() - start < 13
    assert "failed; another starts in 300 s" in caplog.text


@pytest.mark.behaviour("C-75")
async def test_watch_ends_before_the_block_begins(server: LeaseServer) -> None:
    server.take("other")
    async with waiting(candidate(server)) as leads:
        assert len(server.watches) == 1
        await leads
        assert not server.watches


def test_elector_can_wait_in_another_event_loop(server: LeaseServer) -> None:
    elector = candidate(server)

    async def wait_and_lead() -> float:
        server.take("other")
        return await led_for(elector, 1)

    for _ in range(2):
        loop = VirtualTimeLoop()
        try:
            assert loop.run_until_complete(wait_and_lead()) == pytest.approx(1)
        finally:
            loop.close()


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let candidates see no event, as without the permission to watch."""
    monkeypatch.setattr(ObjectWatch, "start", lambda self, version: None)


@pytest.fixture(params=[True, False], ids=["watch", "no watch"])
def watch(request: pytest.FixtureRequest) -> bool:
    if not request.param:
        request.getfixturevalue("blind")
    return bool(request.param)


async def leads_after(server: LeaseServer, options: LeaderElectionOptions) -> float:
    """Return the number of seconds until a candidate leads."""
    start = now()
    async with candidate(server, options=options).leading() as term:
        assert (server.holder, server.spec["leaseTransitions"]) == ("me", term.token)
        return now() - start


# Candidates.


@pytest.mark.behaviour("C-75")
async def test_candidate_waits_for_the_term_of_a_deleted_lease(server: LeaseServer, watch: bool) -> None:
    server.take("other")
    asyncio.get_running_loop().call_later(5.5, server.delete)
    waited = await leads_after(server, LeaderElectionOptions())
    # Without a watch, the last renewal may have been as late as the answer that the Lease is gone.
    assert 15 <= waited <= 17 if watch else 20.5 <= waited <= 24
    assert server.spec["leaseTransitions"] == 2


@pytest.mark.behaviour("C-75")
async def test_candidate_waits_for_a_renewal_right_before_the_deletion(watch: bool) -> None:
    server, loop = LeaseServer(), asyncio.get_running_loop()
    server.take("other")
    loop.call_later(5.5, server.take, "other")
    loop.call_later(5.6, server.delete)
    assert 20.5 <= await leads_after(server, LeaderElectionOptions()) <= 24


@pytest.mark.behaviour("C-75")
async def test_candidate_that_has_observed_no_term_creates_the_lease() -> None:
    assert await leads_after(LeaseServer(), SLOW) < 0.1


async def test_candidate_obeys_the_leader_that_creates_the_lease_again() -> None:
    server, loop = LeaseServer(), asyncio.get_running_loop()
    server.take("other")
    loop.call_later(5, server.delete)
    loop.call_later(14.9, server.take, "other")
    assert 29.9 <= await leads_after(server, LeaderElectionOptions()) <= 32


@pytest.mark.behaviour("C-112")
async def test_waiting_is_logged_once_for_each_holder(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer.leaderelection")
    server, loop = LeaseServer(), asyncio.get_running_loop()
    server.take("first")
    for second in range(1, 60):
        loop.call_later(second, server.take, "first" if second < 30 else "second")
    for seconds in (60.5, 64.5):
        loop.call_later(seconds, server.delete)
        loop.call_later(seconds + 3, server.take, "second")
    loop.call_later(70, server.take, "")
    await leads_after(server, LeaderElectionOptions())
    assert [record.getMessage() for record in caplog.records] == [
        "me waits for lease default/it, held by first",
        "me waits for lease default/it, held by second",
        "me waits for lease default/it, which was deleted: the last observed term of second may last for 12.0 s more",
        "me leads: it holds lease default/it, term 2",
    ]


# The leader.


@pytest.mark.behaviour("C-110")
async def test_leader_creates_its_deleted_lease_again_at_once(
    server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with candidate(server, options=SLOW).leading() as term:
        for number in range(3):
            await asyncio.sleep(1)
            server.verbs.clear()
            server.delete()
            await asyncio.sleep(0.1)
            assert (server.holder, server.spec["leaseTransitions"]) == ("me", term.token)
            assert server.verbs == ["get", "create"], number
        term.check()
        assert 599 < term.remaining <= 600
        assert len(server.watch_requests) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "lease default/it was deleted; its leader me has created it again"
    ] * 3


@pytest.mark.behaviour("C-110")
@pytest.mark.parametrize("watch_status", [403, 410, 0])
async def test_leader_without_a_watch_notices_at_its_renewal(server: LeaseServer, watch_status: int) -> None:
    server.watch_status = watch_status
    async with candidate(server).leading() as term:
        await asyncio.sleep(100.5)
        server.delete()
        await asyncio.sleep(2)
        assert server.holder == "me"
        term.check()
    assert len(server.watch_requests) == (52 if watch_status == 410 else 1)


@pytest.mark.behaviour("C-110")
@pytest.mark.parametrize("holder", ["other", "me", ""])
async def test_leader_stops_at_once_when_it_sees_another_holder(holder: str) -> None:
    server, refused = LeaseServer(), False

    async def protected(term: Term) -> None:
        nonlocal refused
        try:
            await work(term)
        finally:
            with pytest.raises(LeadershipLost):
                term.check()
            refused = True

    asyncio.get_running_loop().call_later(5, partial(server.take, holder, transitions=7))
    start = now()
    with pytest.raises(LeadershipLost):
        await candidate(server, options=SLOW).run(protected)
    assert now() - start < 5.1
    assert refused
    assert server.holder == holder


@pytest.mark.behaviour("C-110")
async def test_late_answer_to_a_renewal_does_not_revive_the_term() -> None:
    server, loop = LeaseServer(), asyncio.get_running_loop()
    loop.call_later(11, setattr, server, "latency", 3.0)  # the renewal at 12 is processed at 13.5, and answered at 15
    loop.call_later(14, server.take, "other")
    assert await led_for(candidate(server)) == pytest.approx(14, abs=0.1)
    assert server.holder == "other"


@pytest.mark.behaviour("C-110")
@pytest.mark.usefixtures("blind")
async def test_leader_stops_at_once_when_another_candidate_was_faster() -> None:
    server = LeaseServer()

    def be_faster(verb: str) -> None:
        if verb == "create":
            server.take("other")

    async with asyncio.timeout(1000):
        loop = asyncio.get_running_loop()
        loop.call_later(5.5, server.delete)
        loop.call_later(5.5, setattr, server, "on_request", be_faster)
        assert await led_for(candidate(server)) == pytest.approx(6, abs=0.1)
    assert server.holder == "other"


async def test_leader_that_cannot_create_its_lease_stops_at_its_deadline() -> None:
    server, loop = LeaseServer(), asyncio.get_running_loop()
    loop.call_later(5.5, server.delete)
    loop.call_later(5.5, setattr, server, "down", True)
    assert 13 <= await led_for(candidate(server, options=LeaderElectionOptions(release=False))) <= 15
    assert server.lease is None
