"""References to objects, whatever form the objects have."""

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
from tests.recorder.samples import POD, REFERENCE


def cached() -> Any:
    """A pod as the cache hands it out; in lists, objects do not say their kind."""
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
def test_a_reference_says_which_object_is_meant(obj: Any) -> None:
    assert get_reference(obj) == REFERENCE


def test_a_model_that_does_not_say_its_kind_is_known_by_its_class() -> None:
    deployment = V1Deployment(metadata=V1ObjectMeta(name="web", namespace="shop"))
    assert get_reference(deployment) == ObjectReference("apps/v1", "Deployment", "web", "shop")


def test_an_object_of_an_unknown_kind_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="web does not say its kind: set apiVersion and kind"):
        get_reference({"metadata": {"name": "web"}})


def test_a_part_of_an_object_is_named_by_its_path() -> None:
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
