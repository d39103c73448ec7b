"""One handler, and the pair of tasks that calls it at its own pace.

```
add() ──> queue ──> pop task ──> queue ──> run task ──> handler
```

`add` never waits, so a slow handler delays nothing else: notifications wait in unbounded queues. The pop task moves
batches on; at the end, it waits for the run task. The run task calls the handler with one notification after the other,
in order. Both handle batches, so a hand-over costs a batch and not a notification. Listeners share batches, which they
only read.
"""

from __future__ import annotations

import asyncio
import inspect
from operator import length_hint
from time import time
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import msgspec

from aioinformer import concurrency
from aioinformer.concurrency import IN_HANDLER, Latch, clock_of, create_task, is_ending, uncancel
from aioinformer.errors import USER_ERRORS
from aioinformer.functions import origin
from aioinformer.handlers.names import HandlerCall, HandlerError, HandlerNames, key_of
from aioinformer.handlers.notifications import AddNotification, Delivery, Notification
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.stalls import LIMIT, Stalls, Steps
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sized

    from aioinformer.handlers.overdue import OverdueCalls
    from aioinformer.handlers.resync import ResyncSchedule

T = TypeVar("T")

_log = get_logger("aioinformer.handlers")

#: The number of slices that all listeners of an informer share in one turn of the event loop.
_TURN: Final = 2
#: Slow calls are logged while more notifications than this wait.
_DEEP: Final = 1024
#: A call that takes longer than this is slow, in seconds.
_SLOW_CALL: Final = 0.1
#: The least time between two such log lines, in seconds.
_WHILE: Final = 60.0
#: A backlog of this many notifications in later batches is logged, and again each time it doubles.
_BACKLOG: Final = 10_000
#: A backlog is not logged in its first seconds: a resync or a relist may enqueue as many at once.
_PATIENCE: Final = 2.0


