"""Registrations: add handlers to an informer and remove them; late handlers get the cache as their initial list."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError
from aioinformer.handlers.backlog import Batch
from aioinformer.handlers.calls import HandlerCall, HandlerError, HandlerNames
from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.notifications import AddNotification, delivery_to
from aioinformer.handlers.resync import ResyncPeriods, ResyncSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.cache.store import ThreadSafeStore
    from aioinformer.handlers.processor import SharedProcessor
    from aioinformer.handlers.stalls import Stalls


T = TypeVar("T")


class HandlerRegistration(Generic[T]):
    """The registration of one handler, returned by `add_event_handler`: its sync state and its statistics."""

    __slots__ = ("_listener",)

    def __init__(self, listener: ProcessorListener[T]) -> None:
        self._listener = listener

    @property
    def name(self) -> str:
        """The handler's name in logs: informer, number, and first function with file and line."""
        return self._listener.name

    @property
    def errors(self) -> int:
        """How often the handler raised."""
        return self._listener.calls.errors

    @property
    def last_error(self) -> HandlerError | None:
        """The handler's last exception: type, place, key and time, without the message; None if there was none."""
        return self._listener.calls.last_error

    @property
    def pending(self) -> int:
        """How many notifications are pending, the running call included."""
        return self._listener.pending

    @property
    def calls(self) -> int:
        """How often the handler was called, the running call included."""
        return self._listener.backlog.calls

    @property
    def longest_call(self) -> float:
        """The duration of the longest completed call in seconds, awaiting included."""
        return self._listener.calls.longest

    @property
    def current(self) -> HandlerCall | None:
        """The running call: function, key and begin. None between two calls."""
        return self._listener.call()

    def count_error(self) -> None:
        """Count an error of the handler that it has handled itself, for snapshots and metrics."""
        self._listener.calls.count_error()

    def call_at_once(self) -> None:
        """Call the handler in the step that changes the cache, if few changes come and none waits.

        It must be quick, must not await, and must call no function of a user.
        """
        self._listener.call_at_once()

    def has_ended(self) -> bool:
        """Return whether the handler was removed, or the informer has stopped."""
        return self._listener.backlog.closed

    def has_synced(self) -> bool:
        """Return whether the informer has synced, and the initial list was delivered to this handler."""
        return bool(self._listener.synced)

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced()`.

        Raises:
            InformerStopped: the informer stopped, or the handler was removed, before that.
            Exception: the informer crashed with it.
        """
        await self._listener.synced.wait()

    async def wait_for_end(self) -> None:
        """Wait until the handler was removed or the informer has stopped, and the handler's last call has returned.

        Raises:
            UsageError: called from the handler itself, which would wait for itself.
        """
        if self._listener.runs_in(asyncio.current_task()):
            raise UsageError(f"{self.name} cannot wait for its own end; wait in another task")
        await self._listener.finished.wait()

    def __repr__(self) -> str:
        synced = "synced" if self.has_synced() else "not synced"
        return f"<registration of {self.name}, {synced}, {self.pending} pending, {self.errors} errors>"


class Registrations(Generic[T]):
    """Registers handlers with a processor.

    Args:
        processor: delivers notifications to the handlers.
        to_view: record -> object for handlers.
        on_view_error: called with the key and the exception if `to_view` raises.
        resync_period: of the informer, in seconds; 0 for never.
        stalls: reports handlers that block the loop.

    Attributes:
        periods: the resync periods of the handlers.
    """

    __slots__ = (
        "_begun",
        "_listeners",
        "_name",
        "_numbers",
        "_on_view_error",
        "_processor",
        "_stalls",
        "_store",
        "_synced",
        "_to_view",
        "periods",
    )

    def __init__(
        self,
        name: str,
        processor: SharedProcessor[T],
        store: ThreadSafeStore[T],
        to_view: Callable[[Record], T],
        on_view_error: Callable[[str, BaseException], None],
        *,
        resync_period: float,
        stalls: Stalls | None = None,
    ) -> None:
        self.periods = ResyncPeriods(resync_period)
        self._name = name
        self._processor = processor
        self._store = store
        self._to_view = to_view
        self._on_view_error = on_view_error
        self._stalls = stalls
        self._numbers = count(1)
        #: Those that `remove` has not ended.
        self._listeners: dict[HandlerRegistration[T], ProcessorListener[T]] = {}
        self._begun = False
        self._synced = False

    def add(self, handler: Any, resync_period: float | None) -> HandlerRegistration[T]:
        """Register a handler. To a late one, the contents of the cache are delivered first.

        Raises:
            UsageError: the handler or the period is invalid.
        """
        deliver = delivery_to(handler)
        name = f"{self._name}: handler {next(self._numbers)} ({HandlerNames(handler)})"
        schedule = ResyncSchedule(self.periods.negotiate(resync_period, name, final=self._begun))
        schedule.adopt(self.periods.check, _now())
        listener: ProcessorListener[T] = ProcessorListener(
            name, deliver, schedule, handler=handler, stalls=self._stalls
        )
        if self._begun:
            # A filter's predicate may add a handler in the middle of a batch. Changes in the store that the other
            # handlers have not received yet must not be delivered to this one twice.
            self._processor.flush()
            records = self._store.items()
            left = iter(records)
            listener.add(Batch(self._initial(left, listener), len(records), len(records), left))
        self._processor.add_listener(listener)
        if self._synced:
            listener.mark_upstream_synced()
        registration = HandlerRegistration(listener)
        self._listeners[registration] = listener
        return registration

    def _initial(self, records: Iterator[Record], listener: ProcessorListener[T]) -> Iterator[AddNotification[T]]:
        for record in records:
            try:
                notification = AddNotification(self._to_view(record), True)
            except USER_ERRORS as error:
                self._on_view_error(record.key, error)
                listener.pass_over()
            else:
                yield notification

    def remove(self, registration: HandlerRegistration[T]) -> None:
        """End a registration; do nothing if it has ended already, or belongs to another informer.

        Raises:
            UsageError: the argument is not a registration.
        """
        if not isinstance(registration, HandlerRegistration):
            raise UsageError(f"expected the result of add_event_handler, not {type(registration).__name__}")
        listener = self._listeners.pop(registration, None)
        if listener is not None and listener in self._processor.listeners:
            self._processor.remove_listener(listener)
            listener.synced.fail(InformerStopped(f"{listener.name} was removed before it had synced"))

    def begin(self) -> None:
        """Begin: fix the resync periods, and treat all further handlers as late."""
        self._begun = True
        now = _now()
        for listener in self._processor.listeners:
            listener.resync.adopt(self.periods.check, now)

    def should_resync(self) -> bool:
        """Return whether a resync is due for any handler; those take part in the next resync."""
        return self._processor.should_resync(_now())

    def mark_upstream_synced(self) -> None:
        """Mark the initial list as delivered to all current listeners."""
        self._synced = True
        for listener in self._processor.listeners:
            listener.mark_upstream_synced()

    def fail(self, failure: BaseException) -> None:
        """Stop all listeners. Waits for handlers that have not synced raise `failure`."""
        for listener in self._processor.listeners:
            listener.synced.fail(failure)
            listener.stop()  # listeners that were never started, too


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # no event loop yet; `begin` schedules again
        return 0.0
