"""Own writes, read back before the informer has seen them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache.mutation_cache import MutationCache
from aioinformer.cache.store import Indexer
from aioinformer.errors import IndexNotFound, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.shell.collection import Collection
from tests.shell.virtual_time import settled

Obj = dict[str, Any]


def obj(version: int | str, uid: str = "u", tag: str = "x", name: str = "a") -> Obj:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}, "tag": tag}


def store(*objects: Obj) -> Indexer[Obj]:
    made: Indexer[Obj] = Indexer(indexers={"tag": lambda each: [each["tag"]]})
    made.replace(objects)
    return made


@pytest.mark.conformance("MUT-01", "MUT-02")
@pytest.mark.parametrize(("stored", "written", "read"), [(1, 2, 2), (2, 2, 2), (3, 2, 3), (9, 10, 10)])
def test_the_newer_of_store_and_write_is_read(stored: int, written: int, read: int) -> None:
    cache = MutationCache(store(obj(stored)))
    cache.mutation(obj(written))
    assert cache.get_by_key("a") == obj(read)


@pytest.mark.conformance("MUT-01", "MUT-02")
def test_a_write_that_the_store_has_overtaken_is_forgotten() -> None:
    cells = store(obj(3))
    cache = MutationCache(cells)
    cache.mutation(obj(2))
    cache.get_by_key("a")
    cells.replace([obj(1)])
    assert cache.get_by_key("a") == obj(1)


@pytest.mark.conformance("MUT-01", "MUT-02")
def test_what_the_store_lacks_is_there_only_on_request() -> None:
    for include_adds, found in ((False, None), (True, obj(5))):
        cache = MutationCache(store(), include_adds=include_adds)
        cache.mutation(obj(5))
        assert cache.get_by_key("a") == found
        assert cache.by_index("tag", "x") == ([found] if found else [])


@pytest.mark.conformance("MUT-02")
def test_an_index_is_read_with_the_values_that_writes_have() -> None:
    cache = MutationCache(store(obj(1, name="a"), obj(2, name="b"), obj(3, name="c", tag="y")))
    cache.mutation(obj(4, name="a", tag="y"))
    cache.mutation(obj(5, name="c", tag="y"))
    assert cache.by_index("tag", "x") == [obj(2, name="b")]
    assert cache.by_index("tag", "y") == [obj(5, name="c", tag="y"), obj(4, name="a", tag="y")]
    with pytest.raises(IndexNotFound):
        cache.by_index("nothing", "x")


@pytest.mark.conformance("MUT-03")
def test_an_older_write_does_not_replace_a_newer_one() -> None:
    cache = MutationCache(store(obj(1)))
    cache.mutation(obj(7))
    cache.mutation(obj(6))
    assert cache.get_by_key("a") == obj(7)


@pytest.mark.conformance("MUT-03", "MUT-04")
@pytest.mark.parametrize("late", [obj(4), obj(5), obj(9), obj(5, "other")])
@pytest.mark.parametrize("gone", [obj(5), DeletedFinalStateUnknown("a", obj(5))])
def test_a_late_write_does_not_bring_back_what_was_deleted(late: Obj, gone: Any) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.on_delete(gone)
    cache.mutation(late)
    assert cache.get_by_key("a") is None
    assert cache.by_index("tag", "x") == []


@pytest.mark.conformance("MUT-03", "MUT-04")
def test_an_object_that_is_made_anew_after_a_deletion_is_there() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.on_delete(obj(5, "u"))
    cache.mutation(obj(6, "other"))
    assert cache.get_by_key("a") == obj(6, "other")


@pytest.mark.conformance("MUT-04")
@pytest.mark.parametrize(("told", "kept"), [(4, True), (5, False), (6, False)])
def test_a_write_is_dropped_once_a_handler_is_told_of_it_or_something_newer(told: int, kept: bool) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5))
    cache.on_update(obj(1), obj(told))
    assert (cache.get_by_key("a") is not None) is kept


@pytest.mark.conformance("MUT-04")
@pytest.mark.parametrize(
    ("deleted", "kept"), [(obj(4, "u"), False), (obj(6, "other"), False), (obj(4, "other"), True), (obj(5, "u"), False)]
)
def test_a_deletion_drops_the_write_of_the_same_or_an_older_object(deleted: Obj, kept: bool) -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5, "u"))
    cache.on_delete(deleted)
    assert (cache.get_by_key("a") is not None) is kept


@pytest.mark.conformance("MUT-03", "MUT-04")
def test_a_deletion_covers_all_that_was_written_before_it() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(7, "u"))
    cache.on_delete(obj(4, "u"))
    cache.mutation(obj(5, "the one before"))
    assert cache.get_by_key("a") is None


@pytest.mark.conformance("MUT-04")
def test_what_the_store_has_again_is_read_whatever_was_deleted_before() -> None:
    cells = store(obj(8, "other"))
    cache = MutationCache(cells)
    cache.on_delete(obj(5, "u"))
    assert cache.get_by_key("a") == obj(8, "other")


def test_a_deletion_of_which_nothing_is_known_changes_nothing() -> None:
    cache = MutationCache(store(), include_adds=True)
    cache.mutation(obj(5))
    cache.on_delete(DeletedFinalStateUnknown("a", None))
    assert cache.get_by_key("a") == obj(5)


@pytest.mark.conformance("MUT-01")
def test_a_write_is_forgotten_when_its_time_is_over() -> None:
    now = [100.0]
    cache = MutationCache(store(obj(1)), ttl=10, clock=lambda: now[0])
    cache.mutation(obj(2))
    now[0] += 9
    assert cache.get_by_key("a") == obj(2)
    now[0] += 1
    assert cache.get_by_key("a") == obj(1)


@pytest.mark.conformance("MUT-01")
def test_of_too_many_writes_the_one_that_was_unused_for_longest_is_forgotten() -> None:
    cache = MutationCache(store(obj(1, name="a"), obj(1, name="b"), obj(1, name="c")), max_size=2)
    cache.mutation(obj(2, name="a"))
    cache.mutation(obj(2, name="b"))
    cache.get_by_key("a")
    cache.mutation(obj(2, name="c"))
    versions = {name: cache.get_by_key(name)["metadata"]["resourceVersion"] for name in "abc"}  # type: ignore[index]
    assert versions == {"a": "2", "b": "1", "c": "2"}


@pytest.mark.conformance("MUT-05")
def test_a_write_whose_version_is_no_number_is_refused_and_a_store_without_numbers_is_right() -> None:
    cache = MutationCache(store(obj("opaque")))
    with pytest.raises(UsageError, match=r"a: metadata\.resourceVersion is not a number"):
        cache.mutation(obj("opaque"))
    cache.mutation(obj(5))
    assert cache.get_by_key("a") == obj("opaque")


@pytest.mark.parametrize("options", [{"ttl": 0}, {"max_size": 0}])
def test_limits_that_leave_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(options))}=0 must be"):
        MutationCache(store(), **options)


@pytest.mark.conformance("MUT-04")
async def test_an_informer_that_tells_the_cache_makes_it_forget() -> None:
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
