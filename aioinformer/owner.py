"""A task of its own for something that runs while others enter and leave it.

A task group must be left by the task that entered it. Fixtures and web frameworks enter in one task and leave in
another. So whatever can be entered with `async with` runs in a task of its own, which this owns.
"""

from __future__ import annotations

import asyncio
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

#: True in handlers, and in what they start: what they wait to see the end of may be waiting for them.
IN_HANDLER: ContextVar[bool] = ContextVar("IN_HANDLER", default=False)


def running_loop(what: str) -> asyncio.AbstractEventLoop:
    """Return the event loop of asyncio that runs here.

    Args:
        what: the caller wants to do, for the error: "the informer factory starts".

    Raises:
        UsageError: none does; the message says what runs in its place, as far as that can be known.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        pass
    library = _other_library()
    if library:
        raise UsageError(
            f"{what} in a running event loop of asyncio, and this is {library}: run the program with asyncio.run(...)"
        )
    raise UsageError(
        f"{what} in a running event loop of asyncio, and none runs in this thread: call it within a coroutine that "
        "asyncio.run(...) runs, or by loop.call_soon_threadsafe(...) from another thread"
    )


def _other_library() -> str:
    sniffio: Any = sys.modules.get("sniffio")  # other libraries say there that they run
    try:
        return str(sniffio.current_async_library()) if sniffio is not None else ""
    except Exception:  # none runs
        return ""


class Owner:
    """Starts, watches and ends the one task in which something runs."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the task was started, and has not ended."""
        return self._task is not None and not self._task.done()

    def check(self) -> None:
        """Raises what the task ended with, if it ended by itself.

        Raises:
            Exception: that.
        """
        task = self._task
        if task is not None and task.done() and not task.cancelled():
            task.result()

    def start(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Starts the task."""
        self._task = running_loop(f"{name} starts").create_task(run(), name=name)
        # What it ends with is told by stop(), or by whoever waits; it must not be told a second time by asyncio.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def enter(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Starts the task, and returns when it has begun."""
        self.start(run, name)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Ends the task, and waits for that.

        Raises:
            Exception: what it had ended with by itself.
        """
        task = self._task
        if task is None:
            return
        task.cancel()
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=not IN_HANDLER.get()):  # which would cancel this wait again at every turn
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError as cancellation:
                    if IN_HANDLER.get():
                        raise
                    cancelled = cancellation  # what is owned ends first, as in a task group
        if cancelled is not None:
            raise cancelled
        if not task.cancelled():
            task.result()


def is_ending(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Whether an error from a function that a task awaits means that the task itself is to end.

    Args:
        error: CancelledError may come from something that the function awaits, GeneratorExit from the function. The
            latter is also what a coroutine gets that is closed; then nothing runs it.
        task: the one that awaits.
    """
    if isinstance(error, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    try:
        return isinstance(error, GeneratorExit) and asyncio.current_task() is not task
    except RuntimeError:  # no loop runs
        return True


def collapsed(error: BaseException) -> BaseException:
    """The one exception in a group of one, however deep; anything else as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
