"""Immutable mappings and sequences, and `evolve`: changed copies of immutable objects."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from aioinformer import evolve
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.frozen import FrozenDict, freeze, freeze_decoded, thaw
from aioinformer.cache.objects.views import json_of
from aioinformer.errors import UsageError
from tests.support.merge_patches import merged
from tests.support.view_samples import SECRETS, WIDGETS, encoded, pod, widget

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


def test_pickled_value_stays_frozen() -> None:
    restored = pickle.loads(pickle.dumps(freeze(PLAIN)))
    assert restored == freeze(PLAIN)
    assert type(restored["a"]) is FrozenDict


@pytest.mark.parametrize("encode", [json.dumps, msgspec.json.encode])
def test_frozen_value_is_encoded_like_its_source(encode: Callable[[Any], str | bytes]) -> None:
    assert json.loads(encode(freeze(PLAIN))) == PLAIN


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


def test_repr_has_keys_and_no_values() -> None:
    config_map = {
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": {"a": "hidden", "b": "hidden"},
    }
    frozen = freeze(config_map)
    assert repr(frozen) == "<ConfigMap n/c version unknown>"
    assert repr(frozen["data"]) == f"{frozen['data']}" == "<FrozenDict: a, b>"
    assert repr(freeze({})) == "<FrozenDict>"


# Changed copies.


class Part(msgspec.Struct, frozen=True):
    name: str


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    size: int
    max_size: int = 9
    parts: tuple[Part, ...] = ()


class Widget(msgspec.Struct, frozen=True):
    metadata: dict[str, Any]
    spec: Spec


@dataclass(frozen=True)
class Data:
    metadata: dict[str, Any]
    spec: dict[str, int]


class Sheet(BaseModel):
    metadata: dict[str, Any]
    size: int


# By mapping.


def test_evolved_view_shares_what_is_unchanged() -> None:
    before = pod()
    spec = before.spec
    changed = before.evolve({"metadata": {"labels": {"a": "b"}}})
    assert changed.spec is spec
    assert changed.metadata.owner_references is before.metadata.owner_references


@pytest.mark.parametrize("make", [pod, widget])
def test_evolved_view_is_immutable(make: Any) -> None:
    changed = make().evolve({"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(AttributeError):
        changed.spec = None
    with pytest.raises(TypeError):
        changed.metadata.labels["a"] = "c"


def test_bytes_of_unchanged_members_stay_as_they_are() -> None:
    raw = b'{"metadata":{"name":"a"},"spec":{"big":12345678901234567890123,"small":1.0e-7,"size":1}}'
    view = ObjectType(WIDGETS).to_view(ObjectType(WIDGETS).decode(raw))
    changed = view.evolve({"spec": {"size": 2}})
    assert json_of(changed) == raw.replace(b'"size":1', b'"size":2')


def test_new_values_may_be_parts_of_other_views() -> None:
    other = pod().evolve({"spec": {"nodeName": "n2", "containers": [{"name": "d", "image": "j"}]}})
    changed = pod().evolve({"spec": other.spec})
    assert (changed.spec.node_name, changed.spec.containers[0].name) == ("n2", "d")
    assert pod().evolve({"spec": {"containers": other.spec.containers}}).spec.containers[0].image == "j"


# By path.


def test_path_sets_a_value_and_none_deletes_it() -> None:
    assert pod().evolve("spec.nodeName", "n2").spec.node_name == "n2"
    assert pod().evolve("spec.nodeName", None).spec.node_name is None
    assert evolve(pod(), "metadata.labels['a.b/c']", "d").metadata.labels == {"app": "x", "a.b/c": "d"}


def test_number_in_a_path_is_an_index() -> None:
    before = pod()
    env = before.spec.containers[0].env
    changed = before.evolve("spec.containers.0.image", "j")
    assert changed.spec.containers[0].image == "j"
    assert changed.spec.containers[0].env is env
    assert pod().evolve("spec.containers.0", None).spec.containers == ()


# Mistakes.


@pytest.mark.parametrize(
    ("obj", "arguments", "message"),
    [
        (pod(), ("spec.containers.3.image", "j"), "a list of 1 has no element 3"),
        (widget(), ("kind.size", "x"), "'size' of something that is not an object"),
        (pod(), ({"spec": {"node_name": "n"}},), r"no field 'spec\.node_name'; the key in JSON is 'nodeName'"),
        (pod(), ("spec.containers.0.imag", "x"), r"no field 'spec\.containers\.0\.imag'"),
        (pod(), ({"spec": {"containers": [{"imag": "x"}]}},), r"no field 'spec\.containers\.0\.imag'"),
        (widget(), ({"spec": {"size": object()}},), "has no JSON form"),
        (pod(), ("spec.nodeName",), "evolve: "),
        (pod(), ({"spec": {}}, 1), "evolve: "),
        (pod(), (3,), "evolve: "),
        (pod(), ([],), "evolve: "),
    ],
)
def test_wrong_change_is_refused(obj: Any, arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evolve(obj, *arguments)


def test_value_of_another_type_is_refused_without_quoting_it() -> None:
    with pytest.raises(UsageError, match=r"does not fit.*Expected `str \| null`, got `int`") as caught:
        pod().evolve({"spec": {"nodeName": 987654}})
    assert "987654" not in str(caught.value)


# Other objects.


def test_plain_mapping_becomes_frozen() -> None:
    source = {"spec": {"size": 1, "tags": ["a"]}}
    changed = evolve(source, {"spec": {"size": 2}})
    assert changed == {"spec": {"size": 2, "tags": ("a",)}}
    assert isinstance(changed["spec"], FrozenDict)
    assert source == {"spec": {"size": 1, "tags": ["a"]}}


def test_changed_secret_shows_no_values() -> None:
    kind = ObjectType(SECRETS, storage="dict")
    secret: Any = kind.to_view(kind.record_of({"metadata": {"name": "a"}, "data": {"k": "djE="}}))
    changed = evolve(secret, {"data": {"l": "djI="}})
    assert changed["data"] == {"k": "djE=", "l": "djI="}
    assert "djI=" not in repr(changed)


def test_struct_is_changed_by_the_keys_of_its_json() -> None:
    before = Widget({"name": "a"}, Spec(3, parts=(Part("p"),)))
    changed = evolve(before, {"spec": {"maxSize": 5}})
    assert (changed.spec.max_size, changed.spec.size) == (5, 3)
    assert changed.metadata is before.metadata
    assert changed.spec.parts is before.spec.parts
    assert evolve(before, "spec.parts.0.name", "q").spec.parts == (Part("q"),)


def test_dataclass_and_pydantic_objects_are_changed() -> None:
    before = Data({"name": "a"}, {"size": 1})
    changed = evolve(before, {"spec": {"size": 2}})
    assert changed == Data({"name": "a"}, {"size": 2})
    assert changed.metadata is before.metadata
    assert evolve(Sheet(metadata={"name": "a"}, size=1), "size", 2).size == 2


class Book(BaseModel):
    sheets: list[Sheet] = []


def test_values_may_be_lists_of_pydantic_objects() -> None:
    sheets = [Sheet(metadata={"name": "a"}, size=1)]
    assert evolve(Book(), "sheets", sheets).sheets == sheets
    assert evolve({}, {"sheets": sheets}) == {"sheets": ({"metadata": {"name": "a"}, "size": 1},)}


def test_change_that_a_class_refuses_does_not_quote_values() -> None:
    with pytest.raises(UsageError, match=r"does not fit Widget: Expected `int`, got `str` at \$\.spec\.size") as caught:
        evolve(Widget({}, Spec(1)), {"spec": {"size": "hunter2"}})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="does not fit Sheet"):
        evolve(Sheet(metadata={}, size=1), {"size": "hunter2"})


# Properties.

_TEXTS = st.text(max_size=3)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_TEXTS, _JSON, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_mapping_form_is_a_json_merge_patch(target: Any, patch: Any) -> None:
    expected = merged(target, patch)
    assert json.dumps(thaw(evolve(freeze(target), patch)), sort_keys=True) == json.dumps(expected, sort_keys=True)
    view = widget({**target, "metadata": {"name": "a"}})
    changed = view.evolve({**patch, "metadata": {}})
    wanted = {**expected, "metadata": {"name": "a"}}
    assert json.dumps(thaw(dict(changed)), sort_keys=True) == json.dumps(wanted, sort_keys=True)
    assert encoded(wanted).same_content(changed._record)


def test_member_that_a_class_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="Spec: it has no member 'colour'"):
        evolve(Widget({}, Spec(1)), {"spec": {"colour": "red"}})
    with pytest.raises(UsageError, match="Data: it has no member 'status'"):
        evolve(Data({}, {}), "status.phase", "x")
    with pytest.raises(UsageError, match="Sheet: it has no member 'status'"):
        evolve(Sheet(metadata={}, size=1), {"status": {}})


def test_name_cannot_be_removed() -> None:
    with pytest.raises(UsageError, match="required field `name`"):
        pod().evolve("metadata.name", None)


def test_part_of_a_view_is_changed_by_itself() -> None:
    spec = pod().spec
    changed = evolve(spec, {"nodeName": "n2"})
    assert (type(changed), changed.node_name) == (type(spec), "n2")
    assert changed.containers is spec.containers
    assert pod().evolve({"spec": changed}) == pod().evolve("spec.nodeName", "n2")
    with pytest.raises(UsageError, match="change that"):
        evolve(pod().metadata, {"labels": {}})
