"""The ring: which replica owns which slot, as one object that is written by compare-and-swap only.

A slot is a range of the hash that the API server uses for shards, over the uid of an object or over its namespace. The
`Ring` in the object is the sole authority. `planned` proposes the next one, as a function of the ring alone, so all
replicas propose the same:

- The loads of the members differ by one slot at most, with those that are on the way counted for the receiver.
- A free slot goes to the member with the least load; rendezvous hashing decides between equal ones.
- A slot that has an owner is only marked with the member that shall have it. Its owner drains it, and hands it over.
- The slots that moved last move first. So a member that joins gets those that an earlier one has left behind, and the
  other slots stay: a rolling restart moves each slot twice at most.

Decoding is strict. A ring that is damaged, was edited by hand or restored from a backup is an error, never an empty
ring: the replicas stop, and a person deletes the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from zlib import crc32

import msgspec
from msgspec.structs import replace

from aioinformer.errors import AioinformerError
from aioinformer.resources.shards import HASHES, shard_hash

#: Of the form of the object.
VERSION: Final = 1
#: The key of the ConfigMap.
FIELD: Final = "ring.json"
MOST_SLOTS: Final = 1024

By: TypeAlias = Literal["uid", "namespace"]


class RingDamaged(AioinformerError):
    """The ring object cannot be used. The message says why, and what to do."""


class Slot(NamedTuple):
    """One slot.

    Attributes:
        owner: the member that owns it; "" for none.
        epoch: of the ring when the owner became that. It grows with each owner, so it can fence writes.
        to: the member that the owner hands it over to; "" for none.
    """

    owner: str = ""
    epoch: int = 0
    to: str = ""


class Entry(NamedTuple):
    """A member of the ring: the uid of its Lease, which identifies one life of a replica, and the Lease's duration."""

    lease: str
    seconds: int


class Ring(msgspec.Struct, frozen=True):
    """The content of the ring object.

    Attributes:
        slots: each slot, in the order of the hashes.
        by: what is hashed.
        epoch: grows with each write.
        members: the members by name.
        of: the uid of the object; "" while the ring forms, and nothing is owned.
    """

    slots: tuple[Slot, ...]
    by: By = "uid"
    epoch: int = 0
    members: Mapping[str, Entry] = {}
    of: str = ""

    def owned(self, name: str, lease: str) -> dict[int, Slot]:
        """Return the slots that a member owns in the life that its Lease identifies."""
        entry = self.members.get(name)
        if not self.of or entry is None or entry.lease != lease:
            return {}
        return {number: slot for number, slot in enumerate(self.slots) if slot.owner == name}


#: Instead of a ring that can be used: it has no slots.
NO_RING: Final = Ring((), epoch=-1)


class _Document(msgspec.Struct, frozen=True):
    version: int
    sum: str = ""
    ring: msgspec.Raw = msgspec.Raw(b"null")


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_ring = msgspec.json.Decoder(Ring).decode


def slot_of(value: str, count: int) -> int:
    """Return the number of the slot of a uid or namespace."""
    return shard_hash(value) * count // HASHES


def encode(ring: Ring) -> dict[str, str]:
    """Return the data of the ConfigMap."""
    raw = msgspec.Raw(msgspec.json.encode(ring))
    return {FIELD: msgspec.json.encode(_Document(VERSION, _sum(raw), raw)).decode()}


def decode(config_map: Mapping[str, Any]) -> Ring:
    """Return the ring in a ConfigMap.

    Raises:
        RingDamaged: there is none, or not a whole one.
    """
    uid = config_map["metadata"]["uid"]
    text = (config_map.get("data") or {}).get(FIELD)
    remedy = "scale the replicas to 0, delete the ConfigMap, and scale up"
    if not isinstance(text, str):
        raise RingDamaged(f"it has no {FIELD}; delete the ConfigMap, and the replicas make another ring")
    try:
        document = _decode_document(text)
        if document.version != VERSION:
            raise RingDamaged(
                f"another version of aioinformer has written {FIELD}: its version is {document.version}, and this one "
                f"knows {VERSION}; run that version of aioinformer, or {remedy}"
            )
        ring = _decode_ring(document.ring)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RingDamaged(f"{FIELD} cannot be read: {error}; {remedy}") from None
    if document.sum != _sum(document.ring):
        raise RingDamaged(f"{FIELD} was edited by hand: its sum is wrong; {remedy}")
    if ring.of not in ("", uid):
        raise RingDamaged(f"{FIELD} belongs to another ConfigMap, of uid {ring.of}: a backup is no ring; {remedy}")
    names = {"", *ring.members}
    if not is_slot_count(len(ring.slots)) or not all(each.owner in names and each.to in names for each in ring.slots):
        raise RingDamaged(f"{FIELD} has a wrong number of slots or owners that are no members; {remedy}")
    return ring


def is_slot_count(count: object) -> bool:
    """Return whether a ring may have this number of slots: a power of two up to 1,024."""
    return type(count) is int and 0 < count <= MOST_SLOTS and not count & (count - 1)


def planned(ring: Ring, epoch: int) -> Ring:
    """Return the ring after what any member may change: free slots are assigned, and moves are marked.

    Args:
        ring: with its present members. What belongs to others is free.
        epoch: of the slots that get an owner.
    """
    members = ring.members
    slots = [
        Slot(
            each.owner if each.owner in members else "",
            each.epoch,
            each.to if each.to in members and each.to != each.owner else "",
        )
        for each in ring.slots
    ]
    if not ring.of or not members:
        return replace(ring, slots=tuple(slots))
    loads = dict.fromkeys(sorted(members), 0)
    for slot in slots:
        if holder := slot.to or slot.owner:
            loads[holder] += 1
    for number, slot in enumerate(slots):
        if not slot.owner:
            to = slot.to or min(loads, key=lambda each: (loads[each], -crc32(f"{number}/{each}".encode())))
            loads[to] += not slot.to
            slots[number] = Slot(to, epoch)
    _balance(slots, loads)
    return replace(ring, slots=tuple(slots))


def _balance(slots: list[Slot], loads: dict[str, int]) -> None:
    """Mark moves until the loads differ by one slot at most; from each member those first that it got last."""
    stacks: dict[str, list[tuple[bool, int, int]]] = {name: [] for name in loads}
    for number, slot in enumerate(slots):
        # A slot that is on the way already changes its direction at no cost.
        stacks[slot.to or slot.owner].append((bool(slot.to), slot.epoch, number))
    for stack in stacks.values():
        stack.sort()
    least = len(slots) // len(loads)
    most = -(-len(slots) // len(loads))
    latest: dict[str, int] = {}

    def move(giver: str, to: str) -> None:
        moving, epoch, number = stacks[giver].pop()
        if not moving:
            latest[to] = max(epoch, latest.get(to, 0))
        slots[number] = slots[number]._replace(to="" if slots[number].owner == to else to)
        loads[giver] -= 1
        loads[to] += 1

    while True:
        to = min(loads, key=lambda each: loads[each])
        giver = max(loads, key=lambda each: (loads[each], stacks[each][-1:]))
        if loads[giver] - loads[to] < 2:
            break
        move(giver, to)
    for to, epoch in list(latest.items()):  # the rest of the slots that have moved together, if the loads permit it
        rest = [each for each, stack in stacks.items() if each != to and stack and stack[-1][:2] == (False, epoch)]
        rest = [each for each in rest if loads[each] == most > least == loads[to]]
        if rest:
            move(rest[0], to)


def _sum(raw: msgspec.Raw) -> str:
    return f"{crc32(raw):08x}"
