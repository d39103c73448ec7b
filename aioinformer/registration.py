"""The handle of a registered handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from aioinformer.listener import ProcessorListener

T = TypeVar("T")


class HandlerRegistration(Generic[T]):
    """What `add_event_handler` returns: the handle of one registration, and its own account of being synced."""

    def __init__(self, listener: ProcessorListener[T]) -> None:
        self._listener = listener

    @property
    def name(self) -> str:
        """The handler's name, as in logs."""
        return self._listener.name

    @property
    def errors(self) -> int:
        """How often the handler raised."""
        return self._listener.errors

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

    def __repr__(self) -> str:
        return f"<registration of {self.name}>"
