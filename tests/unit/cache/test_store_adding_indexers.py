"""Index functions that are added to a store while it changes."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Indexer
from aioinformer.errors import UsageError


def pod(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "node": node}


def by_node(item: Any) -> list[str]:
    return [item["node"]]


@pytest.fixture
def store() -> Indexer[Any]:
    indexer: Indexer[Any] = Indexer()
    for name in ("a", "b", "c"):
        indexer.add(pod(name, "old"))
    return indexer


def test_concurrent_changes_are_indexed_in_their_final_state(store: Indexer[Any]) -> None:
    steps = store.store.adding_indexers({"node": by_node})
    next(steps)
    store.add(pod("a", "new"))
    store.add(pod("c", "new"))
    store.delete(pod("b", "old"))
    store.add(pod("d", "new"))

    list(steps)

    assert store.index_keys("node", "new") == ["a", "c", "d"]
    assert store.list_index_func_values("node") == ["new"]


def test_concurrent_replace_is_indexed(store: Indexer[Any]) -> None:
    steps = store.store.adding_indexers({"node": by_node})
    next(steps)
    store.replace([pod("z", "new")])

    list(steps)

    assert store.list_index_func_values("node") == ["new"]


def test_index_is_unavailable_until_complete(store: Indexer[Any]) -> None:
    steps = store.store.adding_indexers({"node": by_node})

    next(steps)

    assert "node" not in store.get_indexers()


def test_cancelled_addition_adds_nothing(store: Indexer[Any]) -> None:
    steps = store.store.adding_indexers({"node": by_node})
    next(steps)

    steps.close()

    store.add_indexers({"node": by_node})
    assert store.index_keys("node", "old") == ["a", "b", "c"]


def test_name_of_a_pending_index_is_taken(store: Indexer[Any]) -> None:
    steps = store.store.adding_indexers({"node": by_node})
    next(steps)

    with pytest.raises(UsageError, match="node exists already"):
        store.add_indexers({"node": by_node})


def test_changed_objects_leave_no_old_index_value(store: Indexer[Any]) -> None:
    def moving(item: Any) -> list[str]:
        if item["node"] == "old":
            store.add(pod(item["metadata"]["name"], "new"))
        return [item["node"]]

    store.add_indexers({"node": moving})

    assert store.list_index_func_values("node") == ["new"]
