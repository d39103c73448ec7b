"""What is built on a store: MutationCache, MutationDetector, ExpirationStore and UndeltaStore."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from aioinformer.cache.expiration_store import ExpirationStore, TimestampedEntry, TTLPolicy
from aioinformer.cache.mutation_cache import MutationCache
from aioinformer.cache.mutation_detector import ENVIRONMENT_VARIABLE, CacheMutated, MutationDetector
from aioinformer.cache.store import Indexer
from aioinformer.cache.undelta_store import UndeltaStore
from aioinformer.errors import IndexNotFound, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.support.collection import Collection
from tests.support.virtual_time import settled

Obj = dict[str, Any]


def obj(version: int | str, uid: str = "u", tag: str = "x", name: str = "a") -> Obj:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}, "tag": tag}


def store(*objects: Obj) -> Indexer[Obj]:
    made: Indexer[Obj] = Indexer(indexers={"tag": lambda each: [each["tag"]]})
    made.replace(objects)
    return made


@pytest.mark.conformance("MUT-01", "MUT-02")
@pytest.mark.parametrize(("stored", "written", "read"), [(1, 2, 2), (2, 2, 2), (3, 2, 3), (9, 10, 10)])
def test_newer_of_store_and_write_is_returned(stored: int, written: int, read: int) -> None:
    cache = MutationCache(store(obj(stored)))
    cache.mutation(obj(written))
    assert cache.get_by_key("a") == obj(read)


@pytest.mark.conformance("MUT-01", "MUT-02")
def test_overtaken_write_is_dropped() -> None:
    cells = store(obj(3))
    cache = MutationCache(cells)
    cache.mutation(obj(2))
    cache.get_by_key("a")
    cells.replace([obj(1)])
    assert cache.get_by_key("a") == obj(1)


@pytest.mark.conformance("MUT-01", "MUT-02")
def test_objects_not_in_the_store_need_include_adds() -> None:
    for include_adds, found in ((False, None), (True, obj(5))):
        cache = MutationCache(store(), include_adds=include_adds)
        cache.mutation(obj(5))
        assert cache.get_by_key("a") == found
        assert cache.by_index("tag", "x") == ([found] if found else [])


@pytest.mark.conformance("MUT-02")
def test_index_uses_the_values_of_writes() -> None:
    cache = MutationCache(store(obj(1, name="a"), obj(2, name="b"), obj(3, name="c", tag="y")))
    cache.mutation(obj(4, name="a", tag="y"))
    cache.mutation(obj(5, name="c", tag="y"))
    assert cache.by_index("tag", "x") == [obj(2, name="b")]
    assert cache.by_index("tag", "y") == [obj(5, name="c", tag="y"), obj(4, name="a", tag="y")]
    with pytest.raises(IndexNotFound):
        cache.by_index("nothing", "x")


@pytest.mark.conformance("MUT-03")
def test_older_write_does_not_replace_a_newer_one() -> None:
    cache = MutationCache(store(obj(1)))
    cache.mutation(obj(7))
    cache.mutation(obj(6))
    assert cache.get_by_key("a") == obj(7)


@pytest.mark.conformance("MUT-03", "MUT-04")
@pytest.mark.parametrize("late", [obj(4), obj(5), obj(9), obj(5, "other")])
@pytest.mark.parametrize("gone", [obj(5), DeletedFinalStateUnknown("a", obj(5))])
def test_late_write_does_not_restore_a_deleted_object(late: Obj, gone: Any) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.on_delete(gone)
    cache.mutation(late)
    assert cache.get_by_key("a") is None
    assert cache.by_index("tag", "x") == []


@pytest.mark.conformance("MUT-03", "MUT-04")
def test_object_created_after_a_deletion_exists() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.on_delete(obj(5, "u"))
    cache.mutation(obj(6, "other"))
    assert cache.get_by_key("a") == obj(6, "other")


@pytest.mark.conformance("MUT-04")
@pytest.mark.parametrize(("delivered", "kept"), [(4, True), (5, False), (6, False)])
def test_notification_drops_the_same_or_an_older_write(delivered: int, kept: bool) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5))
    cache.on_update(obj(1), obj(delivered))
    assert (cache.get_by_key("a") is not None) is kept


@pytest.mark.conformance("MUT-04")
@pytest.mark.parametrize(
    ("deleted", "kept"), [(obj(4, "u"), False), (obj(6, "other"), False), (obj(4, "other"), True), (obj(5, "u"), False)]
)
def test_deletion_drops_writes_up_to_its_object(deleted: Obj, kept: bool) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5, "u"))
    cache.on_delete(deleted)
    assert (cache.get_by_key("a") is not None) is kept


@pytest.mark.conformance("MUT-04")
def test_object_in_the_store_overrides_a_tombstone() -> None:
    cells = store(obj(8, "other"))
    cache = MutationCache(cells)
    cache.on_delete(obj(5, "u"))
    assert cache.get_by_key("a") == obj(8, "other")


@pytest.mark.conformance("MUT-01")
def test_write_expires() -> None:
    now = [100.0]
    cache = MutationCache(store(obj(1)), ttl=10, clock=lambda: now[0])
    cache.mutation(obj(2))
    now[0] += 9
    assert cache.get_by_key("a") == obj(2)
    now[0] += 1
    assert cache.get_by_key("a") == obj(1)


@pytest.mark.conformance("MUT-01")
def test_least_recently_used_write_is_dropped() -> None:
    cache = MutationCache(store(obj(1, name="a"), obj(1, name="b"), obj(1, name="c")), max_size=2)
    cache.mutation(obj(2, name="a"))
    cache.mutation(obj(2, name="b"))
    cache.get_by_key("a")
    cache.mutation(obj(2, name="c"))
    versions = {name: cache.get_by_key(name)["metadata"]["resourceVersion"] for name in "abc"}  # type: ignore[index]
    assert versions == {"a": "2", "b": "1", "c": "2"}


@pytest.mark.conformance("MUT-05")
def test_non_numeric_versions() -> None:
    cache = MutationCache(store(obj("opaque")))
    with pytest.raises(UsageError, match=r"a: metadata\.resourceVersion is not a number"):
        cache.mutation(obj("opaque"))
    cache.mutation(obj(5))
    assert cache.get_by_key("a") == obj("opaque")


@pytest.mark.parametrize("options", [{"ttl": 0}, {"max_size": 0}])
def test_invalid_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(options))}=0 must be"):
        MutationCache(store(), **options)


@pytest.mark.conformance("MUT-04")
async def test_cache_as_a_handler_drops_writes() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    cache = MutationCache(informer.get_indexer(), include_adds=True)
    informer.add_event_handler(cache)
    async with informer:
        await settled()
        written = {"metadata": {"name": "b", "namespace": "default", "uid": "uid-2", "resourceVersion": "2"}}
        cache.mutation(written)
        assert cache.get_by_key("default/b") is written
        pods.put("b")
        await settled()
        assert cache.get_by_key("default/b") is not written
        pods.delete("b")
        await settled()
        cache.mutation(written)
        assert cache.get_by_key("default/b") is None
        assert len(cache.by_index("namespace", "default")) == 1


# MutationDetector.


def labelled(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"secret": "password"}}, "list": [1, {"a": 2}]}


def stored(*objects: Any) -> Indexer[Any]:
    made: Indexer[Any] = Indexer()
    made.replace(objects)
    return made


def test_replaced_objects_are_not_reported() -> None:
    cells = stored(labelled("a"))
    detector = MutationDetector(cells, enabled=True)
    detector.compare()
    changed = labelled("a")
    changed["list"].append(3)
    cells.update(changed)
    cells.add(labelled("b"))
    detector.compare()
    detector.compare()


@pytest.mark.conformance("DET-01")
def test_changed_object_is_reported_without_values() -> None:
    mine = labelled("a")
    detector = MutationDetector(stored(mine, labelled("b")), "pods", enabled=True)
    detector.compare()
    mine["metadata"]["labels"]["secret"] = "other"
    mine["list"][1]["b"] = 1
    with pytest.raises(CacheMutated) as caught:
        detector.compare()
    assert caught.value.key == "a"
    assert caught.value.paths == ("metadata.labels.secret", "list[1].b")
    assert "pods: a was changed in place" in str(caught.value)
    assert "password" not in str(caught.value)


@pytest.mark.conformance("DET-01")
@pytest.mark.parametrize(("after", "found"), [(119, True), (121, False)])
def test_deleted_objects_are_compared_for_a_while(after: float, found: bool) -> None:
    now = [0.0]
    mine = labelled("a")
    cells = stored(mine)
    detector = MutationDetector(cells, enabled=True, retain=120, clock=lambda: now[0])
    detector.compare()
    cells.delete(mine)
    now[0] = after
    detector.compare()
    del mine["list"]
    if found:
        with pytest.raises(CacheMutated, match="at list;"):
            detector.compare()
    else:
        detector.compare()


@dataclass
class Model:
    metadata: dict[str, str]
    tags: list[str] = field(default_factory=list)


@pytest.mark.conformance("DET-01")
async def test_objects_of_a_decoder_are_compared() -> None:
    informer = SharedIndexInformer(Collection("a"), decoder=lambda raw: Model({"name": "a"}))
    detector = MutationDetector(informer.get_indexer(), enabled=True)
    async with informer:
        await informer.wait_for_sync()
        watch = asyncio.create_task(detector.run())
        await asyncio.sleep(5)
        model = informer.get_store().get_by_key("default/a")
        assert model is not None
        model.tags.append("x")
        with pytest.raises(CacheMutated, match="default/a was changed in place at tags"):
            await watch


@pytest.mark.conformance("DET-01")
async def test_writes_that_bypass_frozen_dicts_are_detected() -> None:
    informer = SharedIndexInformer(Collection("a"), storage="dict")
    detector = MutationDetector(informer.get_indexer(), enabled=True)
    async with informer:
        await informer.wait_for_sync()
        detector.compare()
        detector.compare()
        pod = informer.get_store().get_by_key("default/a")
        assert pod is not None
        dict.update(pod["metadata"], name="b")
        with pytest.raises(CacheMutated, match=r"default/a was changed in place at metadata\.name;"):
            detector.compare()


@pytest.mark.conformance("DET-01")
@pytest.mark.parametrize(
    ("value", "enabled"), [("true", True), ("1", True), ("false", False), ("0", False), ("", False)]
)
def test_environment_variable_is_the_default(monkeypatch: pytest.MonkeyPatch, value: str, enabled: bool) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, value)
    assert MutationDetector(stored()).enabled is enabled
    assert MutationDetector(stored(), enabled=False).enabled is False


async def test_disabled_detector_does_nothing() -> None:
    mine = labelled("a")
    detector = MutationDetector(stored(mine))
    detector.compare()
    del mine["list"]
    detector.compare()
    await detector.run()


def test_invalid_period_is_refused() -> None:
    with pytest.raises(UsageError, match="period=0"):
        MutationDetector(stored(), period=0)


# ExpirationStore.


def valued(name: str, value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expiring(clock: Clock) -> ExpirationStore[Any]:
    return ExpirationStore(TTLPolicy(10), clock=clock)


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize(
    ("ttl", "age", "expired"), [(10, 10, False), (10, 10.1, True), (10, 0, False), (0, 1e9, False), (-1, 1e9, False)]
)
def test_entry_expires_after_its_time_to_live(ttl: float, age: float, expired: bool) -> None:
    assert TTLPolicy(ttl).is_expired(TimestampedEntry("a", 100), 100 + age) is expired


@pytest.mark.conformance("EXP-01")
def test_read_drops_an_expired_entry(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.add(valued("a"))
    expiring.add(valued("b"))
    clock.now += 11
    assert expiring.list_keys() == ["a", "b"]
    assert expiring.get(valued("a")) is None
    assert expiring.list_keys() == ["b"]
    assert expiring.get_by_key("b") is None
    assert len(expiring) == 0


@pytest.mark.conformance("EXP-01")
def test_list_drops_expired_entries(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.replace([valued("old"), valued("gone")])
    clock.now += 6
    expiring.add(valued("young"))
    expiring.delete(DeletedFinalStateUnknown("gone", None))
    clock.now += 6
    assert expiring.list() == [valued("young")]
    assert expiring.list_keys() == ["young"]


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize("method", ["add", "update"])
def test_write_renews_an_entry(expiring: ExpirationStore[Any], clock: Clock, method: str) -> None:
    expiring.add(valued("a", 1))
    clock.now += 8
    getattr(expiring, method)(valued("a", 2))
    clock.now += 8
    assert expiring.get_by_key("a") == valued("a", 2)
    clock.now += 3
    assert expiring.get_by_key("a") is None


@pytest.mark.conformance("EXP-01")
def test_replace_renews_all_entries(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.add(valued("a"))
    expiring.add(valued("b"))
    clock.now += 9
    expiring.replace([valued("b")], "7")
    expiring.resync()
    clock.now += 9
    assert expiring.list() == [valued("b")]


# UndeltaStore.


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
