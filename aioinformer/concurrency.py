"""Tools for tasks and the event loop: latches, time slices, and the owner of a background task.

`Latch` is a one-time event that can fail. `Slicer` and `discard` keep long work from blocking the event loop. `Owner`
starts and ends the one task in which an object runs. `Root`, `is_ending` and `uncancel` distinguish the end of a task
from exceptions that functions of users raise in it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractContextManager
    from contextvars import Context

T = TypeVar("T")

#: True in handlers and in the tasks that they start. What such code waits for may itself be waiting for the handler.
IN_HANDLER: ContextVar[bool] = ContextVar("IN_HANDLER", default=False)

#: anyio loads it when the first scope is entered under asyncio.
_ANYIO_BACKEND: Final = "anyio._backends._asyncio"

#: The clock is read at least once in this many steps: reading it costs about as much as a small step.
_STEPS = 8


class Failure:
    """An exception that several waiters raise, each with the traceback that it had at first.

    Each raise adds to the traceback of an exception. Without this class it would grow with each waiter.
    """

    __slots__ = ("_error", "_traceback")

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._traceback = error.__traceback__

    @property
    def error(self) -> BaseException:
        """The exception, with its first traceback."""
        return self._error.with_traceback(self._traceback)


class Latch:
    """An event that is never cleared, and that can fail: then waiters raise instead of waiting for ever.

    All calls belong to the thread of the event loop.
    """

    __slots__ = ("_failure", "_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._failure: Failure | None = None
        #: None while nothing waits.
        self._waiters: set[asyncio.Future[None]] | None = None

    def __bool__(self) -> bool:
        return self._set

    def set(self) -> None:
        """Set the latch: current and future waiters return. Does nothing if the latch is set or has failed."""
        if self._set or self._failure is not None:
            return
        self._set = True
        waiters = self._waiters
        self._waiters = None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Fail the latch: current and future waiters raise `error`. Does nothing if the latch is set or has failed."""
        if self._set or self._failure is not None:
            return
        self._failure = Failure(error)
        waiters = self._waiters
        self._waiters = None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_exception(error)

    async def wait(self) -> None:
        """Wait until the latch is set.

        Raises:
            BaseException: the error with which it failed.
        """
        if self._set:
            return
        if self._failure is not None:
            raise self._failure.error
        waiter = asyncio.get_running_loop().create_future()
        waiters = self._waiters or set()
        self._waiters = waiters
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return a clock of an event loop that also advances within one iteration of the loop.

    asyncio's clock is `time.monotonic`, which is cheaper to read directly; uvloop's shows the same time, but stands
    still within an iteration. If the loop overrides the clock of asyncio (virtual time), the returned clock reads it,
    and adds the real time that passes while it stands still.
    """
    if not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time:
        return monotonic
    last = 0.0
    real = 0.0

    def clock() -> float:
        nonlocal last, real
        if (now := loop.time()) != last:
            last = now
            real = perf_counter()
        return now + perf_counter() - real

    return clock


#: How long work may block the event loop at a time.
SLICE_SECONDS = 0.0005


class Slicer:
    """Divides long work into time slices, so that it does not block the event loop.

    The clock is read after the first step of a slice, then less and less often, at least after every eighth step: how
    long a step takes (a handler, an index function) is not known, and a slice must not contain eight slow steps.
    """

    __slots__ = ("_gap", "_left", "_seconds", "_since")

    def __init__(self) -> None:
        self._seconds = SLICE_SECONDS
        self.start()

    def start(self, at: float | None = None) -> None:
        """Begin a slice now, or at a time that `perf_counter` returned."""
        self._since = perf_counter() if at is None else at
        self._gap = 1
        self._left = 1

    def count_step(self) -> bool:
        """Count a step of work; return whether the slice is used up."""
        self._left -= 1
        if self._left:
            return False
        self._gap = min(2 * self._gap, _STEPS)
        self._left = self._gap
        return perf_counter() - self._since >= self._seconds

    def is_over(self) -> bool:
        """Return whether the slice is used up, by a look at the clock."""
        return perf_counter() - self._since >= self._seconds

    async def yield_to_loop(self) -> None:
        """Let the event loop run other tasks, then begin a slice."""
        await asyncio.sleep(0)
        self.start()

    async def pause(self) -> None:
        """Count a step of work, and call `yield_to_loop` if the slice is used up."""
        if self.count_step():
            await self.yield_to_loop()


def discard(loop: asyncio.AbstractEventLoop, items: dict[str, Any]) -> None:
    """Empty a dict in time slices: to free a large one at once would block the event loop. Callable from any thread.

    The caller keeps no other reference to the dict. If the loop is closed, nothing is done.
    """

    def go_on() -> None:
        end = perf_counter() + SLICE_SECONDS
        while items:
            for _ in range(min(len(items), _STEPS)):
                items.popitem()
            if perf_counter() >= end:
                loop.call_soon(go_on)
                return

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(go_on)


def running_loop(what: str) -> asyncio.AbstractEventLoop:
    """Return the event loop of asyncio that runs in this thread.

    Args:
        what: what the caller is about to do, for the error: "the informer factory starts".

    Raises:
        UsageError: no such loop runs. The message names the async library that runs instead, if that is known.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        pass
    library = ""
    if (sniffio := sys.modules.get("sniffio")) is not None:  # other async libraries register there
        with suppress(Exception):  # none runs
            library = str(sniffio.current_async_library())
    if library:
        raise UsageError(
            f"{what} in a running event loop of asyncio, and this is {library}: run the program with asyncio.run(...)"
        )
    raise UsageError(
        f"{what} in a running event loop of asyncio, and none runs in this thread: call it within a coroutine that "
        "asyncio.run(...) runs, or by loop.call_soon_threadsafe(...) from another thread"
    )


