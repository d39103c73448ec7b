"""The handlers of one informer: who joins, who leaves, and what they are told to begin with."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError
from aioinformer.handler_names import HandlerNames
from aioinformer.listener import ProcessorListener
from aioinformer.notifications import AddNotification, Batch, delivery_to
from aioinformer.registration import HandlerRegistration
from aioinformer.resync import ResyncPeriods, ResyncSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.objects import Record
    from aioinformer.processor import SharedProcessor
    from aioinformer.stalls import Stalls
    from aioinformer.store import ThreadSafeStore

T = TypeVar("T")


class Registrations(Generic[T]):
    """Registers handlers with a processor.

    Args:
        name: of the informer.
        processor: tells the handlers.
        cells: the cache.
        present: makes of a record what handlers see.
        unpresentable: told of an object of which it cannot be made, and why.
        resync_period: of the informer, in seconds; 0 for never.
        slice_seconds: how long a synchronous handler may hold the event loop before others have a turn.
        stalls: names handlers that block the loop.

    Attributes:
        periods: how often handlers are told of everything again.
    """

    def __init__(
        self,
        name: str,
        processor: SharedProcessor[T],
        cells: ThreadSafeStore[T],
        present: Callable[[Record], T],
        unpresentable: Callable[[str, BaseException], None],
        *,
        resync_period: float,
        slice_seconds: float,
        stalls: Stalls | None = None,
    ) -> None:
        self.periods = ResyncPeriods(resync_period)
        self._name = name
        self._processor = processor
        self._cells = cells
        self._present = present
        self._unpresentable = unpresentable
        self._slice_seconds = slice_seconds
        self._stalls = stalls
        self._numbers = count(1)
        self._begun = False
        self._synced = False

    def add(self, handler: Any, resync_period: float | None) -> HandlerRegistration[T]:
        """Registers a handler; one that joins late is told of everything in the cache first.

        Raises:
            UsageError: this is no handler, or no period.
        """
        deliver = delivery_to(handler)
        name = f"{self._name}: handler {next(self._numbers)} ({HandlerNames(handler)})"
        schedule = ResyncSchedule(self.periods.negotiate(resync_period, name, final=self._begun))
        schedule.adopt(self.periods.check, _now())
        listener: ProcessorListener[T] = ProcessorListener(
            name, deliver, schedule, self._slice_seconds, handler=handler, stalls=self._stalls
        )
        if self._begun:
            # A predicate may do this in the middle of a batch: what the others are to be told of what is in the store
            # already must not come to this one on top of it.
            self._processor.flush()
            records = self._cells.items()
            left = iter(records)
            listener.add(Batch(self._initial(left, listener), len(records), len(records), left))
        self._processor.add_listener(listener)
        if self._synced:
            listener.upstream_synced()
        return HandlerRegistration(listener)

    def _initial(self, records: Iterator[Record], listener: ProcessorListener[T]) -> Iterator[AddNotification[T]]:
        for record in records:
            try:
                notification = AddNotification(self._present(record), True)
            except USER_ERRORS as error:
                self._unpresentable(record.key, error)
                listener.pass_over()
            else:
                yield notification

    def remove(self, registration: HandlerRegistration[T]) -> None:
        """Ends a registration, unless it is ended already, or another informer's.

        Raises:
            UsageError: this is no registration.
        """
        if not isinstance(registration, HandlerRegistration):
            raise UsageError(f"expected what add_event_handler returned, not {type(registration).__name__}")
        listener = registration._listener
        if listener in self._processor.listeners:
            self._processor.remove_listener(listener)
            listener.synced.fail(InformerStopped(f"{listener.name} was removed before it had synced"))

    def begin(self) -> None:
        """The informer begins: periods are final, and who comes from now on is late."""
        self._begun = True
        now = _now()
        for listener in self._processor.listeners:
            listener.resync.adopt(self.periods.check, now)

    def should_resync(self) -> bool:
        """Whether any handler is to be told of everything again now."""
        return self._processor.should_resync(_now())

    def upstream_synced(self) -> None:
        """All of the initial list has been told, to those who are there."""
        self._synced = True
        for listener in self._processor.listeners:
            listener.upstream_synced()

    def fail(self, failure: BaseException) -> None:
        """Nothing more is told. Handlers that have not synced never will; who waits for that is raised this."""
        for listener in self._processor.listeners:
            listener.synced.fail(failure)
            listener.stop()  # one that was never started has nobody else to do it


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # before there is a loop; schedules are made anew at the start
        return 0.0
