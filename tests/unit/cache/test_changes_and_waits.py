"""Changes of a store that others interrupt or that are visible at once, and waits for changes."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import traceback
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Indexer
from aioinformer.cache import Index, ThreadSafeStore
from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.waiters import Deadlines, KeyWaiters, ShownWrite, VersionWaiters, Write
from aioinformer.concurrency import Latch
from aioinformer.errors import UsageError
from aioinformer.resources import meta_namespace_index_func

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


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
    change = BulkChange(cells)
    for key in cells.all_keys():
        if key != "c":
            change.delete(key)
    (change.update if "c" in before["*"] else change.add)("c", {"tags": ["x"]})
    change.add("d", {"tags": ["x", "w"]})
    assert seen(cells) == before
    change.commit()
    assert seen(cells) == {"*": ["c", "d"], "w": ["d"], "x": ["c", "d"]}


def test_untouched_object_can_be_exchanged_meanwhile() -> None:
    cells = store(a=["x"], b=["x"])
    packed = {"tags": ["x"]}
    change = BulkChange(cells)
    change.delete("b")
    cells.exchange("a", cells.item("a"), packed)
    change.commit()
    assert cells.item("a") is packed


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("filled", [False, True])
def test_unfinished_index_is_complete_after_the_commit(filled: bool, steps: int) -> None:
    cells = store(a=["x"], b=["x"], c=["x"]) if filled else store()
    kept = cells.all_keys()[2:]
    filling = cells.adding_indexers({f"count {steps}": lambda item: [str(len(item["tags"]) + len(item) - 1)]})
    for _ in range(steps):
        next(filling, None)
    change = BulkChange(cells)
    change.add("d", {"tags": ["x", "y"]})
    if filled:
        change.delete("a")
        change.update("b", {"tags": ["x"], "more": True})
    next(filling, None)
    change.commit()
    for _ in filling:
        pass
    assert cells.indexed_keys(f"count {steps}", "1") == kept
    assert cells.indexed_keys(f"count {steps}", "2") == (["b", "d"] if filled else ["d"])


@pytest.mark.parametrize("others", [{}, {"a": ["x"]}], ids=["empty", "others"])
def test_new_objects_join_existing_ones_in_every_index(others: dict[str, list[str]]) -> None:
    cells = store(**others)
    change = BulkChange(cells)
    change.add("b", {"tags": ["x", "y"]})
    cells.put("c", {"tags": ["y"]})
    cells.add_indexers({"count": lambda item: [str(len(item["tags"]))]})
    change.commit()
    assert seen(cells) == {"*": [*others, "b", "c"], "x": [*others, "b"], "y": ["b", "c"]}
    assert cells.indexed_keys("count", "1") == [*others, "c"]
    cells.delete("b")
    assert seen(cells) == {"*": [*others, "c"], **({"x": ["a"]} if others else {}), "y": ["c"]}


def test_objects_that_others_have_put_meanwhile_are_replaced() -> None:
    cells = store()
    change = BulkChange(cells)
    change.add("a", {"tags": ["x"]})
    change.add("b", {"tags": ["x"]})
    cells.put("a", {"tags": ["y"]})
    change.commit()
    assert seen(cells) == {"*": ["a", "b"], "x": ["a", "b"]}


def test_update_leaves_indices_with_the_same_values_alone() -> None:
    cells = store(a=["x"], b=["x", "y"])
    change = BulkChange(cells)
    same, moved = {"tags": ["x"]}, {"tags": ["y", "z"]}
    change.update("a", same)
    change.update("b", moved)
    assert [*change.settled] == ["a"]
    change.commit()
    assert (cells.item("a"), cells.item("b")) == (same, moved)
    assert seen(cells) == {"*": ["a", "b"], "x": ["a"], "y": ["b"], "z": ["b"]}


def test_failed_update_keeps_the_namespace_of_a_record() -> None:
    def record(version: int) -> Record:
        metadata = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": str(version)}
        return decode_record(json.dumps({"metadata": metadata}).encode())

    def exhausted() -> None:
        raise MemoryError

    cells: ThreadSafeStore[Any] = ThreadSafeStore({"namespace": meta_namespace_index_func})
    cells.put("n/a", record(1))
    change = BulkChange(cells)
    change.update("n/a", record(2))
    with pytest.raises(MemoryError):
        change.commit(exhausted)
    assert cells.indexed_keys("namespace", "n") == ["n/a"]


def test_unfinished_index_has_no_value_of_an_object_that_lost_it() -> None:
    cells = store(a=["x"])
    cells.put("b", {"tags": ["x"], "node": ["n"]})
    filling = cells.adding_indexers({"node": lambda item: item.get("node", [])})
    next(filling)
    change = BulkChange(cells)
    change.update("b", {"tags": ["x"]})  # not indexed yet, which looks like an object without a node
    next(filling)  # indexes the old state
    change.commit()
    for _ in filling:
        pass
    assert cells.values("node") == []


def changed_completely(filled: bool) -> tuple[ThreadSafeStore[Item], BulkChange]:
    """Return a store, and a change that adds, replaces, moves and deletes objects."""
    cells: ThreadSafeStore[Item] = ThreadSafeStore({"tag": by_tag, "size": lambda item: [str(len(item["tags"]))]})
    cells.add_indexers({"first": lambda item: item["tags"][:1], "last": lambda item: item["tags"][-1:]})
    for number in range(40 if filled else 0):
        cells.put(f"old {number}", {"tags": ["x", "y"][: 1 + number % 2]})
    change = BulkChange(cells)
    for number in range(20 if filled else 0):
        change.update(f"old {number}", {"tags": ["x", "y"][: 1 + number % 2], "new": True})
    if filled:
        change.update("old 20", {"tags": ["z", "w"]})
        change.delete("old 21")
    for number in range(7):
        change.add(f"new {number}", {"tags": ["x", str(number)]})
    return cells, change


def contents(cells: ThreadSafeStore[Item]) -> dict[str, Any]:
    """Return what readers find: "*" -> items by key, and the name of each index -> value -> keys."""
    found: dict[str, Any] = {"*": dict(cells.snapshot())}
    for index in cells.every_index:
        found[index.name] = {value: sorted(index.keys(value)) for value in index.values()}
    return found


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="CPython 3.13 crashes if memory runs out in dict.update")
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_failed_change_leaves_items_and_indices_as_they_were(filled: bool) -> None:
    memory = pytest.importorskip("_testcapi", reason="CPython's own tests of missing memory")
    cells, change = changed_completely(filled)
    before = contents(cells)
    change.commit()
    after = contents(cells)
    failed = 0
    for allocation in range(1, 200):
        cells, change = changed_completely(filled)
        notified: list[int] = []
        memory.set_nomemory(allocation, allocation + 1)  # the next allocation succeeds again
        try:
            change.commit(partial(notified.append, 1))
        except MemoryError:
            failed += 1
            if filled and notified:
                break  # only deletions and old values are left, which need but a few bytes for a moment
        finally:
            memory.remove_mem_hooks()
        assert contents(cells) == (after if notified else before), f"allocation {allocation}"
    assert failed > 5


def test_number_of_objects_is_that_of_one_state() -> None:
    cells, found = store(a=["x"], b=["x"]), list[int]()
    change = BulkChange(cells)
    change.delete("a")
    change.delete("b")
    change.add("c", {"tags": []})
    reader = Thread(target=lambda: found.append(len(cells)))

    def read() -> None:
        reader.start()
        reader.join(0.05)

    change.commit(read)
    reader.join()
    assert found == [1]


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


@pytest.mark.parametrize("finished", [False, True])
def test_index_that_is_added_during_a_replacement_follows_it(finished: bool) -> None:
    strikes: list[Callable[[], None]] = []

    def by_color(obj: Any) -> list[str]:
        if strikes:
            strikes.pop()()
        return [obj["color"]]

    cells: Indexer[Any] = Indexer(indexers={"color": by_color, "name": lambda obj: [obj["metadata"]["name"]]})
    cells.add(colored("a", "red"))
    filling = cells.store.adding_indexers({"other": lambda obj: [obj["color"]]})
    if finished:
        next(filling)
    strikes.append(lambda: next(filling, None))
    cells.replace([colored("b", "blue")])
    for _ in filling:
        pass
    assert sorted(cells.get_indexers()) == ["color", "name", "other"]
    assert [cells.index_keys(each, "blue") for each in ("color", "other")] == [["ns/b"]] * 2
    assert cells.list_index_func_values("other") == ["blue"]
    assert not cells.store.is_indexing


def test_failing_indices_are_read_while_an_index_is_added() -> None:
    class Slow(Index[Item]):
        def __getattribute__(self, name: str) -> Any:
            if name == "failing" and strikes:
                strikes.pop()()
            return super().__getattribute__(name)

    strikes: list[Callable[[], None]] = []
    cells = store(a=["x"])
    cells._indices["slow"] = Slow("slow", by_tag, None)
    strikes.append(lambda: cells.add_indexers({"other": by_tag}))
    assert not cells.any_failing()
    assert not strikes


def test_reader_within_a_change_does_not_deadlock() -> None:
    cells = store(a=["x"])
    found: list[int] = []
    cells.put("c", {"tags": []}, lambda news: found.append(len(cells.items())))
    assert found == [2]


# Latches and waiters: failures, many waits that end together, and deadlines.


class Over(Exception):
    """The reason why waits fail."""


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def begun(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Return a task that is waiting."""
    task = asyncio.create_task(coroutine)
    await turns()
    return task


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def wait_in_vain(waiters: Any) -> Coroutine[Any, Any, Any]:
    """Return a wait whose condition does not hold."""
    match waiters:
        case Latch():
            return waiters.wait()
        case VersionWaiters():
            return waiters.wait("1")
        case _:
            wait: Coroutine[Any, Any, Any] = waiters.wait("a", bool)
            return wait


