"""What members conclude from Leases: durations that were edited, epochs, and Leases that are not those of members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from aioinformer import LeaderElectionOptions
from aioinformer.errors import ApiError
from aioinformer.ring.leases import EPOCH, SECONDS, SeenLease
from aioinformer.ring.member import DeleteLease, Member, ReadLease, WriteLease, WriteRing
from aioinformer.ring.table import Entry, Ring, Slot, encode

NAME = "ring-b"


def lease(
    name: str = NAME, uid: str = "b", *, holder: str = "ring-b_1", field: int = 15, seconds: str = "", epoch: str = ""
) -> dict[str, Any]:
    annotations = {SECONDS: seconds} if seconds else {}
    if epoch:
        annotations[EPOCH] = epoch
    return {
        "metadata": {"name": name, "uid": uid, "resourceVersion": "1", "annotations": annotations},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": field},
    }


def member_ring(ring: Ring) -> dict[str, Any]:
    return {"metadata": {"uid": "ring", "resourceVersion": "7"}, "data": encode(ring)}


def observer(*leases: Any, ring: Ring | None = None) -> Member:
    """Return a member that has joined at 100 s, and then has seen the ring and these Leases."""
    member = Member("ring-a", "ring-a_1", LeaderElectionOptions(), Ring((Slot(),) * 4))
    own = lease("ring-a", "a", holder="ring-a_1")
    member.lease_answered(member.lease_request(), own, 100.0)
    missing = ApiError(404, "NotFound")
    missing.details = {"name": "ring"}
    member.ring_read(member_ring(ring) if ring else missing, 100.0, 100.0)
    member.leases_listed([own, *leases], 100.0)
    return member


def deleted_after(member: Member) -> float | None:
    """Return after how many seconds the Lease is deleted; None if it is not within a day."""
    for seconds in (*range(1, 200), 20_000, 86_400):
        member._renewed_at = 100.0 + seconds
        write, _ = member.next_write(100.0 + seconds)
        if isinstance(write, DeleteLease):
            return float(seconds)
    return None


JOINED = Ring((Slot("ring-a", 1), Slot("ring-a", 1), Slot("ring-b", 1), Slot("ring-b", 1)), members={}, of="ring")


@pytest.mark.parametrize(
    ("field", "declared", "entry", "seconds"),
    [
        (1, "15", 15, 15.0),
        (20_000, "15", 15, 15.0),
        (1, "15", None, 15.0),
        (20_000, "15", None, 15.0),
        (1, "1", 15, 15.0),
        (15, "60", 60, 60.0),
        (1, "", 15, 15.0),
        # Of the version before, and not in the ring: the larger one, up to ten times the own one.
        (1, "", None, 15.0),
        (60, "", None, 60.0),
        (20_000, "", None, 150.0),
        (30, "odd", None, 30.0),
    ],
)
def test_duration_is_what_the_member_has_declared(field: int, declared: str, entry: int | None, seconds: float) -> None:
    members = {"ring-a": Entry("a", 15)}
    if entry is not None:
        members[NAME] = Entry("b", entry)
    ring = replace(JOINED, slots=(Slot("ring-a", 1),) * 4, members=members)
    member = observer(lease(field=field, seconds=declared), ring=ring)
    after = deleted_after(member)
    assert after is not None
    assert seconds <= after <= seconds + 1


@pytest.mark.parametrize(
    ("field", "declared", "named"),
    [(150, "", {}), (151, "", {NAME: 151}), (20_000, "15", {}), (15, "151", {NAME: 151})],
)
def test_long_durations_are_named(field: int, declared: str, named: dict[str, float]) -> None:
    assert observer(lease(field=field, seconds=declared)).too_long() == named


def test_new_ring_forms_after_the_longest_duration() -> None:
    forming = replace(JOINED, slots=(Slot(),) * 4, members={"ring-a": Entry("a", 15)}, of="")
    member = observer(lease(field=1, seconds="60"), ring=forming)
    for seconds, formed in ((59.0, False), (61.0, True)):
        member._renewed_at = 100.0 + seconds
        member.seen[NAME].since = 100.0 + seconds
        write, _ = member.next_write(100.0 + seconds)
        assert (isinstance(write, WriteRing) and write.ring.of == "ring") is formed


@pytest.mark.parametrize(
    ("epochs", "seen", "wall", "first"),
    [
        ([], -1, 1_700_000_000, 1_700_000_001),
        (["61"], -1, 0, 62),
        (["61", "7"], 90, 0, 91),
        (["61"], 27, 1_700_000_000, 1_700_000_001),
        (["9999999999999999999999", "-5", "1e9", "٣"], 27, 0, 28),
    ],
)
def test_ring_begins_above_all_that_is_known(epochs: list[str], seen: int, wall: int, first: int) -> None:
    member = observer(*[lease(f"ring-{n}", f"uid-{n}", epoch=epoch) for n, epoch in enumerate(epochs)])
    member.epoch = max(member.epoch, seen)
    member.wall = wall
    write, _ = member.next_write(100.0)
    assert isinstance(write, WriteRing)
    assert write.ring.epoch == first


@pytest.mark.parametrize(
    ("epoch", "seconds", "unreadable", "forms"),
    [
        ("61", "15", "", True),
        ("2:61", "15", "aioinformer/ring-epoch: '2:61'", False),
        ("", "15 s", "aioinformer/lease-duration: '15 s'", True),
    ],
)
def test_no_ring_is_made_above_an_epoch_that_cannot_be_read(
    epoch: str, seconds: str, unreadable: str, forms: bool
) -> None:
    member = observer(lease(epoch=epoch, seconds=seconds))
    assert member.seen[NAME].unreadable == unreadable
    assert isinstance(member.next_write(100.0)[0], WriteRing) is forms
    member.leases_listed([lease("ring-a", "a", holder="ring-a_1")], 101.0)  # it is gone
    assert isinstance(member.next_write(101.0)[0], WriteRing)


def test_slots_of_a_ring_that_formed_have_tokens_above_all_that_is_known() -> None:
    # A member of the version before has made the ring: it knew nothing of the epochs of an earlier one.
    forming = replace(JOINED, slots=(Slot(),) * 4, members={"ring-a": Entry("a", 15)}, epoch=3, of="")
    member = observer(lease(epoch="61"), ring=forming)
    member._renewed_at = 130.0
    member.seen[NAME].since = 130.0
    write, _ = member.next_write(130.0)
    assert isinstance(write, WriteRing)
    assert {each.epoch for each in write.ring.slots} == {62}
    assert write.ring.epoch == 62


def is_deleted(name: str, uid: str, holder: str) -> bool:
    """Return whether a member deletes this Lease, which has expired, besides that of a missing member."""
    ring = replace(JOINED, members={"ring-a": Entry("a", 15), NAME: Entry("entry", 15)})
    member = observer(lease(name, uid, holder=holder), ring=ring)
    member._renewed_at = 120.0
    member.ring_read(member_ring(ring), 120.0, 120.0)
    writes = []
    while isinstance(write := member.next_write(120.0)[0], DeleteLease):
        writes.append(write.name)
        member.seen.pop(write.name)
    return name in writes


def test_only_leases_of_members_are_deleted() -> None:
    assert is_deleted(NAME, "b", "ring-b_1")
    assert is_deleted(NAME, "entry", "another-program")  # edited: the ring has its uid
    assert not is_deleted(NAME, "b", "another-program")
    assert not is_deleted(NAME, "b", "ring-b-2_1")
    assert not is_deleted("ring-b-2", "b", "ring-b_1")


def test_late_answer_about_a_former_lease_changes_nothing() -> None:
    member = observer()
    late = member.lease_request()
    gone = ApiError(404, "NotFound")
    gone.details = {"name": "ring-a"}
    member.lease_answered(late, gone, 101.0)
    member.lease_answered(member.lease_request(), lease("ring-a", "c", holder="ring-a_1"), 102.0)
    following = member.lease_request()
    member.lease_answered(late, lease("ring-a", "a", holder="ring-a_1"), 110.0)
    assert member.lease_request() == following


def test_lease_that_is_there_is_read_and_not_adopted() -> None:
    member = Member("ring-a", "ring-a_1", LeaderElectionOptions(), Ring((Slot(),) * 4))
    conflict = ApiError(409, "AlreadyExists")
    member.lease_answered(member.lease_request(), conflict, 1.0)
    assert member.lease_request() == ReadLease()
    member.lease_answered(ReadLease(), lease("ring-a", holder="another-program"), 2.0)
    assert member.lease_request() == ReadLease()
    gone = ApiError(404, "NotFound")
    gone.details = {"name": "ring-a"}
    member.lease_answered(ReadLease(), gone, 3.0)
    assert member.lease_request() == WriteLease()
    # The answer to an earlier creation was lost.
    member.lease_answered(WriteLease(), conflict, 4.0)
    member.lease_answered(ReadLease(), lease("ring-a", "mine", holder="ring-a_1"), 5.0)
    assert member.lease_request() == WriteLease("mine", "1")


def test_edits_are_no_renewals() -> None:
    first = SeenLease.of(lease(), 1.0)
    assert SeenLease.of(lease(field=1), 2.0, first).renewals == 0


def test_member_takes_over_from_the_version_before() -> None:
    # Recorded: what a replica of that version has written.
    recorded = json.loads(Path(__file__).with_name("former.json").read_text())
    ring, former = recorded["ring"], recorded["lease"]
    times = LeaderElectionOptions(lease_duration=6, renew_deadline=4.0, retry_period=0.2)
    member = Member("widgets-new", "widgets-new_1", times, Ring((Slot(),) * 16))
    own = lease("widgets-new", "new", holder="widgets-new_1", field=6, seconds="6")

    def see(now: float) -> Any:
        member.lease_answered(member.lease_request(), own, now)
        member.ring_read(ring, now, now)
        member.leases_listed([own, former], now)
        return member.next_write(now)[0]

    join = see(100.0)
    assert isinstance(join, WriteRing)
    ring = {**ring, "metadata": {**ring["metadata"], "resourceVersion": "1000"}, "data": encode(join.ring)}
    assert see(105.0) is None
    death = see(108.0)
    assert death == DeleteLease("widgets-old", former["metadata"]["uid"], former["metadata"]["resourceVersion"])
    member.write_answered(death, former, 108.0, 108.0)
    taken, _ = member.next_write(108.0)
    assert isinstance(taken, WriteRing)
    assert {each.owner for each in taken.ring.slots} == {"widgets-new"}
    assert min(each.epoch for each in taken.ring.slots) > max(each.epoch for each in join.ring.slots)
