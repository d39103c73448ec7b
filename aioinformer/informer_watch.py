"""An informer as a watch: what it learns, as events that can be iterated (client-go's NewIndexerInformerWatcher)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown
from aioinformer.errors import UsageError
from aioinformer.retry_watcher import Event
from aioinformer.wire import ADDED, DELETED, MODIFIED

if TYPE_CHECKING:
    from types import TracebackType

    from aioinformer.registration import HandlerRegistration
    from aioinformer.shared_informer import SharedIndexInformer

T = TypeVar("T")


class InformerWatch(Generic[T]):
    """The changes of an informer's cache; use it as `async with InformerWatch(informer) as events`.

        async with InformerWatch(informer) as events:
            async for event in events:
                print(event.type, event.object.metadata.name)

    It begins with all that is in the cache, as ADDED. Unlike a watch of the server it never ends by itself, survives
    every failure of the server, and may leave out versions in between; a deletion that was missed is DELETED with the
    last state that was known. It ends when the informer stops. What nobody has asked for yet waits, without a limit.

    Args:
        informer: which; running or not.

    Raises:
        UsageError: on entering, it was entered before.
    """

    def __init__(self, informer: SharedIndexInformer[T]) -> None:
        self._informer = informer
        self._events: asyncio.Queue[Event[T] | None] = asyncio.Queue()
        self._registration: HandlerRegistration[T] | None = None
        self._end: asyncio.Task[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)  # for whoever else asks, or asks again
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        if self._registration is not None:
            raise UsageError(f"a watch of {self._informer.name} is entered once; make another one")
        self._registration = self._informer.add_event_handler(
            on_add=lambda obj: self._put(ADDED, obj),
            on_update=lambda old, new: self._put(MODIFIED, new),
            on_delete=lambda obj: self._put(DELETED, obj),
        )
        self._end = asyncio.create_task(self._await_end(self._registration), name=f"watch of {self._informer.name}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None
        assert self._end is not None
        self._informer.remove_event_handler(self._registration)
        self._events.put_nowait(None)
        self._end.cancel()
        await asyncio.wait({self._end})

    def _put(self, kind: str, obj: Any) -> None:
        state = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        if state is not None:
            self._events.put_nowait(Event(kind, state))

    async def _await_end(self, registration: HandlerRegistration[T]) -> None:
        await registration.wait_for_end()
        self._events.put_nowait(None)