@pytest.mark.parametrize("kind", [Latch, VersionWaiters, KeyWaiters])
async def test_failure_raises_in_current_and_later_waits(kind: Any) -> None:
    waiters = kind()
    waiting = await begun(wait_in_vain(waiters))
    waiters.fail(Over())
    with pytest.raises(Over):
        await waiting
    depths = []
    for _ in range(5):
        with pytest.raises(Over) as raised:
            await wait_in_vain(waiters)
        depths.append(len(traceback.extract_tb(raised.value.__traceback__)))
    assert depths == depths[:1] * 5, "an error that is raised again grows"


async def test_predicate_with_stop_iteration_fails() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: next(iter(()))))
    waiters.changed("a", 7)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await broken


# Many waits that end together.


def waits(kind: str, number: int, versions: VersionWaiters) -> Coroutine[Any, Any, Any]:
    match kind:
        case "versions":
            return versions.wait(str(100 + number))
        case "one version":
            return versions.wait("100")
        case "no number":
            return versions.wait("x")
        case "one object":
            return KeyWaiters[Any](versions).wait("ns/a", bool)
        case _:
            write = Write("ns/a", "u", str(100 + number))
            shown = ShownWrite(write, lambda _: None, lambda _: False, gone=False, outside=False)
            return KeyWaiters[Any](versions).wait_for_write(shown)