class Batch(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """Notifications that are enqueued together.

    All listeners share one batch: a hundred listeners that fall behind would otherwise keep a hundred lists, which the
    garbage collector walks.

    Attributes:
        notifications: the notifications. They may be an iterator, which can be read only once.
        size: how many.
        initial: how many of them belong to the initial list.
        source: the iterator from which `notifications` are made; None if they exist already. Its length hint is the
            number that is left.
    """

    notifications: Iterable[Notification[T]]
    size: int
    initial: int = 0
    source: Iterator[Any] | None = None

    @classmethod
    def of(cls, notifications: list[Notification[T]]) -> Batch[T]:
        """Return the batch of these notifications."""
        initial = 0
        for each in notifications:
            if type(each) is AddNotification and each.is_in_initial_list:
                initial += 1
        return cls(notifications, len(notifications), initial)


#: Ends the queue of the pop task.
_END: Final[Batch[Any]] = Batch((), 0)


class ProcessorListener(Generic[T]):
    """Delivers notifications to one registered handler, and counts its calls and errors.

    `delivery_to` (in `notifications`) makes the function that calls the methods of the handler.

    Args:
        name: for tasks and logs.
        deliver: calls the handler with a notification.
        resync: says when the listener takes part in resyncs.
        handler: as the user passed it, for names in logs.
        stalls: logs functions that block the event loop.

    Attributes:
        errors: how often the handler raised.
        last_error: the last error, or None.
        longest_call: the longest finished call, in seconds, awaiting included.
        on_error: called with each error.
        on_crash: called with the exception that ends the run task.
        overdue: logs calls that do not return; None to log none.
    """

    # Not of each instance: the attributes of an instance with more than 30 of them take 1.3 KiB more.
    _repeated: RepeatedErrors | None = None
    #: How many waiting notifications are logged next.
    _backlog_limit = _BACKLOG
    #: When the backlog began, and how many notifications had been added and delivered until then.
    _backlog: tuple[float, int, int] | None = None

    def __init__(
        self,
        name: str,
        deliver: Delivery,
        resync: ResyncSchedule,
        *,
        handler: Any = None,
        stalls: Stalls | None = None,
    ) -> None:
        self.name = name
        self.resync = resync
        #: Set once the notifications of the initial list have been delivered; failed if the informer stops.
        self.synced = Latch()
        #: Set when the handler is not called any more.
        self.finished = Latch()
        self.errors = 0
        self.last_error: HandlerError | None = None
        self.longest_call = 0.0
        self.on_error: Callable[[], None] = lambda: None
        self.on_crash: Callable[[BaseException], None] = lambda error: None
        self.overdue: OverdueCalls | None = None
        #: All listeners of the informer, which share the slices of a turn.
        self.peers: Sized = (self,)
        self._deliver = deliver
        self._functions = HandlerNames(handler)
        self._stalls = stalls or Stalls(name)
        self._slice_seconds = concurrency.SLICE_SECONDS
        self._added: asyncio.Queue[Batch[T]] = asyncio.Queue()
        self._next: asyncio.Queue[Batch[T]] = asyncio.Queue()
        #: How many notifications wait in batches that have not begun, and how many were added in all.
        self._waiting = self._taken = 0
        #: The rest of the current batch; None between two batches.
        self._left: Iterator[Any] | None = None
        #: The last notification that was delivered, and when by the loop's clock.
        self._current: Notification[T] | None = None
        self._began = 0.0
        self._clock: Callable[[], float] = lambda: 0.0
        #: The notification of the last slow call.
        self._slow: Notification[T] | None = None
        self._delivering = False
        self._quiet_until = 0.0
        self._initial = 0
        self._upstream_synced = False
        self._stopped = False
        #: The pop task and the run task, once they are started.
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """How many notifications wait, the one of the current call included."""
        left = self._left
        return self._waiting + (length_hint(left) if left is not None else 0) + self._delivering

    @property
    def behind(self) -> int:
        """How many notifications wait behind the current call."""
        return self.pending - self._delivering

    @property
    def calls(self) -> int:
        """How many notifications have been delivered, the one of the current call included."""
        return self._taken - self.pending + self._delivering

    @property
    def busy(self) -> bool:
        """Whether a batch has begun and not ended."""
        return self._left is not None

    @property
    def call_began(self) -> float | None:
        """When the current call began, by the loop's clock; None if there is none."""
        return self._began if self._delivering else None

    def call(self) -> HandlerCall | None:
        """Return the current call, or None. Any thread may call this."""
        notification, began = self._current, self._began
        if not self._delivering or notification is None:
            return None
        seconds = max(0.0, self._clock() - began)
        return self._functions.call(notification, seconds)

    def add(self, batch: Batch[T]) -> None:
        """Enqueue a batch of notifications."""
        if not self._stopped:
            # While nothing waits and no call runs, the run task is woken at once, without a step of the pop task.
            idle = not self._waiting and self._left is None
            (self._next if idle else self._added).put_nowait(batch)
            self._initial += batch.initial
            self._waiting += batch.size
            self._taken += batch.size
            if self._waiting >= self._backlog_limit:
                self._check_backlog()

    def mark_upstream_synced(self) -> None:
        """Note that all notifications of the initial list have been added."""
        self._upstream_synced = True
        self._check_synced()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the pair of tasks."""
        self._tasks = [
            tasks.create_task(self.pop(), name=f"{self.name}: pop"),
            create_task(self.run(), name=f"{self.name}: run"),
        ]
        # Not by the task itself: a task that is cancelled before its first step never runs.
        self._tasks[1].add_done_callback(self._finish)

    def stop(self) -> None:
        """Deliver nothing more; a call that is under way may finish."""
        if self._stopped:
            return
        self._stopped = True
        # Queued objects must not live as long as the registration.
        while not self._added.empty():
            self._added.get_nowait()
        self._added.put_nowait(_END)
        self._next = asyncio.Queue()
        self._taken -= self._waiting
        self._waiting = 0
        if not self._tasks:
            self.finished.set()
        elif not self._delivering:
            self._tasks[1].cancel()

    def stopped(self) -> bool:
        """Return whether the listener was stopped."""
        return self._stopped

    def pass_over(self) -> None:
        """Count an object of the initial list that cannot be delivered, as an error."""
        self.count_error()
        self._taken -= 1
        self._initial -= 1
        self._check_synced()

    def cut(self) -> bool:
        """Cancel the current call; return whether there was one."""
        self.stop()
        if self._delivering and not self.finished:
            self._tasks[1].cancel()
            return True
        return False

    def abandon(self) -> None:
        """Stop waiting for a call that ignores its cancellation."""
        self.finished.set()

    def _finish(self, run: asyncio.Task[None]) -> None:
        self.finished.set()
        if self._repeated is not None:
            self._repeated.close()
        self._added.put_nowait(_END)
        if not run.cancelled() and (error := run.exception()) is not None:
            self.on_crash(error)

    async def pop(self) -> None:
        """Move batches from the queue of `add` to the queue of the run task, until it has finished or is abandoned.

        The task group waits for this task and not for the run task, whose handler may ignore its cancellation.

        Raises:
            BaseException: the run task crashed with it.
        """
        run = self._tasks[1]
        try:
            while (batch := await self._added.get()) is not _END:
                self._next.put_nowait(batch)
                del batch  # a batch may be a whole list, and the next batch may come much later
            await self.finished.wait()
        finally:
            self._stopped = True
            run.cancel()
        if run.done() and not run.cancelled():
            run.result()

    def run(self) -> Steps:
        """Return the coroutine of the run task: it calls the handler until stopped, and logs and counts its errors."""
        return Steps(self._run(), self._stalls, self._blocked)

    async def _run(self) -> None:
        IN_HANDLER.set(True)
        task = cast("asyncio.Task[None]", asyncio.current_task())
        deliver = self._deliver
        clock = self._clock = clock_of(asyncio.get_running_loop())
        notable = 0.0
        now = clock()
        slice_ends = now + self._share()
        while not self.stopped():
            waits = self._next.empty()
            if waits and self._backlog is not None and not self._waiting:
                self._end_backlog()
            try:
                batch = await self._next.get()
            except asyncio.CancelledError as error:
                self._take(error, task)
                continue
            if waits:  # otherwise no other task had a turn: a backlog of small batches is one slice
                now = clock()
                slice_ends = now + (self._slice_seconds if len(self.peers) <= _TURN else self._share())
            self._began = now
            if self.overdue is not None and not self.overdue.armed:
                self.overdue.arm()
            self._waiting -= batch.size
            notifications = iter(batch.notifications)
            self._left = batch.source or notifications
            # No other task runs between two calls, except where this is set to False.
            self._delivering = True
            try:
                for notification in notifications:
                    self._current = notification
                    # No coroutine for each notification: making one costs as much as enqueueing the notification.
                    try:
                        result = deliver(notification)
                        if type(result) is CoroutineType or (result is not None and inspect.isawaitable(result)):
                            await result
                    except (*USER_ERRORS, asyncio.CancelledError) as error:
                        self._take(error, task)
                    if type(notification) is AddNotification and notification.is_in_initial_list:
                        # Attempts count: a handler that raises becomes synced, too.
                        self._initial -= 1
                        self._check_synced()
                    began, self._began = now, (now := clock())
                    if now - began > notable:
                        notable = self._account_for(now - began, now)
                    if now >= slice_ends:
                        self._delivering = False
                        try:
                            await asyncio.sleep(0)
                        except asyncio.CancelledError as error:
                            self._take(error, task)
                        now = self._began = clock()
                        slice_ends = now + self._share()
                        self._delivering = True
                    if self._stopped:
                        return
            finally:
                self._delivering = False
                if self._stopped:
                    self._taken -= length_hint(self._left)
                self._left = None
            del batch, notifications  # as above

    def _is_asked_to_end(self) -> bool:
        """Return whether the listener was stopped, or the tasks of the informer were cancelled."""
        pop = self._tasks[0] if self._tasks else None
        return self._stopped or pop is None or pop.done() or pop.cancelling() > 0

    def _take(self, error: BaseException, task: asyncio.Task[None]) -> None:
        """Count an error of the handler, or raise it if this task is to end.

        The handler may await something that was cancelled, or cancel its own task, which is this one. Both are errors
        of the handler.
        """
        if is_ending(error, task, asked=self._is_asked_to_end()):
            raise error
        uncancel(task)
        if self._current is not None:
            self._failed(self._current, error)

    def _share(self) -> float:
        """Return for how long this listener may block the event loop at a time."""
        return self._slice_seconds * min(1.0, _TURN / max(1, len(self.peers)))

    def _failed(self, notification: Notification[T], error: BaseException) -> None:
        key = key_of(notification)
        self.count_error()
        self.last_error = HandlerError(origin(error), key, time())
        if self._repeated is None:
            self._repeated = RepeatedErrors(_log)
        self._repeated.report(self.name, error, "%s raised for %s", self.name, key)

    def count_error(self) -> None:
        """Count an error of the handler."""
        self.errors += 1
        self.on_error()

    def _account_for(self, seconds: float, now: float) -> float:
        """Record a call that was the longest so far, or slow; return the length from which to record the next."""
        self.longest_call = max(self.longest_call, seconds)
        if seconds > _SLOW_CALL:
            self._slow = self._current
        if seconds > _SLOW_CALL and now >= self._quiet_until and self.pending > _DEEP:
            self._quiet_until = now + _WHILE
            waiting = self.pending
            _log.info("%s took %.1f s for a call, and %d notifications wait", self.name, seconds, waiting)
        return min(self.longest_call, _SLOW_CALL)

    def _check_backlog(self) -> None:
        """Log a backlog that has lasted a while. Each call may be quick. The initial list does not count."""
        loop, pending = asyncio.get_running_loop(), self.pending - self._initial
        if pending < self._backlog_limit:
            return
        if self._backlog is None:
            self._backlog = loop.time(), self._taken, self.calls
            loop.call_later(1.1 * _PATIENCE, self._check_backlog)  # timers may be early
        began, taken, calls = self._backlog
        if (seconds := loop.time() - began) < _PATIENCE:
            return
        self._backlog_limit = 2 * pending
        _log.warning(
            "%s falls behind: %d notifications are pending; in the last %.0f s, %.0f arrived and %.0f were delivered "
            "per second. Make the handler faster, or merge the changes of an object with CoalescingHandler",
            *(self.name, pending, seconds, (self._taken - taken) / seconds, (self.calls - calls) / seconds),
        )

    def _end_backlog(self) -> None:
        if self._backlog_limit > _BACKLOG and self._backlog is not None:
            seconds = asyncio.get_running_loop().time() - self._backlog[0]
            _log.warning("%s has caught up after %.0f s", self.name, seconds)
        self._backlog_limit, self._backlog = _BACKLOG, None

    def _blocked(self, seconds: float) -> None:
        """Attribute a block of the event loop to a slow call. If no single call was slow, log nothing."""
        call = self.call()
        culprit = self._current if call is not None and call.seconds > LIMIT else self._slow
        if culprit is not None:
            function = self._functions.of(culprit)
            subject = self.name if function in self.name else f"{self.name}, in {function},"
            self._stalls.report(subject, culprit, key_of, seconds)

    def _check_synced(self) -> None:
        if self._upstream_synced and self._initial == 0:
            self.synced.set()
