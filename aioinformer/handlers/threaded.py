"""Synchronous handlers that block, on threads, so that they hold up nobody.

Notifications of one handler come one at a time and in order, as always; different handlers share the threads of their
executor. A thread cannot be interrupted: a call that outlasts the grace of the stop is left behind, and ends by itself.
"""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Executor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import UsageError
from aioinformer.handlers.notifications import (
    AddNotification,
    DeleteNotification,
    FilteringResourceEventHandler,
    HandlerWrapper,
    Notification,
    UpdateNotification,
    delivery_to,
)

if TYPE_CHECKING:
    from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")


class ThreadedHandler(HandlerWrapper, Generic[T]):
    """A handler whose calls are made by an executor: `informer.add_event_handler(ThreadedHandler(handler, executor))`.

    Each call sees the context variables as they were when this was made, in a copy of its own. What informers hand out
    may be read from any thread.

    Args:
        handler: as for `add_event_handler`, without coroutine functions.
        executor: of threads; its size is how many calls are made at a time. It stays the caller's to shut down, after
            the informer has stopped.

    Attributes:
        handler: as it was given.

    Raises:
        UsageError: this is no handler, or one of coroutine functions, or no executor of threads.
    """

    def __init__(self, handler: Any, executor: Executor) -> None:
        if not isinstance(executor, Executor):
            raise UsageError(f"executor: expected a ThreadPoolExecutor, not {type(executor).__name__}")
        innermost = handler
        while isinstance(innermost, FilteringResourceEventHandler):
            innermost = innermost.handler
        self._methods = {name for name in ("on_add", "on_update", "on_delete") if getattr(innermost, name, None)}
        for name in self._methods:
            if inspect.iscoroutinefunction(getattr(innermost, name)):
                raise UsageError(f"handler.{name} is a coroutine function, and needs no thread: register it as it is")
        self.handler = handler
        self._deliver = delivery_to(handler)
        self._executor = executor
        self._context = copy_context()

    async def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        """Calls the handler's, if it has one."""
        # A filter makes adds and deletions of updates: it is asked whatever the handler wants to know.
        await self._call("on_add", AddNotification(obj, is_in_initial_list))

    async def on_update(self, old: T, new: T) -> None:
        """Calls the handler's, if it has one."""
        await self._call("on_update", UpdateNotification(old, new))

    async def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """Calls the handler's, if it has one."""
        await self._call("on_delete", DeleteNotification(obj))

    async def _call(self, method: str, notification: Notification[T]) -> None:
        if method in self._methods or method == "on_update":
            # A context can be entered once at a time; calls that were left behind may still be in theirs.
            context = self._context.copy()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._executor, context.run, self._told, notification)

    def _told(self, notification: Notification[T]) -> None:
        try:
            self._deliver(notification)
        except (StopIteration, GeneratorExit) as error:
            # A future refuses the first; the second closes the coroutine that awaits the future.
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error