KINDS = ["versions", "one version", "no number", "one object", "writes"]


class CountedLookups(dict[str, Any]):
    """The waits for each version, which count how often a version is looked up."""

    lookups = 0

    def __contains__(self, version: object) -> bool:
        self.lookups += 1
        return super().__contains__(version)


@pytest.mark.parametrize("kind", KINDS)
async def test_waits_that_end_together_do_not_search_for_their_versions(kind: str) -> None:
    versions, count = VersionWaiters(), 2000
    versions._waiters = waiters = CountedLookups()
    waiting = [asyncio.create_task(waits(kind, number, versions)) for number in range(count)]
    await turns()
    await cancelled(*waiting)
    assert not versions._waiters
    assert versions._numbers == []
    assert waiters.lookups < 3 * count


@pytest.mark.parametrize("kind", KINDS)
async def test_few_waits_time_out_in_one_turn(kind: str) -> None:
    deadlines, versions, over = Deadlines(), VersionWaiters(), list[str]()

    async def wait(number: int) -> None:
        with pytest.raises(TimeoutError) as error:
            async with deadlines.limit(0.01, lambda: f"wait {number}"):
                await waits(kind, number, versions)
        over.append(str(error.value))

    waiting = [asyncio.create_task(wait(number)) for number in range(1000)]
    most = 0
    await asyncio.sleep(0.01)
    while len(over) < len(waiting):
        before = len(over)
        await asyncio.sleep(0)
        most = max(most, len(over) - before)
    assert 0 < most <= 100
    assert sorted(over) == sorted(f"wait {number}" for number in range(1000))
    await asyncio.gather(*waiting)


