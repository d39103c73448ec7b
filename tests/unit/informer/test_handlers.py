"""Notifications of handlers, in which form, and handlers that are slow or raise."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ResourceEventHandlerFuncs, SharedIndexInformer
from aioinformer.errors import UsageError
from aioinformer.handlers import FilteringResourceEventHandler, ResourceEventHandlerDetailedFuncs
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


@pytest.mark.conformance("CTL-12", "ARC-07")
async def test_handler_gets_existing_objects_and_changes() -> None:
    async with informer_of("a", "b") as (pods, _, received):
        pods.put("c")
        pods.put("a")
        pods.delete("b")
        await settled()
    assert received == ["add! a 1", "add! b 2", "add c 3", "update a 1 4", "delete b 5"]


@pytest.mark.conformance("CTL-06", "CTL-08", "WEAK-05")
@pytest.mark.parametrize("make", [ResourceEventHandlerFuncs, ResourceEventHandlerDetailedFuncs])
@pytest.mark.parametrize("name", ["on_add", "on_update", "on_delete"])
async def test_functions_may_be_sync_async_or_omitted(make: Callable[..., Any], name: str) -> None:
    delivered: list[Any] = []

    async def later(*what: Any) -> None:
        await asyncio.sleep(0)
        delivered.append(what)

    async with informer_of("a") as (pods, informer, _):
        plain = informer.add_event_handler(make(**{name: lambda *what: delivered.append(what)}))
        informer.add_event_handler(make(**{name: later}))
        await settled()
        pods.put("a")
        pods.delete("a")
        await settled()
    assert (len(delivered), plain.errors) == (2, 0)


async def test_invalid_handler_is_refused_with_a_remedy() -> None:
    async def passes(obj: Any) -> bool:
        return False

    add: Any = SharedIndexInformer(Collection()).add_event_handler
    text: Any = "print"
    filters: Any = passes
    for arguments, options, message in (
        ([object()], {}, "pass on_add, on_update or on_delete"),
        ([print], {}, r"the function print is not a handler: .* on_add=print"),
        ([], {}, "there is no handler: pass at least one function as on_add"),
        ([Recorder()], {"on_add": print}, "not both"),
        ([ResourceEventHandlerFuncs(on_add=text)], {}, r"handler\.on_add: expected a function, not str"),
        ([Recorder()], {"resync_period": -1}, "resync_period must be 0"),
        ([FilteringResourceEventHandler(filters, Recorder())], {}, "plain function"),
    ):
        with pytest.raises(UsageError, match=message):
            add(*arguments, **options)


@pytest.mark.conformance("CTL-06")
async def test_detailed_add_has_the_initial_list_flag() -> None:
    received: list[bool] = []
    async with informer_of("a") as (pods, informer, _):
        informer.add_event_handler(ResourceEventHandlerDetailedFuncs(on_add=lambda obj, flag: received.append(flag)))
        await settled()
        pods.put("b")
        await settled()
    assert received == [True, False]


@pytest.mark.conformance("CTL-07")
async def test_filter_turns_crossing_updates_into_adds_and_deletes() -> None:
    def is_on_n1(pod: Any) -> bool:
        return pod.spec is not None and pod.spec.node_name == "n1"

    pods, recorder = Collection(), Recorder()
    pods.put("in", spec={"nodeName": "n1"})
    pods.put("out", spec={"nodeName": "n2"})
    async with informer_of(pods) as (_, informer, _):
        informer.add_event_handler(FilteringResourceEventHandler(is_on_n1, recorder))
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


@pytest.mark.conformance("ARC-04")
async def test_cache_changes_before_the_handler_is_called() -> None:
    async with informer_of("a", indexers={"uid": lambda pod: [pod.metadata.uid]}) as (pods, informer, _):
        seen: list[Any] = []
        informer.add_event_handler(
            on_add=lambda obj: seen.append(informer.get_indexer().index_keys("uid", obj.metadata.uid)),
            on_update=lambda _, new: seen.append(informer.get_store().get(new) == new),
            on_delete=lambda obj: seen.append(informer.get_store().get(obj)),
        )
        pods.put("b")
        pods.put("b")
        pods.delete("a")
        await settled()
    assert seen == [["default/a"], ["default/b"], True, None]


@pytest.mark.conformance("ARC-05")
async def test_handler_calls_are_sequential_and_in_order() -> None:
    running: list[str] = []
    order: list[str] = []

    async def on_add(obj: Any) -> None:
        running.append(obj.metadata.name)
        assert len(running) == 1
        await asyncio.sleep(1)
        order.append(running.pop())

    async with informer_of(*(f"p{number}" for number in range(5))) as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        await registration.wait_for_sync()
    assert (registration.errors, order) == (0, ["p0", "p1", "p2", "p3", "p4"])


async def await_a_cancelled_future(obj: Any) -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


def raise_an_error(obj: Any) -> None:
    raise LookupError("no such thing")


@pytest.mark.conformance("SI-32", "SI-16", "WEAK-06")
@pytest.mark.parametrize("function", [raise_an_error, await_a_cancelled_future])
async def test_handler_error_is_logged_counted_and_skipped(function: Any, caplog: pytest.LogCaptureFixture) -> None:
    received: list[str] = []

    def on_add(obj: Any) -> Any:
        received.append(obj.metadata.name)
        return function(obj) if obj.metadata.name == "a" else None

    def passes(obj: Any) -> bool:
        return bool(obj.nothing)

    async with informer_of("a", "b") as (_, informer, others):
        registration = informer.add_event_handler(on_add=on_add)
        await registration.wait_for_sync()
        assert registration.has_synced()
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [("default/a" in record.getMessage(), bool(record.exc_info)) for record in errors] == [(True, True)]
        filtering = informer.add_event_handler(FilteringResourceEventHandler(passes, Recorder()))
        await filtering.wait_for_sync()
    assert (registration.errors, filtering.errors) == (1, 2)
    assert received == ["a", "b"]
    assert others == ["add! a 1", "add! b 2"]


@pytest.mark.conformance("SI-34")
async def test_handler_is_named_after_its_function_or_class() -> None:
    informer = SharedIndexInformer(Collection())
    assert "Recorder.on_add" in informer.add_event_handler(Recorder()).name
    assert "raise_an_error" in informer.add_event_handler(on_add=raise_an_error).name


@pytest.mark.usefixtures("fine_slices")
async def test_backlog_does_not_block_the_loop() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    turns: list[int] = []

    async def on_update(old: Any, new: Any) -> None:
        if not turns:
            await asyncio.sleep(60)
        turns.append(loop.turns)

    async with informer_of("a", on_update=on_update) as (
        pods,
        informer,
        _,
    ):
        for _ in range(50):
            await informer.wait_for_resource_version(pods.put("a"))
        await asyncio.sleep(61)
    assert len(turns) == 50
    assert len(set(turns)) == 50


@pytest.mark.conformance("CTL-07")
async def test_filter_receives_last_known_state_of_a_missed_delete() -> None:
    deleted: list[str] = []
    async with informer_of("a", "b") as (pods, informer, _):
        informer.add_event_handler(
            FilteringResourceEventHandler(
                lambda pod: pod.metadata.name == "a",
                ResourceEventHandlerFuncs(on_delete=lambda tombstone: deleted.append(tombstone.key)),
            )
        )
        pods.mute()
        pods.delete("a")
        pods.delete("b")
        pods.unseen()
        pods.end_watches()
        await informer.wait_for("default/a", lambda pod: pod is None)
        await settled()
    assert deleted == ["default/a"]


@pytest.mark.conformance("SI-31", "ARC-10", "CTL-11")
async def test_slow_handler_receives_every_update_and_delays_no_other() -> None:
    delivered: list[str] = []

    async def on_update(old: Any, new: Any) -> None:
        await asyncio.sleep(1)
        delivered.append(new.metadata.resource_version)

    async with informer_of("a", on_update=on_update) as (pods, informer, others):
        versions = [pods.put("a") for _ in range(1000)]
        await informer.wait_for_resource_version(versions[-1])
        await settled()
        assert (len(delivered), others[-1]) == (0, "update a 1000 1001")
        await asyncio.sleep(1001)
    assert delivered == versions
