"""Stores of records, which any thread reads as views."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.storage import DictRecord
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer, ThreadSafeStore
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.resource import Resource
from tests.support.wire_objects import record

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


def kept() -> Indexer[Any]:
    to_view = ObjectType(WIDGETS).to_view
    made: Indexer[Any] = Indexer(
        indexers={"color": lambda each: [each["color"]], NAMESPACE_INDEX: meta_namespace_index_func}, to_view=to_view
    )
    for name, color in (("a", "red"), ("b", "red"), ("c", "blue")):
        made.store.put(f"ns/{name}", record(name, color=color))
    return made


def test_readers_see_views() -> None:
    store = kept()
    assert sorted(each.metadata.name for each in store.by_index("color", "red")) == ["a", "b"]
    assert store.by_index("color", "blue")[0]["color"] == "blue"
    assert len(store.by_index(NAMESPACE_INDEX, "ns")) == 3


@pytest.mark.conformance("STO-04")
def test_index_accepts_objects_of_readers() -> None:
    store = kept()
    for name in ("color", NAMESPACE_INDEX):
        assert store.get_by_key("ns/a") in store.index(name, store.get_by_key("ns/a"))
    plain = {"metadata": {"name": "x", "namespace": "ns"}, "color": "red"}
    assert sorted(each.metadata.name for each in store.index("color", plain)) == ["a", "b"]


def test_deleted_record_leaves_the_namespace_index() -> None:
    store, plain = kept(), record("a", 2)
    packed = DictRecord(plain.key, plain.namespace, plain.name, plain.uid, plain.resource_version, plain.labels, b"")
    store.store.exchange("ns/a", store.store.item("ns/a"), packed)
    store.store.delete("ns/a")
    assert store.index_keys(NAMESPACE_INDEX, "ns") == ["ns/b", "ns/c"]


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
