"""Changes of objects: minimal patches, conditions, finalizers and owner references."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod, V1PodSpec

from aioinformer.client import (
    add_finalizer,
    controller_of,
    get_condition,
    has_finalizer,
    is_condition_true,
    merge_patch,
    remove_condition,
    remove_finalizer,
    set_condition,
    set_controller_reference,
)
from aioinformer.errors import AlreadyOwned, FormerOwner, UsageError
from aioinformer.resources import ObjectReference
from tests.support.merge_patches import merged
from tests.support.view_samples import POD, pod, widget


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


FIRST, LATER = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("make", [pod, widget])
def test_condition_is_set_and_read(make: Any) -> None:
    ready = set_condition(make(), "Ready", True, "Deployed", "all there", now=FIRST)
    condition = get_condition(ready, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "Deployed", "all there")
    assert condition.last_transition_time == FIRST
    assert is_condition_true(ready, "Ready")
    assert not is_condition_true(make(), "Ready")
    assert get_condition(make(), "Ready") is None


def test_transition_time_is_kept_while_the_status_is() -> None:
    ready = set_condition(widget(), "Ready", "True", "Deployed", now=FIRST)
    same = set_condition(ready, "Ready", True, "Scaled", "3 parts", now=LATER)
    assert get_condition(same, "Ready").last_transition_time == FIRST  # type: ignore[union-attr]
    assert get_condition(same, "Ready").reason == "Scaled"  # type: ignore[union-attr]
    failed = set_condition(same, "Ready", False, "Broken", now=LATER)
    assert get_condition(failed, "Ready").last_transition_time == LATER  # type: ignore[union-attr]


def test_condition_without_a_transition_time_gets_one() -> None:
    obj = widget().evolve({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Deployed"}]}})
    changed = set_condition(obj, "Ready", True, "Deployed", now=FIRST)
    assert get_condition(changed, "Ready").last_transition_time == FIRST  # type: ignore[union-attr]


def test_same_condition_returns_the_object_itself() -> None:
    ready = set_condition(widget(), "Ready", True, "Deployed", observed_generation=3, now=FIRST)
    assert set_condition(ready, "Ready", True, "Deployed", now=LATER) is ready
    assert set_condition(ready, "Ready", True, "Deployed", observed_generation=4, now=LATER) is not ready


def test_other_conditions_and_members_are_kept() -> None:
    status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False", "lastProbeTime": "x"}]}
    obj = widget().evolve({"status": status})
    changed = set_condition(obj, "B", True, "Why", now=FIRST)
    assert changed["status"]["conditions"][0] == status["conditions"][0]
    assert changed["status"]["conditions"][1]["lastProbeTime"] == "x"
    assert len(remove_condition(changed, "B")["status"]["conditions"]) == 1
    assert remove_condition(changed, "C") is changed


def test_time_is_written_in_utc_and_whole_seconds() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    changed = set_condition(widget(), "Ready", True, "Deployed", now=now)
    assert changed["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T10:00:00Z"
    text = set_condition(widget(), "Ready", True, "Deployed")["status"]["conditions"][0]["lastTransitionTime"]
    assert abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize(("status", "reason", "hint"), [("true", "R", "status must be"), (True, "", "reason")])
def test_invalid_conditions_are_refused(status: Any, reason: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        set_condition(widget(), "Ready", status, reason)
    with pytest.raises(UsageError, match="is no condition"):
        get_condition({"status": {"conditions": [{"type": "Ready"}]}}, "Ready")


class Metadata(msgspec.Struct, frozen=True):
    name: str


class Widget(msgspec.Struct, frozen=True):
    metadata: Metadata


CLEANUP = "example.com/cleanup"
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "o"}}


def child(namespace: str | None = "ns", *references: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace, "ownerReferences": list(references)}}


def references_of(obj: Any) -> Any:
    return obj["metadata"]["ownerReferences"]


# Finalizers.


@pytest.mark.parametrize("make", [pod, widget, lambda: dict(POD)])
def test_finalizer_is_added_once(make: Any) -> None:
    obj = make()
    added = add_finalizer(obj, CLEANUP)
    assert (has_finalizer(obj, CLEANUP), has_finalizer(added, CLEANUP)) == (False, True)
    assert add_finalizer(added, CLEANUP) is added
    assert has_finalizer(add_finalizer(added, "example.com/more"), CLEANUP)


def test_finalizer_is_removed_with_the_empty_list() -> None:
    added = add_finalizer(pod(), CLEANUP)
    removed = remove_finalizer(added, CLEANUP)
    assert "finalizers" not in removed.to_dict()["metadata"]
    assert remove_finalizer(removed, CLEANUP) is removed
    assert remove_finalizer(add_finalizer(added, "b"), CLEANUP).metadata.finalizers == ("b",)


def test_finalizer_of_a_class_without_finalizers_is_refused() -> None:
    with pytest.raises(UsageError, match="Metadata: it has no member 'finalizers'"):
        add_finalizer(Widget(Metadata("a")), CLEANUP)
    with pytest.raises(UsageError, match="must not be empty"):
        add_finalizer(pod(), "")


# Owners.


def test_controller_reference_is_set() -> None:
    made = set_controller_reference(child(), pod())
    assert references_of(made) == (
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "a",
            "uid": "u",
            "controller": True,
            "blockOwnerDeletion": True,
        },
    )
    assert controller_of(made) == ObjectReference("v1", "Pod", "a", uid="u")
    assert controller_of(child()) is None
    assert set_controller_reference(made, pod()) is made


def test_other_owner_references_are_kept_and_an_own_one_is_completed() -> None:
    plain = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o"}
    made = set_controller_reference(child("ns", other, plain), pod(), block_owner_deletion=False)
    assert references_of(made) == (other, {**plain, "controller": True, "blockOwnerDeletion": False})


def test_cluster_scoped_owner_may_own_anything() -> None:
    assert controller_of(set_controller_reference(child(), NODE)).kind == "Node"  # type: ignore[union-attr]
    assert controller_of(set_controller_reference(child(None), NODE)).uid == "o"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("obj", "hint"),
    [(child("other"), "is in namespace ns, and the object is in namespace other"), (child(None), "in no namespace")],
)
def test_owner_in_another_namespace_is_refused(obj: Any, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        set_controller_reference(obj, pod())


def test_owner_without_uid_is_refused() -> None:
    with pytest.raises(UsageError, match="Node n, has no uid"):
        set_controller_reference(child(), {**NODE, "metadata": {"name": "n"}})


def test_object_of_another_controller_is_refused() -> None:
    owned = set_controller_reference(child(), NODE)
    with pytest.raises(AlreadyOwned, match="c already has another controller: Node n") as caught:
        set_controller_reference(owned, pod())
    assert (caught.value.name, caught.value.kind, caught.value.controller) == ("c", "Node", "n")
    recreated = {**NODE, "metadata": {"name": "n", "uid": "another"}}
    with pytest.raises(AlreadyOwned):
        set_controller_reference(owned, recreated)


def test_former_owner_of_the_name_is_named() -> None:
    former = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web", "uid": "u-1", "controller": True}
    obj = {"metadata": {"name": "c", "namespace": "default", "ownerReferences": [former]}}
    owner = ObjectReference("apps/v1", "Deployment", "web", "default", "u-2")
    with pytest.raises(FormerOwner, match=r"^c belongs to the former Deployment web \(uid u-1\)$") as caught:
        set_controller_reference(obj, owner)
    assert pickle.loads(pickle.dumps(caught.value)).uid == "u-1"