#: Exceptions that end a task or the program, and are no failure of the code that they pass through.
ENDING: Final = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)


class Owner:
    """Starts and ends the one task in which an object runs, and reports its failure.

    Between `enter` and `leave`, a failure can cancel the block of `async with`, as that of a task cancels the block of
    a task group: in the task that entered, and with other cancellations kept apart.
    """

    __slots__ = ("_before", "_cancels", "_host", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        #: The task that entered the block, how many requests to cancel it there were, and whether there is one of ours.
        self._host: asyncio.Task[Any] | None = None
        self._before = 0
        self._cancels = False

    @property
    def running(self) -> bool:
        """Whether the task was started and has not ended."""
        return self._task is not None and not self._task.done()

    def check(self) -> None:
        """Raise the error of the task, if it has ended with one.

        Raises:
            Exception: the error of the task.
        """
        task = self._task
        if task is not None and task.done() and not task.cancelled():
            task.result()

    def start(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Start the task.

        Raises:
            UsageError: no event loop of asyncio runs in this thread.
        """
        running_loop(f"{name} starts")
        self._task = create_task(run(), name=name)
        # stop() and check() raise its error. Reading it here keeps asyncio from logging it as never retrieved.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def enter(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Start the task, and begin the block when it runs.

        Raises:
            UsageError: no event loop of asyncio runs in this thread.
            BaseException: the error with which the task has ended already.
        """
        self.start(run, name)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await self.stop()
            raise
        await self.begin_block()

    async def begin_block(self) -> None:
        """Begin the block in the current task.

        Raises:
            BaseException: the error with which the task has ended already.
        """
        if self._cancels:
            await self.stop()
        self._host = cast("asyncio.Task[Any]", asyncio.current_task())
        self._before = self._host.cancelling()

    def cancel_block(self) -> bool:
        """Cancel the block, since the object has failed. Return whether the task that has begun it still runs."""
        first = not self._cancels
        self._cancels = True
        if self._host is None or self._host.done():
            return False
        if first:
            self._host.cancel()
        return True

    async def leave(self, kind: type[BaseException] | None, stop: Callable[[], Awaitable[None]]) -> None:
        """Stop at the end of the block. A cancellation by other code takes precedence over the error of the task.

        Args:
            kind: of the exception that ends the block.
            stop: stops the object, and raises the error of the task.

        Raises:
            BaseException: the error with which the task had ended.
        """
        host = self._host
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if self._cancels and host is not None and host is asyncio.current_task():
            cancelled = host.uncancel() > self._before and cancelled
            self._host = None
        elif not self._cancels:  # otherwise, the task whose block is cancelled has yet to leave it
            self._host = None
        try:
            await stop()
        except BaseException as error:
            if not cancelled or isinstance(error, ENDING):
                raise

    async def stop(self) -> None:
        """Cancel the task, and wait until it has ended.

        Raises:
            Exception: the error with which the task had ended.
        """
        task = self._task
        if task is None:
            return
        task.cancel()
        cancelled: asyncio.CancelledError | None = None
        with nullcontext() if IN_HANDLER.get() else shielded():  # a scope would cancel this wait again and again
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError as cancellation:
                    if IN_HANDLER.get():
                        raise
                    cancelled = cancellation  # the owned task ends first, as in a task group
        if cancelled is not None:
            raise cancelled
        if not task.cancelled():
            task.result()


def shielded() -> AbstractContextManager[object]:
    """Return a context in which no cancel scope of anyio around the caller cancels what the caller awaits.

    A cancelled scope cancels each further wait in it, including the waits of a cleanup. `Task.cancel()` of asyncio
    cancels once, and is not affected. Entering a scope loads anyio's backend. If the backend is not loaded, there is no
    scope, and importing anyio here would cost 20 ms for nothing.
    """
    if _ANYIO_BACKEND not in sys.modules:
        return nullcontext()
    import anyio

    return anyio.CancelScope(shield=True)


class Root(Coroutine[Any, Any, Any]):
    """Wraps the coroutine of a task that calls functions of users, and turns GeneratorExit into a RuntimeError.

    A function of a user may await a future that failed with GeneratorExit. When a task throws GeneratorExit into its
    coroutine, Python closes all that the coroutine awaits, and it must end. This class raises a RuntimeError instead,
    with the GeneratorExit as its cause. Give it to `create_task` itself: if another coroutine awaited it, Python would
    close it, too.

    Attributes:
        shown: what the coroutine awaits, whose frames the task shows instead; None for its own.
    """

    __slots__ = ("_coroutine", "shown")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self.shown: Coroutine[Any, Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        # `cr_frame` and the like, which a task shows and anyio reads.
        return getattr(self.shown or self._coroutine, name)

    def wrap(self, wrapper: Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]) -> None:
        """Replace the coroutine by one that `wrapper` makes of it. Use it before the first step."""
        self._coroutine = wrapper(self._coroutine)

    def __await__(self) -> Generator[Any, Any, Any]:
        return cast("Generator[Any, Any, Any]", self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """Run to the next await. A task calls this instead of `send(None)`."""
        return self._coroutine.send(None)

    def send(self, _: None) -> Any:
        """Run to the next await."""
        return next(self)

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine, and run to the next await."""
        if isinstance(error[0], GeneratorExit):
            failure = RuntimeError("a future or task that was awaited failed with GeneratorExit")
            failure.__cause__ = error[0]
            return self._coroutine.throw(failure)
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._coroutine.close()


def create_task(coroutine: Coroutine[Any, Any, T], *, name: str, context: Context | None = None) -> asyncio.Task[T]:
    """Return a task of the running loop. It begins after the current step of the loop, with any task factory.

    `asyncio.eager_task_factory` runs a coroutine up to its first wait before the caller has the task. The caller could
    then not identify or cancel it, and functions of users would run in the middle of the caller.
    """
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is not None:
        coroutine = _not_eager(coroutine)
    return loop.create_task(coroutine, name=name, context=context)


class TaskGroup(asyncio.TaskGroup):
    """A task group whose tasks begin as those of `create_task`."""

    def create_task(self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
        """Return a task of the group, see `create_task`."""
        if asyncio.get_running_loop().get_task_factory() is not None:
            coro = _not_eager(coro)
        return super().create_task(coro, **options)


def _not_eager(coroutine: Any) -> Any:
    if not isinstance(coroutine, Root):
        return _begun(coroutine)
    coroutine.wrap(_begun)  # a Root must be the coroutine of its task
    return coroutine


def _begun(coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine that awaits another one after its first wait, at which it is."""
    delayed = _delayed(coroutine)
    delayed.send(None)  # up to its first wait, so that a cancellation is raised in it and it can close the coroutine
    return delayed


async def _delayed(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # an eager task is here when its creator gets it
    except BaseException:
        coroutine.close()  # it will not begin
        raise
    return await coroutine


def is_ending(error: BaseException, task: asyncio.Task[Any] | None, *, asked: bool = True) -> bool:
    """Return whether an error from a function that a task awaits means that the task itself must end.

    CancelledError may come from something that the function awaits, and GeneratorExit from the function. Python also
    raises GeneratorExit in a coroutine that is closed; then no task runs it.

    Args:
        asked: whether the owner of the task may have cancelled it. If not, the function cancelled it.
    """
    if isinstance(error, asyncio.CancelledError):
        return asked and task is not None and task.cancelling() > 0
    try:
        return isinstance(error, GeneratorExit) and asyncio.current_task() is not task
    except RuntimeError:  # no loop runs
        return True


def is_cancelled() -> bool:
    """Return whether the current task was asked to end: an error in its cleanup may have replaced the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def uncancel(task: asyncio.Task[Any]) -> None:
    """Withdraw all requests to cancel a task."""
    while task.cancelling():
        task.uncancel()
