"""An informer that is cancelled at any moment ends, and leaves no task, open response or waiter.

A script is run repeatedly, and cancelled after one turn of the loop, after two, and so on, until it ends without being
cancelled. So it is cancelled at each of its own awaits, and at each of those within the informer. Each value of `first`
takes one of seven turns.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from aioinformer import RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.reflector import Phase
from tests.support.cluster import Cluster
from tests.support.collection import Collection, cut
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

pytestmark = pytest.mark.usefixtures("queue", "fine_slices")

_STRIDE = 7
_WAYS = {
    "pages": RunOptions(streaming_list=False, page_size=2),
    "streams": RunOptions(),
}


async def eventful(pods: Collection, informer: SharedIndexInformer[Any]) -> None:
    """A script with waits, changes, new handlers, failures, relists, a resync and a removal."""
    informer.add_event_handler(Recorder(pace=0.3))
    await informer.wait_for("default/p3")
    with pods.at_once():
        for number in range(20):
            pods.put(f"p{number}")
    await informer.wait_for_resource_version(pods.put("last"))
    late = informer.add_event_handler(Recorder())
    pods.refuse(500)
    pods.end_watches(cut())
    await late.wait_for_sync()
    await asyncio.sleep(4)
    pods.expire_watches()
    await informer.wait_for_resource_version(pods.put("very last"))
    informer.remove_event_handler(late)
    await asyncio.sleep(9)


async def enter_the_informer(pods: Collection, informer: SharedIndexInformer[Any], factory: Any) -> None:
    async with informer:
        await eventful(pods, informer)


async def enter_the_factory(pods: Collection, informer: SharedIndexInformer[Any], factory: Any) -> None:
    async with factory:
        await factory.wait_for_cache_sync()
        await eventful(pods, informer)


async def run_the_informer(pods: Collection, informer: SharedIndexInformer[Any], factory: Any) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(informer.run())
        await asyncio.sleep(0)
        await eventful(pods, informer)
        running.cancel()


@pytest.mark.conformance("REF-16", "REF-22", "WEAK-11")
@pytest.mark.parametrize("first", range(1, _STRIDE + 1))
@pytest.mark.parametrize(
    ("script", "way"),
    [
        (enter_the_informer, "pages"),
        (enter_the_informer, "streams"),
        (enter_the_factory, "pages"),
        (run_the_informer, "pages"),
    ],
)
async def test_cancel_after_every_turn(script: Callable[..., Coroutine[Any, Any, None]], way: str, first: int) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    turns, over = first - _STRIDE, False
    while not over:
        turns += _STRIDE
        pods = Collection("p0", "p1", "p2", "p3", "p4")
        factory = SharedInformerFactory(Cluster(pods), 10, options=_WAYS[way])
        informer = factory.core.v1.pods.informer()
        task = asyncio.ensure_future(script(pods, informer, factory))
        await asyncio.sleep(0)  # a task that is cancelled before its first step never begins
        loop.after_turns(turns, task.cancel)
        await asyncio.wait({task})
        over = not task.cancelled()
        left = [each.get_name() for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        unclosed = [response for response in pods.responses if not response.closed]
        waiters = [*informer._keys._waiters, *informer._versions._waiters]
        assert (left, unclosed, waiters) == ([], [], []), f"after {turns} turns"
        assert informer.is_stopped(), f"after {turns} turns"
        assert informer.state.phase is Phase.STOPPED, f"after {turns} turns"
    await task
    assert turns > 100


@pytest.mark.parametrize("turns", range(1, 12))
async def test_cancel_again_during_the_stop(turns: int, caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods, options=replace(_WAYS["pages"], shutdown_grace=60))
    informer.add_event_handler(Recorder(pace=3600))

    async def script() -> None:
        async with informer:
            await asyncio.sleep(3600)

    task = asyncio.ensure_future(script())
    await settled()
    stop = loop.time()
    task.cancel()
    loop.after_turns(turns, task.cancel)
    await asyncio.wait({task})
    assert task.cancelled()
    assert informer.is_stopped()
    assert [each.get_name() for each in asyncio.all_tasks() if each is not asyncio.current_task()] == []
    assert [response for response in pods.responses if not response.closed] == []
    assert round(loop.time() - stop) == 60
    assert "did not finish within 60 s" in caplog.text


def cancel_this_task(obj: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@pytest.mark.parametrize("error", [None, ValueError])
async def test_handler_that_cancels_its_task_gets_the_next_event(error: type[Exception] | None) -> None:
    calls: list[str] = []

    async def on_add(obj: Any) -> None:
        calls.append(obj.metadata.name)
        cancel_this_task(obj)
        if error is not None:
            raise error
        await asyncio.sleep(0)

    async with informer_of("a", "b") as (pods, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        plain = informer.add_event_handler(on_add=cancel_this_task)
        await registration.wait_for_sync()
        await plain.wait_for_sync()
        for name in "cd":
            pods.put(name)
            await asyncio.sleep(1)
        assert calls == ["a", "b", "c", "d"]
        for each in (registration, plain):
            assert (each.errors >= 3, each.pending) == (True, 0)


async def test_cancelled_idle_handler_gets_the_next_event() -> None:
    async with informer_of("a") as (pods, _, received):
        for task in asyncio.all_tasks():
            if task.get_name().endswith("handler 1: run"):
                task.cancel()
        await settled()
        pods.put("b")
        await settled()
        assert received == ["add! a 1", "add b 2"]


async def test_cancel_of_all_tasks_ends_a_swallowing_handler() -> None:
    calls: list[str] = []

    async def on_add(obj: Any) -> None:
        calls.append(obj.metadata.name)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a", "b", "c", "d"))
    informer.add_event_handler(on_add=on_add)
    running = asyncio.create_task(informer.run(), name="informer")
    await settled()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.wait({running})
    await settled()
    assert len(calls) <= 2  # the order in which the two tasks are cancelled is undefined
    assert [task.get_name() for task in asyncio.all_tasks() if "handler 1" in task.get_name()] == []
