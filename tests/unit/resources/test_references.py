"""References to objects in all forms that objects have."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_asyncio.client import V1Deployment, V1ObjectMeta

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import decode_record
from aioinformer.errors import UsageError
from aioinformer.resources.catalog import find
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.references import ObjectReference, get_partial_reference, get_reference
from tests.support.event_samples import POD, REFERENCE


def cached() -> Any:
    """Return a pod as the cache returns it; objects in lists have no kind."""
    pods = find("", "v1", "pods")
    assert pods is not None
    raw = b'{"metadata":{"namespace":"shop","name":"cart","uid":"u1","resourceVersion":"7"}}'
    return ObjectType(pods).to_view(decode_record(raw))


@pytest.mark.conformance("EV-02")
@pytest.mark.parametrize(
    "obj",
    [POD, REFERENCE, cached(), DeletedFinalStateUnknown("shop/cart", POD)],
    ids=["mapping", "reference", "cached", "tombstone"],
)
def test_reference_to_each_form_of_object(obj: Any) -> None:
    assert get_reference(obj) == REFERENCE


def test_kind_of_a_model_is_known_by_its_class() -> None:
    deployment = V1Deployment(metadata=V1ObjectMeta(name="web", namespace="shop"))
    assert get_reference(deployment) == ObjectReference("apps/v1", "Deployment", "web", "shop")


def test_object_without_kind_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="web has no kind: set apiVersion and kind"):
        get_reference({"metadata": {"name": "web"}})


def test_partial_reference_has_a_field_path() -> None:
    reference = get_partial_reference(POD, "spec.containers{web}")
    assert reference.to_dict() == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "cart",
        "uid": "u1",
        "resourceVersion": "7",
        "fieldPath": "spec.containers{web}",
    }
