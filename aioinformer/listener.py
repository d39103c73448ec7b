"""One handler, and the pair of tasks that feeds it at its own pace.

```
add() ──> queue ──> pop task ──> queue ──> run task ──> handler
```

`add` never waits, so that a slow handler slows nobody: what it has not taken yet waits in unbounded queues. The pop
task moves it on; the run task calls the handler, one notification at a time and in order. Both take batches, so that a
hop costs a batch and not a notification. Listeners share batches: one is only read, and lives until the slowest of
them is through with it.
"""

from __future__ import annotations

import asyncio
import inspect
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown
from aioinformer.keys import deletion_handling_meta_namespace_key_func
from aioinformer.latch import Latch
from aioinformer.logger import get_logger
from aioinformer.notifications import AddNotification, Batch, Delivery, Notification, UpdateNotification
from aioinformer.owner import IN_HANDLER, is_cancelled
from aioinformer.slices import Slicer

if TYPE_CHECKING:
    from collections.abc import Sized

    from aioinformer.resync import ResyncSchedule

T = TypeVar("T")

_log = get_logger(__name__)

#: All listeners of an informer together have so many slices of a turn of the loop, however many they are.
_TURN: Final = 2
#: Calls are timed while so many notifications wait (SI-33) ...
_DEEP: Final = 1024
#: ... and written of in the log if they take so many seconds, once in a while.
_SLOW_CALL: Final = 0.1
_WHILE: Final = 60.0


class ProcessorListener(Generic[T]):
    """The account of one registered handler.

    Args:
        name: for tasks and logs.
        deliver: hands a notification to the handler.
        resync: when it takes part in resyncs.
        slice_seconds: how long synchronous handlers may hold the loop before others have a turn.
    """

    def __init__(self, name: str, deliver: Delivery, resync: ResyncSchedule, slice_seconds: float = 0.0005) -> None:
        self.name = name
        self.resync = resync
        #: Set once the informer and then this handler have seen the initial list; failed if the informer crashes.
        self.synced = Latch()
        #: Set when the handler will not be called any more.
        self.finished = asyncio.Event()
        self.errors = 0
        #: How many notifications wait, those of the batch under way included.
        self.pending = 0
        self._deliver = deliver
        #: All listeners that have their turns with this one, which is one of them.
        self.peers: Sized = (self,)
        self._slice_seconds = slice_seconds
        self._slicer = Slicer(slice_seconds)
        self._added: asyncio.Queue[Batch[T]] = asyncio.Queue()
        self._next: asyncio.Queue[Batch[T]] = asyncio.Queue()
        self._quiet_until = 0.0
        self._initial = 0
        self._upstream_synced = False
        self._stopped = False
        self._delivering = False
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, batch: Batch[T]) -> None:
        """Queues what is to be told."""
        if not self._stopped:
            self._initial += batch.initial
            self.pending += batch.size
            self._added.put_nowait(batch)

    def upstream_synced(self) -> None:
        """All of the initial list has been added."""
        self._upstream_synced = True
        self._check_synced()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Starts the pair of tasks."""
        self._tasks = [
            tasks.create_task(self.pop(), name=f"{self.name}: pop"),
            asyncio.get_running_loop().create_task(self.run(), name=f"{self.name}: run"),
        ]
        # Not by the task itself: one that is cancelled before its first step never takes it.
        self._tasks[1].add_done_callback(lambda _: self.finished.set())
        tasks.create_task(self._attend(self._tasks[1]), name=f"{self.name}: attendance")

    def stop(self) -> None:
        """Nothing more is delivered; a call of the handler that is under way may finish."""
        if self._stopped:
            return
        self._stopped = True
        self._added, self._next = asyncio.Queue(), asyncio.Queue()  # what waits must not live as long as registrations
        if not self._tasks:
            self.finished.set()
        for task in self._tasks if not self._delivering else self._tasks[:1]:
            task.cancel()

    def stopped(self) -> bool:
        """Whether nothing more is delivered."""
        return self._stopped

    def pass_over(self) -> None:
        """One object of the initial list cannot be shown to the handler: that counts as an error of it."""
        self.errors += 1
        self._initial -= 1
        self._check_synced()

    def cut(self) -> bool:
        """Cancels a call of the handler that is under way; True if there was one."""
        self.stop()
        if self._delivering and not self.finished.is_set():
            self._tasks[1].cancel()
            return True
        return False

    def abandon(self) -> None:
        """Leaves a call of the handler to itself that does not end though it was cancelled."""
        self.finished.set()

    async def _attend(self, run: asyncio.Task[None]) -> None:
        # The group waits for this and not for the handler, which may not care that it is cancelled.
        try:
            await self.finished.wait()
        finally:
            run.cancel()
        if run.done() and not run.cancelled():
            run.result()

    async def pop(self) -> None:
        """Moves what was added to where the handler takes it from."""
        while True:
            self._next.put_nowait(await self._added.get())

    async def run(self) -> None:
        """Calls the handler, until stopped. What it raises is logged with the key, and counted, and that is all."""
        IN_HANDLER.set(True)
        deliver, due, clock = self._deliver, self._slicer.due, asyncio.get_running_loop().time
        while not self.stopped():
            waits = self._next.empty()
            batch = await self._next.get()
            self._slicer.seconds = self._slice_seconds * min(1.0, _TURN / max(1, len(self.peers)))
            if waits:  # otherwise nobody else had a turn: a backlog of small batches is one slice
                self._slicer.start()
            timed = self.pending > _DEEP
            begun = 0.0
            # Between two calls nobody else has a turn, and would see it, unless it says so.
            self._delivering = True
            try:
                for notification in batch.notifications:
                    if timed:
                        begun = clock()
                    # Not a coroutine of its own: to make one for each notification costs as much as to queue it.
                    try:
                        result = deliver(notification)
                        if type(result) is CoroutineType or (result is not None and inspect.isawaitable(result)):
                            await result
                    except (Exception, asyncio.CancelledError) as error:
                        # Something that the handler awaited may have been cancelled: that is an error of the handler,
                        # unless it is this task that is to end.
                        if isinstance(error, asyncio.CancelledError) and is_cancelled():
                            raise
                        self.errors += 1
                        _log.exception("%s raised for %s", self.name, _key_of(notification))
                    if type(notification) is AddNotification and notification.is_in_initial_list:
                        # Attempts count, not successes: a handler that raises becomes synced, too.
                        self._initial -= 1
                        self._check_synced()
                    if timed:
                        self._watch_over(begun, clock())
                    if due():
                        self._delivering = False
                        await self._slicer.let_go()
                        self._delivering = True
                    if self._stopped:
                        return
            finally:
                self._delivering = False
            self.pending -= batch.size
            del batch  # it may be all of a list, and the next may be long in coming

    def _watch_over(self, begun: float, ended: float) -> None:
        if ended - begun > _SLOW_CALL and ended >= self._quiet_until:
            self._quiet_until = ended + _WHILE
            waiting = self.pending
            _log.info("%s took %.1f s for a call, and %d notifications wait for it", self.name, ended - begun, waiting)

    def _check_synced(self) -> None:
        if self._upstream_synced and self._initial == 0:
            self.synced.set()


def _key_of(notification: Notification[Any]) -> str:
    obj = notification.new if isinstance(notification, UpdateNotification) else notification.obj
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    try:
        return deletion_handling_meta_namespace_key_func(obj)
    except Exception:
        return "an object without key"
