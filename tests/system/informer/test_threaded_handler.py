"""ThreadedHandler: synchronous handlers in threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import UsageError
from aioinformer.handlers import FilteringResourceEventHandler, ThreadedHandler
from aioinformer.resources import deletion_handling_object_name
from tests.support.collection import Collection

if TYPE_CHECKING:
    from collections.abc import Iterator

user: ContextVar[str] = ContextVar("user", default="none")


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


class Blocking:
    """Records notifications and threads; blocks at each update until it is released."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.threads: set[int] = set()
        self.contexts: set[str] = set()
        self.entered = threading.Event()
        self.release = threading.Event()
        self.done = threading.Event()

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self._write(f"add{'!' if is_in_initial_list else ''} {obj.metadata.name}")

    def on_update(self, old: Any, new: Any) -> None:
        self.entered.set()
        assert self.release.wait(10)
        self._write(f"update {new.metadata.name}")

    def on_delete(self, obj: Any) -> None:
        self._write(f"delete {obj.metadata.name}")

    def _write(self, words: str) -> None:
        self.received.append(words)
        self.threads.add(threading.get_ident())
        self.contexts.add(user.get())
        user.set("changed by the handler")
        if words == "add c":
            self.done.set()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 10)


@pytest.mark.conformance("SI-21")
async def test_blocking_handler_is_called_in_order_beside_the_loop(executor: ThreadPoolExecutor) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    blocking = Blocking()
    seen: asyncio.Queue[str] = asyncio.Queue()
    informer.add_event_handler(ThreadedHandler(blocking, executor))
    informer.add_event_handler(on_delete=lambda pod: seen.put_nowait(deletion_handling_object_name(pod).name))
    async with informer, asyncio.timeout(50):
        await informer.wait_for_sync()
        pods.put("a")
        await until(blocking.entered)
        pods.delete("a")
        pods.put("c")
        assert await seen.get() == "a"
        assert blocking.received == ["add! a", "add! b"]
        blocking.release.set()
        await until(blocking.done)
    assert blocking.received[2:] == ["update a", "delete a", "add c"]
    assert threading.get_ident() not in blocking.threads


async def test_calls_run_in_the_context_of_construction(executor: ThreadPoolExecutor) -> None:
    user.set("the creator")
    blocking = Blocking()
    handler: ThreadedHandler[Any] = ThreadedHandler(blocking, executor)
    user.set("another")
    informer = SharedIndexInformer(Collection("a", "b"))
    registration = informer.add_event_handler(handler)
    async with informer, asyncio.timeout(50):
        await registration.wait_for_sync()
    assert blocking.contexts == {"the creator"}


@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration])
async def test_exceptions_are_counted_by_the_informer(executor: ThreadPoolExecutor, error: type[Exception]) -> None:
    class Broken:
        def on_add(self, obj: Any) -> None:
            raise error

    informer = SharedIndexInformer(Collection("a", "b"))
    registration = informer.add_event_handler(ThreadedHandler(Broken(), executor))
    async with informer, asyncio.timeout(50):
        await registration.wait_for_sync()
    assert registration.errors == 2


async def test_filter_turns_updates_into_adds(executor: ThreadPoolExecutor) -> None:
    received: list[str] = []
    added = threading.Event()

    class Adds:
        def on_add(self, obj: Any) -> None:
            received.append(obj.metadata.resource_version)
            added.set()

    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    filtered: FilteringResourceEventHandler[Any] = FilteringResourceEventHandler(
        lambda pod: pod.metadata.resource_version != "1", Adds()
    )
    informer.add_event_handler(ThreadedHandler(filtered, executor))
    async with informer, asyncio.timeout(50):
        await informer.wait_for_sync()
        pods.put("a")
        await until(added)
    assert received == ["2"]


async def test_stop_does_not_wait_beyond_the_grace(
    executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=RunOptions(shutdown_grace=0.01))
    blocking = Blocking()
    registration = informer.add_event_handler(ThreadedHandler(blocking, executor))
    async with informer, asyncio.timeout(50):
        await registration.wait_for_sync()
        pods.put("a")
        await until(blocking.entered)
    assert blocking.received == ["add! a"]
    assert "did not finish within 0.01 s" in caplog.text
    blocking.release.set()


def test_coroutines_and_invalid_executors_are_refused(executor: ThreadPoolExecutor) -> None:
    class Waits:
        async def on_delete(self, obj: Any) -> None: ...

    with pytest.raises(UsageError, match=r"handler\.on_delete is a coroutine function"):
        ThreadedHandler(Waits(), executor)
    with pytest.raises(UsageError, match="is not a handler"):
        ThreadedHandler(object(), executor)
    with pytest.raises(UsageError, match="expected a ThreadPoolExecutor, not int"):
        ThreadedHandler(Blocking(), 4)  # type: ignore[arg-type]
