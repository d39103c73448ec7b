"""Cancelled at any moment, an informer ends, and leaves no task, no open answer and no waiter behind.

A script runs with the loop counting its turns; the same script is run again for every turn, and cancelled after it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.factory import SharedInformerFactory
from aioinformer.options import ReflectorOptions
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.state import Phase
from tests.shell.cluster import Cluster
from tests.shell.collection import Collection, cut
from tests.shell.recorder import Recorder
from tests.shell.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


#: More turns than any of the scripts takes.
TURNS = 150
FINE = ReflectorOptions(slice_seconds=1e-9, streaming_list=False, page_size=2)


async def eventful(pods: Collection, informer: SharedIndexInformer[Any]) -> None:
    """Lists, watches, changes, failures, a resync, a joiner, waits."""
    registration = informer.add_event_handler(Recorder(pace=0.1))
    await informer.wait_for("default/p3")
    with pods.at_once():
        for number in range(20):
            pods.put(f"p{number}")
    await informer.wait_for_resource_version(pods.put("last"))
    late = informer.add_event_handler(Recorder())
    pods.refuse(500)
    pods.end_watches(cut())
    await late.wait_for_sync()
    await asyncio.sleep(5)
    pods.expire_watches()
    await informer.wait_for_resource_version(pods.put("very last"))
    informer.remove_event_handler(late)
    await registration.wait_for_sync()
    await asyncio.sleep(60)


def loop_of_test() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


async def cancelled_after(turns: int, body: Callable[[], Awaitable[None]], *, times: int = 1) -> None:
    """Runs the body in a task of its own and cancels that task after so many turns of the loop."""
    task = asyncio.ensure_future(body())
    for number in range(times):
        loop_of_test().after_turns(turns if not number else 1, task.cancel)
        await asyncio.wait({task}, timeout=3600 if number == times - 1 else 1e-9)
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()


def assert_nothing_is_left(pods: Collection, informer: SharedIndexInformer[Any]) -> None:
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []
    assert [answer for answer in pods.answers if not answer.closed] == []
    assert (informer._keys._waiters, informer._versions._waiters) == ({}, [])


@pytest.mark.parametrize("turns", range(1, TURNS))
async def test_cancelled_within_its_body(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(10)))
    informer = SharedIndexInformer(pods, 10, options=FINE)

    async def body() -> None:
        async with informer:
            await eventful(pods, informer)

    await cancelled_after(turns, body)
    assert_nothing_is_left(pods, informer)
    assert informer.is_stopped() or informer.state.phase is Phase.NEW


@pytest.mark.parametrize("turns", range(3, TURNS, 3))
async def test_cancelled_while_it_is_run_by_hand(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(10)))
    informer = SharedIndexInformer(pods, 10, options=FINE)
    script = asyncio.ensure_future(eventful(pods, informer))
    await cancelled_after(turns, informer.run)
    await asyncio.wait({script})
    assert script.exception() is not None
    assert_nothing_is_left(pods, informer)


@pytest.mark.parametrize("turns", range(1, 40))
async def test_cancelled_a_second_time_while_it_stops(turns: int) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods, options=FINE)
    informer.add_event_handler(Recorder(pace=3600))
    running = asyncio.ensure_future(informer.run())
    await settled()
    running.cancel()
    loop_of_test().after_turns(turns, running.cancel)
    await asyncio.wait({running})
    assert running.cancelled()
    await settled()
    assert_nothing_is_left(pods, informer)


@pytest.mark.parametrize("turns", range(3, TURNS, 2))
async def test_a_factory_cancelled_within_its_body(turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(10)))
    factory = SharedInformerFactory(Cluster(pods), 10, options=FINE)
    informer = factory.core.v1.pods.informer()

    async def body() -> None:
        async with factory:
            await factory.wait_for_cache_sync()
            await eventful(pods, informer)

    await cancelled_after(turns, body)
    assert_nothing_is_left(pods, informer)
    assert informer.is_stopped()
