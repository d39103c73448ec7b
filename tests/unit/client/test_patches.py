"""The minimal patch between two states of an object."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod, V1PodSpec

from aioinformer.client.changes.patches import merge_patch
from aioinformer.errors import UsageError
from tests.support.view_samples import pod, widget
from tests.unit.cache.test_evolve import merged


def test_equal_states_have_an_empty_patch() -> None:
    assert merge_patch(pod(), pod()) == {}
    assert merge_patch(widget(), widget().to_dict()) == {}


def test_patch_has_the_changes_and_the_version_alone() -> None:
    changed = pod().evolve({"metadata": {"labels": {"a": "b", "app": None}}, "spec": {"nodeName": "n2"}})
    assert merge_patch(pod(), changed) == {
        "metadata": {"resourceVersion": "7", "labels": {"a": "b", "app": None}},
        "spec": {"nodeName": "n2"},
    }


def test_lists_that_differ_are_complete() -> None:
    changed = pod().evolve("spec.containers.0.image", "j")
    expected = [{"name": "c", "image": "j", "env": [{"name": "E", "value": "1"}]}]
    assert merge_patch(pod(), changed)["spec"] == {"containers": expected}


def test_version_and_managed_fields_of_the_new_state_are_ignored() -> None:
    after = pod().evolve({"metadata": {"resourceVersion": "9", "managedFields": [{"manager": "m"}]}})
    assert merge_patch(pod(), after) == {}
    assert merge_patch(after, pod().evolve({"spec": {"nodeName": None}}))["metadata"] == {"resourceVersion": "9"}


def test_state_without_a_version_has_no_precondition() -> None:
    assert merge_patch({"spec": {"size": 1}}, {"spec": {"size": 2}}) == {"spec": {"size": 2}}


def test_states_may_be_of_different_classes() -> None:
    class Spec(msgspec.Struct):
        size: int | None

    class Widget(msgspec.Struct):
        spec: Spec

    assert merge_patch(Widget(Spec(1)), {"spec": {"size": 2}}) == {"spec": {"size": 2}}
    assert merge_patch(Widget(Spec(1)), Widget(Spec(None))) == {"spec": {"size": None}}
    old = V1Pod(metadata=V1ObjectMeta(name="a", resource_version="3"), spec=V1PodSpec(containers=[], node_name="n"))
    new = V1Pod(metadata=V1ObjectMeta(name="a", resource_version="3"), spec=V1PodSpec(containers=[], node_name="m"))
    assert merge_patch(old, new) == {"metadata": {"resourceVersion": "3"}, "spec": {"nodeName": "m"}}


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), ([1], [True]), ([{"a": 1}], [{"a": 1.0}])])
def test_numbers_of_different_types_differ(old: Any, new: Any) -> None:
    assert merge_patch({"x": old}, {"x": new}) == {"x": new}


def test_anything_but_an_object_is_refused() -> None:
    with pytest.raises(UsageError, match="expected an object of the API, not list"):
        merge_patch([], {})


_TEXTS = st.sampled_from(["a", "b", "metadata", "resourceVersion", "spec", ""])
_SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.0, 1.0, 2.5]) | _TEXTS
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=15,
)
_SPECS = st.dictionaries(_TEXTS, _JSON, max_size=4)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


def state(spec: Any, labels: Any, version: str) -> dict[str, Any]:
    metadata = {"name": "a", "labels": labels}
    return {"metadata": metadata | ({"resourceVersion": version} if version else {}), "spec": spec}


@given(_SPECS, _SPECS, _SPECS, _SPECS, st.sampled_from(["", "7"]))
def test_patch_of_the_old_state_gives_the_new(spec: Any, new_spec: Any, labels: Any, new_labels: Any, at: str) -> None:
    old, new = state(spec, labels, at), state(new_spec, new_labels, at)
    patch = merge_patch(old, new)
    assert canonical(without_nulls(merged(old, patch))) == canonical(without_nulls(new))
    assert (patch == {}) is (canonical(without_nulls(old)) == canonical(without_nulls(new)))
    if patch:
        assert patch.get("metadata", {}).get("resourceVersion", "") == at


@given(_SPECS, _SPECS)
def test_patch_names_no_member_that_is_unchanged(spec: Any, new_spec: Any) -> None:
    def check(patch: Any, old: Any, new: Any) -> None:
        for name, value in patch.items():
            assert canonical(without_nulls(old.get(name))) != canonical(without_nulls(new.get(name)))
            if isinstance(value, dict) and isinstance(old.get(name), dict) and isinstance(new.get(name), dict):
                check(value, old[name], new[name])

    check(merge_patch({"spec": spec}, {"spec": new_spec}), {"spec": spec}, {"spec": new_spec})
