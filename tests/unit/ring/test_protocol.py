"""The protocol of the ring under faults, from seeds; its bounds on moves; and bugs that the simulation must find."""

from __future__ import annotations

from contextlib import ExitStack
from math import ceil
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import LeaderElectionOptions
from aioinformer.ring import RingRefused
from aioinformer.ring.member import Member, WriteRing
from aioinformer.ring.table import Entry, Ring, Slot, encode
from tests.support.ring_bugs import PLANTED, Planted
from tests.unit.ring.former import Former
from tests.unit.ring.simulation import BOUND, Version, Violation, World, quiet, run

if TYPE_CHECKING:
    from collections.abc import Sequence

#: In which seeds a planted bug is looked for. The first one shows what few others show.
SEEDS = (54, *range(1, 25))


@pytest.mark.parametrize("seed", range(1, 26))
def test_one_owner_under_faults(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_planted_bugs_are_found(bug: Planted) -> None:
    with ExitStack() as stack:
        bug.plant(stack)
        assert any(is_violated(seed) for seed in SEEDS)


@pytest.mark.parametrize("seed", range(200, 215))
def test_two_versions_have_one_owner_under_faults(seed: int) -> None:
    run(seed, versions=(Version(), Former()))


@pytest.mark.parametrize("versions", [(Former(), Version()), (Version(), Former())], ids=["update", "rollback"])
def test_rolling_update_keeps_the_slots_owned(versions: tuple[Version, Version]) -> None:
    before, after = versions
    world = started(3, versions=(before,))
    epoch = max(world.tokens.values(), default=0)
    world.versions = (after,)
    for old in list(world.replicas):
        world.add()
        world.run_until(world.now + 20)
        old.leaving = True
        world.run_until(world.now + 20)
        assert not world.unowned()
    assert {type(each.version) for each in world.living()} == {type(after)}
    assert max(world.moves) <= 2
    assert min(each.epoch for replica in world.living() for each in replica.member.mine.values()) > epoch
    quiet(world)


def is_violated(seed: int) -> bool:
    try:
        run(seed)
    except Violation:
        return True
    return False


def started(count: int, slots: int = 64, versions: Sequence[Version] = (Version(),)) -> World:
    world = World(1, slots=slots, faults=False, versions=versions)
    for _ in range(count):
        world.add()
    world.run_until(BOUND + 10)
    assert not world.unowned()
    world.moves = [0] * slots
    return world


@pytest.mark.parametrize("count", [1, 2, 3, 7, 19])
def test_join_moves_a_share(count: int) -> None:
    world = started(count)
    world.add()
    world.run_until(world.now + 30)
    assert 0 < sum(world.moves) <= ceil(1.5 * 64 / (count + 1))
    quiet(world)


@pytest.mark.parametrize("joins_first", [True, False])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_rolling_restart_moves_each_slot_twice(count: int, joins_first: bool) -> None:
    world = started(count)
    for old in list(world.replicas):
        if joins_first:
            world.add()
            world.run_until(world.now + 20)
        old.leaving = True
        world.run_until(world.now + 20)
        if not joins_first:
            world.add()
            world.run_until(world.now + 20)
    assert max(world.moves) <= 2
    quiet(world)


def test_ring_that_nobody_holds_is_taken_at_once() -> None:
    world = started(2)
    for each in world.replicas:
        each.leaving = True
    world.run_until(world.now + 20)
    assert not world.living()
    world.add()
    world.run_until(world.now + 1)
    assert not world.unowned()


def test_leaving_hands_over_at_once() -> None:
    world = started(3)
    world.replicas[1].leaving = True
    world.run_until(world.now + 9)  # its work ends before
    assert not world.unowned()


def test_replica_that_does_not_stand_hands_its_slots_over_and_takes_none() -> None:
    world = started(3)
    one = world.replicas[1].member
    one.stands = False
    world.run_until(world.now + 9)  # its work ends before
    assert not world.unowned()
    assert not one.mine
    world.add()
    world.run_until(world.now + 60)
    assert not one.mine
    assert one.name not in one.ring.members
    assert not world.unowned()
    one.stands = True
    world.run_until(world.now + 30)
    assert len(one.mine) >= 64 // 4 - 4
    assert not world.unowned()


def test_replica_that_does_not_stand_makes_a_ring_and_does_not_join() -> None:
    world = World(1, slots=64, faults=False)
    world.add().member.stands = False
    world.run_until(BOUND + 10)
    assert world.replicas[0].member.ring.slots
    assert not world.replicas[0].member.ring.members
    world.add()
    world.run_until(world.now + BOUND)
    assert len(world.replicas[1].member.mine) == 64


@pytest.mark.behaviour("C-138")
def test_two_replicas_of_one_name_are_refused() -> None:
    world = started(2)
    world.add(world.replicas[0].member.name)
    with pytest.raises(RingRefused, match="another process"):
        world.run_until(world.now + 30)


def test_restart_under_the_same_name_waits_for_the_lease() -> None:
    world = started(2)
    world.replicas[0].dead = True
    world.add(world.replicas[0].member.name)
    world.run_until(world.now + BOUND)
    quiet(world)


def test_successor_of_the_same_name_hands_no_slot_over_while_its_predecessor_may_work() -> None:
    slots = (Slot("a", 1, "b"), Slot("a", 1), Slot("b", 1), Slot("b", 1))
    ring = Ring(slots, "uid", 5, {"a": Entry("former", 15), "b": Entry("other", 15)}, "ring")
    stored = {"metadata": {"uid": "ring", "resourceVersion": "7"}, "data": encode(ring)}
    leases: list[dict[str, Any]] = [
        {
            "metadata": {"name": name, "uid": uid, "resourceVersion": "1"},
            "spec": {"holderIdentity": f"{name}_2", "leaseDurationSeconds": 15},
        }
        for name, uid in (("a", "new"), ("b", "other"))
    ]
    member = Member("a", "a_2", LeaderElectionOptions(), Ring((Slot(),) * 4, "uid"))
    member.lease_answered(member.lease_request(), leases[0], 100.0)
    member.ring_read(stored, 100.0, 100.0)
    member.leases_listed(leases, 100.0)
    write, _ = member.next_write(100.0)
    assert isinstance(write, WriteRing)
    assert [(each.owner, each.epoch) for each in write.ring.slots[:2]] == [("a", 1)] * 2
    # Its Lease was deleted, so it may work for the duration of that.
    for lease in leases:
        lease["metadata"]["resourceVersion"] = "2"
    member.lease_answered(member.lease_request(), leases[0], 115.0)
    member.leases_listed(leases, 115.0)
    write, _ = member.next_write(120.0)
    assert isinstance(write, WriteRing)
    assert all(each.epoch > 1 for each in write.ring.slots if each.owner == "a")


@pytest.mark.parametrize("count", [1, 3])
def test_successor_of_the_same_name_owns_slots_with_other_epochs(count: int) -> None:
    world = started(count)
    dead = world.replicas[0]
    epochs = {slot: each.epoch for slot, each in dead.member.mine.items()}
    dead.dead = True
    successor = world.add(dead.member.name)
    world.run_until(world.now + BOUND)
    quiet(world)
    assert successor.member.mine
    assert all(each.epoch > epochs.get(slot, 0) for slot, each in successor.member.mine.items())
