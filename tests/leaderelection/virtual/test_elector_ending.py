"""The elector on virtual time: how leadership is given back, and what others see of it."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest

from aioinformer.errors import UsageError
from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term
from aioinformer.leaderelection.lease import LeaderElectionOptions
from tests.leaderelection.candidates import candidate, led_for, now
from tests.leaderelection.lease_server import LeaseServer, refusal
from tests.shell.virtual_time import settled

# The end.


@pytest.mark.conformance("LE-08", "LE-09", "WEAK-26")
async def test_the_lease_is_given_back_after_the_work_has_ended_and_not_before() -> None:
    server = LeaseServer()
    holders = []

    async def slow(term: Term) -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(60)  # much longer than the lease: it is renewed meanwhile
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
async def test_a_lease_is_kept_to_its_end_if_it_shall_not_be_released() -> None:
    server = LeaseServer()
    await led_for(candidate(server, options=LeaderElectionOptions(release=False)), 5)
    assert server.holder == "me"


@pytest.mark.conformance("LE-08")
async def test_a_release_that_meets_a_conflict_is_tried_again() -> None:
    server = LeaseServer()
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
async def test_a_release_gives_up_before_the_lease_has_run_out(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()
    async with candidate(server).leading():
        await asyncio.sleep(1)
        server.silent = True
        end = now()
    assert now() - end <= 10
    assert "was not released" in caplog.text


async def test_a_second_cancellation_ends_the_release() -> None:
    server = LeaseServer()
    task = asyncio.create_task(led_for(candidate(server)))
    await asyncio.sleep(1)
    server.silent = True
    for _ in range(2):
        task.cancel()
        await settled()
    assert task.cancelled()


async def test_the_lease_is_given_back_also_if_a_scope_of_anyio_was_cancelled() -> None:
    server = LeaseServer()
    with anyio.move_on_after(5):
        await led_for(candidate(server))
    assert server.holder == ""


async def test_what_the_main_function_returns_is_handed_on() -> None:
    async def main(term: Term) -> int:
        return term.token + 41

    assert await candidate(LeaseServer(), options=LeaderElectionOptions()).run(main) == 41


async def test_work_that_does_not_end_in_time_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server = LeaseServer()

    async def slow(term: Term) -> None:
        server.down = True
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(30)

    with pytest.raises(LeadershipLost):
        await candidate(server).run(slow)
    assert [record.levelno for record in caplog.records if "before what it guards had ended" in record.message] == [
        logging.ERROR
    ]


# Watching it.


@pytest.mark.conformance("LE-07")
async def test_each_new_leader_is_told() -> None:
    server = LeaseServer()
    server.take("other")
    told: list[str] = []
    elector = candidate(server, on_new_leader=told.append)
    task = asyncio.create_task(led_for(elector))
    await asyncio.sleep(5)
    server.take("another", transitions=2)
    await asyncio.sleep(40)
    task.cancel()
    await asyncio.wait([task])
    assert told == ["other", "another", "me"]


async def test_a_raising_callback_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def raising(leader: str) -> None:
        raise LookupError(leader)

    async with candidate(LeaseServer(), on_new_leader=raising).leading():
        assert "on_new_leader raised" in caplog.text


@pytest.mark.conformance("LE-11")
async def test_the_health_check_fails_when_work_goes_on_long_after_the_lease_has_run_out() -> None:
    server = LeaseServer()
    elector = candidate(server, options=LeaderElectionOptions(release=False))

    async def slow(term: Term) -> None:
        server.down = True
        elector.check()
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(10)
            elector.check(tolerance=10)
            with pytest.raises(LeadershipLost, match="has not ended"):
                elector.check(tolerance=1)

    elector.check()
    with pytest.raises(LeadershipLost, match="has lost"):
        await elector.run(slow)
    elector.check()


# Mistakes.


async def test_an_elector_leads_once_at_a_time() -> None:
    elector = candidate(LeaseServer())
    async with elector.leading():
        with pytest.raises(UsageError, match="make another one"):
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
def test_a_candidate_without_names_is_refused(arguments: dict[str, str], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        LeaderElector(LeaseServer(), **arguments)  # type: ignore[arg-type]


def test_identities_differ_unless_they_are_given() -> None:
    assert LeaderElector(LeaseServer(), "it").identity != LeaderElector(LeaseServer(), "it").identity


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"x" * 2_000_000, b"{}", b"\xff"])
async def test_an_answer_that_is_no_lease_makes_no_leader(body: bytes) -> None:
    server = LeaseServer()
    answer = refusal(200, "")
    answer._body = body
    server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start >= 2
