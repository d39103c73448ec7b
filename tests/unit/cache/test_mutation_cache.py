"""MutationCache: reading own writes before the informer has received them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache.mutation_cache import MutationCache
from aioinformer.cache.store import Indexer
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


@pytest.mark.conformance("MUT-03", "MUT-04")
def test_deletion_covers_all_earlier_writes() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(7, "u"))
    cache.on_delete(obj(4, "u"))
    cache.mutation(obj(5, "the one before"))
    assert cache.get_by_key("a") is None


@pytest.mark.conformance("MUT-04")
def test_object_in_the_store_overrides_a_tombstone() -> None:
    cells = store(obj(8, "other"))
    cache = MutationCache(cells)
    cache.on_delete(obj(5, "u"))
    assert cache.get_by_key("a") == obj(8, "other")


def test_deletion_of_an_unknown_object_changes_nothing() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5))
    cache.on_delete(DeletedFinalStateUnknown("a", None))
    assert cache.get_by_key("a") == obj(5)


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
