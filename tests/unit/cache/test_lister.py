"""Listers: lists, selectors, and errors for missing objects."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache.lister import ClusterLister, Lister
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.errors import NotFound, SelectorError, UsageError
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.resource import Resource
from aioinformer.resources.selectors import FieldSelector, everything, nothing
from tests.support.wire_objects import record

DEPLOYMENTS: Resource[Any] = Resource("apps", "v1", "deployments", "Deployment", model="V1Deployment")
NODES: Resource[Any] = Resource("", "v1", "nodes", "Node", namespaced=False, model="V1Node")


def filled(resource: Resource[Any], *, namespaces: bool = True) -> Indexer[Any]:
    indexers = {NAMESPACE_INDEX: meta_namespace_index_func} if namespaces else {}
    made: Indexer[Any] = Indexer(indexers=indexers, to_view=ObjectType(resource).to_view)
    for namespace, name, app in (("one", "a", "x"), ("one", "b", "y"), ("two", "a", "x"), ("onemore", "c", "x")):
        found = record(name, namespace=namespace, metadata={"labels": {"app": app}})
        made.store.put(found.key, found)
    return made


def keys(objects: list[Any]) -> list[str]:
    return sorted(f"{each.metadata.namespace}/{each.metadata.name}" for each in objects)


@pytest.fixture
def lister() -> Lister[Any]:
    return Lister(filled(DEPLOYMENTS), DEPLOYMENTS)


@pytest.mark.conformance("LST-01")
def test_list_returns_all_or_selected_objects(lister: Lister[Any]) -> None:
    assert keys(lister.list()) == ["one/a", "one/b", "onemore/c", "two/a"]
    assert keys(lister.list("app=x")) == ["one/a", "onemore/c", "two/a"]
    assert keys(lister.list("app notin (x)")) == ["one/b"]
    assert keys(lister.list(everything())) == keys(lister.list())
    assert lister.list(nothing()) == []


@pytest.mark.conformance("LST-02")
def test_namespace_lister_lists_its_namespace(lister: Lister[Any]) -> None:
    assert keys(lister.namespaced("one").list()) == ["one/a", "one/b"]
    assert keys(lister.namespaced("one").list("app=x")) == ["one/a"]
    assert lister.namespaced("three").list() == []


@pytest.mark.conformance("LST-02")
def test_namespace_without_an_index_is_found_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lister = Lister(filled(DEPLOYMENTS, namespaces=False), DEPLOYMENTS)
    assert keys(lister.namespaced("one").list()) == ["one/a", "one/b"]
    assert NAMESPACE_INDEX in caplog.text


@pytest.mark.conformance("LST-03")
def test_get_by_key_or_by_name_in_a_namespace(lister: Lister[Any]) -> None:
    assert lister.get("two/a").metadata.namespace == "two"
    assert lister.namespaced("two").get("a") == lister.get("two/a")


@pytest.mark.conformance("LST-03")
def test_missing_object_is_not_found_as_from_the_server(lister: Lister[Any]) -> None:
    for ask, name in ((lister.get, "one/c"), (lister.namespaced("one").get, "c")):
        with pytest.raises(NotFound, match=f'deployments.apps "{name}" not found') as caught:
            ask(name)
        assert (caught.value.status, caught.value.reason) == (404, "NotFound")


def test_impossible_name_is_in_the_error(lister: Lister[Any]) -> None:
    with pytest.raises(NotFound, match=r'"a" not found; its key has a namespace, as in get\(.default/a.\)'):
        lister.get("a")
    with pytest.raises(NotFound, match=r"name it without its namespace: get\('a'\)"):
        lister.namespaced("one").get("one/a")
    with pytest.raises(NotFound, match=r'"one/c" not found$'):
        lister.get("one/c")


def test_cluster_scoped_lister_gets_by_name() -> None:
    made: Indexer[Any] = Indexer(to_view=ObjectType(NODES).to_view)
    made.store.put("n1", record("n1", namespace=""))
    lister = ClusterLister(made, NODES)
    assert lister.get("n1").metadata.name == "n1"
    with pytest.raises(NotFound, match='nodes "n2" not found'):
        lister.get("n2")


def test_empty_namespace_is_refused(lister: Lister[Any]) -> None:
    with pytest.raises(UsageError, match="namespace"):
        lister.namespaced("")


def test_mappings_select_by_labels_and_fields(lister: Lister[Any]) -> None:
    assert keys(lister.list({"app": "x"})) == ["one/a", "onemore/c", "two/a"]
    assert keys(lister.namespaced("one").list({"app": "x"})) == ["one/a"]
    assert keys(lister.list({}, field_selector={"metadata.name": "b"})) == ["one/b"]
    assert keys(lister.list({})) == keys(lister.list())


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"app": 1}, "selector: label 'app': a value must be a string, not int"),
        ({"app": ["a", "b"]}, r"not list; for one of several values write text, 'app in \(a,b\)'"),
        ({"app": None}, "not NoneType; for a label that must exist write text, 'app'"),
        ({"app": "not a label"}, "selector: label 'app': value 'not a label' must have"),
        ({"matchLabels": {"app": "x"}}, "LabelSelector.from_dict"),
        (None, "selector: expected a label selector as text, a mapping .* not None"),
        (["app=x"], "selector: expected a label selector"),
        (FieldSelector(), "selector: expected a label selector"),
    ],
)
def test_invalid_label_selector_type_is_refused(lister: Lister[Any], selector: Any, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        lister.list(selector)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"metadata.name": 1}, "field_selector: field 'metadata.name': path and value must be strings, not 1"),
        ({"a=b": "c"}, "field_selector: field path 'a=b' must not contain"),
        (None, "field_selector: expected a field selector as text, a mapping .* not None"),
        (everything(), "field_selector: expected a field selector"),
    ],
)
def test_invalid_field_selector_type_is_refused(lister: Lister[Any], selector: Any, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        lister.list(field_selector=selector)


@pytest.mark.conformance("LST-04")
def test_returned_list_belongs_to_the_caller(lister: Lister[Any]) -> None:
    lister.list().clear()
    assert len(lister.list()) == 4
