"""References between records, their bytes and decoded bodies."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.cache.store import Indexer
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable

PODS: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")


@dataclass
class Meta:
    name: str


@dataclass
class Pod:
    """A user's model."""

    metadata: Meta


class Struct(msgspec.Struct, weakref=True):
    """The same, for msgspec; it can be referred to weakly."""

    metadata: Meta


def raw_pod(version: int, padding: int = 0) -> bytes:
    return b'{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"%d"},"spec":{"nodeName":"%b"}}' % (
        version,
        b"n" * padding,
    )


def references_to(raw: bytes) -> int:
    return sys.getrefcount(raw) - 2  # the arguments of both functions


def admitted(objects: ObjectType[Any], raw: bytes) -> Record:
    return objects.on_arrival(objects.decode(raw))


def test_cached_model_does_not_keep_its_json() -> None:
    gc.disable()
    try:
        for decoder in (Pod, Struct, lambda raw: Struct(Meta("a"))):
            objects: ObjectType[Any] = ObjectType(PODS, decoder=decoder)
            raw = raw_pod(1)
            before = references_to(raw)
            record = admitted(objects, raw)
            kept = objects.to_view(record), objects.to_view(record)
            assert kept[0] is kept[1]
            del record
            assert references_to(raw) == before
    finally:
        gc.enable()


def test_shared_model_does_not_keep_old_versions() -> None:
    shared = Struct(Meta("a"))
    objects: ObjectType[Any] = ObjectType(PODS, decoder=lambda raw: shared)
    store: Indexer[Any] = Indexer(to_view=objects.to_view)
    gc.disable()
    try:
        _turn_over(store, objects, range(200))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        _turn_over(store, objects, range(200, 5200))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 20_000, "5,000 versions of 1,000 bytes left something behind"
    assert weakref.getweakrefcount(shared) == 1


def _turn_over(store: Indexer[Any], objects: ObjectType[Any], versions: range) -> None:
    for version in versions:
        store.store.put("ns/a", admitted(objects, raw_pod(version, 1000)))
        assert store.get_by_key("ns/a") is objects.to_view(store.store.item("ns/a"))


def test_readers_share_a_body_while_one_holds_it() -> None:
    record = decode_record(raw_pod(1, 3))
    view: Any = view_class(PODS)
    first = view(record).spec
    held = view(record)
    assert held.spec is not first, "nobody held the whole body"
    assert view(record).spec is held.spec
    del held
    assert record.recall() is None
    assert record.body is None, "the dead reference is dropped"


def test_threads_recall_bodies_that_others_drop() -> None:
    record = decode_record(raw_pod(1, 3))
    view: Any = view_class(PODS)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(2000):
                held = view(record)
                assert held.spec.node_name == "nnn"
                assert held.spec is held.spec
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        _in_threads(4, read)
    finally:
        sys.setswitchinterval(interval)
    assert not failures


def _in_threads(count: int, function: Callable[[], None]) -> None:
    threads = [threading.Thread(target=function) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
