"""CoalescingHandler: a slow handler gets the latest state of each object."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DeletedFinalStateUnknown, ResourceEventHandlerFuncs
from aioinformer.errors import UsageError
from aioinformer.handlers import CoalescingHandler, FilteringResourceEventHandler, ResourceEventHandlerDetailedFuncs
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled


class Gate(Recorder):
    """A handler whose calls return only when `open` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def _write(self, words: str) -> None:
        self.received.append(words)
        await self.open.wait()


@pytest.mark.conformance("WEAK-03")
async def test_changes_are_merged_while_the_handler_runs() -> None:
    gate = Gate()
    async with CoalescingHandler(gate) as latest, informer_of("a", "b") as (pods, informer, _):
        informer.add_event_handler(latest)
        await settled()
        assert gate.received == ["add! a 1"]
        for _ in range(3):
            pods.put("a")
            pods.put("b")
            await settled()
        gate.open.set()
        await settled()
    assert gate.received == ["add! a 1", "add! b 8", "update a 1 7"]


@pytest.mark.conformance("WEAK-03")
@pytest.mark.parametrize(
    ("known", "changes", "received"),
    [
        (False, "put", ["add x 3"]),
        (False, "put put", ["add x 4"]),
        (False, "put delete", []),
        (False, "put delete put", ["add x 5"]),
        (True, "put put", ["update x 2 5"]),
        (True, "put delete", ["delete x 5"]),
        (True, "delete put", ["update x 4 5"]),
        (True, "delete put delete", ["delete x 6"]),
        (True, "delete put put", ["update x 4 6"]),
        (True, "put delete put", ["update x 2 6"]),
    ],
)
async def test_changes_during_a_call_are_one_notification(known: bool, changes: str, received: list[str]) -> None:
    gate = Gate()
    gate.open.set()
    async with CoalescingHandler(gate) as latest, informer_of("blocker", *["x"] * known) as (pods, informer, _):
        informer.add_event_handler(latest)
        await settled()
        gate.open.clear()
        pods.put("blocker")
        await settled()
        for change in changes.split():
            getattr(pods, change)("x")
            await settled()
        before = len(gate.received)
        gate.open.set()
        await settled()
        assert gate.received[before:] == received


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


async def refuse(obj: Any) -> bool:
    return False


