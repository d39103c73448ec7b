"""CoalescingHandler: a slow handler gets the latest state of each object."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import UsageError
from aioinformer.handlers.coalescing import CoalescingHandler
from aioinformer.handlers.notifications import ResourceEventHandlerFuncs
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.support.collection import Collection
from tests.support.virtual_time import VirtualTimeLoop, settled


class Gate:
    """A handler whose calls return only when `open` is set."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.open = asyncio.Event()

    async def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        await self._record(f"add{'!' if is_in_initial_list else ''} {_short(obj)}")

    async def on_update(self, old: Any, new: Any) -> None:
        await self._record(f"update {_short(old)} -> {_short(new)}")

    async def on_delete(self, obj: Any) -> None:
        tomb = isinstance(obj, DeletedFinalStateUnknown)
        await self._record(f"{'miss' if tomb else 'delete'} {_short(obj.obj if tomb else obj)}")

    async def _record(self, words: str) -> None:
        self.received.append(words)
        await self.open.wait()


def _short(obj: Any) -> str:
    return f"{obj.metadata.name}{obj.metadata.resource_version}"


@pytest.mark.conformance("WEAK-03")
async def test_changes_are_merged_while_the_handler_runs() -> None:
    pods = Collection("a", "b")
    gate = Gate()
    async with CoalescingHandler(gate) as latest, SharedIndexInformer(pods) as informer:
        informer.add_event_handler(latest)
        await informer.wait_for_sync()
        await settled()
        assert gate.received == ["add! a1"]
        for _ in range(3):
            pods.put("a")
            pods.put("b")
            await settled()
        gate.open.set()
        await settled()
    assert gate.received == ["add! a1", "add! b8", "update a1 -> a7"]


@pytest.mark.conformance("WEAK-03")
@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ("put", ["add x3"]),
        ("put put", ["add x4"]),
        ("put delete", []),
        ("put delete put", ["add x5"]),
    ],
)
async def test_unknown_objects_are_added_or_dropped(changes: str, received: list[str]) -> None:
    assert await story(changes.split(), known=False) == received


@pytest.mark.conformance("WEAK-03")
@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ("put put", ["update x2 -> x5"]),
        ("put delete", ["delete x5"]),
        ("delete put", ["update x4 -> x5"]),
        ("delete put delete", ["delete x6"]),
        ("delete put put", ["update x4 -> x6"]),
        ("put delete put", ["update x2 -> x6"]),
    ],
)
async def test_known_objects_are_updated_or_deleted(changes: str, received: list[str]) -> None:
    assert await story(changes.split(), known=True) == received


async def story(changes: list[str], *, known: bool) -> list[str]:
    """Return the notification of x after these changes during a running call."""
    pods = Collection("blocker", *(["x"] if known else []))
    gate = Gate()
    gate.open.set()
    async with CoalescingHandler(gate) as latest, SharedIndexInformer(pods) as informer:
        informer.add_event_handler(latest)
        await informer.wait_for_sync()
        await settled()
        gate.open.clear()
        pods.put("blocker")
        await settled()
        for change in changes:
            getattr(pods, change)("x")
            await settled()
        before = len(gate.received)
        gate.open.set()
        await settled()
        return gate.received[before:]


@pytest.mark.parametrize(("again", "expected"), [(False, "add"), (True, "delete")])
async def test_delete_without_state_before_add_is_kept(again: bool, expected: str) -> None:
    received: list[str] = []
    x = {"metadata": {"name": "x", "resourceVersion": "2"}}
    recorder: ResourceEventHandlerFuncs[Any] = ResourceEventHandlerFuncs(
        on_add=lambda obj: received.append("add"), on_delete=lambda obj: received.append("delete")
    )
    async with CoalescingHandler(recorder) as latest:
        latest.on_delete(DeletedFinalStateUnknown("x", None))
        latest.on_add(x, False)
        if again:
            latest.on_delete(x)
        await settled()
    assert received == [expected]


async def test_awaiting_a_cancelled_task_counts_as_an_error() -> None:
    received: list[str] = []

    async def on_add(obj: Any) -> None:
        received.append(obj.metadata.name)
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    pods = Collection("a", "b")
    async with (
        CoalescingHandler(ResourceEventHandlerFuncs(on_add=on_add)) as latest,
        SharedIndexInformer(pods) as informer,
    ):
        informer.add_event_handler(latest)
        await settled()
    assert (received, latest.errors) == (["a", "b"], 2)


async def test_pending_notifications_are_dropped_on_exit() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer:
        async with CoalescingHandler(Gate()) as latest:
            informer.add_event_handler(latest)
            await settled()
        pods.put("b")
        await settled()
        assert latest.pending == 0


@pytest.mark.conformance("WEAK-01", "WEAK-02")
async def test_hanging_handler_keeps_one_notification_per_object() -> None:
    pods = Collection()
    gate = Gate()
    async with CoalescingHandler(gate) as latest, SharedIndexInformer(pods) as informer:
        registration = informer.add_event_handler(latest)
        for number in range(500):
            pods.put(f"pod-{number % 5}")
            await settled()
        assert latest.pending == 5
        assert registration.has_synced()


class Ledger:
    """Asserts that the notifications of each object are valid; its calls return when `open` is set."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.go = asyncio.Semaphore(0)

    async def on_add(self, obj: Any) -> None:
        await self.go.acquire()
        name, version = obj["metadata"].values()
        assert name not in self.known
        self.known[name] = version

    async def on_update(self, old: Any, new: Any) -> None:
        await self.go.acquire()
        (name, before), (_, version) = old["metadata"].values(), new["metadata"].values()
        assert self.known[name] == before < version
        self.known[name] = version

    async def on_delete(self, obj: Any) -> None:
        await self.go.acquire()
        del self.known[obj["metadata"]["name"]]


@pytest.mark.conformance("WEAK-03")
@given(st.lists(st.sampled_from(["put a", "put b", "delete a", "delete b", "go"]), max_size=40))
def test_merged_history_is_always_valid(actions: list[str]) -> None:
    async def story() -> None:
        truth: dict[str, Any] = {}
        ledger = Ledger()
        async with CoalescingHandler(ledger) as latest:
            for version, action in enumerate(actions):
                verb, _, name = action.partition(" ")
                obj = {"metadata": {"name": name, "version": version}}
                if verb == "go":
                    ledger.go.release()
                elif verb == "put" and name in truth:
                    latest.on_update(truth[name], obj)
                elif verb == "put":
                    latest.on_add(obj, False)
                elif name in truth:
                    latest.on_delete(truth.pop(name))
                if verb == "put":
                    truth[name] = obj
                await settled()
            for _ in actions:
                ledger.go.release()
            await settled()
        assert latest.errors == 0
        assert ledger.known == {name: obj["metadata"]["version"] for name, obj in truth.items()}

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story())


async def test_raising_handler_is_counted_and_continues(caplog: pytest.LogCaptureFixture) -> None:
    def fail(obj: Any) -> None:
        raise RuntimeError("no")

    pods = Collection("a", "b")
    async with (
        CoalescingHandler(ResourceEventHandlerFuncs(on_add=fail)) as latest,
        SharedIndexInformer(pods) as informer,
    ):
        informer.add_event_handler(latest)
        await informer.wait_for_sync()
        await settled()
        assert latest.errors == 2
    assert "raised for default/a" in caplog.text


def test_invalid_handler_is_refused() -> None:
    with pytest.raises(UsageError):
        CoalescingHandler(object())
