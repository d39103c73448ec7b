"""Readers that stop, come late, or wait while an informer ends: what each of them has of the cache."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.limits import limit_hubs
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.streams import Changes, StreamChange

NAMES = ("a", "b", "c", "d", "e", "f")


class Copy:
    """What a client has after the changes that it has read."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.synced = False
        self.cursor = ""

    def apply(self, change: StreamChange[Any]) -> None:
        if change.kind == "reset":
            self.objects.clear()
        elif change.kind == "put":
            self.objects[change.key] = change.object
        elif change.kind == "delete":
            self.objects.pop(change.key, None)  # also sent for what was there while only a part was read
        self.synced = change.kind == "synced"
        self.cursor = change.cursor

    async def read(self, changes: Changes[Any], most: int = 10**6) -> None:
        """Read changes until the copy is complete."""
        async with asyncio.timeout(10):
            while most > 0 and not self.synced:
                self.apply(await anext(changes))
                most -= 1


def versions(pods: Collection) -> dict[str, str]:
    return {key: each["metadata"]["resourceVersion"] for key, each in pods.objects.items()}


class View:
    """Notes its calls.

    Attributes:
        calls: the names of the objects.
        reached: set when there were `wanted` calls.
    """

    def __init__(self, wanted: int) -> None:
        self.calls: list[str] = []
        self.reached = asyncio.Event()
        self._wanted = wanted

    def __call__(self, pod: Any) -> str:
        self.calls.append(pod.metadata.name)
        if len(self.calls) >= self._wanted:
            self.reached.set()
        return str(pod.metadata.resource_version)


@pytest.mark.parametrize("stopped_at", range(1, 8))
@pytest.mark.parametrize("batch", [2, 256])
async def test_reader_goes_on_at_each_change_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, batch: int, stopped_at: int
) -> None:
    limit_hubs(monkeypatch, batch=batch)
    pods = Collection(*NAMES)
    copy = Copy()
    async with SharedIndexInformer(pods) as informer:
        await informer.wait_for_sync()
        async with informer.changes() as changes:
            await copy.read(changes, stopped_at)
        assert len(copy.objects) == min(stopped_at, 6)
        pods.put("a")
        pods.delete("b")
        pods.put("f")
        pods.put("g")
        pods.delete("d")
        pods.put("d")
        await settled()
        copy.synced = False
        async with informer.changes(after=copy.cursor) as changes:
            await copy.read(changes)
    assert copy.objects == versions(pods)


async def test_reader_that_comes_between_slices_is_synced_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    view = View(10)
    pods = Collection("first")
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as other:
        await Copy().read(other)
        limit_hubs(monkeypatch, one_by_one=True)
        waiting = asyncio.create_task(anext(other), name="reader")
        with pods.at_once():
            for number in range(50):
                pods.put(f"p{number}")
        await view.reached.wait()
        assert len(view.calls) < 50
        copy = Copy()
        async with informer.changes(view=view) as changes:
            await copy.read(changes)
        await waiting
        assert len(view.calls) == 51
    assert copy.objects == versions(pods)


@pytest.mark.parametrize("state", ["synced", "not synced", "between slices"])
async def test_readers_that_wait_end_with_the_informer(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    pods = Collection("a", "b", "c")
    view = View(5)

    async def read() -> list[str]:
        async with informer.changes(view=view) as changes:
            return [change.kind async for change in changes]

    if state == "not synced":
        pods.gate.clear()
    informer = SharedIndexInformer(pods)
    async with informer:
        reading = [asyncio.create_task(read(), name="reader") for _ in range(3)]
        await settled()
        if state == "between slices":
            limit_hubs(monkeypatch, one_by_one=True)
            with pods.at_once():
                for number in range(200):
                    pods.put(f"p{number}")
            await view.reached.wait()
    calls = len(view.calls)
    async with asyncio.timeout(10):
        found = await asyncio.gather(*reading)
    await asyncio.sleep(10)
    for kinds in found:
        assert kinds[:4] == ([] if state == "not synced" else ["put", "put", "put", "synced"])
        assert set(kinds[4:]) <= {"put"}
    assert len(view.calls) == calls < 200


async def test_reader_is_synced_after_a_change_that_its_view_does_not_show() -> None:
    def view(pod: Any) -> str:
        return str(pod.metadata.name)

    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as other:
        await Copy().read(other)
        pods.put("a")
        await settled()
        copy = Copy()
        async with informer.changes(view=view) as changes:
            await copy.read(changes)
    assert copy.objects == {"default/a": "a"}


async def test_change_between_slices_reaches_a_reader_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    reached = asyncio.Event()

    def view(pod: Any) -> str:
        names.append(pod.metadata.name)
        if len(names) == 75:
            reached.set()
        return str(pod.metadata.name)

    pods = Collection(*(f"p{number}" for number in range(50)))
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as changes:
        await Copy().read(changes)
        limit_hubs(monkeypatch, one_by_one=True)
        waiting = asyncio.create_task(anext(changes), name="reader")
        with pods.at_once():
            for number in range(50):
                pods.put(f"p{number}")  # its view is the same
        await reached.wait()
        pods.put("new")
        async with asyncio.timeout(10):
            assert (await waiting).key == "default/new"
    assert names.count("new") == 1


async def test_waits_that_are_cancelled_leave_nothing() -> None:
    def futures() -> int:
        return sum(isinstance(each, asyncio.Future) for each in gc.get_objects())

    async with SharedIndexInformer(Collection("a")) as informer, informer.changes() as changes:
        await Copy().read(changes)
        before = futures()
        for _ in range(50):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), 1)
        assert futures() - before < 10


async def test_last_failures_of_a_view_are_counted_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def view(pod: Any) -> str:
        return str(pod.status.phase)

    pods = Collection(*NAMES)
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as changes:
        await Copy().read(changes)
    assert "raised 5 more errors" in caplog.text
