"""The decisions of one replica about its ring, computed from Leases and the ring object without loop, clock or network.

Each replica has a Lease, which it renews, and writes the ring by compare-and-swap. The rules:

- A life of a replica is identified by the uid of its Lease. A replica that loses its Lease begins another life, and
  owns nothing.
- A member owns the slots that the last ring that it has read gives to its life. It may work until `renew_deadline`
  after it sent the last renewal that succeeded, and after it sent the last read or write that showed this ring.
- An observer declares a member dead in two steps. It has seen the member's Lease unchanged for the Lease's duration
  by its own clock, *and* has then deleted exactly this version of the Lease. So no renewal came in between, and none
  can come later. For a missing Lease, the duration begins with the first list without it that the observer has sent
  after it read the ring with the uid of the Lease.
- A member declares the duration of its Lease in its entry in the ring, or else in an annotation. Of a Lease with
  neither, an observer takes the larger of its own duration and the Lease's field, up to ten times its own duration.
- A replica deletes only Leases of members: the ring has the uid of the Lease, or the Lease's holder is a process of
  the member.
- The owner of a slot may pass it on, by a write of the ring. After the owner's death, any replica may. The owner stops
  working on a slot before it sends this write. It takes the slot back only when the ring has changed in another way:
  until then, the write may still arrive.
- A new ring object *forms*: no member owns a slot until it has seen the object for the longest duration of a Lease.
  Until then, a replica that was cut off may still work by the ring that was deleted. The epochs of the new ring begin
  above all known epochs of earlier rings: those in the annotations of the Leases, the replica's own one, and the
  seconds since 1970. While the Lease of a member has an epoch in a form that this version does not know, this replica
  makes no new ring.
- A write that any replica may send is sent by one member after the other, in the order of a rank.
- Times are those of one monotonic clock in the process. A replica counts what other replicas did from the arrival of
  the answer, and what it may do itself from the sending of the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from msgspec.structs import replace

from aioinformer.errors import AioinformerError, ApiError, UsageError
from aioinformer.ring.leases import LONG, SeenLease, is_of_member
from aioinformer.ring.table import NO_RING, Entry, Ring, RingDamaged, Slot, decode, planned

if TYPE_CHECKING:
    from aioinformer.leaderelection.lease import LeaderElectionOptions

#: Seconds between two members that would write the same, and the number of members that take turns.
_TURN: Final = 0.125
_TURNS: Final = 8
_NEVER: Final = float("-inf")


class RingRefused(UsageError):
    """This replica cannot take part in the ring as it is configured."""


class ReadLease(NamedTuple):
    """Read the own Lease."""


class WriteLease(NamedTuple):
    """Create the own Lease, or renew it, provided that it has this uid and version still."""

    uid: str = ""
    version: str = ""


class DeleteLease(NamedTuple):
    """Delete a Lease, provided that it has this uid, and this version unless that is ""."""

    name: str
    uid: str
    version: str


class WriteRing(NamedTuple):
    """Create the ring object, or replace its content, provided that it has this uid and version still."""

    ring: Ring
    uid: str = ""
    version: str = ""


LeaseRequest: TypeAlias = ReadLease | WriteLease
Write: TypeAlias = DeleteLease | WriteRing
Answer: TypeAlias = Mapping[str, Any] | AioinformerError


class Member:
    """One replica's view of its ring.

    The caller sends `lease_request` every retry period. Beside that, in this order and again and again, it reads the
    ring, lists the Leases *after* that answer, and sends `next_write`.

    Args:
        name: of the replica and its Lease, unique in the ring.
        holder: identifies the process: the name and a random part. It is the holder of the Lease.
        times: of the Lease; see `LeaderElectionOptions`.
        first: the ring without members that is written if there is none.

    Attributes:
        name, holder: as given.
        ring: the ring that was read last; `NO_RING` if there is none that can be used.
        version: the resourceVersion of the ring object that was read last; "" for none.
        mine: the slots that this replica owns; see `deadline`.
        busy: the slots in which something runs. Set it before `next_write`.
        wall: seconds since 1970, by the clock of this machine. Set it before `next_write`; a new ring begins with it.
        epoch: the highest epoch of all rings that were read; -1 for none. It belongs on the Lease.
        stands: whether this replica takes slots. If not, it renews its Lease, hands over what it owns, and observes.
        leaving: the replica has ended its work, owns nothing any more, and leaves the ring.
        left: it has left the ring, and its Lease is deleted.
        problem: why the ring cannot be used; "" if it can.
        seen: the Leases of the ring by the names of their members.
        unowned: slot -> since when no living member begins work in it, as far as is known. It is replaced as a whole,
            so that other threads may iterate over it.
    """

    def __init__(self, name: str, holder: str, times: LeaderElectionOptions, first: Ring) -> None:
        self.name = name
        self.holder = holder
        self.ring = NO_RING
        self.mine: dict[int, Slot] = {}
        self.busy: set[int] = set()
        self.wall = 0
        self.epoch = -1
        self.stands = True
        self.leaving = False
        self.left = False
        self.problem = ""
        self.seen: dict[str, SeenLease] = {}
        self.unowned: dict[int, float] = {}
        self.version = ""
        self._times = times
        self._first = first
        #: The uid and the version of the own Lease; a Lease without a known version must be read.
        self._lease = ""
        self._lease_version = ""
        #: Whether a Lease of this name existed when the member tried to create its own. It is read to learn its holder.
        self._name_is_taken = False
        #: Whether the Leases were listed: their epochs are known.
        self._listed = False
        self._renewed_at = _NEVER
        self._former: set[str] = set()
        #: Of the ring object that was read last; "" if there is none, and None if that is not known.
        self._uid: str | None = None
        #: The last ring of the ring object that could be used.
        self._last = NO_RING
        self._ring_since = _NEVER
        self._read_at = _NEVER
        #: How many seconds this replica lets others go first.
        self._turn = 0.0
        #: Slots that were given up -> the version on which the write was based.
        self._given_up: dict[int, str] = {}
        #: Members whose Lease is missing, by name and uid -> since when; always, if this replica has deleted it.
        self._missing: dict[tuple[str, str], float] = {}

    # What this replica may do.

    @property
    def deadline(self) -> float:
        """When this replica may work in its slots no longer, unless a renewal and a read of the ring succeed."""
        return min(self._renewed_at, self._read_at) + self._times.renew_deadline

    def accepts(self, slot: int) -> bool:
        """Return whether work may begin in a slot, until the deadline."""
        return self.stands and slot in self.mine and not self.mine[slot].to

    def _refresh(self) -> None:
        if self._lease and not self.leaving:
            owned = self.ring.owned(self.name, self._lease)
        else:
            owned = {}
        self.mine = {slot: each for slot, each in owned.items() if slot not in self._given_up}

    def leave(self) -> None:
        """Begin to leave the ring. Nothing of this replica may run any more."""
        self.leaving = True
        self._refresh()

    # The own Lease.

    def lease_request(self) -> LeaseRequest:
        """Return what to send about the own Lease now."""
        if self._name_is_taken or (self._lease and not self._lease_version):
            return ReadLease()
        return WriteLease(self._lease, self._lease_version)

    def lease_answered(self, request: LeaseRequest, answer: Answer, sent: float) -> None:
        """Take the answer to a request about the own Lease into account; `sent` is when the request was sent."""
        if isinstance(request, WriteLease) and request.uid not in ("", self._lease):
            return  # it was lost meanwhile
        if isinstance(answer, AioinformerError):
            if is_gone(answer):
                self._lose()
            elif status_of(answer) == 409:
                self._lease_version = ""
                self._name_is_taken = not self._lease
            return
        if self._name_is_taken and isinstance(request, ReadLease):
            self._adopt(SeenLease.of(answer, sent))
            return
        uid, version = _identity(answer)
        if uid != self._lease and (self._lease or isinstance(request, ReadLease)):
            self._lose()
            return
        self._lease = uid
        self._lease_version = version
        if isinstance(request, WriteLease):
            self._renewed_at = max(self._renewed_at, sent)
        self._refresh()

    def _lose(self) -> None:
        """End this life: the Lease is gone. Another replica may have seen that at once."""
        self._former.add(self._lease)
        self._lease = ""
        self._lease_version = ""
        self._name_is_taken = False
        self._renewed_at = _NEVER
        self._refresh()

    # Observations.

    def ring_read(self, answer: Answer, sent: float, now: float) -> None:
        """Take an answer with the ring object into account, to a read or a write.

        Raises:
            RingRefused: the ring has another form than this replica is configured for.
        """
        if is_gone(answer):
            self.ring = NO_RING
            self._uid = ""
            self.version = ""
            self.problem = ""
        elif not isinstance(answer, AioinformerError):  # otherwise, what was known counts until the deadline
            self._take(answer, sent, now)
        self._refresh()

    def _take(self, answer: Mapping[str, Any], sent: float, now: float) -> None:
        uid, version = _identity(answer)
        if uid != self._uid:
            self._uid = uid
            self._ring_since = now
            self._last = NO_RING
            self._given_up.clear()
        elif version == self.version:
            self._read_at = max(self._read_at, sent) if self.ring.slots else self._read_at
            return
        self.version = version
        self.ring = NO_RING
        self.problem = ""
        try:
            ring = decode(answer)
            if ring.epoch <= self._last.epoch and ring != self._last:  # an equal one has other labels, for example
                why = "an older ring was put back, by hand or by a restore of the server"
                raise RingDamaged(f"{why}; delete the ConfigMap, and another ring is made")
        except RingDamaged as error:
            self.problem = str(error)
            return
        first = self._first
        if (len(ring.slots), ring.by) != (len(first.slots), first.by):
            raise RingRefused(
                f"the ring has {len(ring.slots)} slots by {ring.by}, and this replica is configured for "
                f"{len(first.slots)} by {first.by}; configure the same, or scale all replicas to 0 and delete the "
                "ConfigMap"
            )
        self.ring = ring
        self._read_at = sent
        self._turn = _turn(ring, self.name)
        self._last = ring
        self.epoch = max(self.epoch, ring.epoch)
        self._given_up = {slot: based for slot, based in self._given_up.items() if based == version}

    def leases_listed(self, leases: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take a list of the Leases of the ring into account, which was sent after the ring had been read.

        Args:
            leases: the Lease objects; each has the name of its member.
            now: when the answer came.

        Raises:
            RingRefused: another process uses the name of this replica.
        """
        self._listed = True
        before = self.seen
        self.seen = {}
        for lease in leases:
            uid, version = _identity(lease)
            name = lease["metadata"]["name"]
            seen = before.get(name)
            if seen is None or seen.uid != uid:
                seen = SeenLease.of(lease, now)
            elif seen.version != version:
                seen = SeenLease.of(lease, now, seen)
            self.seen[name] = seen
        self._check_own_name()
        current = {(name, entry.lease) for name, entry in self.ring.members.items()}
        listed = {(name, seen.uid) for name, seen in self.seen.items()}
        self._missing = {each: self._missing.get(each, now) for each in current - listed}
        self._note_unowned(now)

    def _check_own_name(self) -> None:
        own = self.seen.get(self.name)
        if own is None or own.uid == self._lease:
            return
        if own.holder == self.holder:
            self._adopt(own)
        elif own.renewals > 1:  # the first may be the last one of a process that has ended
            raise RingRefused(
                f"another process, {own.holder}, is the member {self.name} of this ring; give each replica a name of "
                "its own, such as that of its pod"
            )

    def _adopt(self, own: SeenLease) -> None:
        """Take a Lease of this process as the own one: the answer to its creation was lost."""
        if own.holder == self.holder and not self._lease and own.uid not in self._former:
            self._lease = own.uid
            self._lease_version = own.version
            self._name_is_taken = False

    def _note_unowned(self, now: float) -> None:
        ring = self.ring
        known = self.unowned
        unowned: dict[int, float] = {}
        late = 2 * self._times.retry_period + 1
        for number, slot in enumerate(ring.slots if ring.of else self._first.slots):
            seen = self.seen.get(slot.owner)
            entry = ring.members.get(slot.owner)
            if seen is None or entry is None or seen.uid != entry.lease or slot.to:
                unowned[number] = known.get(number, now)
            elif now - seen.since > late and slot.owner != self.name:
                unowned[number] = known.get(number, seen.since)
        self.unowned = unowned

    # Writes.

    def next_write(self, now: float) -> tuple[Write | None, float]:
        """Return what to write now, None for nothing; and when to ask again although nothing was observed.

        What the write gives up is given up with this call.
        """
        due = float("inf")
        for name, seen in self.seen.items():
            own = name == self.name  # of an earlier life, or of an earlier process
            if seen.uid == self._lease or (seen.holder == self.holder if own else not self._is_alive(now)):
                continue
            if not self._is_of_member(name, seen):
                continue
            at = seen.since + self.seconds_of(name, seen) + (0.0 if own else self._turn)
            if at <= now:
                return DeleteLease(name, seen.uid, seen.version), now
            due = min(due, at)
        if self.leaving:
            return self._leave(), due
        if not self._is_alive(now) or self.problem or self.lacks_epoch:
            return None, due
        if not self.ring.slots:
            members = {self.name: self._entry()} if self.stands else {}
            first = replace(self._first, epoch=self._next_epoch(NO_RING), members=members)
            return (WriteRing(first) if self._uid == "" and self._listed else None), due
        if not self.stands:
            return self._hand_over(), due
        ring, at = self._proposed(self.ring, now)
        if ring == self.ring:
            return None, min(due, at)
        self._given_up.update({slot: self.version for slot in self.mine if ring.slots[slot].owner != self.name})
        self._refresh()
        return self._write(ring), now

    def _proposed(self, ring: Ring, now: float) -> tuple[Ring, float]:
        """Return the next ring, in which this replica may hand slots over, and when to look again."""
        turn = self._turn
        due = float("inf")
        members = dict(ring.members)
        for name, entry in ring.members.items():
            at = self._missing.get((name, entry.lease), float("inf")) + entry.seconds + turn
            if at <= now:
                del members[name]
            else:
                due = min(due, at)
        of = ring.of
        if not of:
            seen = [self.seconds_of(name, each) for name, each in self.seen.items()]
            longest = max([self._times.lease_duration, *seen])
            at = self._ring_since + longest + turn
            of, due = (self._uid or "", due) if at <= now else ("", min(due, at))
        known = members.get(self.name)
        slots = list(ring.slots)
        if known is None or (known.lease in self._former and not self.busy):
            # What an earlier life or process of this name owned is free: it gets an owner with another epoch.
            slots = [Slot("", each.epoch, each.to) if each.owner == self.name else each for each in slots]
            members[self.name] = self._entry()
        epoch = self._next_epoch(ring)
        # Slots of another process of this name are not this one's to hand over: nothing says yet that it has ended.
        own = members[self.name].lease in (self._lease, *self._former)
        for number, slot in enumerate(slots):
            if own and slot.owner == self.name and slot.to in members and slot.to and number not in self.busy:
                slots[number] = Slot(slot.to, epoch)
        return planned(replace(ring, slots=tuple(slots), members=members, of=of), epoch), due

    def write_answered(self, write: Write, answer: Answer, sent: float, now: float) -> None:
        """Take the answer to a write into account.

        Raises:
            RingRefused: as `ring_read`.
        """
        failed = isinstance(answer, AioinformerError)
        if isinstance(write, DeleteLease) and write.uid == self._lease:
            self.left = not failed or is_gone(answer) or status_of(answer) == 409
        elif isinstance(write, DeleteLease) and not failed:
            self._missing[write.name, write.uid] = _NEVER
            self.seen.pop(write.name, None)
        elif not failed:
            self.ring_read(answer, sent, now)

    def _hand_over(self) -> Write | None:
        """Return the write by which a replica that takes no slots gives up those that it owns, once nothing runs."""
        if self.name not in self.ring.members or self.busy:
            return None
        self._given_up.update(dict.fromkeys(self.mine, self.version))
        self._refresh()
        return self._withdrawal()

    def _leave(self) -> Write | None:
        if self.name not in self.ring.members:
            self.left = not self._lease
            return DeleteLease(self.name, self._lease, "") if self._lease else None
        return self._withdrawal()

    def _withdrawal(self) -> Write | None:
        """Return the ring without this replica, if it is in it."""
        if self.ring.members[self.name].lease not in (self._lease, *self._former):
            return None
        members = {name: each for name, each in self.ring.members.items() if name != self.name}
        return self._write(planned(replace(self.ring, members=members), self._next_epoch(self.ring)))

    def _write(self, ring: Ring) -> WriteRing:
        return WriteRing(replace(ring, epoch=self._next_epoch(self.ring)), self._uid or "", self.version)

    def _next_epoch(self, ring: Ring) -> int:
        """Return the epoch after that of a ring. Until a ring is owned, it may begin above those of earlier rings."""
        if ring.of:
            return ring.epoch + 1
        return 1 + max(ring.epoch, self.epoch, self.wall, *(each.epoch for each in self.seen.values()))

    def _entry(self) -> Entry:
        return Entry(self._lease, int(self._times.lease_duration))

    def seconds_of(self, name: str, seen: SeenLease) -> float:
        """Return the duration of a Lease in seconds."""
        entry = self.ring.members.get(name)
        own = self._times.lease_duration
        if entry is not None and entry.lease == seen.uid:
            return entry.seconds
        return seen.declared or min(max(own, seen.field), LONG * own)

    @property
    def lacks_epoch(self) -> str:
        """The member whose Lease has an epoch that a new ring must exceed, and that cannot be read; "" for none."""
        if self.ring.of:
            return ""
        for name, seen in self.seen.items():
            if not seen.is_epoch_known and self._is_of_member(name, seen):
                return name
        return ""

    def too_long(self) -> dict[str, float]:
        """Return the durations of the Leases that are more than ten times as long as the own one, by their names."""
        known = {
            name: max(self.seconds_of(name, seen), 0 if seen.declared else seen.field)
            for name, seen in self.seen.items()
        }
        return {name: seconds for name, seconds in known.items() if seconds > LONG * self._times.lease_duration}

    def _is_of_member(self, name: str, seen: SeenLease) -> bool:
        entry = self.ring.members.get(name)
        return is_of_member(seen.holder, name) or (entry is not None and entry.lease == seen.uid)

    def _is_alive(self, now: float) -> bool:
        return now < self._renewed_at + self._times.renew_deadline


def _turn(ring: Ring, name: str) -> float:
    """Return how many seconds a replica lets others go first."""
    mine = crc32(f"{ring.epoch}/{name}".encode())
    return _TURN * min(_TURNS, sum(crc32(f"{ring.epoch}/{each}".encode()) < mine for each in ring.members))


def status_of(answer: Answer) -> int:
    """Return the status of a refusal by the API; 0 for any other answer."""
    return answer.status if isinstance(answer, ApiError) else 0


def is_gone(answer: Answer) -> bool:
    """Return whether the API says that the object is missing. A 404 names none if the resource is not served."""
    if not isinstance(answer, ApiError) or answer.status != 404:
        return False
    return bool(answer.details.get("name")) and answer.details.get("kind") != "namespaces"


def _identity(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata["uid"], metadata["resourceVersion"]
