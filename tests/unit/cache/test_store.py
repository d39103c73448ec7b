"""Stores and indexers: writes, reads by key and index, and atomic changes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.errors import IndexNotFound, KeyFuncError, UsageError
from aioinformer.resources.keys import DeletedFinalStateUnknown, ExplicitKey, meta_namespace_index_func

if TYPE_CHECKING:
    from collections.abc import Callable


def obj(name: str, version: str = "1", namespace: str = "ns", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": version}, **more}


def tags(item: Any) -> list[str]:
    return list(item["tags"])


def indexer(*objects: dict[str, Any]) -> Indexer[Any]:
    made: Indexer[Any] = Indexer(indexers={"tag": tags, NAMESPACE_INDEX: meta_namespace_index_func})
    for each in objects:
        made.add(each)
    return made


def names(objects: list[Any]) -> list[str]:
    return sorted(each["metadata"]["name"] for each in objects)


# Objects.


@pytest.mark.conformance("STO-01")
def test_add_and_update_are_equal() -> None:
    store = indexer(obj("a", tags=[]))
    store.update(obj("b", tags=[]))
    store.add(obj("a", tags=["x"]))
    assert names(store.list()) == ["a", "b"]
    assert names(store.by_index("tag", "x")) == ["a"]


@pytest.mark.conformance("STO-01")
def test_objects_are_found_by_object_and_by_key() -> None:
    store = indexer(obj("a", tags=[]))
    assert store.get(obj("a")) is store.get_by_key("ns/a")
    assert store.get(obj("b")) is None
    assert store.get_by_key("ns/b") is None
    assert ("ns/a" in store, "ns/b" in store, 7 in store, len(store)) == (True, False, False, 1)
    assert [each["metadata"]["name"] for each in store] == ["a"]


@pytest.mark.conformance("STO-01", "STO-03")
@pytest.mark.parametrize("handle", [obj("a"), ExplicitKey("ns/a"), DeletedFinalStateUnknown("ns/a", None)])
def test_delete_by_object_key_or_tombstone(handle: Any) -> None:
    store = indexer(obj("a", tags=["x"]), obj("b", tags=["x"]))
    store.delete(handle)
    assert store.list_keys() == ["ns/b"]
    assert store.index_keys("tag", "x") == ["ns/b"]


def test_delete_of_a_missing_object_does_nothing() -> None:
    store = indexer(obj("a", tags=["x"]))
    store.delete(obj("b"))
    assert store.list_keys() == ["ns/a"]


@pytest.mark.conformance("STO-10")
def test_replace_leaves_only_new_objects_and_index_entries() -> None:
    store = indexer(obj("a", tags=["x"]), obj("b", tags=["x", "y"]))
    store.replace([obj("b", tags=["z"]), obj("c", tags=["x"])], "9")
    assert sorted(store.list_keys()) == ["ns/b", "ns/c"]
    assert sorted(store.list_index_func_values("tag")) == ["x", "z"]
    assert store.index_keys("tag", "x") == ["ns/c"]


def test_returned_lists_belong_to_the_caller() -> None:
    store = indexer(obj("a", tags=[]))
    store.list().clear()
    store.list_keys().clear()
    store.get_indexers().clear()
    assert len(store.list()) == len(store.list_keys()) == 1
    assert len(store.get_indexers()) == 2


@pytest.mark.conformance("STO-03")
@pytest.mark.parametrize(
    "thing", [{}, {"metadata": {}}, object(), {"metadata": {"name": ""}}, {"metadata": {"name": 7}}]
)
def test_object_without_a_key_is_refused(thing: Any) -> None:
    store = indexer()
    with pytest.raises(KeyFuncError):
        store.add(thing)
    assert store.list() == []


@pytest.mark.conformance("STO-03")
def test_key_function_error_is_chained() -> None:
    store: Indexer[Any] = Indexer(lambda each: each["nothing"])
    with pytest.raises(KeyFuncError) as caught:
        store.add({})
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.conformance("STO-13")
def test_store_version_follows_its_objects() -> None:
    store = indexer()
    seen = [store.last_store_sync_resource_version()]
    steps: list[Callable[[], None]] = [
        lambda: store.add(obj("a", "3", tags=[])),
        lambda: store.update(obj("a", "5", tags=[])),
        lambda: store.delete(obj("a", "6", tags=[])),
        lambda: store.delete(ExplicitKey("ns/a")),
        lambda: store.delete(DeletedFinalStateUnknown("ns/a", obj("a", "99"))),
        lambda: store.bookmark("8"),
        lambda: store.bookmark(""),
        lambda: store.replace([], "20"),
    ]
    for step in steps:
        step()
        seen.append(store.last_store_sync_resource_version())
    assert seen == ["", "3", "5", "6", "6", "6", "8", "8", "20"]


# Indices.


@pytest.mark.conformance("STO-04", "STO-06")
def test_object_is_indexed_once_under_each_value() -> None:
    store = indexer(obj("a", tags=["x", "y", "x"]), obj("b", tags=["y"]), obj("c", tags=[]))
    assert names(store.by_index("tag", "y")) == ["a", "b"]
    assert store.index_keys("tag", "y") == ["ns/a", "ns/b"]
    assert store.by_index("tag", "nothing") == []
    assert names(store.index("tag", obj("q", tags=["x", "y"]))) == ["a", "b"]
    assert sorted(store.list_index_func_values("tag")) == ["x", "y"]


@pytest.mark.conformance("STO-07")
def test_update_moves_an_object_between_index_values() -> None:
    store = indexer(obj("a", tags=["x", "y"]))
    store.update(obj("a", tags=["y", "z"]))
    assert [store.index_keys("tag", value) for value in "xyz"] == [[], ["ns/a"], ["ns/a"]]


@pytest.mark.conformance("STO-07")
def test_unused_values_leave_the_index() -> None:
    store = indexer(obj("a", tags=["x", "y"]), obj("b", tags=["y"]))
    store.delete(obj("a"))
    assert store.list_index_func_values("tag") == ["y"]
    store.update(obj("b", tags=[]))
    assert store.list_index_func_values("tag") == []


@pytest.mark.conformance("STO-11")
def test_namespace_index_has_cluster_scoped_objects_under_empty() -> None:
    store = indexer(obj("a", tags=[]), obj("b", namespace="", tags=[]))
    assert sorted(store.list_index_func_values(NAMESPACE_INDEX)) == ["", "ns"]
    assert store.index_keys(NAMESPACE_INDEX, "") == ["b"]


@pytest.mark.conformance("STO-05")
def test_unknown_index_is_an_error_with_the_known_ones() -> None:
    store = indexer()
    questions: list[Any] = [store.index_keys, store.by_index, store.index]
    for ask in questions:
        with pytest.raises(IndexNotFound, match="namespace, tag"):
            ask("nothing", "x")
    assert store.list_index_func_values("nothing") == []


@pytest.mark.conformance("STO-09")
def test_index_added_late_has_existing_objects() -> None:
    store = indexer(obj("a", tags=["x"]))
    store.add_indexers({"first-letter": lambda each: [each["metadata"]["name"][0]]})
    store.add(obj("b", tags=[]))
    assert store.index_keys("first-letter", "a") == ["ns/a"]
    assert store.index_keys("first-letter", "b") == ["ns/b"]


@pytest.mark.conformance("STO-09")
@pytest.mark.parametrize("more", [{"new": tags, "tag": tags}, {"new": tags, "other": 7}])
def test_invalid_indexers_are_refused_together(more: Any) -> None:
    store = indexer(obj("a", tags=["x"]))
    with pytest.raises(UsageError):
        store.add_indexers(more)
    assert sorted(store.get_indexers()) == ["namespace", "tag"]
    assert store.index_keys("tag", "x") == ["ns/a"]


@pytest.mark.conformance("STO-08")
@pytest.mark.parametrize("returned", [7, "text", [7], [None]])
def test_invalid_index_values_skip_that_index_only(returned: Any, caplog: pytest.LogCaptureFixture) -> None:
    store: Indexer[Any] = Indexer(indexers={"bad": lambda each: returned, NAMESPACE_INDEX: meta_namespace_index_func})
    store.add(obj("a"))
    assert store.list_keys() == ["ns/a"]
    assert store.list_index_func_values("bad") == []
    assert store.index_keys(NAMESPACE_INDEX, "ns") == ["ns/a"]
    assert "ns/a" in caplog.text


@pytest.mark.conformance("STO-08")
def test_raising_index_function_removes_old_entries(caplog: pytest.LogCaptureFixture) -> None:
    store = indexer(obj("a", tags=["x"]))
    with caplog.at_level(logging.ERROR):
        store.update(obj("a", "2"))
    assert store.list()[0]["metadata"]["resourceVersion"] == "2"
    assert store.list_index_func_values("tag") == []
    assert "tag" in caplog.text


def test_index_function_may_return_none(caplog: pytest.LogCaptureFixture) -> None:
    store: Indexer[Any] = Indexer(indexers={"none": lambda each: None})
    store.add(obj("a"))
    assert store.list_index_func_values("none") == []
    assert caplog.text == ""


def test_index_function_may_read_the_store() -> None:
    store: Indexer[Any] = Indexer()
    store.add_indexers({"size": lambda each: [str(len(store.list()))]})
    store.add(obj("a"))
    store.add(obj("b"))
    assert store.list_index_func_values("size") == ["0", "1"]


def test_changing_index_function_leaves_no_old_entries() -> None:
    mood = ["x"]
    store: Indexer[Any] = Indexer(indexers={"mood": lambda each: list(mood)})
    store.add(obj("a"))
    mood[:] = ["y"]
    store.delete(obj("a"))
    assert store.list_index_func_values("mood") == []
