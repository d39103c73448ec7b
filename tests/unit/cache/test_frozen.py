"""Immutable mappings and sequences of decoded objects."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.cache.objects.frozen import FrozenDict, as_secret, closed, freeze, freeze_decoded, thaw

if TYPE_CHECKING:
    from collections.abc import Callable

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PLAIN: dict[str, Any] = {"a": {"b": [1, {"c": None}, [], {}]}, "d": "e", "f": {}, "g": 1.5}


@pytest.mark.parametrize(
    "write",
    [
        lambda frozen: frozen.__setitem__("a", 1),
        lambda frozen: frozen.__delitem__("a"),
        lambda frozen: frozen.__ior__({"x": 1}),
        lambda frozen: frozen.clear(),
        lambda frozen: frozen.pop("a"),
        lambda frozen: frozen.pop("x", None),
        lambda frozen: frozen.popitem(),
        lambda frozen: frozen.setdefault("x", 1),
        lambda frozen: frozen.setdefault("a", 1),
        lambda frozen: frozen.update(x=1),
        lambda frozen: frozen.__init__({"x": 1}),
        lambda frozen: FrozenDict.__init__(frozen, x=1),
        lambda frozen: FrozenDict.__init__(frozen),
    ],
)
def test_every_write_raises_with_a_remedy(write: Callable[[Any], Any]) -> None:
    frozen = FrozenDict({"a": 1, "b": 2})
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        write(frozen)
    assert frozen == {"a": 1, "b": 2}


@pytest.mark.parametrize("method", [freeze, freeze_decoded])
def test_freeze_is_deep(method: Callable[[Any], Any]) -> None:
    frozen = method(copy.deepcopy(PLAIN))
    assert frozen == {"a": {"b": (1, {"c": None}, (), {})}, "d": "e", "f": {}, "g": 1.5}
    inner = frozen["a"]["b"]
    assert [type(mapping) for mapping in (frozen, frozen["a"], inner[1], inner[3], frozen["f"])] == [FrozenDict] * 5


def test_freeze_does_not_change_its_argument() -> None:
    plain = copy.deepcopy(PLAIN)
    frozen = freeze(plain)
    plain["a"]["b"].append(2)
    assert plain == {**PLAIN, "a": {"b": [*PLAIN["a"]["b"], 2]}}
    assert len(frozen["a"]["b"]) == 4


def test_thaw_reverses_freeze() -> None:
    thawed = thaw(freeze(PLAIN))
    assert thawed == PLAIN
    assert type(thawed) is dict
    assert type(thawed["a"]) is dict
    assert type(thawed["a"]["b"]) is list


@pytest.mark.parametrize("copied", [FrozenDict.to_dict, copy.deepcopy, thaw])
def test_deep_copies_are_plain(copied: Callable[[Any], Any]) -> None:
    frozen = freeze(PLAIN)
    mine = copied(frozen)
    mine["a"]["b"].append(2)
    assert frozen == freeze(PLAIN)


@pytest.mark.parametrize("copied", [copy.copy, lambda frozen: frozen.copy(), lambda frozen: frozen | {}, dict])
def test_shallow_copies_are_plain_dicts(copied: Callable[[Any], Any]) -> None:
    mine = copied(freeze(PLAIN))
    assert type(mine) is dict
    assert type(mine["a"]) is FrozenDict


def test_dict_merged_with_a_frozen_one_is_plain() -> None:
    assert type({"x": 1} | FrozenDict({"y": 2})) is dict


def test_pickled_value_stays_frozen() -> None:
    restored = pickle.loads(pickle.dumps(freeze(PLAIN)))
    assert restored == freeze(PLAIN)
    assert type(restored["a"]) is FrozenDict


@pytest.mark.parametrize("encode", [json.dumps, msgspec.json.encode])
def test_frozen_value_is_encoded_like_its_source(encode: Callable[[Any], str | bytes]) -> None:
    assert json.loads(encode(freeze(PLAIN))) == PLAIN


def test_other_values_stay_unchanged() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert thaw(freeze({"a": moment})) == {"a": moment}


SECRET: dict[str, Any] = {
    "metadata": {"name": "s", "annotations": {LAST_APPLIED: '{"data":{"password":"hunter2"}}', "other": "shown"}},
    "data": {"password": "hunter2"},
    "stringData": {"password": "hunter2"},
}


@pytest.mark.parametrize(
    "document",
    [
        {**SECRET, "kind": "Secret"},
        {**SECRET, "type": "Opaque"},
        {**SECRET, "kind": "Secret", "data": "hunter2", "stringData": ["hunter2"]},
        {"kind": "SecretList", "items": [SECRET, SECRET]},
        {"kind": "List", "items": [{**SECRET, "kind": "Secret"}]},
        {"kind": "PartialObjectMetadata", "metadata": SECRET["metadata"]},
        SECRET["metadata"],
        SECRET["metadata"]["annotations"],
    ],
    ids=lambda document: str(document.get("kind")),
)
def test_repr_of_a_secret_hides_its_values(document: dict[str, Any]) -> None:
    text = f"{freeze(document)!r} {freeze(document)} {[freeze_decoded(copy.deepcopy(document))]}"
    assert "hunter2" not in text
    assert "<redacted>" in text


def test_as_secret_hides_values_without_a_kind() -> None:
    frozen = as_secret(freeze(SECRET))
    assert "hunter2" not in f"{frozen!r} {frozen} {[frozen]} {pickle.loads(pickle.dumps(frozen))}"
    assert frozen == SECRET
    assert frozen["data"]["password"] == "hunter2"
    assert frozen.to_dict() == SECRET
    with pytest.raises(TypeError, match="cannot be changed"):
        frozen["data"] = {}


def test_repr_of_other_objects_shows_values() -> None:
    config_map = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "shown"}}
    assert repr(freeze(config_map)) == repr(config_map)


def test_shared_empty_value_cannot_be_filled() -> None:
    first, second = freeze_decoded({}), freeze_decoded({"a": {}})["a"]
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        first.__init__({"x": 1})
    assert first == second == {}


@pytest.mark.parametrize("made", [FrozenDict({"a": 1}), FrozenDict([("a", 1)]), FrozenDict(a=1), closed({"a": 1})])
def test_frozen_dict_is_made_like_a_dict(made: FrozenDict[str, int]) -> None:
    assert made == {"a": 1}
    assert type(made) is FrozenDict


def test_closed_copies_the_dict() -> None:
    plain = {"a": 1}
    made = closed(plain)
    plain["b"] = 2
    assert made == {"a": 1}
