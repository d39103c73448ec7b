"""Bulk changes: readers see all objects change at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.store import ThreadSafeStore
from aioinformer.resources.keys import meta_namespace_index_func

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


@pytest.mark.parametrize("cells", [store(), store(a=["x"])], ids=["empty", "filled"])
def test_index_added_before_the_commit_is_complete(cells: ThreadSafeStore[Item]) -> None:
    change = BulkChange(cells, fresh=not len(cells))
    change.put("b", {"tags": ["x", "y"]})
    cells.add_indexers({"count": lambda item: [str(len(item["tags"]))]})
    change.commit()
    assert cells.indexed_keys("count", "2") == ["b"]
    assert cells.indexed_keys("count", "1") == [key for key in ("a",) if cells.item(key)]


def test_untouched_object_can_be_exchanged_meanwhile() -> None:
    cells = store(a=["x"], b=["x"])
    packed = {"tags": ["x"]}
    change = BulkChange(cells, fresh=not len(cells))
    change.delete("b")
    cells.exchange("a", cells.item("a"), packed)
    change.commit()
    assert cells.item("a") is packed


def test_object_put_twice_has_the_last_values() -> None:
    for cells in (store(), store(a=["x"], b=["x"])):
        change = BulkChange(cells, fresh=not len(cells))
        change.put("a", {"tags": ["y"]})
        change.put("a", {"tags": ["z"]})
        change.commit()
        assert cells.indexed_keys("tag", "z") == ["a"]
        assert cells.indexed_keys("tag", "y") == []


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


def test_existing_object_put_as_new_leaves_no_old_value() -> None:
    cells = store(a=["x"])
    change = BulkChange(cells, fresh=True)
    change.put("a", {"tags": ["y"]})
    change.commit()
    assert seen(cells) == {"*": ["a"], "y": ["a"]}


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
