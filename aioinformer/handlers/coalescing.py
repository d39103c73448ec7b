"""`CoalescingHandler`: delivers only the latest state of each object to a slow handler.

While the handler is running, all pending notifications of an object are merged into one. So at most one notification
for each object is pending, however slow the handler is.

| notifications | merged |
|---|---|
| add, update | add of the latest state |
| add, delete | none |
| update, update | update from the oldest to the latest state |
| update, delete | delete |
| delete, add | update from the deleted to the added state |
| update, delete, add | update from the oldest to the latest state |
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Final, Self

from aioinformer.concurrency import IN_HANDLER, Owner, is_ending
from aioinformer.errors import USER_ERRORS
from aioinformer.handlers.calls import HandlerCall, HandlerNames, key_of
from aioinformer.handlers.handler_lines import HandlerLines
from aioinformer.handlers.notifications import (
    AddNotification,
    DeleteNotification,
    HandlerWrapper,
    Notification,
    UpdateNotification,
    delivery_to,
)
from aioinformer.handlers.stalls import Stalls, Steps
from aioinformer.resources.keys import DeletedFinalStateUnknown, deletion_handling_meta_namespace_key_func

_ABSENT: Final = object()


class CoalescingHandler(HandlerWrapper):
    """Wraps a slow handler, and merges the pending notifications of each object.

        async with CoalescingHandler(handler) as latest:
            informer.add_event_handler(latest)

    The handler is called for one notification at a time, for the object that has waited longest first. On exit from the
    block, pending and later notifications are dropped, and a running call is cancelled.

    The informer considers the handler synced as soon as the initial list is pending here. Use a tracker
    (`AsyncTracker`) to learn when the handler has processed it.

    Args:
        handler: as for `add_event_handler`.

    Attributes:
        errors: how often the handler raised.
        handler: the wrapped handler.
        name: for tasks and logs.
        call_began: when the running call began, by the loop's clock; None if there is none.

    Raises:
        UsageError: the argument is not a handler.
    """

    def __init__(self, handler: Any) -> None:
        self.errors = 0
        self.handler = handler
        self._deliver = delivery_to(handler)
        self._functions = HandlerNames(handler)
        self.name = f"coalescing handler ({self._functions})"
        self._stalls = Stalls(self.name)
        self._lines = HandlerLines(lambda: (self,))
        #: The notification of the last call.
        self._current: Notification[Any] | None = None
        self.call_began: float | None = None
        #: key -> the pending notification, and the last state before it that the handler knows.
        self._pending: dict[str, tuple[Notification[Any], Any]] = {}
        self._wakeup = asyncio.Event()
        self._owner = Owner()
        self._closed = False

    @property
    def pending(self) -> int:
        """How many objects have a pending notification."""
        return len(self._pending)

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        """Enqueue an add."""
        self._put(obj, AddNotification(obj, is_in_initial_list))

    def on_update(self, old: Any, new: Any) -> None:
        """Enqueue an update."""
        self._put(new, UpdateNotification(old, new))

    def on_delete(self, obj: Any) -> None:
        """Enqueue a delete."""
        self._put(obj, DeleteNotification(obj))

    @property
    def behind(self) -> int:
        """How many notifications are pending behind the running call."""
        return len(self._pending)

    @property
    def busy(self) -> bool:
        """Whether the handler is running, or has pending notifications."""
        return self.call_began is not None or bool(self._pending)

    def call(self) -> HandlerCall | None:
        """Return the running call; None if there is none."""
        notification = self._current
        began = self.call_began
        if notification is None or began is None:
            return None
        return self._functions.call(notification, asyncio.get_running_loop().time() - began)

    def run(self) -> Steps:
        """Return the coroutine for a task that calls the handler until cancelled."""
        return Steps(self._run(), self._stalls, self._blocked)

    async def _run(self) -> None:
        IN_HANDLER.set(True)
        try:
            while True:
                await self._wakeup.wait()
                self._wakeup.clear()
                while self._pending:
                    key = next(iter(self._pending))
                    await self._call(key, self._pending.pop(key)[0])
                    await asyncio.sleep(0)
        finally:
            self._lines.close()

    async def __aenter__(self) -> Self:
        self._owner.start(self.run, self.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        self._pending.clear()
        await self._owner.stop()

    def _put(self, obj: Any, notification: Notification[Any]) -> None:
        if self._closed:
            return
        self._owner.check()  # after a crash, nothing takes what is pending
        key = deletion_handling_meta_namespace_key_func(obj)
        pending = self._pending.get(key)
        if pending is None:
            self._pending[key] = notification, _state_before(notification)
        else:
            before, known = pending
            merged = _merged(known, before, notification)
            if merged is None:
                del self._pending[key]
                return
            self._pending[key] = merged, known
        self._wakeup.set()

    def _blocked(self, seconds: float) -> None:
        if self._current is not None:
            self._stalls.report(self.name, self._current, key_of, seconds)

    async def _call(self, key: str, notification: Notification[Any]) -> None:
        task = asyncio.current_task()
        self._current = notification
        self.call_began = asyncio.get_running_loop().time()
        if not self._lines.armed:
            self._lines.arm()
        try:
            result = self._deliver(notification)
            if inspect.isawaitable(result):
                await result
        except (*USER_ERRORS, asyncio.CancelledError) as error:
            if is_ending(error, task):
                raise
            self.errors += 1
            self._stalls.errors.report(self.name, error, "%s raised for %s", self.name, key)
        finally:
            self.call_began = None


def _state_before(notification: Notification[Any]) -> Any:
    """Return the state of the object before a notification: `_ABSENT`, or None if it is unknown."""
    if isinstance(notification, AddNotification):
        return _ABSENT
    if isinstance(notification, UpdateNotification):
        return notification.old
    deleted = notification.obj
    return deleted.obj if isinstance(deleted, DeletedFinalStateUnknown) else deleted


def _merged(known: Any, before: Notification[Any], after: Notification[Any]) -> Notification[Any] | None:
    """Merge two notifications of one object for a handler that knows this state; None if they cancel each other."""
    if isinstance(after, DeleteNotification):
        return None if known is _ABSENT else after
    new = after.new if isinstance(after, UpdateNotification) else after.obj
    if known is _ABSENT:
        return AddNotification(new, isinstance(before, AddNotification) and before.is_in_initial_list)
    return AddNotification(new, False) if known is None else UpdateNotification(known, new)
