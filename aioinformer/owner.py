"""A task of its own for something that runs while others enter and leave it.

A task group must be left by the task that entered it. Fixtures and web frameworks enter in one task and leave in
another. So whatever can be entered with `async with` runs in a task of its own, which this owns.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, cast

import anyio

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

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


class Root(Coroutine[Any, Any, None]):
    """The coroutine of a task that calls functions of users, which may await futures that failed with GeneratorExit.

    Python throws that into no coroutine but the outermost one: what this awaits is closed, and must end. So the
    functions get a RuntimeError instead, with the GeneratorExit as its cause. Give it to `create_task`; another
    coroutine that awaited it would be the outermost one.

    Args:
        coroutine: what the task runs.
    """

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __getattr__(self, name: str) -> Any:
        # `cr_frame` and the like, which a task shows and anyio asks for.
        return getattr(self._coroutine, name)

    def __await__(self) -> Generator[Any, Any, None]:
        return cast("Generator[Any, Any, None]", self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Take a step. A task calls this instead of `send(None)`."""
        return self._coroutine.send(None)

    def send(self, _: None) -> Any:
        """Take a step."""
        return next(self)

    def throw(self, *error: Any) -> Any:
        """Take a step that begins with an exception."""
        if isinstance(error[0], GeneratorExit):
            failure = RuntimeError("a future or task that was awaited failed with GeneratorExit")
            failure.__cause__ = error[0]
            return self._coroutine.throw(failure)
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()


def is_ending(error: BaseException, task: asyncio.Task[Any] | None, *, asked: bool = True) -> bool:
    """Whether an error from a function that a task awaits means that the task itself is to end.

    Args:
        error: CancelledError may come from something that the function awaits, GeneratorExit from the function. The
            latter is also what a coroutine gets that is closed; then nothing runs it.
        task: the one that awaits.
        asked: whether the owner of the task may have cancelled it; otherwise the function did.
    """
    if isinstance(error, asyncio.CancelledError):
        return asked and task is not None and task.cancelling() > 0
    try:
        return isinstance(error, GeneratorExit) and asyncio.current_task() is not task
    except RuntimeError:  # no loop runs
        return True


def uncancel(task: asyncio.Task[Any]) -> None:
    """Withdraw all requests to cancel a task."""
    while task.cancelling():
        task.uncancel()


def collapsed(error: BaseException) -> BaseException:
    """The one exception in a group of one, however deep; anything else as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
