"""Keys of objects in any form, keys of tombstones, and the parts of a key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer.cache.objects.views import view_class
from aioinformer.errors import KeyFuncError
from aioinformer.queue.deltas import Delta, Deltas, DeltaType
from aioinformer.resources.keys import (
    DeletedFinalStateUnknown,
    ExplicitKey,
    ObjectName,
    deletion_handling_meta_namespace_key_func,
    deletion_handling_object_name,
    meta_namespace_index_func,
    meta_namespace_key_func,
    object_name,
    split_meta_namespace_key,
)
from aioinformer.resources.resource import Resource
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
