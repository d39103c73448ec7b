"""Finalizers and owner references."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from aioinformer.client.changes.owners import (
    add_finalizer,
    controller_of,
    has_finalizer,
    remove_finalizer,
    set_controller_reference,
)
from aioinformer.errors import AlreadyOwned, FormerOwner, UsageError
from aioinformer.resources.references import ObjectReference
from tests.support.view_samples import POD, pod, widget


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
