"""The handlers of one informer: who joins, who leaves, and what they are told to begin with."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError
from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.names import HandlerNames
from aioinformer.handlers.notifications import AddNotification, Batch, delivery_to
from aioinformer.handlers.resync import ResyncPeriods, ResyncSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.cache.store import ThreadSafeStore
    from aioinformer.handlers.names import HandlerCall, HandlerError
    from aioinformer.handlers.processor import SharedProcessor
    from aioinformer.handlers.stalls import Stalls


T = TypeVar("T")


class HandlerRegistration(Generic[T]):
    """What `add_event_handler` returns: the handle of one registration, and its own account of being synced."""

    def __init__(self, listener: ProcessorListener[T]) -> None:
        self._listener = listener

    @property
    def name(self) -> str:
        """The handler's name, as in logs: its informer, its number, and its first function with file and line."""
        return self._listener.name

    @property
    def errors(self) -> int:
        """How often the handler raised."""
        return self._listener.errors

    @property
    def last_error(self) -> HandlerError | None:
        """The last of its exceptions: type, place, key and time, without its message. None if there was none."""
        return self._listener.last_error

    @property
    def pending(self) -> int:
        """How many notifications wait for the handler, the one that it is at included."""
        return self._listener.pending

    @property
    def calls(self) -> int:
        """How often the handler was called, the call under way included."""
        return self._listener.calls

    @property
    def longest_call(self) -> float:
        """The longest call that has ended, in seconds; awaiting included."""
        return self._listener.longest_call

    @property
    def current(self) -> HandlerCall | None:
        """The call that is under way: function, key, and since when. None between two calls."""
        return self._listener.call()

    def has_synced(self) -> bool:
        """Whether the informer has synced, and this handler was called for everything of the initial list."""
        return bool(self._listener.synced)

    async def wait_for_sync(self) -> None:
        """Returns once `has_synced()`.

        Raises:
            InformerStopped: the informer stopped, or the handler was removed, before that.
            Exception: what the informer crashed with.
        """
        await self._listener.synced.wait()

    async def wait_for_end(self) -> None:
        """Returns once the handler was removed, or the informer has stopped, and its last call has ended (SI-23).

        Raises:
            UsageError: the handler itself asks, and would wait for its own end.
        """
        if asyncio.current_task() in self._listener._tasks:
            raise UsageError(f"{self.name} cannot wait for its own end; let another task do it")
        await self._listener.finished.wait()

    def __repr__(self) -> str:
        synced = "synced" if self.has_synced() else "not synced"
        return f"<registration of {self.name}, {synced}, {self.pending} pending, {self.errors} errors>"


class Registrations(Generic[T]):
    """Registers handlers with a processor.

    Args:
        name: of the informer.
        processor: tells the handlers.
        store: the cache.
        to_view: makes of a record what handlers see.
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
        store: ThreadSafeStore[T],
        to_view: Callable[[Record], T],
        unpresentable: Callable[[str, BaseException], None],
        *,
        resync_period: float,
        slice_seconds: float,
        stalls: Stalls | None = None,
    ) -> None:
        self.periods = ResyncPeriods(resync_period)
        self._name = name
        self._processor = processor
        self._store = store
        self._to_view = to_view
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
            records = self._store.items()
            left = iter(records)
            listener.add(Batch(self._initial(left, listener), len(records), len(records), left))
        self._processor.add_listener(listener)
        if self._synced:
            listener.upstream_synced()
        return HandlerRegistration(listener)

    def _initial(self, records: Iterator[Record], listener: ProcessorListener[T]) -> Iterator[AddNotification[T]]:
        for record in records:
            try:
                notification = AddNotification(self._to_view(record), True)
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
