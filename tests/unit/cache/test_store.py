"""Stores, indexers and listers: writes, reads by key and index, selectors, and a model."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aioinformer import DeletedFinalStateUnknown, Indexer, Lister, Resource
from aioinformer.cache import NAMESPACE_INDEX, ClusterLister, ThreadSafeStore
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.errors import IndexNotFound, KeyFuncError, NotFound, SelectorError, UsageError
from aioinformer.resources import ExplicitKey, FieldSelector, meta_namespace_index_func
from aioinformer.resources.selectors import everything, nothing
from tests.support.wire_objects import record

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


@pytest.mark.conformance("STO-03")
@pytest.mark.parametrize(
    "thing", [{}, {"metadata": {}}, object(), {"metadata": {"name": ""}}, {"metadata": {"name": 7}}]
)
def test_object_without_a_key_is_refused(thing: Any) -> None:
    store = indexer()
    with pytest.raises(KeyFuncError):
        store.add(thing)
    assert store.list() == []


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


@pytest.mark.conformance("STO-07", "STO-09", "STO-10")
def test_indices_follow_updates_and_replacements() -> None:
    store = indexer(obj("a", tags=["x", "y"]), obj("b", tags=["x"]))
    store.add_indexers({"first-letter": lambda each: [each["metadata"]["name"][0]]})
    store.update(obj("a", tags=["y", "z"]))
    assert [store.index_keys("tag", value) for value in "xyz"] == [["ns/b"], ["ns/a"], ["ns/a"]]
    store.replace([obj("b", tags=["z"]), obj("c", tags=["x"])], "9")
    assert sorted(store.list_keys()) == ["ns/b", "ns/c"]
    assert sorted(store.list_index_func_values("tag")) == ["x", "z"]
    assert store.index_keys("tag", "x") == store.index_keys("first-letter", "c") == ["ns/c"]


@pytest.mark.conformance("STO-04", "STO-06")
def test_object_is_indexed_once_under_each_value() -> None:
    store = indexer(obj("a", tags=["x", "y", "x"]), obj("b", tags=["y"]), obj("c", tags=[]))
    assert names(store.by_index("tag", "y")) == ["a", "b"]
    assert store.index_keys("tag", "y") == ["ns/a", "ns/b"]
    assert store.by_index("tag", "nothing") == []
    assert names(store.index("tag", obj("q", tags=["x", "y"]))) == ["a", "b"]
    assert sorted(store.list_index_func_values("tag")) == ["x", "y"]


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


# Stores of records, which any thread reads as views.


WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


def kept() -> Indexer[Any]:
    to_view = ObjectType(WIDGETS).to_view
    made: Indexer[Any] = Indexer(
        indexers={"color": lambda each: [each["color"]], NAMESPACE_INDEX: meta_namespace_index_func}, to_view=to_view
    )
    for name, color in (("a", "red"), ("b", "red"), ("c", "blue")):
        made.store.put(f"ns/{name}", record(name, color=color))
    return made


@pytest.mark.conformance("STO-04")
def test_index_accepts_objects_of_readers() -> None:
    store = kept()
    for name in ("color", NAMESPACE_INDEX):
        assert store.get_by_key("ns/a") in store.index(name, store.get_by_key("ns/a"))
    plain = {"metadata": {"name": "x", "namespace": "ns"}, "color": "red"}
    assert sorted(each.metadata.name for each in store.index("color", plain)) == ["a", "b"]


# Threads.


@pytest.mark.conformance("ARC-08")
def test_threads_never_see_half_a_change() -> None:
    store: ThreadSafeStore[Any] = ThreadSafeStore({"round": lambda each: [each["round"]]})
    store.replace({f"{i}": {"round": "0"} for i in range(20)})
    wrong: list[Any] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            values = store.values("round")
            rounds = {item["round"] for _, item in store.snapshot()}
            if len(values) != 1 or len(rounds) != 1:
                wrong.append((values, rounds))
            for value in values:
                found = store.indexed("round", value)
                if len(found) not in (0, 20) or any(item["round"] != value for item in found):
                    wrong.append(found)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(300):
        store.replace({f"{i}": {"round": str(number)} for i in range(20)})
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


# After any sequence of changes, an indexer equals a dict.


VALUES = "xyz"
OBJECTS = st.builds(
    lambda name, namespace, values: {"metadata": {"name": name, "namespace": namespace}, "values": values},
    st.sampled_from("ab"),
    st.sampled_from(["", "n", "m"]),
    st.one_of(st.none(), st.lists(st.sampled_from(VALUES), max_size=3)),
)


def values_of(obj: Any) -> list[str]:
    """Raises for an object whose values are None."""
    return list(obj["values"])


def count_of(obj: Any) -> list[str]:
    return [str(len(obj["values"] or ()))]


FUNCTIONS = {"values": values_of, "count": count_of, "namespace": meta_namespace_index_func}


def expected(name: str, obj: Any) -> set[str]:
    try:
        return set(FUNCTIONS[name](obj))
    except TypeError:
        return set()


class StoreBesideModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store: Indexer[Any] = Indexer(indexers={"values": values_of})
        self.model: dict[str, Any] = {}

    @rule(obj=OBJECTS)
    def put(self, obj: Any) -> None:
        self.store.add(obj)
        self.model["/".join(filter(None, (obj["metadata"]["namespace"], obj["metadata"]["name"])))] = obj

    @rule(key=st.sampled_from(["a", "n/a", "m/b"]))
    def delete(self, key: str) -> None:
        self.store.delete(ExplicitKey(key))
        self.model.pop(key, None)

    @rule(objects=st.lists(OBJECTS, max_size=4))
    def replace(self, objects: list[Any]) -> None:
        self.store.replace(objects)
        self.model = {}
        for obj in objects:
            self.model["/".join(filter(None, (obj["metadata"]["namespace"], obj["metadata"]["name"])))] = obj

    @rule(name=st.sampled_from(["count", "namespace"]))
    def add_index(self, name: str) -> None:
        if name not in self.store.get_indexers():
            self.store.add_indexers({name: FUNCTIONS[name]})

    @invariant()
    def holds_the_same_objects(self) -> None:
        assert {key: self.store.get_by_key(key) for key in self.store.list_keys()} == self.model
        assert len(self.store) == len(self.model) == len(self.store.list())

    @invariant()
    def finds_the_same_objects(self) -> None:
        for name in self.store.get_indexers():
            found = {value: self.store.index_keys(name, value) for value in self.store.list_index_func_values(name)}
            wanted: dict[str, list[str]] = {}
            for key in sorted(self.model):
                for value in expected(name, self.model[key]):
                    wanted.setdefault(value, []).append(key)
            assert found == wanted
            for obj in self.model.values():
                together = [other for other in self.model.values() if expected(name, other) & expected(name, obj)]
                shared = self.store.index(name, obj)
                assert len(shared) == len(together)
                assert all(other in shared for other in together)


TestStoreBesideModel = StoreBesideModel.TestCase
TestStoreBesideModel.settings = settings(max_examples=30, stateful_step_count=25)


# Listers.


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
