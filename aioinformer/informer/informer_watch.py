"""`InformerWatch`: an informer's notifications as an async iterator; in client-go, NewIndexerInformerWatcher."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, Self, TypeVar

from aioinformer.concurrency import create_task
from aioinformer.errors import UsageError
from aioinformer.handlers.registration import HandlerRegistration
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.watch_events import ADDED, DELETED, MODIFIED, ObjectEvent
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")


class InformerWatch(Generic[T]):
    """Iterates over the changes of an informer's cache.

        async with InformerWatch(informer) as events:
            async for event in events:
                print(event.type, event.object.metadata.name)

    It begins with the contents of the cache, as ADDED. Unlike a watch of the server, it survives all failures of the
    server, and may skip intermediate versions; a deletion that the watch missed is DELETED with the last known state.
    It ends when the informer stops. Events are buffered without a limit.

    Args:
        informer: running or not.

    Raises:
        UsageError: on entry, if it was entered before.
    """

    def __init__(self, informer: SharedIndexInformer[T]) -> None:
        self._informer = informer
        self._events: asyncio.Queue[ObjectEvent[T] | None] = asyncio.Queue()
        self._registration: HandlerRegistration[T] | None = None
        self._end: asyncio.Task[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectEvent[T]:
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)  # for other and later calls
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        if self._registration is not None:
            raise UsageError(f"a watch of {self._informer.name} can be entered once; create another one")
        self._registration = self._informer.add_event_handler(
            on_add=lambda obj: self._put(ADDED, obj),
            on_update=lambda old, new: self._put(MODIFIED, new),
            on_delete=lambda obj: self._put(DELETED, obj),
        )
        self._end = create_task(self._await_end(self._registration), name=f"watch of {self._informer.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._registration is not None
        assert self._end is not None
        self._informer.remove_event_handler(self._registration)
        self._events.put_nowait(None)
        self._end.cancel()
        await asyncio.wait({self._end})

    def _put(self, kind: str, obj: Any) -> None:
        state = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        if state is not None:
            self._events.put_nowait(ObjectEvent(kind, state))

    async def _await_end(self, registration: HandlerRegistration[T]) -> None:
        await registration.wait_for_end()
        self._events.put_nowait(None)