#: As a user without a type checker calls them.
functions: Any = ResourceEventHandlerFuncs
detailed: Any = ResourceEventHandlerDetailedFuncs
filtering: Any = FilteringResourceEventHandler


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (object(), "object is not a handler"),
        (print, "the function print is not a handler: say when to call it, as in on_add=print"),
        (functions(), "there is no handler: pass at least one function"),
        (functions(on_delete="x"), "handler.on_delete: expected a function, not str"),
        (functions(on_delete=lambda: None), "cannot be called with its arguments: obj$"),
        (functions(on_update=lambda new: None), "cannot be called with its arguments: old and new$"),
        (functions(on_add=lambda: None), "arguments: obj, or obj and is_in_initial_list$"),
        (detailed(on_add=lambda obj: None), "arguments: obj, or obj and is_in_initial_list$"),
        (filtering(refuse, Recorder()), "filter_func must be a plain function"),
        (filtering(bool, object()), "object is not a handler"),
    ],
    ids=("object", "function", "none", "text", "delete", "update", "add", "detailed", "filter", "filtered"),
)
def test_what_is_no_handler_is_refused(handler: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CoalescingHandler(handler)


def shown(name: str, passes: bool) -> dict[str, Any]:
    return {"metadata": {"name": name}, "passes": passes}


@pytest.mark.parametrize(
    ("old", "new", "received"),
    [
        (None, True, ["add True"]),
        (None, False, []),
        (True, True, ["update True True"]),
        (True, False, ["delete True"]),
        (False, True, ["add True"]),
        (False, False, []),
        (True, None, ["delete True"]),
        (False, None, []),
    ],
)
@pytest.mark.parametrize("tombstone", [False, True])
async def test_filter_decides_what_a_change_is(
    old: bool | None, new: bool | None, received: list[str], tombstone: bool
) -> None:
    told: list[str] = []
    handler = ResourceEventHandlerDetailedFuncs[Any](
        on_add=lambda obj, first: told.append(f"add {obj['passes']}" + "!" * first),
        on_update=lambda old, new: told.append(f"update {old['passes']} {new['passes']}"),
        on_delete=lambda obj: told.append(f"delete {(obj.obj if tombstone and new is None else obj)['passes']}"),
    )
    async with CoalescingHandler(filtering(lambda obj: obj["passes"], handler)) as latest:
        if old is None:
            latest.on_add(shown("x", bool(new)), False)
        elif new is not None:
            latest.on_update(shown("x", old), shown("x", new))
        else:
            last = shown("x", old)
            latest.on_delete(DeletedFinalStateUnknown("x", last) if tombstone else last)
        latest.on_delete(DeletedFinalStateUnknown("y", None))
        await asyncio.sleep(0)
    assert told == received


async def test_call_behind_the_handler_is_shown_while_it_runs() -> None:
    gate = Gate()
    async with CoalescingHandler(gate) as latest, informer_of("a", "b") as (_, informer, _):
        assert (latest.call(), latest.busy) == (None, False)
        informer.add_event_handler(latest)
        await asyncio.sleep(3)
        call = latest.call()
        assert call is not None
        assert call.key == "default/a"
        assert call.seconds == pytest.approx(3, abs=0.1)
        assert (latest.busy, latest.pending, latest.behind) == (True, 1, 1)
        gate.open.set()
        await settled()
        assert (latest.call(), latest.busy, latest.pending) == (None, False, 0)


async def test_event_loop_has_turns_between_calls_of_a_plain_function() -> None:
    turns = 0
    called: list[int] = []

    async def other() -> None:
        nonlocal turns
        while turns < 500:
            turns += 1
            await asyncio.sleep(0)

    plain: ResourceEventHandlerFuncs[Any] = ResourceEventHandlerFuncs(on_add=lambda obj: called.append(turns))
    async with CoalescingHandler(plain) as latest:
        task = asyncio.create_task(other(), name="other")
        for number in range(100):
            latest.on_add({"metadata": {"name": f"x-{number}"}}, False)
        await task
        await settled()
    assert len(set(called)) > 90


async def test_pending_notifications_are_dropped_on_exit() -> None:
    async with informer_of("a") as (pods, informer, _):
        async with CoalescingHandler(Gate()) as latest:
            informer.add_event_handler(latest)
            await settled()
        pods.put("b")
        await settled()
        assert latest.pending == 0


class Broken(BaseException):
    """An exception of a handler that is no `Exception`."""


async def test_base_exception_of_the_handler_crashes_the_informer() -> None:
    def broken(obj: Any) -> None:
        raise Broken

    states: list[str] = []

    async def run() -> None:
        async with (
            CoalescingHandler(ResourceEventHandlerFuncs(on_add=broken)) as latest,
            informer_of("a", states=states) as (pods, informer, _),
        ):
            informer.add_event_handler(latest)
            await settled()
            pods.put("b")
            await asyncio.sleep(60)
            states.append("the block goes on")

    with pytest.raises(Broken):
        await run()
    assert "the block goes on" not in states


@pytest.mark.conformance("WEAK-01", "WEAK-02")
async def test_hanging_handler_keeps_one_notification_per_object() -> None:
    async with CoalescingHandler(Gate()) as latest, informer_of() as (pods, informer, _):
        registration = informer.add_event_handler(latest)
        for number in range(500):
            pods.put(f"pod-{number % 5}")
            await settled()
        assert latest.pending == 5
        assert registration.has_synced()


def fail(obj: Any) -> None:
    raise RuntimeError("no")


async def await_a_cancelled_future(obj: Any) -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


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


@pytest.mark.parametrize("function", [fail, await_a_cancelled_future])
async def test_raising_handler_is_counted_and_continues(function: Any, caplog: pytest.LogCaptureFixture) -> None:
    handler: ResourceEventHandlerFuncs[Any] = ResourceEventHandlerFuncs(on_add=function)
    async with CoalescingHandler(handler) as latest, informer_of("a", "b") as (_, informer, _):
        informer.add_event_handler(latest)
        await settled()
        assert latest.errors == 2
    assert "raised for default/a" in caplog.text
    with pytest.raises(UsageError):
        CoalescingHandler(object())
