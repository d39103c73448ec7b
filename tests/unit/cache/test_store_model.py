"""A stateful test of Indexer: after any sequence of changes, it equals a dict."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aioinformer.cache.store import Indexer
from aioinformer.resources.keys import ExplicitKey, meta_namespace_index_func

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
TestStoreBesideModel.settings = settings(max_examples=50, stateful_step_count=25)
