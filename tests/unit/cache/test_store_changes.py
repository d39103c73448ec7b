"""Changes of a store that others interrupt, or that are visible at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.store import Indexer, ThreadSafeStore
from aioinformer.errors import UsageError
from aioinformer.resources.keys import meta_namespace_index_func

if TYPE_CHECKING:
    from collections.abc import Callable

Item = dict[str, Any]


def by_tag(item: Item) -> list[str]:
    tags: list[str] = item["tags"]
    return tags


def store(**items: list[str]) -> ThreadSafeStore[Item]:
    cells: ThreadSafeStore[Item] = ThreadSafeStore({"tag": by_tag})
    for key, tags in items.items():
        cells.put(key, {"tags": tags})
    return cells


def seen(cells: ThreadSafeStore[Item]) -> dict[str, list[str]]:
    """Return what readers find: index value -> keys, and "*" -> all keys."""
    return {"*": sorted(cells.all_keys())} | {
        tag: cells.indexed_keys("tag", tag) for tag in sorted(cells.values("tag"))
    }


@pytest.mark.conformance("CTL-15", "STO-12")
@pytest.mark.parametrize("cells", [store(), store(a=["x"], b=["x", "y"], c=["z"])], ids=["empty", "filled"])
def test_changes_become_visible_at_the_commit(cells: ThreadSafeStore[Item]) -> None:
    before = seen(cells)
    change = BulkChange(cells, fresh=not len(cells))
    for key in cells.all_keys():
        if key != "c":
            change.delete(key)
    change.put("c", {"tags": ["x"]})
    change.put("d", {"tags": ["x", "w"]})
    assert seen(cells) == before
    change.commit()
    assert seen(cells) == {"*": ["c", "d"], "w": ["d"], "x": ["c", "d"]}


def test_untouched_object_can_be_exchanged_meanwhile() -> None:
    cells = store(a=["x"], b=["x"])
    packed = {"tags": ["x"]}
    change = BulkChange(cells, fresh=not len(cells))
    change.delete("b")
    cells.exchange("a", cells.item("a"), packed)
    change.commit()
    assert cells.item("a") is packed


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("filled", [False, True])
def test_unfinished_index_is_complete_after_the_commit(filled: bool, steps: int) -> None:
    cells = store(a=["x"], b=["x"], c=["x"]) if filled else store()
    kept = cells.all_keys()[1:]
    filling = cells.adding_indexers({f"count {steps}": lambda item: [str(len(item["tags"]))]})
    for _ in range(steps):
        next(filling, None)
    change = BulkChange(cells, fresh=not len(cells))
    change.put("d", {"tags": ["x", "y"]})
    for key in cells.all_keys()[:1]:
        change.delete(key)
    next(filling, None)
    change.commit()
    for _ in filling:
        pass
    assert cells.indexed_keys(f"count {steps}", "1") == kept
    assert cells.indexed_keys(f"count {steps}", "2") == ["d"]


@pytest.mark.parametrize("others", [{}, {"a": ["x"]}], ids=["empty", "others"])
def test_new_objects_join_existing_ones_in_every_index(others: dict[str, list[str]]) -> None:
    cells = store(**others)
    change = BulkChange(cells, fresh=True)
    change.put("b", {"tags": ["x", "y"]})
    cells.put("c", {"tags": ["y"]})
    cells.add_indexers({"count": lambda item: [str(len(item["tags"]))]})
    change.commit()
    assert seen(cells) == {"*": [*others, "b", "c"], "x": [*others, "b"], "y": ["b", "c"]}
    assert cells.indexed_keys("count", "1") == [*others, "c"]
    cells.delete("b")
    assert seen(cells) == {"*": [*others, "c"], **({"x": ["a"]} if others else {}), "y": ["c"]}


def test_failed_update_keeps_the_namespace_of_a_record() -> None:
    def record(version: int) -> Record:
        metadata = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": str(version)}
        return decode_record(json.dumps({"metadata": metadata}).encode())

    def exhausted() -> None:
        raise MemoryError

    cells: ThreadSafeStore[Any] = ThreadSafeStore({"namespace": meta_namespace_index_func})
    cells.put("n/a", record(1))
    change = BulkChange(cells, fresh=False)
    change.put("n/a", record(2))
    with pytest.raises(MemoryError):
        change.commit(exhausted)
    assert cells.indexed_keys("namespace", "n") == ["n/a"]


# Index functions that are added to a store while it changes.


def on_node(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "node": node}


def by_node(item: Any) -> list[str]:
    return [item["node"]]


@pytest.fixture
def indexer() -> Indexer[Any]:
    indexer: Indexer[Any] = Indexer()
    for name in ("a", "b", "c"):
        indexer.add(on_node(name, "old"))
    return indexer


def test_name_of_a_pending_index_is_taken(indexer: Indexer[Any]) -> None:
    steps = indexer.store.adding_indexers({"node": by_node})
    next(steps)

    with pytest.raises(UsageError, match="node exists already"):
        indexer.add_indexers({"node": by_node})


def test_changed_objects_leave_no_old_index_value(indexer: Indexer[Any]) -> None:
    def moving(item: Any) -> list[str]:
        if item["node"] == "old":
            indexer.add(on_node(item["metadata"]["name"], "new"))
        return [item["node"]]

    indexer.add_indexers({"node": moving})

    assert indexer.list_index_func_values("node") == ["new"]


# Changes by another thread while index functions of a put run.


def colored(name: str, color: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "color": color}


def test_replace_during_a_put_loses_nothing() -> None:
    strikes: list[Callable[[], None]] = []

    def by_color(obj: Any) -> list[str]:
        if strikes:
            strikes.pop()()
        return [obj["color"]]

    cells: Indexer[Any] = Indexer(indexers={"color": by_color})
    cells.add(colored("a", "red"))
    strikes.append(lambda: cells.replace([colored("b", "blue")]))
    cells.add(colored("a", "green"))
    assert sorted(cells.list_keys()) == ["ns/a", "ns/b"]
    assert (cells.index_keys("color", "green"), cells.index_keys("color", "red")) == (["ns/a"], [])


def test_reader_within_a_change_does_not_deadlock() -> None:
    cells = store(a=["x"])
    found: list[int] = []
    cells.put("c", {"tags": []}, lambda news: found.append(len(cells.items())))
    assert found == [2]
