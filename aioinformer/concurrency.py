"""Plain functions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import anyio

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Failure:
    """An exception that is raised to many, each time as it was: raising adds to its traceback, and would go on adding.

    Args:
        error: the exception.
    """

    __slots__ = ("_error", "_traceback")

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._traceback = error.__traceback__

    @property
    def error(self) -> BaseException:
        """The exception, to be raised."""
        return self._error.with_traceback(self._traceback)


class Latch:
    """An event that is never cleared, and that can tell its waiters that it will never come.

    Setting and asking are plain calls. Waiting belongs to the loop.
    """

    __slots__ = ("_failure", "_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._failure: Failure | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def __bool__(self) -> bool:
        return self._set

    def set(self) -> None:
        """It has come true."""
        if self._set or self._failure is not None:
            return
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """It will not come true; whoever waits, now or later, is raised this."""
        if self._set or self._failure is not None:
            return
        self._failure = Failure(error)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)

    async def wait(self) -> None:
        """Returns once it has come true.

        Raises:
            BaseException: what it failed with.
        """
        if self._set:
            return
        if self._failure is not None:
            raise self._failure.error
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)


#: How often the clock is looked at at least: reading it costs about as much as a small step of work.
_EVERY = 8


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock of a loop, to be read between any two calls.

    asyncio's is `time.monotonic`, which is cheaper to read directly. uvloop's is the same clock, but stands still
    within a turn. A loop that has a clock of its own (virtual time) is asked; while it stands still, real time passes.
    """
    if not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time:
        return monotonic
    last = real = 0.0

    def clock() -> float:
        nonlocal last, real
        if (now := loop.time()) != last:
            last, real = now, perf_counter()
        return now + perf_counter() - real

    return clock


class Slicer:
    """Tells when work has held the loop for long enough, and lets go of it.

    A slice begins with a look at the clock after its first step, and looks ever more rarely: it is not known how large
    the steps are (a handler, an index function), and slow ones must not come in eights.

    Args:
        seconds: the length of a slice; may be changed.
    """

    __slots__ = ("_gap", "_left", "_since", "seconds")

    def __init__(self, seconds: float = 0.0005) -> None:
        self.seconds = seconds
        self.start()

    def start(self) -> None:
        """A slice begins now."""
        self._since = perf_counter()
        self._gap = self._left = 1

    def due(self) -> bool:
        """Whether the slice is used up; to be asked after each small step of work."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._gap = min(2 * self._gap, _EVERY)
        return perf_counter() - self._since >= self.seconds

    async def let_go(self) -> None:
        """Lets the loop do what else there is; a new slice begins after that."""
        await asyncio.sleep(0)
        self.start()

    async def pause(self) -> None:
        """Lets go if it is time to."""
        if self.due():
            await self.let_go()


def discard(loop: asyncio.AbstractEventLoop, items: dict[str, Any], seconds: float = 0.0005) -> None:
    """Empties a dict that nobody else has, in slices: to free a large one at once would hold the loop.

    Args:
        loop: does it, unless it is closed. May be called from any thread.
        items: what is to be freed.
        seconds: the length of a slice.
    """

    def go_on() -> None:
        end = perf_counter() + seconds
        while items and perf_counter() < end:
            for _ in range(min(len(items), _EVERY)):
                items.popitem()
        if items:
            loop.call_soon(go_on)

    with suppress(RuntimeError):  # closed: nothing is left to be held
        loop.call_soon_threadsafe(go_on)


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


_F = TypeVar("_F")
