"""The elector on virtual time: who leads when, and what becomes of the guarded work."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import pairwise
from typing import Any

import anyio
import pytest

from aioinformer.errors import TransportError, UsageError
from aioinformer.leaderelection import LeaderElector, LeadershipLost, Term
from aioinformer.lease import LeaderElectionOptions
from tests.leaderelection.lease_server import LeaseServer, refusal
from tests.leaderelection.stalling_loop import stall
from tests.shell.virtual_time import settled


def candidate(server: LeaseServer, identity: str = "me", **arguments: Any) -> LeaderElector:
    """A candidate without jitter."""
    return LeaderElector(server, "it", identity=identity, random=lambda: 0.0, **arguments)


def now() -> float:
    return asyncio.get_running_loop().time()


async def led_for(elector: LeaderElector, seconds: float = 1e6) -> float:
    """Leads for so many seconds at most; returns for how many."""
    start = now()
    try:
        async with elector.leading():
            start = now()
            await asyncio.sleep(seconds)
    except LeadershipLost:
        pass
    return now() - start


async def work(term: Term) -> None:
    """Guarded work that has no end."""
    await asyncio.sleep(1e6)


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


async def test_a_candidate_asks_no_sooner_than_the_server_wants_to_be_asked() -> None:
    server = LeaseServer()
    answer = refusal(429, "TooManyRequests")
    answer.headers = {"Retry-After": "30"}
    server.refusals.append(answer)
    start = now()
    async with candidate(server).leading():
        assert now() - start == pytest.approx(30, abs=0.1)


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


# Losing it.


@pytest.mark.conformance("LE-06")
@pytest.mark.parametrize("failure", ["down", "silent", "lost_answers"])
async def test_a_leader_that_cannot_renew_stops_at_the_deadline(failure: str) -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(61, setattr, server, failure, True)
    assert 69 <= await led_for(candidate(server, options=LeaderElectionOptions(release=False))) <= 71


async def test_a_leader_that_cannot_renew_stops_before_anybody_else_leads() -> None:
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
                        await asyncio.sleep(4)  # the work takes its time to end
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


@pytest.mark.parametrize("holder", ["other", ""])
async def test_a_leader_that_reads_that_it_is_none_stops_at_once(holder: str) -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(5, server.take, holder)
    start = now()
    with pytest.raises(LeadershipLost, match=r"me has lost lease default/it(: other leads)?$"):
        await candidate(server).run(work)
    assert now() - start < 8
    assert server.holder == holder


async def test_two_processes_of_one_identity_never_lead_together() -> None:
    server = LeaseServer()
    async with candidate(server).leading():
        task = asyncio.create_task(led_for(candidate(server)))
        await asyncio.sleep(100)
        assert server.spec["leaseTransitions"] == 0
        task.cancel()
        await asyncio.wait([task])


async def test_the_loss_says_why_nothing_was_renewed() -> None:
    server = LeaseServer()
    asyncio.get_running_loop().call_later(5, setattr, server, "down", True)
    with pytest.raises(LeadershipLost) as raised:
        await candidate(server).run(work)
    assert isinstance(raised.value.__cause__, TransportError)


async def test_a_loss_to_another_has_no_other_reason() -> None:
    server = LeaseServer()
    server.refusals.append(refusal(500, "InternalError"))
    asyncio.get_running_loop().call_later(5, server.take, "other")
    with pytest.raises(LeadershipLost) as raised:
        await candidate(server).run(work)
    assert raised.value.__cause__ is None


async def test_a_renewal_that_crashes_ends_the_work_at_once_and_says_why() -> None:
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


async def test_work_that_ignores_the_loss_is_told_of_it_in_the_end() -> None:
    server = LeaseServer()

    async def deaf(term: Term) -> None:
        server.down = True
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1e6)

    with pytest.raises(LeadershipLost):
        await candidate(server).run(deaf)


async def test_a_time_out_of_the_work_itself_is_no_loss() -> None:
    server = LeaseServer()
    with pytest.raises(TimeoutError):
        async with candidate(server).leading():
            raise TimeoutError
    assert server.holder == ""


async def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    server = LeaseServer()
    with pytest.raises(LookupError):
        async with candidate(server).leading():
            raise LookupError
    assert server.holder == ""


async def test_who_lost_can_lead_again_under_a_higher_number() -> None:
    server = LeaseServer()
    elector = candidate(server)
    asyncio.get_running_loop().call_later(5, server.take, "other")
    with pytest.raises(LeadershipLost):
        await elector.run(work)
    async with elector.leading() as term:
        assert term.token == 2


async def test_who_lost_by_an_outage_leads_again_under_a_higher_number() -> None:
    server = LeaseServer()
    elector = candidate(server)
    asyncio.get_running_loop().call_later(5, setattr, server, "down", True)
    with pytest.raises(LeadershipLost):
        await elector.run(work)
    server.down = False
    async with elector.leading() as term:
        assert term.token == 1


# A loop that is held up.


async def test_work_that_held_up_the_loop_learns_that_it_has_lost() -> None:
    elector = candidate(LeaseServer())

    async def blocking(term: Term) -> None:
        await asyncio.sleep(5)
        term.check()
        stall(20)
        assert not elector.is_leader()
        term.check()

    with pytest.raises(LeadershipLost, match="does not hold"):
        await elector.run(blocking)


async def test_after_a_stall_the_work_is_cancelled_and_renews_nothing() -> None:
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


async def test_a_stall_that_is_shorter_than_the_lease_costs_nothing() -> None:
    server = LeaseServer()
    async with candidate(server).leading() as term:
        for _ in range(20):
            await asyncio.sleep(5)
            stall(6)
            term.check()


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
