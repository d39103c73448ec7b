"""Bugs of rings that others have had, or that a careless change might introduce; the simulation must find each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from msgspec.structs import replace

from aioinformer.ring import table
from aioinformer.ring.member import DeleteLease, Member
from aioinformer.ring.table import Entry, Ring

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from aioinformer.ring.leases import SeenLease


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug: a replacement of a function or method, whose first argument is the original."""

    name: str
    owner: Any
    attribute: str
    replacement: Callable[..., Any]

    def plant(self, stack: ExitStack) -> None:
        original = getattr(self.owner, self.attribute)
        function = original.fget if isinstance(original, property) else original
        changed: Any = lambda *arguments, **options: self.replacement(function, *arguments, **options)  # noqa: E731
        if isinstance(original, property):
            changed = property(changed)
        stack.enter_context(patch.object(self.owner, self.attribute, changed))


PLANTED: list[Planted] = []


def planted(owner: Any, attribute: str) -> Callable[[Callable[..., Any]], None]:
    def take(replacement: Callable[..., Any]) -> None:
        PLANTED.append(Planted(replacement.__name__, owner, attribute, replacement))

    return take


@planted(Member, "_refresh")
def each_replica_computes_its_slots_itself(original: Any, self: Member) -> None:
    original(self)
    if not self.ring.slots or not self._lease or self.leaving:
        return
    members = {name: Entry(each.uid, int(self.seconds_of(name, each))) for name, each in self.seen.items()}
    alone = replace(self.ring, of="x", members=members)
    self.mine = table.planned(alone, 1).owned(self.name, self._lease)


@planted(Member, "deadline")
def a_replica_that_cannot_renew_goes_on(original: Any, self: Member) -> float:
    return float(original(self)) + 12


@planted(Member, "deadline")
def the_deadline_does_not_need_the_ring(original: Any, self: Member) -> float:
    return self._renewed_at + self._times.renew_deadline


@planted(Member, "lease_answered")
def a_renewal_counts_from_its_answer(original: Any, self: Member, request: Any, answer: Any, sent: float) -> None:
    original(self, request, answer, sent)
    if self._renewed_at == sent:
        self._renewed_at = sent + 12  # of a request that took long


@planted(Member, "next_write")
def the_dead_are_not_proven_by_a_deletion(original: Any, self: Member, now: float) -> Any:
    for name, seen in self.seen.items():
        if name != self.name and now - seen.since > 8:  # the clock of another, or a list that is old
            self._missing[name, seen.uid] = float("-inf")
    return original(self, now)


@planted(Ring, "owned")
def a_replica_is_known_by_its_name_alone(original: Any, self: Ring, name: str, lease: str) -> Any:
    return {number: slot for number, slot in enumerate(self.slots) if slot.owner == name} if self.of else {}


@planted(Member, "leases_listed")
def the_dead_stay_in_the_ring(original: Any, self: Member, leases: Any, now: float) -> None:
    original(self, leases, now)
    self._missing.clear()


@planted(Member, "_proposed")
def a_new_ring_is_owned_at_once(original: Any, self: Member, ring: Ring, now: float) -> Any:
    self._ring_since = float("-inf")
    return original(self, ring, now)


@planted(Member, "_proposed")
def slots_are_handed_over_while_work_goes_on(original: Any, self: Member, ring: Ring, now: float) -> Any:
    busy, self.busy = self.busy, set()
    try:
        return original(self, ring, now)
    finally:
        self.busy = busy


@planted(Member, "next_write")
def slots_are_given_up_after_the_write(original: Any, self: Member, now: float) -> Any:
    given_up = dict(self._given_up)
    answer = original(self, now)
    self._given_up = given_up
    self._refresh()
    return answer


@planted(Member, "next_write")
def leases_of_the_dead_stay(original: Any, self: Member, now: float) -> Any:
    write, due = original(self, now)
    return (None, due) if isinstance(write, DeleteLease) and write.name != self.name else (write, due)


@planted(Member, "seconds_of")
def a_duration_that_was_edited_counts(original: Any, self: Member, name: str, seen: SeenLease) -> float:
    return seen.field


@planted(Member, "_next_epoch")
def tokens_begin_anew_with_the_ring(original: Any, self: Member, ring: Ring) -> int:
    return ring.epoch + 1


@planted(Member, "_is_of_member")
def each_lease_with_the_label_is_that_of_a_member(original: Any, self: Member, name: str, seen: SeenLease) -> bool:
    return True
