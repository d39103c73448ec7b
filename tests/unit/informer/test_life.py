"""Start, stop and crash of an informer, after which nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from typing import Any

import anyio
import pytest

from aioinformer import ResourceEventHandlerFuncs, RunOptions, SharedIndexInformer
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.reflector import Phase
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled

pytestmark = pytest.mark.usefixtures("queue")


@pytest.mark.conformance("SI-07", "ARC-09")
async def test_second_run_warns_and_returns(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection())
    async with informer:
        await informer.run()
    await informer.run()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["informer of pods was started already; this call has no effect"] * 2


@pytest.mark.conformance("SI-03", "ARC-09")
async def test_informer_can_be_entered_once() -> None:
    informer = SharedIndexInformer(Collection())
    assert (informer.state.phase, informer.is_stopped()) == (Phase.NEW, False)
    results = await asyncio.gather(informer.__aenter__(), informer.__aenter__(), return_exceptions=True)
    assert results[0] is informer
    assert isinstance(results[1], UsageError)
    await settled()
    assert (informer.state.phase, informer.is_stopped()) == ("watching", False)
    await informer.__aexit__(None, None, None)
    assert (informer.state.phase, informer.is_stopped()) == ("stopped", True)
    with pytest.raises(UsageError, match="runs once; make a new informer"):
        await informer.__aenter__()


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
    informer, other = SharedIndexInformer(Collection("a")), SharedIndexInformer(Collection("a"))
    await asyncio.create_task(informer.__aenter__())
    await informer.wait_for_sync()
    await asyncio.create_task(informer.__aexit__(None, None, None))
    assert informer.is_stopped()
    running = asyncio.create_task(other.run())
    await other.wait_for_sync()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert other.is_stopped()


@pytest.mark.conformance("SI-05")
async def test_running_handler_may_finish_within_the_grace() -> None:
    finished: list[str] = []

    async def on_add(obj: Any) -> None:
        await asyncio.sleep(3)
        finished.append(obj.metadata.name)

    async with informer_of("a", "b", options=RunOptions(shutdown_grace=5), on_add=on_add):
        pass
    assert finished == ["a"]


async def test_stop_in_a_cancelled_scope_cancels_once() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    informer = SharedIndexInformer(Collection("a"), options=RunOptions(shutdown_grace=5))
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
    cut: list[float] = []
    loop = asyncio.get_running_loop()

    async def hang(obj: Any) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cut.append(loop.time())

    async with informer_of("a", options=RunOptions(shutdown_grace=5)) as (_, informer, _):
        registration = informer.add_event_handler(on_add=hang)
        await settled()
        if removed:
            informer.remove_event_handler(registration)
        stop = loop.time()
    assert [round(at - stop, 3) for at in cut] == [5]
    assert re.search(r"hang at .*\) did not finish within 5 s of the stop: cancelled", caplog.text)


async def test_uncancellable_handler_is_abandoned_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    loop, relented = asyncio.get_running_loop(), asyncio.Event()

    async def be_stubborn(obj: Any) -> None:
        while not relented.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await relented.wait()

    async with informer_of("a", options=RunOptions(shutdown_grace=5), on_add=be_stubborn):
        stop = loop.time()
    assert round(loop.time() - stop, 3) == 15
    assert re.search(r"be_stubborn at .*\) did not end within 10 s of its cancellation: abandoned", caplog.text)
    relented.set()
    await settled()


def waits_of(informer: SharedIndexInformer[Any], registration: Any) -> asyncio.Future[Any]:
    """Begin one wait of each kind."""
    return asyncio.gather(
        informer.wait_for_sync(),
        registration.wait_for_sync(),
        informer.wait_for_resource_version("7"),
        informer.wait_for("default/z"),
        return_exceptions=True,
    )


@pytest.mark.conformance("SI-04")
async def test_stop_accepts_no_handlers_and_sends_no_requests() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=RunOptions(shutdown_grace=5))
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
        waiting = waits_of(informer, registration)
        await settled()
    assert [type(error) for error in await waiting] == [InformerStopped] * 4
    with pytest.raises(InformerStopped):
        await informer.wait_for_sync()


class Broken(Exception):
    """An exception that is not the end of an informer."""


class Crash(BaseException):
    """The exception with which a part crashes."""


def break_queue(informer: SharedIndexInformer[Any], method: str) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise Crash(method)

    source = vars(informer._sources)["source"]
    if source is not None:
        setattr(source.queue, method, broken)
        return
    make = informer._pipeline.new_queue

    def make_broken(known: Any = None) -> Any:
        queue = make(known)
        setattr(queue, method, broken)
        return queue

    informer._pipeline.new_queue = make_broken  # type: ignore[method-assign]


@pytest.mark.conformance("CTL-02")
@pytest.mark.parametrize("method", ["replace_owned", "batch", "apply"])
async def test_crash_of_a_part_reaches_waits_and_the_exit(method: str) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    registration = informer.add_event_handler(Recorder())
    if method != "apply":
        break_queue(informer, method)
    await asyncio.create_task(informer.__aenter__())
    if method == "apply":
        await registration.wait_for_sync()
        break_queue(informer, method)
        pods.put("b")
    received = await waits_of(informer, registration)
    assert [type(error) for error in received][-2:] == [Crash] * 2
    assert [type(error) for error in received][:2] == ([type(None)] if method == "apply" else [Crash]) * 2
    assert informer.is_stopped()
    assert str(informer.state) == "stopped: crashed: Crash"
    assert all(response.closed for response in pods.responses)
    with pytest.raises(Crash):
        await informer.__aexit__(None, None, None)


@pytest.mark.parametrize("seconds", [0, 1, 60])
@pytest.mark.parametrize("handlers", [0, 1, 3])
async def test_block_ends_with_the_crash_beside_any_handler(handlers: int, seconds: float) -> None:
    async def handle(pod: Any) -> None:
        await asyncio.sleep(seconds)

    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    for _ in range(handlers):
        informer.add_event_handler(ResourceEventHandlerFuncs(on_add=handle))

    async def run() -> None:
        async with informer:
            await informer.wait_for_sync()
            break_queue(informer, "apply")
            pods.put("b")
            await asyncio.sleep(600)

    with pytest.raises(Crash):
        await run()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


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
