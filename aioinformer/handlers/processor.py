"""The shared processor: distributes the notifications of one informer to its listeners.

Notifications are collected, and `flush` passes them to the listeners as one batch before the event loop gets a turn. A
listener that is added late therefore sees a store that matches the batches it receives.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.handlers.backlog import Batch
from aioinformer.handlers.handler_lines import HandlerLines
from aioinformer.handlers.turns import Turns
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.handlers.listener import ProcessorListener
    from aioinformer.handlers.notifications import Notification

T = TypeVar("T")

_log = get_logger("aioinformer.handlers")

#: How many seconds a handler may take to end after its cancellation.
CLEANING_UP = 10.0


class SharedProcessor(Generic[T]):
    """Distributes notifications to listeners, and starts and stops them.

    Attributes:
        listeners: the current listeners.
        observers: called with each batch before the listeners get it, without resyncs. They must not raise.
        errors: how often handlers raised, those of removed listeners included.
        on_crash: called with the exception that ends a listener.
    """

    __slots__ = (
        "_counted",
        "_leaving",
        "_lines",
        "_missed",
        "_outbox",
        "_syncs",
        "_tasks",
        "_turns",
        "errors",
        "listeners",
        "observers",
        "on_crash",
    )

    def __init__(self) -> None:
        self.listeners: list[ProcessorListener[T]] = []
        self.observers: list[Callable[[Batch[T]], object]] = []
        self.errors = 0
        self.on_crash: Callable[[BaseException], None] = lambda error: None
        #: Removed listeners whose handler has not finished its last call.
        self._leaving: list[ProcessorListener[T]] = []
        self._outbox: list[Notification[T]] = []
        #: How many notifications at the beginning of the outbox have been counted, and how many of them are initial.
        self._counted = 0, 0
        #: Positions in the outbox of notifications for listeners that take part in a resync; None for none.
        self._syncs: set[int] | None = None
        #: Batches that could not be enqueued because memory ran out.
        self._missed: list[tuple[ProcessorListener[T], Batch[T]]] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._lines = HandlerLines(self._running)
        self._turns = Turns(self.listeners)

    def _running(self) -> tuple[ProcessorListener[T], ...]:
        return (*self.listeners, *self._leaving)

    def distribute(self, notification: Notification[T], *, sync: bool = False) -> None:
        """Add a notification to the next batch; if `sync`, only for listeners that take part in the resync."""
        self._outbox.append(notification)
        if sync:
            self._syncs = self._syncs or set()
            self._syncs.add(len(self._outbox) - 1)

    def distribute_all(self, notifications: list[Notification[T]], initial: int) -> None:
        """Add all of these notifications to the next batch, or none of them if memory runs out.

        Args:
            notifications: there may be very many. To count 200,000 of them when the batch is made would take 7 ms, in
                the step that takes a list into the cache.
            initial: how many of them belong to the initial list.
        """
        counted = self._counted if self._outbox else (len(notifications), initial)
        self._outbox += notifications
        self._counted = counted

    def flush(self) -> None:
        """Pass the batch to the listeners. Call this before the event loop gets a turn.

        Raises:
            Exception: some listeners could not enqueue it; the next flush passes it to them.
        """
        while self._missed:
            listener, batch = self._missed[0]
            listener.add(batch)
            del self._missed[0]
        collected = self._outbox
        if not collected:
            return
        everything = Batch.of(collected, *self._counted)
        without = everything
        if syncs := self._syncs:
            without = Batch.of([each for position, each in enumerate(collected) if position not in syncs])
        self._outbox = []
        self._counted = (0, 0)
        self._syncs = None
        for observe in self.observers:
            observe(without)
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
        """Add a listener; it receives the batches from now on."""
        self.listeners.append(listener)
        listener.turns = self._turns
        listener.backlog.lines = self._lines
        listener.calls.on_error = self._count_error
        listener.on_crash = lambda error: self.on_crash(error)
        if self._tasks is not None:
            listener.start(self._tasks)

    def remove_listener(self, listener: ProcessorListener[T]) -> None:
        """Remove a listener; notifications that wait for its handler are dropped."""
        if listener in self.listeners:
            self.listeners.remove(listener)
            self._leaving = [each for each in (*self._leaving, listener) if not each.finished]
        listener.stop()

    def _count_error(self) -> None:
        self.errors += 1

    def should_resync(self, now: float) -> bool:
        """Select the listeners that take part in a resync now; return whether there is any. The name is client-go's."""
        due = [listener for listener in self.listeners if listener.resync.decide(now)]
        return bool(due)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the current listeners; those that are added later start at once.

        Args:
            tasks: owns the tasks of the listeners. Call `stop` before it ends.
        """
        self._tasks = tasks
        for listener in self.listeners:
            listener.start(tasks)

    async def stop(self, grace: float) -> None:
        """Stop all listeners: queued notifications are dropped, and a running handler has `grace` seconds to finish.

        Then it is cancelled and has `CLEANING_UP` seconds to end. If it does not, it is logged and abandoned.
        """
        self._tasks = None
        try:
            await self._stop(self._running(), grace)
        finally:
            self._lines.close()

    async def _stop(self, listeners: Collection[ProcessorListener[T]], grace: float) -> None:
        for listener in listeners:
            listener.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                for listener in listeners:
                    await listener.finished.wait()
        cut = [listener for listener in listeners if listener.cut()]
        for listener in cut:
            _log.warning("%s did not finish within %g s of the stop: cancelled", listener.name, grace)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEANING_UP):
                for listener in cut:
                    await listener.finished.wait()
        for listener in cut:
            if not listener.finished:
                _log.error("%s did not end within %g s of its cancellation: abandoned", listener.name, CLEANING_UP)
                listener.finished.set()
