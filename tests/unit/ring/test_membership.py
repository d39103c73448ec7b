"""Replicas that take part in a ring: what they send, when work must end, and what they say of a trouble."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from aioinformer.ring import SlotLost
from tests.unit.ring.replicas import SLOTS, Replica, RingServer, taking_part, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport import HttpRequest

ALL = set(range(SLOTS))


@pytest.fixture
def server() -> RingServer:
    return RingServer()


def settled(server: RingServer, *replicas: Replica) -> bool:
    """Return whether each slot has one owner that begins work in it."""
    owned = sorted(slot for each in replicas for slot in each.slots)
    return owned == sorted(ALL) and all(each.slots for each in replicas)


async def test_first_replica_makes_a_ring_and_owns_it_after_a_lease(server: RingServer) -> None:
    one = Replica(server, "a")
    membership = one.membership
    assert membership.grant(0) is None
    with pytest.raises(SlotLost, match="shared-a does not take part in its ring"):
        membership.check()
    async with taking_part(one):
        await asyncio.sleep(1)
        membership.check()
        assert (
            one.waits_for == "the ring forms: no slot is owned for the duration of a Lease, which may still be in use"
        )
        assert server.owners == [""] * SLOTS
        assert 14 <= await until(lambda: one.slots) < 16
        assert one.slots == ALL
        assert one.waits_for == ""
        lease = server.lease("a")
        assert lease is not None
        assert lease["spec"]["holderIdentity"].startswith("shared-a_")
        assert lease["spec"]["leaseDurationSeconds"] == 15
        assert lease["metadata"]["labels"] == {"aioinformer/ring": "shared"}
        assert server.ring["epoch"] > 1_700_000_000
        snapshot = membership.snapshot()
        assert (snapshot["name"], snapshot["member"]) == ("default/shared-ring", "shared-a")
        assert (snapshot["owners"], snapshot["mine"]) == ({"shared-a": SLOTS}, sorted(ALL))
        assert snapshot["gap"] == ""
        grant = membership.grant(0)
        assert grant is not None
        grant.check()
        assert 8 <= grant.remaining <= 10
        assert not membership.statistics().ended
    assert membership.statistics().ended
    assert (one.slots, sorted(one.ended)) == (set(), sorted(ALL))
    with pytest.raises(SlotLost, match="shared-a does not own slot 0 any more"):
        grant.check()


async def test_replica_that_joins_gets_a_share_once_work_in_it_has_ended(server: RingServer) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    async with taking_part(one):
        await until(lambda: one.slots)
        one.busy = set(ALL)
        before = {slot: one.membership.grant(slot) for slot in ALL}
        async with taking_part(other):
            await until(lambda: len(one.slots) == 2)
            await asyncio.sleep(5)
            kept, given = one.slots, ALL - one.slots
            assert other.slots == set(), "runs have not ended"
            assert other.waits_for == "2 slots are on the way"
            assert one.ended == []
            assert all(each is not None and each.remaining > 0 for each in before.values()), "runs may go on"
            assert all(one.membership.grant(slot) is None for slot in given)
            one.busy -= given
            one.membership.wake()
            await until(lambda: other.slots == given, 2.5)
            assert sorted(one.ended) == sorted(given)
            for slot, grant in before.items():
                assert grant is not None
                assert (grant.remaining > 0) == (slot in kept)
                epoch = other.membership.epoch_of(slot)
                assert (epoch is None) == (slot in kept)
                assert epoch is None or epoch > grant.token


PARTS: dict[str, Callable[[HttpRequest], bool]] = {
    "everything": lambda request: True,
    "its Lease": lambda request: request.path.endswith("/shared-a") or request.method == "POST",
    "the ring": lambda request: request.path.endswith("/shared-ring") and request.method == "GET",
}
NAMED = {"everything": "the ring", "its Lease": "the Lease shared-a", "the ring": "the ring"}


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        *(("everything", "down"), ("everything", "silent")),
        *(("its Lease", "lost"), ("its Lease", "403")),
        *(("the ring", "silent"), ("the ring", "403")),
    ],
)
async def test_work_ends_at_the_deadline_and_before_another_replica_begins(
    server: RingServer, part: str, fault: str
) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    clock = asyncio.get_running_loop().time
    async with taking_part(one, other):
        await until(lambda: settled(server, one, other))
        one.busy = set(one.slots)
        owned, began = set(one.slots), clock()
        one.link.fault = lambda request: fault if PARTS[part](request) else ""
        await until(lambda: one.ended)
        assert 7 <= clock() - began <= 10.1, "the deadline, counted from when a request was sent"
        assert (set(one.ended), one.slots) == (owned, set())
        assert one.membership.remaining <= 0
        assert one.membership.grant(min(owned)) is None
        with pytest.raises(SlotLost):
            one.membership.check()
        assert f"{NAMED[part]}: " in one.waits_for or f"{NAMED['its Lease']}: " in one.waits_for
        assert ("grant it: `aioinformer check` prints the roles" in one.waits_for) == (fault == "403")
        if part != "the ring" and fault != "lost":  # otherwise, its Lease is renewed
            await until(lambda: other.slots == ALL)
            assert clock() - began >= 13, "the duration of the Lease"
        one.link.fault = lambda request: ""
        await until(lambda: settled(server, one, other))
        assert one.waits_for == ""


@pytest.mark.parametrize("fault", ["lost", "409"])
@pytest.mark.parametrize("number", range(6))
async def test_fault_of_any_early_write_delays_the_ring_alone(server: RingServer, number: int, fault: str) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    writes: list[HttpRequest] = []

    def break_one(request: HttpRequest) -> str:
        if request.method == "GET":
            return ""
        writes.append(request)
        return fault if len(writes) == number + 1 else ""

    one.link.fault = other.link.fault = break_one
    async with taking_part(one, other):
        await until(lambda: settled(server, one, other))
        assert len(writes) > number
        await asyncio.sleep(3)
        assert settled(server, one, other)
        assert sorted(server.owners) == ["a", "a", "b", "b"]
        assert (one.waits_for, other.waits_for) == ("", "")
        assert server.names("leases") == ["default/shared-a", "default/shared-b"]


async def test_replica_that_leaves_hands_its_slots_over_at_once(
    server: RingServer, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    async with taking_part(other):
        running = asyncio.create_task(one.membership.run())
        await until(lambda: settled(server, one, other))
        leaving = asyncio.create_task(one.membership.leave(5.0))
        await asyncio.sleep(0)
        assert one.slots == set()
        await leaving
        await running
        assert server.lease("a") is None
        assert set(server.owners) == {"b"}
        await until(lambda: other.slots == ALL, 2.5)
    assert "has not left" not in caplog.text


async def test_replica_that_cannot_leave_in_time_says_so(server: RingServer, caplog: pytest.LogCaptureFixture) -> None:
    one = Replica(server, "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        one.link.fault = lambda request: "down"
        clock = asyncio.get_running_loop().time
        began = clock()
        await one.membership.leave(3.0)
        assert 3 <= clock() - began < 3.1
        assert "member shared-a has not left within 3 s: its slots are taken when its Lease has expired" in caplog.text
        assert server.lease("a") is not None


async def test_replica_that_does_not_stand_hands_over_and_comes_back(server: RingServer) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    async with taking_part(one, other):
        await until(lambda: settled(server, one, other))
        one.membership.stand(False, "its caches have not synced")
        assert one.slots == set(), "no work begins from now on"
        await until(lambda: other.slots == ALL, 2.5)
        assert one.waits_for == "its caches have not synced"
        one.membership.stand(False, "its caches have not synced")
        one.membership.stand(True)
        await until(lambda: settled(server, one, other))
        assert one.waits_for == ""


async def test_work_that_outlives_its_lease_by_far_is_a_failure(server: RingServer) -> None:
    one = Replica(server, "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        one.link.fault = lambda request: "down"
        await until(lambda: one.ended)
        await asyncio.sleep(40)
        assert one.membership.failure() == ""
        one.busy = {2, 1}
        assert one.membership.failure() == "attempts in the slots [1, 2] still run, and the Lease expired long ago"
    one = Replica(RingServer(), "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        one.link.fault = lambda request: "down"
        await until(lambda: one.ended)
        one.busy = {1}
        await asyncio.sleep(15 + 20 - 1)
        assert one.membership.failure() == ""


async def test_what_others_have_added_stays(server: RingServer) -> None:
    one = Replica(server, "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        for plural, name in (("leases", "shared-a"), ("configmaps", "shared-ring")):
            known = server.objects[plural][f"default/{name}"]
            metadata = {
                **known["metadata"],
                "labels": {**known["metadata"]["labels"], "team": "x"},
                "annotations": {**known["metadata"].get("annotations", {}), "note": "y"},
                "finalizers": ["example.com/z"],
            }
            content = {"data": {**known["data"], "other": "z"}} if "data" in known else {}
            server.put(plural, {**known, **content, "metadata": metadata})
        await asyncio.sleep(5)
        other = Replica(server, "b")
        async with taking_part(other):
            await until(lambda: settled(server, one, other))
            await asyncio.sleep(3)
        lease = server.lease("a")
        assert lease is not None
        ring = server.objects["configmaps"]["default/shared-ring"]
        for each in (lease, ring):
            assert each["metadata"]["labels"] == {"aioinformer/ring": "shared", "team": "x"}
            assert each["metadata"]["annotations"]["note"] == "y"
            assert each["metadata"]["finalizers"] == ["example.com/z"]
        assert ring["data"]["other"] == "z"
        assert lease["metadata"]["annotations"]["aioinformer/ring-epoch"] == str(server.ring["epoch"])


async def test_idle_ring_costs_few_requests(server: RingServer) -> None:
    one = Replica(server, "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        await asyncio.sleep(10)
        before = len(one.link.requests)
        await asyncio.sleep(100)
        sent = [request.method for request in one.link.requests[before:]]
        # Every 2 s: a renewal, a read of the ring, and a list of the Leases.
        assert 45 <= sent.count("PUT") <= 51
        assert 90 <= sent.count("GET") <= 103
        assert len(sent) == sent.count("PUT") + sent.count("GET")


# Troubles: each is reported once, again if it comes back, and it is why the replica waits.


def spoil_ring(server: RingServer) -> None:
    known = server.objects["configmaps"]["default/shared-ring"]
    server.put("configmaps", {**known, "data": {"ring.json": "{}"}})


def mend_ring(server: RingServer) -> None:
    server.remove("configmaps", "default/shared-ring")


def remove_other(server: RingServer) -> None:
    server.remove("leases", "default/shared-z")


TROUBLES: dict[str, tuple[Callable[[RingServer], object], Callable[[RingServer], object], str, bool]] = {
    "RingUnusable": (spoil_ring, mend_ring, "the ConfigMap default/shared-ring is unusable: ring.json cannot", True),
    "LeaseTooLong": (
        lambda server: server.put_lease("z", "shared-z_1", lease_duration="151"),
        remove_other,
        "the Lease default/shared-z, held by shared-z_1, has a duration of 151 s, more than 10 times the 15 s",
        False,
    ),
    "LeaseUnreadable": (
        lambda server: server.put_lease("z", "", lease_duration="P1D"),
        remove_other,
        "the Lease default/shared-z, without a holder, has the annotation aioinformer/lease-duration: 'P1D', and this "
        "version of aioinformer knows decimal numbers only: it counts as absent",
        False,
    ),
}


@pytest.mark.parametrize("reason", TROUBLES)
async def test_trouble_is_reported_once_each_time(
    server: RingServer, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    begin, end, message, waits = TROUBLES[reason]
    one = Replica(server, "a")
    async with taking_part(one):
        await until(lambda: one.slots)
        await asyncio.sleep(3)
        for times in (1, 2):
            begin(server)
            await asyncio.sleep(4)
            assert one.reasons == [reason] * times
            assert message in one.troubles[-1][1]
            assert (message in one.waits_for) == waits
            assert len([each for each in caplog.records if message in each.getMessage()]) == times
            assert (message in one.membership.snapshot()["gap"]) == (reason == "LeaseTooLong")
            end(server)
            await asyncio.sleep(3)
            await until(lambda: one.slots == ALL and not one.waits_for)


@pytest.mark.parametrize(
    ("holder", "ring", "foreign"),
    [
        ("another-program", "shared", True),
        ("shared-a_1", "another", True),
        ("shared-a_1", "", True),
        ("shared-a-2_1", "shared", True),
        ("", "shared", True),
        ("shared-a_1", "shared", False),
    ],
)
async def test_lease_of_another_program_under_the_own_name_is_named(
    server: RingServer, holder: str, ring: str, foreign: bool
) -> None:
    server.put_lease("a", holder, ring=ring)
    one = Replica(server, "a")
    async with taking_part(one):
        await asyncio.sleep(5)
        named = f"held by {holder}," if holder else "without a holder,"
        assert (f"default/shared-a, {named} is that of another program" in one.waits_for) == foreign
        assert one.reasons == ["LeaseOfAnother"] * foreign
        assert one.slots == set()
        server.objects["leases"].pop("default/shared-a", None)
        await until(lambda: one.slots == ALL)
        assert one.waits_for == ""


async def test_slots_without_an_owner_are_reported_with_the_reason(server: RingServer) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    async with taking_part(one):
        await until(lambda: one.slots)
        await asyncio.sleep(3)
        one.busy = set(ALL)
        async with taking_part(other):
            await until(lambda: len(one.slots) == 2)
            await asyncio.sleep(20)
            assert other.reasons == []
            await asyncio.sleep(9)
            given = sorted(ALL - one.slots)
            named = ", ".join(map(str, given))
            text = (
                f"slots without an owner for more than 25 s: {named}; shared-a hands slot {given[0]} over, and has runs"
            )
            for each in (one, other):
                assert each.reasons == ["SlotsUnowned"]
                assert text in each.troubles[0][1]
                assert text in each.membership.snapshot()["gap"]
            assert set(one.membership.snapshot()["unowned"]) == set(given)
            assert one.membership.statistics().unowned == pytest.approx(29, abs=2)
            one.busy = set()
            await until(lambda: other.slots == set(given))
            await asyncio.sleep(3)
            assert other.membership.snapshot()["gap"] == ""
            assert other.membership.statistics().unowned == 0


async def test_replica_says_what_it_waits_for_before_it_joins(server: RingServer) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    async with taking_part(one):
        await until(lambda: one.slots)
        other.link.fault = lambda request: (
            "silent" if request.method == "PUT" and "/configmaps/" in request.path else ""
        )
        async with taking_part(other):
            await asyncio.sleep(2)
            assert other.waits_for == "this replica has not joined yet"
            await asyncio.sleep(5)
            assert other.waits_for.startswith("a write of the ring: no answer within")
            other.link.fault = lambda request: ""
            await until(lambda: settled(server, one, other))
            assert other.waits_for == ""


async def test_epoch_that_cannot_be_read_prevents_a_new_ring(server: RingServer) -> None:
    server.put_lease("z", "shared-z_1", ring_epoch="2:17")
    one = Replica(server, "a")
    async with taking_part(one):
        await asyncio.sleep(5)
        text = "held by shared-z_1, has the annotation aioinformer/ring-epoch: '2:17', and this version of aioinformer"
        assert text in one.waits_for
        assert "no new ring is made; run one version on all replicas" in one.waits_for
        assert one.reasons == ["LeaseUnreadable"]
        assert server.names() == []
        server.remove("leases", "default/shared-z")
        await until(lambda: one.slots == ALL)


@pytest.mark.parametrize(
    ("forbidden", "reason"),
    [
        ("DELETE", "a write of the ring: 403 Forbidden: no; grant it: `aioinformer check` prints the roles"),
        ("", ""),
    ],
    ids=["forbidden", "permitted"],
)
async def test_slots_of_a_dead_replica_are_taken_or_reported(server: RingServer, forbidden: str, reason: str) -> None:
    one, other = Replica(server, "a"), Replica(server, "b")
    one.link.fault = lambda request: "403" if request.method == forbidden else ""
    async with taking_part(one, other):
        await until(lambda: settled(server, one, other))
        left = sorted(other.slots)
        other.link.fault = lambda request: "down"
        await asyncio.sleep(40)
        assert one.reasons == (["SlotsUnowned"] if forbidden else [])
        gap = one.membership.snapshot()["gap"]
        named = ", ".join(map(str, left))
        assert gap == (f"slots without an owner for more than 25 s: {named}; {reason}" if forbidden else "")
        assert one.slots == (ALL - set(left) if forbidden else ALL)


@pytest.mark.parametrize(
    ("namespaces", "named"),
    [
        ({0: 7, 1: 1}, None),
        ({0: 8, 1: 1}, 0),
        ({0: 1, 3: 40, 1: 2}, 3),
        ({0: 10, 1: 10, 2: 10, 3: 10}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_uneven_slots_are_reported_once(
    server: RingServer, namespaces: dict[int, int], named: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    one = Replica(server, "a", by="namespace", slots=8)
    one.namespaces = namespaces
    async with taking_part(one):
        await until(lambda: one.slots)
        await asyncio.sleep(5)
        one.namespaces = {}
        await asyncio.sleep(5)
        one.namespaces = namespaces
        await asyncio.sleep(5)
        text = (
            f"slot {named} has {namespaces.get(named or 0)} of the {sum(namespaces.values())} namespaces in the 8 slots"
        )
        assert one.reasons == ([] if named is None else ["SlotsUneven"])
        assert named is None or text in one.troubles[0][1]
        assert [each.levelname for each in caplog.records if "namespaces in the" in each.getMessage()] == (
            [] if named is None else ["WARNING"]
        )
        assert one.membership.snapshot()["namespaces"] == namespaces
        assert one.waits_for == ""
