"""Keys of objects in any form, the parts of a key, references to objects, and versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import V1Deployment, V1ObjectMeta, V1Pod

from aioinformer import DeletedFinalStateUnknown, Resource, meta_namespace_key_func
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.errors import KeyFuncError, UsageError
from aioinformer.models import core_v1
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.resources import (
    ExplicitKey,
    ObjectName,
    ObjectReference,
    deletion_handling_meta_namespace_key_func,
    deletion_handling_object_name,
    get_partial_reference,
    get_reference,
    meta_namespace_index_func,
    object_name,
    split_meta_namespace_key,
)
from aioinformer.resources.versions import covers, is_older, version_number
from tests.support.event_samples import POD, REFERENCE
from tests.support.wire_objects import record

PODS: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")

FORMS: dict[str, Any] = {
    "dict": {"metadata": {"name": "a", "namespace": "ns"}},
    "library-model": V1Pod(metadata=V1ObjectMeta(name="a", namespace="ns")),
    "view": view_class(PODS)(record("a")),
    "mapping-view": view_class(WIDGETS)(record("a")),
}


@pytest.mark.conformance("STO-03")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_object_has_the_same_key(form: str) -> None:
    assert meta_namespace_key_func(FORMS[form]) == "ns/a"
    assert deletion_handling_meta_namespace_key_func(FORMS[form]) == "ns/a"
    assert object_name(FORMS[form]) == ("ns", "a")
    assert meta_namespace_index_func(FORMS[form]) == ["ns"]


@pytest.mark.conformance("STO-03", "STO-11")
@pytest.mark.parametrize("obj", [{"metadata": {"name": "a"}}, {"metadata": {"name": "a", "namespace": None}}])
def test_cluster_scoped_key_is_the_name(obj: Any) -> None:
    assert meta_namespace_key_func(obj) == "a"
    assert meta_namespace_index_func(obj) == [""]


@pytest.mark.conformance("STO-03")
def test_explicit_key_is_itself() -> None:
    assert meta_namespace_key_func(ExplicitKey("x/y")) == "x/y"


@pytest.mark.conformance("CTL-10", "CTL-09")
def test_tombstone_key_needs_the_deletion_key_function() -> None:
    tombstone: DeletedFinalStateUnknown[Any] = DeletedFinalStateUnknown("ns/a", None)
    assert deletion_handling_meta_namespace_key_func(tombstone) == "ns/a"
    assert deletion_handling_object_name(tombstone) == ("ns", "a")
    with pytest.raises(KeyFuncError):
        meta_namespace_key_func(tombstone)


@pytest.mark.conformance("STO-03")
@pytest.mark.parametrize("obj", [None, 7, "ns/a", {}, {"metadata": None}, {"metadata": {"name": "a", "namespace": 7}}])
def test_object_without_a_key_is_reported_by_type(obj: Any) -> None:
    with pytest.raises(KeyFuncError) as caught:
        meta_namespace_key_func(obj)
    assert type(obj).__name__ in str(caught.value)


@pytest.mark.conformance("NAM-01", "WEAK-24")
@given(st.text(st.characters(exclude_characters="/"), min_size=1), st.text(st.characters(exclude_characters="/")))
def test_key_splits_into_namespace_and_name(name: str, namespace: str) -> None:
    key = meta_namespace_key_func({"metadata": {"name": name, "namespace": namespace}})
    assert split_meta_namespace_key(key) == ObjectName(namespace, name)
    assert str(split_meta_namespace_key(key)) == key


@pytest.mark.conformance("STO-03")
def test_key_with_three_parts_is_invalid() -> None:
    with pytest.raises(KeyFuncError, match="3 parts"):
        split_meta_namespace_key("a/b/c")


def test_deltas_have_oldest_and_newest() -> None:
    first, last = Delta(DeltaType.ADDED, 1), Delta(DeltaType.UPDATED, 2)
    assert (Deltas([first, last]).oldest(), Deltas([first, last]).newest()) == (first, last)
    assert (Deltas[int]().oldest(), Deltas[int]().newest()) == (None, None)


# References.


def cached() -> Any:
    """Return a pod as the cache returns it; objects in lists have no kind."""
    pods: Resource[Any] = core_v1.PODS
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


# Versions.


@pytest.mark.parametrize(
    ("version", "number"),
    [("0", 0), ("42", 42), ("", -1), ("-1", -1), ("1.5", -1), ("²", -1), ("\u0661", -1), ("9" * 40, -1)],
)
def test_numeric_version_is_a_number(version: str, number: int) -> None:
    assert version_number(version) == number


def test_only_numeric_versions_are_ordered() -> None:
    assert is_older("9", "10")
    assert not any(is_older(*pair) for pair in [("10", "9"), ("9", "9"), ("a", "b"), ("", "5"), ("5", ""), ("5", "b")])


def test_version_covers_itself_and_smaller_numbers() -> None:
    assert all(covers(*pair) for pair in [("10", "9"), ("10", "10"), ("a", "a"), ("5", "0")])
    assert not any(covers(*pair) for pair in [("9", "10"), ("a", "b"), ("10", "a"), ("a", "10")])
