"""A candidate that waits, on virtual time: it watches the Lease, and takes over when the Lease is released."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from aioinformer.leaderelection.lease import LeaderElectionOptions
from tests.support.lease_server import LeaseServer
from tests.support.virtual_time import VirtualTimeLoop
from tests.unit.leaderelection.candidates import candidate, led_for, now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.leaderelection.elector import LeaderElector


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


def free(server: LeaseServer) -> None:
    server.take("")


def free_and_delete(server: LeaseServer) -> None:
    server.take("")
    server.delete()


@pytest.mark.behaviour("C-75")
@pytest.mark.parametrize("release", [free, free_and_delete])
async def test_standby_takes_over_at_once_after_a_release(release: Callable[[LeaseServer], None]) -> None:
    server = LeaseServer()
    server.take("other", seconds=900)
    async with waiting(candidate(server, options=SLOW)) as leads:
        await asyncio.sleep(50.5)
        released = now()
        release(server)
        assert await leads - released < 0.1
        assert server.holder == "me"


@pytest.mark.behaviour("C-75")
async def test_standby_takes_over_when_a_leader_releases() -> None:
    server = LeaseServer()
    leader = asyncio.create_task(led_for(candidate(server, "first", options=SLOW), 250))
    await asyncio.sleep(1)
    async with waiting(candidate(server, "second", options=SLOW)) as leads:
        await leader
        released = now()
        assert await leads - released < 0.1


async def test_coordinated_standby_leads_at_once_when_assigned() -> None:
    server = LeaseServer()
    server.take("other", seconds=900)
    options = LeaderElectionOptions(lease_duration=900, renew_deadline=600.0, retry_period=200.0, coordinated=True)
    async with waiting(candidate(server, options=options)) as leads:
        server.take("me", seconds=900)
        assigned = now()
        assert await leads - assigned < 0.1


@pytest.mark.behaviour("C-75")
async def test_write_without_an_answer_is_noticed_by_the_watch() -> None:
    server = LeaseServer()
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


@pytest.mark.behaviour("C-76")
async def test_permission_that_is_granted_later_is_used() -> None:
    server = LeaseServer()
    server.take("other", seconds=10_000)
    server.watch_status = 403
    async with waiting(candidate(server)):
        await asyncio.sleep(10)
        server.watch_status = 200
        assert not server.watches
        await asyncio.sleep(300)
        assert server.watches


async def test_broken_watch_is_opened_again() -> None:
    server = LeaseServer()
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


async def test_expired_watch_begins_again_at_the_next_try() -> None:
    server = LeaseServer()
    server.take("other", seconds=900)
    server.watch_status = 410
    async with waiting(candidate(server)):
        await asyncio.sleep(60)
        assert 20 < len(server.watch_requests) < 40
        server.watch_status = 200
        await asyncio.sleep(10)
        assert len(server.watches) == 1


async def test_candidate_competes_without_a_watch_that_crashes(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    server.take("other", seconds=900)
    server.watch_status = 0
    asyncio.get_running_loop().call_later(10, server.take, "")
    start = now()
    async with candidate(server).leading():
        assert now() - start < 13
    assert "failed; another starts in 300 s" in caplog.text


@pytest.mark.behaviour("C-75")
async def test_watch_ends_before_the_block_begins() -> None:
    server = LeaseServer()
    server.take("other")
    async with waiting(candidate(server)) as leads:
        assert len(server.watches) == 1
        await leads
        assert not server.watches


async def test_watch_ends_when_the_candidate_is_cancelled() -> None:
    server = LeaseServer()
    server.take("other", seconds=900)
    async with waiting(candidate(server)):
        assert len(server.watches) == 1
    assert not server.watches


async def test_watch_can_be_switched_off() -> None:
    server = LeaseServer()
    server.take("other")
    async with candidate(server, options=LeaderElectionOptions(watch=False)).leading():
        assert not server.watch_requests


def test_elector_can_wait_in_another_event_loop() -> None:
    server = LeaseServer()
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
