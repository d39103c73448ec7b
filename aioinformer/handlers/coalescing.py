"""A handler that is told the last state of each object, and not all those before it: what waits is bounded.

Whoever is slower than the changes of a hot object need not hear of each of them. While a handler is at work, the
changes of each object become one:

| what it would have been told | what it is told |
|---|---|
| added, then updated | added, as it is now |
| added, then deleted | nothing |
| updated, then updated | updated, from the oldest to the newest |
| updated, then deleted | deleted |
| deleted, then added | updated, from what was deleted to what is there |
| updated, then deleted, then added | updated, from the oldest to what is there |

So no more waits than one change for each object, however slow the handler is.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, Self

from aioinformer.concurrency import IN_HANDLER, Owner, is_ending
from aioinformer.errors import USER_ERRORS
from aioinformer.handlers.names import HandlerCall, HandlerNames, key_of
from aioinformer.handlers.notifications import (
    AddNotification,
    DeleteNotification,
    HandlerWrapper,
    Notification,
    UpdateNotification,
    delivery_to,
)
from aioinformer.handlers.overdue import OverdueCalls
from aioinformer.handlers.stalls import Stalls, Steps
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown, deletion_handling_meta_namespace_key_func

if TYPE_CHECKING:
    from types import TracebackType

_log = get_logger("aioinformer.handlers")

_NEVER: Final = object()


class CoalescingHandler(HandlerWrapper):
    """Stands between an informer and a slow handler.

        async with CoalescingHandler(handler) as latest:
            informer.add_event_handler(latest)

    The handler is told one thing at a time; those objects come first that have waited longest. On leaving, what waits
    is dropped, as is whatever comes later, and a call that is under way is cancelled. An informer takes the handler for
    synced once everything of the first list waits here: trackers (`aioinformer.handlers`) know when the handler has
    seen it.

    Args:
        handler: as for `add_event_handler`.

    Attributes:
        errors: how often the handler raised.
        handler: as it was given.
        name: for tasks and logs.
        call_began: when the call under way began, by the loop's clock; None if there is none.

    Raises:
        UsageError: this is no handler.
    """

    def __init__(self, handler: Any) -> None:
        self.errors = 0
        self.handler = handler
        self._deliver = delivery_to(handler)
        self._functions = HandlerNames(handler)
        self.name = f"coalescing handler ({self._functions})"
        self._stalls = Stalls(self.name)
        self._overdue = OverdueCalls(lambda: (self,))
        #: What the handler was called for last, and since when by the loop's clock; None between two calls.
        self._current: Notification[Any] | None = None
        self.call_began: float | None = None
        #: What waits, and the last state that the handler knows of before it.
        self._waiting: dict[str, tuple[Notification[Any], Any]] = {}
        self._news = asyncio.Event()
        self._owner = Owner()
        self._closed = False

    @property
    def pending(self) -> int:
        """How many objects have changes that the handler was not told of yet."""
        return len(self._waiting)

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        """An object is new."""
        self._put(obj, AddNotification(obj, is_in_initial_list))

    def on_update(self, old: Any, new: Any) -> None:
        """An object changed."""
        self._put(new, UpdateNotification(old, new))

    def on_delete(self, obj: Any) -> None:
        """An object is gone."""
        self._put(obj, DeleteNotification(obj))

    @property
    def behind(self) -> int:
        """How much waits behind the call under way."""
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether the handler is at work."""
        return self.call_began is not None or bool(self._waiting)

    def call(self) -> HandlerCall | None:
        """The call under way; None if there is none."""
        notification, began = self._current, self.call_began
        if notification is None or began is None:
            return None
        return self._functions.call(notification, asyncio.get_running_loop().time() - began)

    def run(self) -> Steps:
        """Call the handler until cancelled, as the coroutine of a task."""
        return Steps(self._run(), self._stalls, self._blocked)

    async def _run(self) -> None:
        IN_HANDLER.set(True)
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    key = next(iter(self._waiting))
                    await self._call(key, self._waiting.pop(key)[0])
                    await asyncio.sleep(0)
        finally:
            self._overdue.close()

    async def __aenter__(self) -> Self:
        self._owner.start(self.run, self.name)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed = True
        self._waiting.clear()
        await self._owner.stop()

    def _put(self, obj: Any, notification: Notification[Any]) -> None:
        if self._closed:
            return
        key = deletion_handling_meta_namespace_key_func(obj)
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = notification, _told_before(notification)
        else:
            before, told = waiting
            merged = _merged(told, before, notification)
            if merged is None:
                del self._waiting[key]
                return
            self._waiting[key] = merged, told
        self._news.set()

    def _blocked(self, seconds: float) -> None:
        if self._current is not None:
            self._stalls.blame(self.name, self._current, key_of, seconds)

    async def _call(self, key: str, notification: Notification[Any]) -> None:
        task = asyncio.current_task()
        self._current, self.call_began = notification, asyncio.get_running_loop().time()
        if not self._overdue.armed:
            self._overdue.arm()
        try:
            result = self._deliver(notification)
            if inspect.isawaitable(result):
                await result
        except (*USER_ERRORS, asyncio.CancelledError) as error:
            if is_ending(error, task):
                raise
            self.errors += 1
            _log.exception("%s raised for %s", self.name, key)
        finally:
            self.call_began = None


def _told_before(notification: Notification[Any]) -> Any:
    """The last state that the handler knows, or is said to: `_NEVER` if none, None if nobody can tell."""
    if isinstance(notification, AddNotification):
        return _NEVER
    if isinstance(notification, UpdateNotification):
        return notification.old
    gone = notification.obj
    return gone.obj if isinstance(gone, DeletedFinalStateUnknown) else gone


def _merged(told: Any, before: Notification[Any], after: Notification[Any]) -> Notification[Any] | None:
    """What two changes of one object are together to who knew this state before them; None if they are nothing."""
    if isinstance(after, DeleteNotification):
        return None if told is _NEVER else after
    new = after.new if isinstance(after, UpdateNotification) else after.obj
    if told is _NEVER:
        return AddNotification(new, isinstance(before, AddNotification) and before.is_in_initial_list)
    return AddNotification(new, False) if told is None else UpdateNotification(told, new)
