"""The ring object: strict decoding, and proposals that any replica may make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from aioinformer.reflector import shard_selectors
from aioinformer.ring import RingDamaged
from aioinformer.ring.table import FIELD, Entry, Ring, Slot, decode, encode, planned, slot_of

RING = Ring((Slot("a", 3), Slot("b", 4, "a")), "uid", 7, {"a": Entry("u1", 15), "b": Entry("u2", 15)}, "x")


def stored(ring: Ring = RING, uid: str = "x") -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "data": encode(ring)}


def edited(**changes: Any) -> dict[str, Any]:
    document = json.loads(encode(RING)[FIELD])
    document.update({name: value for name, value in changes.items() if name in document})
    document["ring"].update({name: value for name, value in changes.items() if name in document["ring"]})
    return {"metadata": {"uid": "x"}, "data": {FIELD: json.dumps(document)}}


def test_ring_is_read_as_written() -> None:
    assert decode(stored()) == RING


@pytest.mark.parametrize(
    ("config_map", "reason"),
    [
        ({"metadata": {"uid": "x"}}, "delete the ConfigMap"),
        ({"metadata": {"uid": "x"}, "data": {FIELD: "{"}}, "cannot be read"),
        ({"metadata": {"uid": "x"}, "data": {FIELD: "{}"}}, "cannot be read"),
        (edited(version=2), "another version of aioinformer"),
        (edited(epoch=9), "edited by hand"),
        (edited(slots=[]), "edited by hand"),
        (stored(uid="y"), "a backup is no ring"),
        (stored(replace(RING, slots=RING.slots * 3)), "wrong number of slots"),
        (stored(replace(RING, members={"a": Entry("u1", 15)})), "no members"),
    ],
)
def test_damage_is_an_error_with_a_remedy(config_map: dict[str, Any], reason: str) -> None:
    with pytest.raises(RingDamaged, match=reason) as error:
        decode(config_map)
    assert "delete the ConfigMap" in str(error.value)


def test_slots_are_ranges_of_the_shard_selector() -> None:
    selectors = shard_selectors(64)
    for number in range(200):
        uid = f"4c1b1b0e-0000-4000-8000-{number:012}"
        assert selectors[slot_of(uid, 64)].matches(uid, "")


def test_ring_that_forms_owns_nothing() -> None:
    forming = planned(replace(RING, of="", slots=(Slot(), Slot())), 8)
    assert forming.slots == (Slot(), Slot())
    assert not replace(RING, of="").owned("a", "u1")


def test_another_life_owns_nothing() -> None:
    assert list(RING.owned("a", "u1")) == [0]
    assert not RING.owned("a", "u9")


def test_a_slot_on_its_way_changes_its_direction_without_a_move() -> None:
    ring = replace(RING, slots=(Slot("a", 1), Slot("a", 2), Slot("a", 3, "b"), Slot("a", 4, "b")))
    joined = planned(replace(ring, members={**ring.members, "c": Entry("u3", 15)}), 9)
    assert sorted(each.to for each in joined.slots if each.to) == ["b", "c"]
    assert {each.owner for each in joined.slots} == {"a"}
