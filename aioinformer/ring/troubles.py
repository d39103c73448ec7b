"""`Troubles`: what is wrong with a ring as one replica sees it, in words: for log, Events, readiness and snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aioinformer.logs import get_logger
from aioinformer.ring.declaration import ControllerRing
from aioinformer.ring.leases import LABEL, LONG, SeenLease, is_of_member
from aioinformer.ring.member import Member
from aioinformer.workqueue.waiting import loop_time

_log = get_logger("aioinformer.ring")

#: Seconds beyond the duration of a Lease without an owner after which a slot is reported.
_PATIENCE: Final = 10.0
#: The reason that says that a slot has at least this many namespaces, and so many times the average of the slots.
_UNEVEN: Final = "SlotsUneven"
_FEW: Final = 8
_SKEWED: Final = 4


class Troubles:
    """Knows what is wrong, and reports each trouble once.

    Args:
        ring: as declared.
        name: of the member.
        member: decides for this replica.
        accepted: returns in how many slots work may begin.
        namespaces: returns how many namespaces with cached objects each slot has, for a ring by namespace.
        on_trouble: called with a reason and a message for an Event, once for each trouble.

    Attributes:
        errors: what the last request of each subject has failed with; "" if it has succeeded.
        unfit: why this replica takes no slots; "" if it does.
    """

    def __init__(
        self,
        ring: ControllerRing,
        name: str,
        member: Member,
        *,
        accepted: Callable[[], int],
        namespaces: Callable[[], Mapping[int, int]],
        on_trouble: Callable[[str, str], object],
    ) -> None:
        self.errors: dict[str, str] = {}
        self.unfit = ""
        self._ring = ring
        self._name = name
        self._member = member
        self._accepted = accepted
        self._namespaces = namespaces
        self._on_trouble = on_trouble
        self._subject = f"ring {ring.namespace}/{ring.object}, member {name}"
        #: What is wrong if there is a Lease of this name that is not one of this ring, and if one has a long duration.
        self._foreign = ""
        self._long = ""
        #: Why no new ring is made although there is none.
        self._blocked = ""
        self._reported: set[str] = set()

    def note_lease(self, answer: Any) -> None:
        """Note the answer to a read of the Lease under the name of this member; None if it was another request."""
        self._foreign = self._foreign_lease(answer) if isinstance(answer, dict) else ""

    def report(self) -> None:
        """Log each trouble once, and pass it on for an Event."""
        self._long = self._too_long()
        unreadable = self._unreadable()
        self._blocked = unreadable if self._member.lacks_epoch else ""
        troubles = {
            "SlotsUnowned": self._unowned(),
            "RingUnusable": self._member.problem and self._problem(),
            "LeaseOfAnother": self._foreign,
            "LeaseTooLong": self._long,
            "LeaseUnreadable": unreadable,
            _UNEVEN: "" if _UNEVEN in self._reported else self._skew(),
        }
        for reason, message in troubles.items():
            if message and reason not in self._reported:
                (_log.warning if reason == _UNEVEN else _log.error)("%s: %s", self._subject, message)
                self._on_trouble(reason, message)
                self._reported.add(reason)
            elif not message and reason != _UNEVEN:  # that one is reported once
                self._reported.discard(reason)

    def waits_for(self) -> str:
        """Return why this replica is not a member that has all of its slots; "" if it is one."""
        ring = self._member.ring
        if problem := self._problem():
            return problem
        if self.unfit:
            return self.unfit
        if not ring.of and self._blocked:
            return self._blocked
        if not ring.of:
            return "the ring forms: no slot is owned for the duration of a Lease, which may still be in use"
        if self._name not in ring.members:
            return "this replica has not joined yet"
        due = sum(each.to == self._name for each in ring.slots)
        return f"{due} slots are on the way" if due else ""

    def gap(self) -> str:
        """Return which slots have had no owner for too long, or which Lease has a long duration; "" for neither."""
        return self._unowned() or self._long

    def _problem(self) -> str:
        """Return why this replica cannot take part now; "" if it can."""
        if self._member.problem:
            return f"the ConfigMap {self._ring.namespace}/{self._ring.object} is unusable: {self._member.problem}"
        if self._foreign:
            return self._foreign
        return next((each for each in tuple(self.errors.values()) if each), "")

    def _foreign_lease(self, answer: dict[str, Any]) -> str:
        """Return what is wrong with the Lease that was read under the name of this member; "" for nothing."""
        holder = SeenLease.of(answer, 0.0).holder
        labelled = answer["metadata"].get("labels", {}).get(LABEL) == self._ring.name
        if holder == self._member.holder or (labelled and is_of_member(holder, self._name)):
            return ""
        return (
            f"the Lease {self._ring.namespace}/{self._name}{_held_by(holder)} is that of another program: this replica "
            "cannot take part; give it another name with member=, or delete the Lease if nothing uses it"
        )

    def _too_long(self) -> str:
        """Return which Lease has a duration above ten times that of this replica, and what to do; "" for none."""
        durations = self._member.too_long()
        if not durations:
            return ""
        name = max(durations, key=lambda each: durations[each])
        seen = self._member.seen[name]
        own = self._ring.options.lease_duration
        return (
            f"the Lease {self._ring.namespace}/{name}{_held_by(seen.holder)} has a duration of {durations[name]:g} s, "
            f"more than {LONG} times the {own:g} s of this replica: if its holder dies, its slots have no owner for "
            "that long, and neither has a new ring; pass the same options= to all replicas, or, if the holder has "
            "ended, delete the Lease"
        )

    def _unreadable(self) -> str:
        """Return which Lease has an annotation that this version does not know, and what to do; "" for none."""
        seen = self._member.seen
        needed = self._member.lacks_epoch
        name = needed or next((each for each, lease in seen.items() if lease.unreadable), "")
        if not name:
            return ""
        follows = "no new ring is made" if needed else "it counts as absent"
        return (
            f"the Lease {self._ring.namespace}/{name}{_held_by(seen[name].holder)} has the annotation "
            f"{seen[name].unreadable}, and this version of aioinformer knows decimal numbers only: {follows}; run one "
            "version on all replicas, or, if the holder has ended, delete the Lease"
        )

    def _unowned(self) -> str:
        """Return which slots have had no owner for too long, and why; "" for none."""
        limit = self._ring.options.lease_duration + _PATIENCE
        now = loop_time()
        slots = sorted(slot for slot, since in self._member.unowned.items() if now - since > limit)
        if not slots:
            return ""
        ring = self._member.ring
        first = slots[0]
        if reason := self._problem():
            pass
        elif not ring.members:
            reason = "there is no ring, or no member"
        elif ring.slots[first].to:
            reason = f"{ring.slots[first].owner} hands slot {first} over, and has runs in it that do not end"
        else:
            reason = f"{ring.slots[first].owner or 'no member'} owns slot {first}, and is not alive"
        named = ", ".join(map(str, slots[:8])) + ("…" if len(slots) > 8 else "")
        return f"slots without an owner for more than {limit:g} s: {named}; {reason}"

    def _skew(self) -> str:
        """Return which slot has far more namespaces than the others of this replica; "" for none."""
        namespaces = self._namespaces()
        total = sum(namespaces.values())
        slot = max(namespaces, key=lambda each: namespaces[each], default=-1)
        if not namespaces or namespaces[slot] < max(_FEW, _SKEWED * total / max(1, self._accepted())):
            return ""
        return (
            f"slot {slot} has {namespaces[slot]} of the {total} namespaces in the {self._accepted()} slots of this "
            "replica, since similar names have similar hashes: one replica works for all of them; use by='uid', or "
            "other names"
        )


def _held_by(holder: str) -> str:
    return f", held by {holder}," if holder else ", without a holder,"
