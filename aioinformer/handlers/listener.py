"""One handler, and the task that calls it at its own pace.

```
add() ──> queue ──> run task ──> handler
```

`add` never waits, so a slow handler delays nothing else: notifications wait in an unbounded queue. The run task calls
the handler with one notification after the other, in order. It gets batches, so a hand-over costs a batch and not a
notification. Listeners share batches, which they only read. A second task, in the task group of the informer, waits for
the end of the run task.
"""

from __future__ import annotations

import asyncio
import inspect
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from aioinformer.concurrency import IN_HANDLER, Latch, create_task, is_ending, uncancel
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.handlers.backlog import Backlog, Batch
from aioinformer.handlers.calls import HandlerCall, HandlerCalls
from aioinformer.handlers.handler_lines import HandlerLines
from aioinformer.handlers.notifications import AddNotification, Delivery, Notification
from aioinformer.handlers.stalls import Stalls, Steps
from aioinformer.handlers.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.handlers.resync import ResyncSchedule

T = TypeVar("T")

#: So many notifications, at most, are delivered in the step that adds them.
_FEW: Final = 16


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
        calls: what is known about the calls of the handler.
        on_crash: called with the exception that ends the run task.
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
        self.backlog: Backlog[T] = Backlog(name, lines=HandlerLines(lambda: (self,)))
        #: Set once the notifications of the initial list have been delivered; failed if the informer stops.
        self.synced = Latch()
        #: Set when the handler is not called any more.
        self.finished = Latch()
        self.on_crash: Callable[[BaseException], None] = lambda error: None
        #: Shared by all listeners of the informer.
        self.turns = Turns((self,))
        self._deliver = deliver
        self._stalls = stalls or Stalls(name)
        self.calls: HandlerCalls[T] = HandlerCalls(name, handler, self._stalls, lambda: self.behind)
        self._at_once = False
        self._slice_ends = 0.0
        self._upstream_synced = False
        #: The guard task and the run task, once they are started.
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """How many notifications wait, the one of the current call included."""
        return self.backlog.behind + (self.calls.began is not None)

    @property
    def behind(self) -> int:
        """How many notifications wait behind the current call."""
        return self.backlog.behind

    @property
    def call_began(self) -> float | None:
        """When the current call began, by the loop's clock; None if there is none."""
        return self.calls.began

    @property
    def busy(self) -> bool:
        """Whether notifications are being delivered."""
        return self.pending > 0

    def call(self) -> HandlerCall | None:
        """Return the current call, or None. Any thread may call this."""
        return self.calls.running()

    def mark_upstream_synced(self) -> None:
        """Note that all notifications of the initial list have been added."""
        self._upstream_synced = True
        self._check_synced()

    def call_at_once(self) -> None:
        """Deliver small batches in the step that adds them, while nothing waits: a step of a task costs more than that.

        What does not fit into a slice is delivered by the task.
        The handler must be quick, must not await, and must call no function of a user.
        """
        self._at_once = True

    def add(self, batch: Batch[T]) -> None:
        """Enqueue a batch of notifications, or deliver it now if it is small and the handler is called at once."""
        backlog = self.backlog
        at_once = self._at_once and batch.size <= _FEW and not batch.initial
        if at_once and self._tasks and not (backlog.behind or backlog.closed):
            self._deliver_now(batch)
        else:
            backlog.add(batch)

    def _deliver_now(self, batch: Batch[T]) -> None:
        backlog = self.backlog
        calls = self.calls
        notifications = iter(batch.notifications)
        ends = calls.clock() + self.turns.first if batch.size > 1 else 0.0
        backlog.added += batch.size
        for notification in notifications:
            try:
                result = self._deliver(notification)
                if type(result) is CoroutineType:
                    result.close()
                    raise UsageError(f"{self.name} is called at once, so it cannot be a coroutine function")
            except USER_ERRORS as error:
                calls.current = notification
                calls.raised(error)
            if ends and calls.clock() > ends and (rest := [*notifications]):
                backlog.added -= len(rest)
                backlog.add(Batch.of(rest))

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the pair of tasks."""
        self._tasks = [
            tasks.create_task(self._guard(), name=f"{self.name}: guard"),
            create_task(Steps(self._run(), self._stalls, self.calls.blocked), name=f"{self.name}: run"),
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
        elif self.calls.began is None:
            self._tasks[1].cancel()

    def runs_in(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether the handler is called in a task."""
        return task in self._tasks

    def pass_over(self) -> None:
        """Count an object of the initial list that cannot be delivered, as an error."""
        self.calls.count_error()
        self.backlog.pass_over()
        self._check_synced()

    def cut(self) -> bool:
        """Cancel the current call; return whether there was one."""
        self.stop()
        if self.calls.began is None or self.finished:
            return False
        self._tasks[1].cancel()
        return True

    def _finish(self, run: asyncio.Task[None]) -> None:
        self.finished.set()
        self.calls.close()
        if not run.cancelled() and (error := run.exception()) is not None:
            self.on_crash(error)

    async def _guard(self) -> None:
        """Wait until the run task has finished or is abandoned. If cancelled, cancel it.

        The task group waits for this task and not for the run task, whose handler may ignore its cancellation.

        Raises:
            BaseException: the run task crashed with it.
        """
        run = self._tasks[1]
        try:
            await self.finished.wait()
        finally:
            self.backlog.close()
            run.cancel()
        if run.done() and not run.cancelled():
            run.result()

    async def _run(self) -> None:
        """Call the handler until stopped, and log and count its errors."""
        IN_HANDLER.set(True)
        self.calls.start()
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
                self._slice_ends = self.calls.clock() + self.turns.first
            try:
                await self._deliver_each(backlog.begin(batch))
            finally:
                self.calls.began = None
            del batch  # a batch may be a whole list, and the next batch may come much later

    async def _deliver_each(self, notifications: Iterable[Notification[T]]) -> None:
        """Call the handler with one notification after the other, until stopped."""
        deliver = self._deliver
        calls = self.calls
        backlog = self.backlog
        clock = calls.clock
        if not backlog.lines.armed:
            backlog.lines.arm()
        # A call begins where the previous one ended: no other task runs in between, except in `_end_slice`.
        now = clock()
        calls.began = now
        for notification in notifications:
            calls.current = notification
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
            if ended - now > calls.notable:
                calls.ended(ended - now, ended)
            calls.began = ended
            now = ended
            if now >= self._slice_ends and backlog.behind:
                now = await self._end_slice()
            if backlog.closed:
                return

    async def _end_slice(self) -> float:
        """Give other tasks a turn between two calls; return when the next slice begins."""
        self.calls.began = None
        seconds = 0.0
        try:
            seconds = await self.turns.next()
        except asyncio.CancelledError as error:
            self._take(error)
        now = self.calls.clock()
        self.calls.began = now
        self._slice_ends = now + seconds
        return now

    def _take(self, error: BaseException) -> None:
        """Count an error of the handler, or raise it if this task is to end.

        The handler may await something that was cancelled, or cancel its own task, which is this one. Both are errors
        of the handler.
        """
        guard, run = self._tasks
        if is_ending(error, run, asked=self.backlog.closed or guard.done() or guard.cancelling() > 0):
            raise error
        uncancel(run)
        self.calls.raised(error)

    def _check_synced(self) -> None:
        if self._upstream_synced and self.backlog.initial == 0:
            self.synced.set()
