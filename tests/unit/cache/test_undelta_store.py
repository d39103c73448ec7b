"""UndeltaStore: each write pushes all objects."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache import UndeltaStore


def valued(name: str, value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


@pytest.mark.conformance("UND-01")
def test_each_write_pushes_all_objects_once() -> None:
    pushed: list[list[Any]] = []
    store: UndeltaStore[Any] = UndeltaStore(pushed.append)
    store.add(valued("a", 1))
    store.update(valued("a", 2))
    store.add(valued("b", 3))
    store.delete(valued("a"))
    store.replace([valued("c", 4)])
    assert [[each["value"] for each in objects] for objects in pushed] == [[1], [2], [2, 3], [3], [4]]


@pytest.mark.conformance("UND-01")
def test_reads_push_nothing() -> None:
    pushed: list[list[Any]] = []
    store: UndeltaStore[Any] = UndeltaStore(pushed.append, indexers={"value": lambda each: [str(each["value"])]})
    store.add(valued("a", 1))
    del pushed[:]
    store.list()
    store.list_keys()
    store.get(valued("a"))
    store.by_index("value", "1")
    assert pushed == []
