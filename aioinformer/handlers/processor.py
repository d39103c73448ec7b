"""The shared processor: what one informer learns, told to any number of listeners.

Notifications are collected and handed out in batches (`flush`), before the event loop gets a turn: whoever joins
late finds the store and the batches in step.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from aioinformer.handlers.listener import Batch
from aioinformer.handlers.overdue import OverdueCalls
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from aioinformer.handlers.listener import ProcessorListener
    from aioinformer.handlers.notifications import Notification

T = TypeVar("T")

_log = get_logger("aioinformer.handlers")

#: So many seconds a handler has to end after it was cancelled.
CLEANING_UP = 10.0


class SharedProcessor(Generic[T]):
    """Hands notifications to listeners, and owns their tasks while it runs.

    Attributes:
        listeners: those that are handed them.
        errors: how often handlers raised, removed ones included.
    """

    def __init__(self) -> None:
        self.listeners: list[ProcessorListener[T]] = []
        self.errors = 0
        #: Removed, but their handler is still at its last call.
        self._leaving: list[ProcessorListener[T]] = []
        self._outbox: list[Notification[T]] = []
        #: Positions in the outbox of notifications that are for listeners that are resyncing only.
        self._syncs: set[int] = set()
        #: Batches that listeners could not take, for want of memory.
        self._missed: list[tuple[ProcessorListener[T], Batch[T]]] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._overdue = OverdueCalls(lambda: (*self.listeners, *self._leaving))

    def distribute(self, notification: Notification[T], *, sync: bool = False) -> None:
        """Puts a notification into the next batch; `sync`: for listeners that are resyncing only (SI-29)."""
        self._outbox.append(notification)
        if sync:
            self._syncs.add(len(self._outbox) - 1)

    def distribute_all(self, notifications: list[Notification[T]]) -> None:
        """Puts all of these notifications into the next batch, or none of them if there is no memory for that."""
        self._outbox += notifications

    def flush(self) -> None:
        """Hands the batch to the listeners. To be called before the event loop gets a turn.

        Raises:
            Exception: some listeners could not take it; they get it with the next flush.
        """
        while self._missed:
            listener, batch = self._missed[0]
            listener.add(batch)
            del self._missed[0]
        collected = self._outbox
        if not collected:
            return
        everything = without = Batch.of(collected)
        if self._syncs:
            without = Batch.of([each for position, each in enumerate(collected) if position not in self._syncs])
        self._outbox, self._syncs = [], set()
        for listener in self.listeners:
            chosen = everything if listener.resync.syncing else without
            if chosen.size:
                try:
                    listener.add(chosen)
                except BaseException:
                    position = self.listeners.index(listener)
                    self._missed = [
                        (each, everything if each.resync.syncing else without) for each in self.listeners[position:]
                    ]
                    raise

    def add_listener(self, listener: ProcessorListener[T]) -> None:
        """One more from now on."""
        self.listeners.append(listener)
        listener.peers = self.listeners
        listener.overdue = self._overdue
        listener.on_error = self._count_error
        if self._tasks is not None:
            listener.start(self._tasks)

    def remove_listener(self, listener: ProcessorListener[T]) -> None:
        """One less from now on; what waits for it is dropped."""
        if listener in self.listeners:
            self.listeners.remove(listener)
            self._leaving = [each for each in (*self._leaving, listener) if not each.finished.is_set()]
        listener.stop()

    def _count_error(self) -> None:
        self.errors += 1

    def should_resync(self, now: float) -> bool:
        """Whether any listener takes part in a resync now; each makes up its mind."""
        due = [listener for listener in self.listeners if listener.resync.decide(now)]
        return bool(due)

    async def run(self, ready: asyncio.Event) -> None:
        """Runs the listeners' tasks until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for listener in self.listeners:
                listener.start(tasks)
            ready.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None
                self._overdue.close()

    async def stop(self, grace: float) -> None:
        """Ends all listeners: what waits is dropped, a handler that is running has `grace` seconds to finish.

        Then it is cancelled, and has `CLEANING_UP` seconds to end. If it does not, it is named in the log and left.
        """
        listeners = [*self.listeners, *self._leaving]
        for listener in listeners:
            listener.stop()
        with anyio.move_on_after(grace):
            for listener in listeners:
                await listener.finished.wait()
        cut = [listener for listener in listeners if listener.cut()]
        for listener in cut:
            _log.warning("%s did not finish within %g s of the stop: cancelled", listener.name, grace)
        with anyio.move_on_after(CLEANING_UP):
            for listener in cut:
                await listener.finished.wait()
        for listener in cut:
            if not listener.finished.is_set():
                _log.error("%s did not end within %g s of being cancelled: left behind", listener.name, CLEANING_UP)
                listener.abandon()
