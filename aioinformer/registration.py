"""The handle of a registered handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from aioinformer.handler_names import HandlerCall, HandlerError
    from aioinformer.listener import ProcessorListener

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
