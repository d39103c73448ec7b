"""GeneratorExit in user code is an error of that code alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import CoalescingHandler, FilteringResourceEventHandler, SharedIndexInformer, ThreadedHandler
from aioinformer.handlers.listener import Batch, ProcessorListener
from aioinformer.handlers.notifications import AddNotification, ResourceEventHandlerFuncs
from aioinformer.handlers.resync import ResyncSchedule
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


def leave(*arguments: Any) -> Any:
    raise GeneratorExit


async def leave_later(*arguments: Any) -> None:
    await asyncio.sleep(0)
    raise GeneratorExit


HANDLERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: ResourceEventHandlerFuncs(on_add=leave),
    "coroutine": lambda: ResourceEventHandlerFuncs(on_add=leave_later),
    "filter": lambda: FilteringResourceEventHandler(leave, ResourceEventHandlerFuncs(on_add=print)),
    "filtered": lambda: FilteringResourceEventHandler(lambda pod: True, ResourceEventHandlerFuncs(on_add=leave_later)),
}


@pytest.mark.parametrize("made", HANDLERS.values(), ids=HANDLERS.keys())
async def test_raising_handler_gets_the_next_event(made: Callable[[], Any]) -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    recorder = Recorder()
    raising = informer.add_event_handler(made())
    informer.add_event_handler(recorder)
    async with informer:
        await raising.wait_for_sync()
        pods.put("c")
        await settled()
        assert raising._listener.errors == 3
        assert recorder.received == ["add! a 1", "add! b 2", "add c 3"]
        assert informer.state.healthy


@pytest.mark.parametrize("function", [leave, leave_later])
async def test_coalescing_handler_continues(function: Callable[..., Any]) -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    async with CoalescingHandler(ResourceEventHandlerFuncs(on_add=function)) as latest, informer:
        informer.add_event_handler(latest)
        await settled()
        assert (latest.errors, latest.pending) == (2, 0)


async def test_other_user_functions_fail_alone() -> None:
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, indexers={"bad": leave}, watch_error_handler=leave)
    informer.add_state_handler(leave)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        with pytest.raises(GeneratorExit):
            await informer.wait_for("default/b", leave)
        pods.end_watches(ConnectionError())
        pods.put("b")
        await asyncio.sleep(60)
        assert recorder.received == ["add! a 1", "add b 2"]


async def test_raising_transform_refuses_the_object() -> None:
    def transform(pod: Any) -> Any:
        return leave() if pod.metadata.name == "b" else pod

    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a", "b", "c"), transform=transform)
    async with informer:
        await settled()
        assert sorted(informer.get_indexer().list_keys()) == ["default/a", "default/c"]
        assert "default/b" in informer.state.reason


async def test_raising_decoder_refuses_the_object() -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"), decoder=leave)
    async with informer:
        await settled()
        assert informer.get_indexer().list_keys() == []
        assert "default/a" in informer.state.reason


async def test_closing_an_awaiting_listener_is_no_handler_error() -> None:
    listener: ProcessorListener[str] = ProcessorListener(
        "x", lambda received: asyncio.Event().wait(), ResyncSchedule(0)
    )
    listener._next.put_nowait(Batch.of([AddNotification("a")]))
    task: asyncio.Task[None] = asyncio.create_task(listener.run(), name="x: run")
    await settled()
    running: Any = task.get_coro()
    running.close()
    assert listener.errors == 0
    task.cancel()
    with pytest.raises(RuntimeError, match="already awaited"):
        await task


def test_raising_threaded_handler_gets_the_next_event() -> None:
    async def run() -> int:
        informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a", "b"))
        with ThreadPoolExecutor(1) as executor:
            handler: ThreadedHandler[Any] = ThreadedHandler(ResourceEventHandlerFuncs(on_add=leave), executor)
            registration = informer.add_event_handler(handler)
            async with informer:
                await registration.wait_for_sync()
        return registration._listener.errors

    assert asyncio.run(run()) == 2


def failed() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_soon(future.set_exception, GeneratorExit())
    return future


async def await_failed_future(*arguments: Any) -> None:
    await failed()


async def await_failed_task(*arguments: Any) -> None:
    await asyncio.create_task(leave_later(), name="leaves")


async def await_it_and_clean_up(*arguments: Any) -> None:
    try:
        await failed()
    finally:
        await asyncio.sleep(1)


async def await_it_deep_down(*arguments: Any) -> None:
    await asyncio.wait_for(await_it_and_clean_up(), 5)


AWAITING = [await_failed_future, await_failed_task, await_it_and_clean_up, await_it_deep_down, lambda *_: failed()]


@pytest.mark.parametrize("function", AWAITING)
async def test_handler_awaiting_a_failed_task_gets_the_next_event(function: Callable[..., Any]) -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    recorder = Recorder()
    raising = informer.add_event_handler(on_add=function)
    informer.add_event_handler(recorder)
    async with informer:
        await raising.wait_for_sync()
        pods.put("c")
        await asyncio.sleep(5)
        assert raising._listener.errors == 3
        assert recorder.received == ["add! a 1", "add! b 2", "add c 3"]
        assert informer.state.healthy


@pytest.mark.parametrize("function", AWAITING)
async def test_coalescing_handler_awaiting_a_failed_task_continues(function: Callable[..., Any]) -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a", "b"))
    async with CoalescingHandler(ResourceEventHandlerFuncs(on_add=function)) as latest, informer:
        informer.add_event_handler(latest)
        await asyncio.sleep(5)
        assert (latest.errors, latest.pending) == (2, 0)


async def test_log_names_what_the_handler_awaited(caplog: pytest.LogCaptureFixture) -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(on_add=await_failed_future)
    async with informer:
        await registration.wait_for_sync()
    assert "failed with GeneratorExit" in caplog.text