async def test_waits_time_out_behind_one_that_fails_to(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    deadlines = Deadlines()
    failing = True

    async def wait() -> None:
        async with deadlines.limit(10, lambda: "late"):
            await asyncio.sleep(10_000)

    def reschedule(self: asyncio.Timeout, when: float | None) -> None:
        nonlocal failing
        if failing and when is not None:
            failing = False
            raise MemoryError
        original(self, when)

    original = asyncio.Timeout.reschedule
    monkeypatch.setattr(asyncio.Timeout, "reschedule", reschedule)
    waiting = [await begun(wait()) for _ in range(3)]
    done, left = await asyncio.wait(waiting, timeout=100)
    await cancelled(*left)
    assert (len(reported), len(done)) == (1, 2)
    assert all(isinstance(each.exception(), TimeoutError) for each in done)


async def test_wait_that_ends_in_time_is_not_ended_by_its_deadline() -> None:
    deadlines, versions = Deadlines(), VersionWaiters()

    async def wait() -> None:
        async with deadlines.limit(0.0, lambda: ""):
            await versions.wait("5")

    waiting = [asyncio.create_task(wait()) for _ in range(200)]
    await turns()
    versions.reached("5")
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(result) for result in results} == {type(None), TimeoutError}
    await turns()
    assert deadlines._due == {}


async def test_deadline_does_not_hide_other_timeouts() -> None:
    deadlines = Deadlines()
    with pytest.raises(TimeoutError, match="of the caller"):
        async with deadlines.limit(60.0, lambda: "of the wait"):
            raise TimeoutError("of the caller")
    async with deadlines.limit(math.inf, lambda: ""), deadlines.limit(None, lambda: ""):
        await turns()


async def test_waits_for_one_write_that_are_woken_too_early_are_woken_again() -> None:
    versions, reached = VersionWaiters(), False
    keys: KeyWaiters[Any] = KeyWaiters(versions)

    def wait() -> Coroutine[Any, Any, None]:
        write = Write("ns/a", "u", "7")
        shown = ShownWrite(write, lambda _: None, lambda _: reached, gone=False, outside=False)
        return keys.wait_for_write(shown)

    waiting = [await begun(wait()) for _ in range(2)]
    versions.reached("8")  # of another selection, which proves nothing
    await turns()
    assert not any(each.done() for each in waiting)
    reached = True
    versions.reached("9")
    await asyncio.wait_for(asyncio.gather(*waiting), 1.0)
    assert versions._waiters == {}


async def test_version_waited_for_again_is_woken() -> None:
    versions = VersionWaiters()
    others = [await begun(versions.wait(str(number))) for number in (50, 60)]
    for _ in range(3):
        await cancelled(await begun(versions.wait("7")))
    again = await begun(versions.wait("7"))
    versions.reached("7")
    await again
    assert not any(other.done() for other in others)
    await cancelled(*others)


class WokenLater(asyncio.Future[None]):
    """A wait that cannot be woken the first time."""

    tries = 0

    def set_result(self, result: None, /) -> None:
        self.tries += 1
        if self.tries == 1:
            raise MemoryError
        super().set_result(result)


async def test_wait_for_a_version_without_order_that_could_not_be_woken() -> None:
    versions = VersionWaiters()
    future = WokenLater()
    with versions.waking(future, "red"):
        other = await begun(versions.wait("red"))
        with pytest.raises(MemoryError):
            versions.reached("red")
        versions.reached("blue")
        versions.check_waits()
        await asyncio.wait_for(asyncio.gather(future, other), 50)
