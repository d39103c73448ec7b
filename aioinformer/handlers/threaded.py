"""`ThreadedHandler`: runs blocking synchronous handlers in threads, so that they do not block the event loop.

One handler gets one notification at a time, in order; handlers share the threads of their executor. A thread cannot be
interrupted: the informer's stop does not wait for a call beyond the grace period, and the call ends by itself.
"""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

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
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")


class ThreadedHandler(HandlerWrapper, Generic[T]):
    """Calls a handler in an executor: `informer.add_event_handler(ThreadedHandler(handler, executor))`.

    Each call runs in its own copy of the context variables at the time of construction. Any thread may read the objects
    of an informer.

    Args:
        handler: as for `add_event_handler`, without coroutine functions.
        executor: a thread pool, whose size limits the concurrent calls. Shut it down yourself, after the informer has
            stopped.

    Attributes:
        handler: the wrapped handler.

    Raises:
        UsageError: the handler is invalid or has coroutine functions, or the executor is not one.
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
                raise UsageError(f"handler.{name} is a coroutine function and needs no thread: register it directly")
        self.handler = handler
        self._deliver = delivery_to(handler)
        self._executor = executor
        self._context = copy_context()

    async def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        """Call the handler's `on_add` in a thread, if it has one."""
        await self._call("on_add", AddNotification(obj, is_in_initial_list))

    async def on_update(self, old: T, new: T) -> None:
        """Call the handler's `on_update` in a thread, if it has one."""
        await self._call("on_update", UpdateNotification(old, new))

    async def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """Call the handler's `on_delete` in a thread, if it has one."""
        await self._call("on_delete", DeleteNotification(obj))

    async def _call(self, method: str, notification: Notification[T]) -> None:
        # A filter turns updates into adds and deletes, so it gets updates even if the handler has no `on_update`.
        if method in self._methods or method == "on_update":
            # A context can be entered once at a time, and calls of a stopped informer may still run in theirs.
            context = self._context.copy()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._executor, context.run, self._deliver_in_thread, notification)

    def _deliver_in_thread(self, notification: Notification[T]) -> None:
        try:
            self._deliver(notification)
        except (StopIteration, GeneratorExit) as error:
            # A future does not accept StopIteration; GeneratorExit would close the coroutine that awaits the future.
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error
