"""The elector on virtual time: how the lease is released, and what callbacks and health checks report."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest

from aioinformer import LeaderElectionOptions, LeaderElector
from aioinformer.errors import UsageError
from aioinformer.leaderelection import LeadershipLost, Term
from tests.support.lease_server import LeaseServer, refusal
from tests.support.virtual_time import settled
from tests.unit.leaderelection.candidates import candidate, led_for, now

# Releasing.


@pytest.mark.conformance("LE-08", "LE-09", "WEAK-26")
async def test_lease_is_released_after_the_block_has_ended(server: LeaseServer) -> None:
    holders = []

    async def slow(term: Term) -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(60)  # much longer than the lease, which is renewed in the meantime
            holders.append(server.holder)

    task = asyncio.create_task(candidate(server).run(slow))
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert holders == ["me"]
    assert server.spec["holderIdentity"] == ""
    assert server.spec["leaseDurationSeconds"] == 1


@pytest.mark.conformance("LE-08")
async def test_lease_stays_without_release(server: LeaseServer) -> None:
    await led_for(candidate(server, options=LeaderElectionOptions(release=False)), 5)
    assert server.holder == "me"


@pytest.mark.conformance("LE-08")
async def test_release_is_retried_after_a_conflict(server: LeaseServer) -> None:
    async with candidate(server).leading():
        server.verbs.clear()
        server.on_request = lambda verb: (
            server.refusals.append(refusal(409, "Conflict"))
            if verb == "update" and server.verbs.count(verb) < 3
            else None
        )
    assert server.verbs == ["get", "update"] * 3
    assert server.holder == ""


@pytest.mark.conformance("LE-08")
async def test_release_stops_before_the_lease_expires(server: LeaseServer, caplog: pytest.LogCaptureFixture) -> None:
    async with candidate(server).leading():
        await asyncio.sleep(1)
        server.silent = True
        end = now()
    assert now() - end <= 10
    assert "was not released" in caplog.text


async def test_second_cancellation_ends_the_release(server: LeaseServer) -> None:
    task = asyncio.create_task(led_for(candidate(server)))
    await asyncio.sleep(1)
    server.silent = True
    for _ in range(2):
        task.cancel()
        await settled()
    assert task.cancelled()


async def test_lease_is_released_in_a_cancelled_anyio_scope(server: LeaseServer) -> None:
    with anyio.move_on_after(5):
        await led_for(candidate(server))
    assert server.holder == ""


async def test_run_returns_the_result_of_main() -> None:
    async def main(term: Term) -> int:
        return term.token + 41

    assert await candidate(LeaseServer(), options=LeaderElectionOptions()).run(main) == 41


# Observing.


@pytest.mark.conformance("LE-07")
async def test_on_new_leader_is_called_for_each_leader(server: LeaseServer) -> None:
    server.take("other")
    reported: list[str] = []
    elector = candidate(server, on_new_leader=reported.append)
    task = asyncio.create_task(led_for(elector))
    await asyncio.sleep(5)
    server.take("another", transitions=2)
    await asyncio.sleep(40)
    task.cancel()
    await asyncio.wait([task])
    assert reported == ["other", "another", "me"]


async def test_raising_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def raising(leader: str) -> None:
        raise LookupError(leader)

    async with candidate(LeaseServer(), on_new_leader=raising).leading():
        assert "on_new_leader raised" in caplog.text


@pytest.mark.conformance("LE-11")
async def test_block_that_outlives_its_lease_is_logged_and_unhealthy(
    server: LeaseServer, caplog: pytest.LogCaptureFixture
) -> None:
    elector = candidate(server, options=LeaderElectionOptions(release=False))

    async def slow(term: Term) -> None:
        server.down = True
        elector.check()
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(10)
            elector.check(tolerance=10)
            with pytest.raises(LeadershipLost, match="still runs"):
                elector.check(tolerance=1)

    elector.check()
    with pytest.raises(LeadershipLost, match="has lost"):
        await elector.run(slow)
    elector.check()
    [logged] = [each for each in caplog.records if "before the code that it guards ended" in each.message]
    assert logged.levelno == logging.ERROR


# Wrong use.


async def test_elector_refuses_a_second_block() -> None:
    elector = candidate(LeaseServer())
    async with elector.leading():
        with pytest.raises(UsageError, match="one elector for each block"):
            await elector.run(lambda term: asyncio.sleep(0))


@pytest.mark.conformance("LE-02")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "it", "namespace": ""}, "namespace"),
        ({"name": "it", "identity": ""}, "identity"),
    ],
)
def test_empty_names_are_refused(arguments: dict[str, str], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        LeaderElector(LeaseServer(), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "namespace"), [("a/b", "default"), ("it", "a/b"), ("..", "default")])
def test_names_that_no_lease_can_have_are_refused(name: str, namespace: str) -> None:
    with pytest.raises(UsageError):
        LeaderElector(LeaseServer(), name, namespace)


async def test_new_leader_is_reported_when_the_watch_shows_it(server: LeaseServer) -> None:
    server.take("first")
    seen: list[tuple[str, float]] = []
    elector = candidate(server, on_new_leader=lambda leader: seen.append((leader, now())))
    waiting = asyncio.create_task(led_for(elector))
    await asyncio.sleep(3)
    server.take("second", transitions=2)
    changed = now()
    await asyncio.sleep(0.1)
    assert [leader for leader, _ in seen] == ["first", "second"]
    assert seen[-1][1] == pytest.approx(changed, abs=0.01), "before the next try"
    assert elector.leader() == "second"
    waiting.cancel()
    await asyncio.wait([waiting])


def test_generated_identities_differ() -> None:
    assert LeaderElector(LeaseServer(), "it").identity != LeaderElector(LeaseServer(), "it").identity


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"x" * 2_000_000, b"{}", b"\xff"])
async def test_invalid_answer_makes_no_leader(server: LeaseServer, body: bytes) -> None:
    answer = refusal(200, "")
    answer._body = body
    server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start >= 2
