"""Start, stop and crash of an informer, after which nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
from typing import Any

import anyio
import pytest

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.state import Phase
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled

pytestmark = pytest.mark.usefixtures("queue")


def names_of_tasks() -> list[str]:
    return sorted(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())


@pytest.mark.conformance("SI-03")
async def test_phases_are_new_running_stopped() -> None:
    informer = SharedIndexInformer(Collection("a"))
    assert (informer.state.phase, informer.is_stopped()) == (Phase.NEW, False)
    async with informer:
        await settled()
        assert (informer.state.phase, informer.is_stopped()) == (Phase.WATCHING, False)
    assert (informer.state.phase, informer.is_stopped()) == (Phase.STOPPED, True)


@pytest.mark.conformance("SI-07", "ARC-09")
async def test_second_run_warns_and_returns(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection())
    async with informer:
        await informer.run()
    await informer.run()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["informer of pods was started already; this call has no effect"] * 2


@pytest.mark.conformance("ARC-09")
async def test_informer_can_be_entered_once() -> None:
    informer = SharedIndexInformer(Collection())
    async with informer:
        with pytest.raises(UsageError, match="runs once; make a new informer"):
            await informer.__aenter__()
    with pytest.raises(UsageError, match="runs once; make a new informer"):
        await informer.__aenter__()


async def test_concurrent_second_entry_is_refused() -> None:
    informer = SharedIndexInformer(Collection("a"))
    results = await asyncio.gather(informer.__aenter__(), informer.__aenter__(), return_exceptions=True)
    assert results[0] is informer
    assert isinstance(results[1], UsageError)
    await informer.__aexit__(None, None, None)


async def test_cancelled_entry_fails_waits() -> None:
    informer = SharedIndexInformer(Collection("a"))
    waiting = asyncio.create_task(informer.wait_for_sync())
    entering = asyncio.create_task(informer.__aenter__())
    asyncio.get_running_loop().call_soon(entering.cancel)
    with pytest.raises(asyncio.CancelledError):
        await entering
    with pytest.raises(InformerStopped):
        await waiting
    assert informer.is_stopped()


async def test_different_tasks_may_enter_and_leave() -> None:
    informer = SharedIndexInformer(Collection("a"))
    await asyncio.create_task(informer.__aenter__())
    await informer.wait_for_sync()
    await asyncio.create_task(informer.__aexit__(None, None, None))
    assert informer.is_stopped()


async def test_run_can_be_cancelled() -> None:
    informer = SharedIndexInformer(Collection("a"))
    running = asyncio.create_task(informer.run())
    await informer.wait_for_sync()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert informer.is_stopped()


async def test_tasks_have_the_informer_name_and_end_with_it() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, 10, name="the pods")
    informer.add_event_handler(Recorder())
    created: list[str] = []
    loop = asyncio.get_running_loop()

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        loop.call_soon(lambda: created.append(task.get_name()))
        return task

    before = names_of_tasks()
    loop.set_task_factory(factory)
    async with informer:
        await settled()
        informer.add_event_handler(Recorder())
        pods.expire_watches()  # abandons a response in the middle
        await settled()
        gc.collect()
        await settled()
    await settled()
    loop.set_task_factory(None)
    assert created
    assert [name for name in created if not name.startswith("the pods")] == []
    assert names_of_tasks() == before


async def test_informer_has_five_tasks_and_two_per_further_handler() -> None:
    informer = SharedIndexInformer(Collection("a"), name="pods")
    first = informer.add_event_handler(Recorder())
    async with informer:
        await settled()
        five = ["pods", "pods", f"{first.name}: pop", f"{first.name}: run", "pods: process loop"]
        assert names_of_tasks() == five
        second = informer.add_event_handler(Recorder())
        await settled()
        assert names_of_tasks() == sorted([*five, f"{second.name}: pop", f"{second.name}: run"])
        informer.remove_event_handler(second)
        await settled()
        assert names_of_tasks() == five
    assert names_of_tasks() == []


@pytest.mark.conformance("REF-16", "LW-02")
async def test_stop_closes_every_response() -> None:
    async with informer_of("a") as (pods, _, _):
        pods.end_watches()
        await settled()
        pods.refuse(500)
        pods.end_watches()
        await settled()
    assert [response.closed for response in pods.responses] == [True] * len(pods.requests)


@pytest.mark.conformance("SI-05")
async def test_running_handler_may_finish_within_the_grace() -> None:
    informer = SharedIndexInformer(Collection("a", "b"), shutdown_grace=5)
    finished: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(3)
        finished.append(obj.metadata.name)

    informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
    assert finished == ["a"]


async def test_stop_in_a_cancelled_scope_cancels_once() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    informer = SharedIndexInformer(Collection("a"), shutdown_grace=5)
    hot = asyncio.Event()
    informer.add_event_handler(on_add=lambda obj: hot.wait())
    with anyio.move_on_after(1):
        async with informer:
            await settled()
            loop.after_turns(1000, hot.set)
            await asyncio.sleep(3600)
    assert informer.is_stopped()
    assert not hot.is_set()


@pytest.mark.conformance("SI-05", "WEAK-12")
@pytest.mark.parametrize("removed", [False, True])
async def test_hanging_handler_is_cancelled_after_the_grace(caplog: pytest.LogCaptureFixture, removed: bool) -> None:
    informer = SharedIndexInformer(Collection("a"), shutdown_grace=5)
    cut: list[float] = []
    loop = asyncio.get_running_loop()

    class Hanging:
        async def on_add(self, obj: Any) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                cut.append(loop.time())

    registration = informer.add_event_handler(Hanging())
    async with informer:
        await settled()
        if removed:
            informer.remove_event_handler(registration)
        stop = loop.time()
    assert [round(at - stop, 3) for at in cut] == [5]
    assert re.search(r"\(Hanging\.on_add at .*\) did not finish within 5 s of the stop: cancelled", caplog.text)


async def test_uncancellable_handler_is_abandoned_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection("a"), shutdown_grace=5)
    loop, relented = asyncio.get_running_loop(), asyncio.Event()

    class Stubborn:
        async def on_add(self, obj: Any) -> None:
            while not relented.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await relented.wait()

    informer.add_event_handler(Stubborn())
    async with informer:
        await settled()
        stop = loop.time()
    assert round(loop.time() - stop, 3) == 15
    assert re.search(r"\(Stubborn\.on_add at .*\) did not end within 10 s of its cancellation: abandoned", caplog.text)
    relented.set()
    await settled()


@pytest.mark.conformance("SI-04")
async def test_stop_accepts_no_handlers_and_sends_no_requests() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, shutdown_grace=5)
    informer.add_event_handler(Recorder(pace=3))
    await informer.__aenter__()
    await settled()
    leaving = asyncio.ensure_future(informer.__aexit__(None, None, None))
    await settled()
    assert informer.is_stopped()
    assert pods.open_watches == 0
    with pytest.raises(InformerStopped):
        informer.add_event_handler(Recorder())
    await leaving


async def test_stop_fails_waits() -> None:
    pods = Collection()
    pods.gate.clear()
    informer = SharedIndexInformer(pods)
    registration = informer.add_event_handler(Recorder())
    async with informer:
        waiting = [
            asyncio.ensure_future(wait)
            for wait in (
                informer.wait_for_sync(),
                registration.wait_for_sync(),
                informer.wait_for_resource_version("7"),
                informer.wait_for("default/a"),
            )
        ]
        await settled()
    received = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in received] == [InformerStopped] * 4
    with pytest.raises(InformerStopped):
        await informer.wait_for_sync()


class Broken(Exception):
    """The exception with which a part crashes."""


def break_queue(informer: SharedIndexInformer[Any], method: str) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise Broken(method)

    if informer._source is not None:
        setattr(informer._source.queue, method, broken)
        return
    make = informer._pipeline.new_queue

    def make_broken(known: Any = None) -> Any:
        queue = make(known)
        setattr(queue, method, broken)
        return queue

    informer._pipeline.new_queue = make_broken  # type: ignore[method-assign]


@pytest.mark.conformance("CTL-02")
@pytest.mark.parametrize("method", ["replace_owned", "batch"])
async def test_crash_of_a_part_reaches_waits_and_the_exit(method: str) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    registration = informer.add_event_handler(Recorder())
    break_queue(informer, method)
    await asyncio.create_task(informer.__aenter__())
    waits = (
        informer.wait_for_sync(),
        registration.wait_for_sync(),
        informer.wait_for_resource_version("7"),
        informer.wait_for("default/z"),
    )
    received = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(error) for error in received] == [Broken] * 4
    assert informer.is_stopped()
    assert str(informer.state) == "stopped: crashed: Broken"
    assert all(response.closed for response in pods.responses)
    with pytest.raises(Broken):
        await informer.__aexit__(None, None, None)


async def test_crash_after_the_sync_reaches_the_exit() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    await asyncio.create_task(informer.__aenter__())
    await informer.wait_for_sync()
    break_queue(informer, "apply")
    pods.put("b")
    with pytest.raises(Broken):
        await informer.wait_for("default/b")
    with pytest.raises(Broken):
        await informer.__aexit__(None, None, None)


@pytest.mark.conformance("CTL-03")
async def test_unprocessable_object_is_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    put = informer.get_indexer().store.put

    def broken(key: str, *arguments: Any) -> Any:
        if key == "default/b":
            raise Broken(key)
        return put(key, *arguments)

    informer.get_indexer().store.put = broken  # type: ignore[assignment,method-assign]
    async with informer:
        await settled()
        with pods.at_once():
            pods.put("b")
            pods.put("c")
        await settled()
    assert recorder.received == ["add! a 1", "add c 3"]
    assert [record.levelno for record in caplog.records if "default/b" in record.getMessage()] == [logging.ERROR]


async def test_raising_body_stops_the_informer() -> None:
    informer = SharedIndexInformer(Collection("a"))

    async def body() -> None:
        async with informer:
            await settled()
            raise Broken("of the user")

    with pytest.raises(Broken, match="of the user"):
        await body()
    assert informer.is_stopped()


async def test_coroutine_functions_are_refused() -> None:
    async def handler(_: Any) -> None: ...

    informer = SharedIndexInformer(Collection())
    for register in (informer.add_state_handler, informer.set_watch_error_handler):
        with pytest.raises(UsageError, match="expected a plain function"):
            register(handler)
