"""Notifications of handlers, in which form, and handlers that are slow or raise."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.handlers.notifications import (
    FilteringResourceEventHandler,
    ResourceEventHandlerDetailedFuncs,
    ResourceEventHandlerFuncs,
)
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import VirtualTimeLoop, settled

pytestmark = pytest.mark.usefixtures("queue")


def name_of(obj: Any) -> str:
    return str(obj.metadata.name)


@pytest.mark.conformance("CTL-12", "ARC-07")
async def test_handler_gets_existing_objects_and_changes() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.put("c")
        pods.put("a")
        pods.delete("b")
        await settled()
    assert recorder.received == ["add! a 1", "add! b 2", "add c 3", "update a 1 4", "delete b 5"]


@pytest.mark.conformance("CTL-06", "WEAK-05")
async def test_functions_may_be_sync_async_or_omitted() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    received: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0)
        received.append(f"async add {name_of(obj)}")

    informer.add_event_handler(on_add=on_add)
    informer.add_event_handler(
        ResourceEventHandlerFuncs(on_delete=lambda obj: received.append(f"delete {name_of(obj)}"))
    )
    async with informer:
        await settled()
        pods.put("a")
        pods.delete("a")
        await settled()
    assert received == ["async add a", "delete a"]


@pytest.mark.conformance("CTL-06")
async def test_detailed_add_has_the_initial_list_flag() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    received: list[tuple[str, bool]] = []
    informer.add_event_handler(
        ResourceEventHandlerDetailedFuncs(on_add=lambda obj, initial: received.append((name_of(obj), initial)))
    )
    async with informer:
        await settled()
        pods.put("b")
        await settled()
    assert received == [("a", True), ("b", False)]


async def test_invalid_handler_is_refused_with_a_remedy() -> None:
    informer = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match="pass on_add, on_update or on_delete"):
        informer.add_event_handler(object())  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"the function print is not a handler: .* on_add=print"):
        informer.add_event_handler(print)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="there is no handler: pass at least one function as on_add"):
        informer.add_event_handler()
    with pytest.raises(UsageError, match="not both"):
        informer.add_event_handler(Recorder(), on_add=print)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"handler\.on_add: expected a function, not str"):
        informer.add_event_handler(ResourceEventHandlerFuncs(on_add="print"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="resync_period must be 0"):
        informer.add_event_handler(Recorder(), resync_period=-1)


@pytest.mark.conformance("CTL-07")
async def test_filter_turns_crossing_updates_into_adds_and_deletes() -> None:
    pods = Collection()
    informer = SharedIndexInformer(pods)
    recorder = Recorder()

    def is_on_n1(pod: Any) -> bool:
        return pod.spec is not None and pod.spec.node_name == "n1"

    informer.add_event_handler(FilteringResourceEventHandler(is_on_n1, recorder))
    pods.put("in", spec={"nodeName": "n1"})
    pods.put("out", spec={"nodeName": "n2"})
    async with informer:
        await settled()
        pods.put("in", spec={"nodeName": "n1"}, status={"phase": "Running"})
        pods.put("out", spec={"nodeName": "n2"}, status={"phase": "Running"})
        await settled()
        pods.put("out", spec={"nodeName": "n1"})
        await settled()
        pods.put("in", spec={"nodeName": "n2"})
        pods.delete("in")
        pods.delete("out")
        await settled()
    assert recorder.received == ["add! in 1", "update in 1 3", "add out 5", "delete in 3", "delete out 8"]


async def test_raising_filter_counts_as_a_handler_error(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(FilteringResourceEventHandler(lambda pod: pod.nothing, Recorder()))
    async with informer:
        await settled()
    assert registration.errors == 1
    assert "default/a" in caplog.text


@pytest.mark.conformance("ARC-04")
async def test_cache_changes_before_the_handler_is_called() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, indexers={"uid": lambda pod: [pod.metadata.uid]})
    seen: list[Any] = []

    def on_add(obj: Any) -> None:
        seen.append(informer.get_indexer().index_keys("uid", obj.metadata.uid))

    informer.add_event_handler(on_add=on_add, on_delete=lambda obj: seen.append(informer.get_store().get(obj)))
    async with informer:
        await settled()
        pods.delete("a")
        await settled()
    assert seen == [["default/a"], None]


@pytest.mark.conformance("ARC-05")
async def test_handler_calls_are_sequential_and_in_order() -> None:
    pods = Collection()
    informer = SharedIndexInformer(pods)
    running, most = 0, 0
    order: list[str] = []

    async def on_add(obj: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        order.append(name_of(obj))
        running -= 1

    registration = informer.add_event_handler(on_add=on_add)
    for number in range(5):
        pods.put(f"p{number}")
    async with informer:
        await registration.wait_for_sync()
    assert (most, order) == (1, ["p0", "p1", "p2", "p3", "p4"])


@pytest.mark.conformance("ARC-10", "SI-31", "CTL-11")
async def test_slow_handler_delays_no_cache_and_no_other_handler() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    slow, quick = Recorder(pace=3600), Recorder()
    informer.add_event_handler(slow)
    informer.add_event_handler(quick)
    async with informer:
        await settled()
        for number in range(50):
            pods.put(f"p{number}")
        await settled()
        assert len(informer.get_store()) == len(quick.received) == 51
        assert slow.received == ["add! a 1"]


@pytest.mark.conformance("SI-32", "SI-16", "WEAK-06")
async def test_handler_error_is_logged_counted_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    received: list[str] = []

    def on_add(obj: Any) -> None:
        received.append(name_of(obj))
        if obj.metadata.name == "a":
            raise LookupError("no such thing")

    registration = informer.add_event_handler(on_add=on_add)
    other = Recorder()
    informer.add_event_handler(other)
    async with informer:
        await registration.wait_for_sync()
        assert registration.has_synced()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [("default/a" in record.getMessage(), bool(record.exc_info)) for record in errors] == [(True, True)]
    assert registration.errors == 1
    assert received == ["a", "b"]
    assert other.received == ["add! a 1", "add! b 2"]


async def test_awaiting_a_cancelled_task_counts_as_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    received: list[str] = []

    async def on_add(obj: Any) -> None:
        received.append(name_of(obj))
        if obj.metadata.name == "a":
            someones = asyncio.get_running_loop().create_future()
            someones.cancel()
            await someones

    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
    assert received == ["a", "b"]
    assert registration.errors == 1
    assert "default/a" in caplog.text


@pytest.mark.conformance("SI-34")
async def test_handler_is_named_after_its_function_or_class() -> None:
    informer = SharedIndexInformer(Collection())
    assert "Recorder.on_add" in informer.add_event_handler(Recorder()).name
    assert "name_of" in informer.add_event_handler(on_add=name_of).name


async def test_backlog_does_not_block_the_loop() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=ReflectorOptions(slice_seconds=1e-9))
    turns: list[int] = []

    async def on_update(old: Any, new: Any) -> None:
        if not turns:
            await asyncio.sleep(60)
        turns.append(loop.turns)

    informer.add_event_handler(on_update=on_update)
    async with informer:
        await informer.wait_for_sync()
        for _ in range(50):
            await informer.wait_for_resource_version(pods.put("a"))
        await asyncio.sleep(61)
    assert len(turns) == 50
    assert len(set(turns)) == 50


async def test_coroutine_function_as_filter_is_refused() -> None:
    async def passes(obj: Any) -> bool:
        return False

    informer = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match="plain function"):
        informer.add_event_handler(
            FilteringResourceEventHandler(passes, Recorder())  # type: ignore[arg-type]  # what untyped programs do
        )
