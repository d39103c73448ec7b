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
from time import time
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from aioinformer.concurrency import IN_HANDLER, Latch, clock_of, create_task, is_ending, uncancel
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.functions import origin
from aioinformer.handlers.backlog import END, Backlog, Batch
from aioinformer.handlers.names import HandlerCall, HandlerError, HandlerNames, key_of
from aioinformer.handlers.notifications import AddNotification, Delivery, Notification
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.stalls import LIMIT, Stalls, Steps
from aioinformer.handlers.turns import Turns
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.handlers.overdue import OverdueCalls
    from aioinformer.handlers.resync import ResyncSchedule

T = TypeVar("T")

_log = get_logger("aioinformer.handlers")

#: Slow calls are logged while more notifications than this wait.
_DEEP: Final = 1024
#: A call that takes longer than this is slow, in seconds.
_SLOW_CALL: Final = 0.1
#: So many notifications, at most, are delivered in the step that adds them.
_FEW: Final = 16
#: The least time between two such log lines, in seconds.
_WHILE: Final = 60.0


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
        backlog: what has been added and not delivered.
        add: enqueues a batch of notifications.
        call_began: when the current call began, by the loop's clock; None if there is none.
        errors: how often the handler raised.
        last_error: the last error, or None.
        longest_call: the longest finished call, in seconds, awaiting included.
        on_error: called with each error.
        on_crash: called with the exception that ends the run task.
        overdue: logs calls that do not return; None to log none.
    """

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
        self.backlog: Backlog[T] = Backlog(name)
        self.add: Callable[[Batch[T]], None] = self.backlog.add  # a method would be one more call for each event
        #: Set once the notifications of the initial list have been delivered; failed if the informer stops.
        self.synced = Latch()
        #: Set when the handler is not called any more.
        self.finished = Latch()
        self.errors = 0
        self.last_error: HandlerError | None = None
        self.longest_call = 0.0
        self.call_began: float | None = None
        self.on_error: Callable[[], None] = lambda: None
        self.on_crash: Callable[[BaseException], None] = lambda error: None
        self.overdue: OverdueCalls | None = None
        #: Shared by all listeners of the informer.
        self.turns = Turns((self,))
        self._deliver = deliver
        self._functions = HandlerNames(handler)
        self._stalls = stalls or Stalls(name)
        self._slice_ends = 0.0
        self._clock: Callable[[], float] = lambda: 0.0
        #: The last notification that was delivered, and that of the last slow call.
        self._current: Notification[T] | None = None
        self._slow: Notification[T] | None = None
        self._quiet_until = 0.0
        #: Only calls that are longer than this are accounted for, in seconds.
        self._notable = 0.0
        self._repeated: RepeatedErrors | None = None
        self._upstream_synced = False
        #: The pop task and the run task, once they are started.
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """How many notifications wait, the one of the current call included."""
        return self.backlog.behind + (self.call_began is not None)

    @property
    def behind(self) -> int:
        """How many notifications wait behind the current call."""
        return self.backlog.behind

    @property
    def busy(self) -> bool:
        """Whether notifications are being delivered."""
        return self.pending > 0

    def call(self) -> HandlerCall | None:
        """Return the current call, or None. Any thread may call this."""
        notification, began = self._current, self.call_began
        if began is None or notification is None:
            return None
        return self._functions.call(notification, max(0.0, self._clock() - began))

    def mark_upstream_synced(self) -> None:
        """Note that all notifications of the initial list have been added."""
        self._upstream_synced = True
        self._check_synced()

    def call_at_once(self) -> None:
        """Deliver small batches in the step that adds them, while nothing waits: a step of a task costs more than that.

        What does not fit into a slice is delivered by the task.
        The handler must be quick, must not await, and must call no function of a user.
        """
        self.add = self._deliver_or_add

    def _deliver_or_add(self, batch: Batch[T]) -> None:
        backlog = self.backlog
        if batch.initial or batch.size > _FEW or backlog.behind or backlog.closed or not self._tasks:
            backlog.add(batch)
            return
        notifications = iter(batch.notifications)
        ends = self._clock() + self.turns.first if batch.size > 1 else 0.0
        backlog.added += batch.size
        for notification in notifications:
            try:
                result = self._deliver(notification)
                if type(result) is CoroutineType:
                    result.close()
                    raise UsageError(f"{self.name} is called at once, so it cannot be a coroutine function")
            except USER_ERRORS as error:
                self._current = notification
                self._report(error)
            if ends and self._clock() > ends and (rest := [*notifications]):
                backlog.added -= len(rest)
                backlog.add(Batch.of(rest))

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the pair of tasks."""
        self._tasks = [
            tasks.create_task(self._pop(), name=f"{self.name}: pop"),
            create_task(Steps(self._run(), self._stalls, self._blocked), name=f"{self.name}: run"),
        ]
        # Not by the task itself: a task that is cancelled before its first step never runs.
        self._tasks[1].add_done_callback(self._finish)

    def stop(self) -> None:
        """Deliver nothing more; a call that is under way may finish."""
        if self.backlog.closed:
            return
        self.backlog.close()
        if not self._tasks:
            self.finished.set()
        elif self.call_began is None:
            self._tasks[1].cancel()

    def pass_over(self) -> None:
        """Count an object of the initial list that cannot be delivered, as an error."""
        self.count_error()
        self.backlog.pass_over()
        self._check_synced()

    def cut(self) -> bool:
        """Cancel the current call; return whether there was one."""
        self.stop()
        if self.call_began is None or self.finished:
            return False
        self._tasks[1].cancel()
        return True

    def _finish(self, run: asyncio.Task[None]) -> None:
        self.finished.set()
        if self._repeated is not None:
            self._repeated.close()
        self.backlog.arrived.put_nowait(END)
        if not run.cancelled() and (error := run.exception()) is not None:
            self.on_crash(error)

    async def _pop(self) -> None:
        """Move batches from queue to queue until the run task has finished or is abandoned. If cancelled, cancel it.

        The task group waits for this task and not for the run task, whose handler may ignore its cancellation.

        Raises:
            BaseException: the run task crashed with it.
        """
        run, backlog = self._tasks[1], self.backlog
        try:
            while (batch := await backlog.arrived.get()) is not END:
                backlog.ready.put_nowait(batch)
                del batch  # a batch may be a whole list, and the next batch may come much later
            await self.finished.wait()
        finally:
            backlog.close()
            run.cancel()
        if run.done() and not run.cancelled():
            run.result()

    async def _run(self) -> None:
        """Call the handler until stopped, and log and count its errors."""
        IN_HANDLER.set(True)
        self._clock = clock_of(asyncio.get_running_loop())
        backlog = self.backlog
        while not backlog.closed:
            waits = not backlog.waiting
            if waits and backlog.growth is not None:
                backlog.end_growth()
            try:
                batch = await backlog.ready.get()
            except asyncio.CancelledError as error:
                self._take(error)
                continue
            if waits:  # otherwise no other task had a turn: a backlog of small batches is one slice
                self._slice_ends = self._clock() + self.turns.first
            try:
                await self._deliver_each(backlog.begin(batch))
            finally:
                self.call_began = None
            del batch  # as above

    async def _deliver_each(self, notifications: Iterable[Notification[T]]) -> None:
        """Call the handler with one notification after the other, until stopped."""
        deliver, clock, backlog = self._deliver, self._clock, self.backlog
        if self.overdue is not None and not self.overdue.armed:
            self.overdue.arm()
        # A call begins where the previous one ended: no other task runs in between, except in `_end_slice`.
        now = self.call_began = clock()
        for notification in notifications:
            self._current = notification
            # No coroutine for each notification: making one costs as much as enqueueing the notification.
            try:
                result = deliver(notification)
                if type(result) is CoroutineType or (result is not None and inspect.isawaitable(result)):
                    await result
            except (*USER_ERRORS, asyncio.CancelledError) as error:
                self._take(error)
            if backlog.initial and type(notification) is AddNotification and notification.is_in_initial_list:
                # Attempts count: a handler that raises becomes synced, too.
                backlog.initial -= 1
                self._check_synced()
            ended = clock()
            if ended - now > self._notable:
                self._account_for(ended - now, ended)
            self.call_began = now = ended
            if now >= self._slice_ends and backlog.behind:
                now = await self._end_slice()
            if backlog.closed:
                return

    async def _end_slice(self) -> float:
        """Give other tasks a turn between two calls; return when the next slice begins."""
        self.call_began, seconds = None, 0.0
        try:
            seconds = await self.turns.next()
        except asyncio.CancelledError as error:
            self._take(error)
        now = self.call_began = self._clock()
        self._slice_ends = now + seconds
        return now

    def _take(self, error: BaseException) -> None:
        """Count an error of the handler, or raise it if this task is to end.

        The handler may await something that was cancelled, or cancel its own task, which is this one. Both are errors
        of the handler.
        """
        pop, run = self._tasks
        if is_ending(error, run, asked=self.backlog.closed or pop.done() or pop.cancelling() > 0):
            raise error
        uncancel(run)
        self._report(error)

    def _report(self, error: BaseException) -> None:
        """Count and log an error of the handler."""
        if self._current is None:
            return
        key = key_of(self._current)
        self.count_error()
        self.last_error = HandlerError(origin(error), key, time())
        if self._repeated is None:
            self._repeated = RepeatedErrors(_log)
        self._repeated.report(self.name, error, "%s raised for %s", self.name, key)

    def count_error(self) -> None:
        """Count an error of the handler."""
        self.errors += 1
        self.on_error()

    def _account_for(self, seconds: float, now: float) -> None:
        """Record a call that was the longest so far, or slow."""
        self.longest_call = max(self.longest_call, seconds)
        self._notable = min(self.longest_call, _SLOW_CALL)
        if seconds > _SLOW_CALL:
            self._slow = self._current
            if now >= self._quiet_until and (waiting := self.pending) > _DEEP:
                self._quiet_until = now + _WHILE
                _log.info("%s took %.1f s for a call, and %d notifications wait", self.name, seconds, waiting)

    def _blocked(self, seconds: float) -> None:
        """Attribute a block of the event loop to a slow call. If no single call was slow, log nothing."""
        call = self.call()
        culprit = self._current if call is not None and call.seconds > LIMIT else self._slow
        if culprit is not None:
            function = self._functions.of(culprit)
            subject = self.name if function in self.name else f"{self.name}, in {function},"
            self._stalls.report(subject, culprit, key_of, seconds)

    def _check_synced(self) -> None:
        if self._upstream_synced and self.backlog.initial == 0:
            self.synced.set()
