"""The calls of one handler, for logs and snapshots: the running one, errors, slow ones, blocks of the event loop."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from aioinformer.concurrency import clock_of
from aioinformer.functions import function_name, origin
from aioinformer.handlers.notifications import (
    DeleteNotification,
    HandlerWrapper,
    Notification,
    UpdateNotification,
)
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.stalls import LIMIT
from aioinformer.logs import get_logger
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.handlers.stalls import Stalls

T = TypeVar("T")

_log = get_logger("aioinformer.handlers")

_METHODS: Final = ("on_add", "on_update", "on_delete")
#: Slow calls are logged while more notifications than this wait.
_DEEP: Final = 1024
#: A call that takes longer than this is slow, in seconds.
_SLOW_CALL: Final = 0.1
#: The least time between two such log lines, in seconds.
_WHILE: Final = 60.0


class HandlerCall(msgspec.Struct, frozen=True):
    """A running call of a handler.

    Attributes:
        function: the function that was called, with its file and line.
        key: of the object.
        since: when the call began, in seconds since the epoch.
        seconds: how long it has been running.
    """

    function: str
    key: str
    since: float
    seconds: float


class HandlerError(msgspec.Struct, frozen=True):
    """The last exception of a handler, without its message, which may quote an object.

    Attributes:
        error: its type, and the file and line that raised it: "KeyError at app/pods.py:42".
        key: of the object.
        time: when it was raised, in seconds since the epoch.
    """

    error: str
    key: str
    time: float


def key_of(notification: Notification[Any]) -> str:
    """Return the key of the object of a notification."""
    if isinstance(notification, UpdateNotification):
        obj = notification.new
    else:
        obj = notification.obj
    try:
        return deletion_handling_meta_namespace_key_func(obj)
    except Exception:
        return "an object without key"


class HandlerNames:
    """Names the functions of a handler, through all wrappers."""

    __slots__ = ("_handler",)

    def __init__(self, handler: Any) -> None:
        while isinstance(handler, HandlerWrapper):
            handler = handler.handler
        self._handler = handler

    def __str__(self) -> str:
        """Return the name of the handler's first function, or of its class."""
        functions = [function for name in _METHODS if (function := getattr(self._handler, name, None)) is not None]
        return next(map(function_name, functions), type(self._handler).__name__)

    def of(self, notification: Notification[Any]) -> str:
        """Return the name of the function that a notification is delivered to."""
        if isinstance(notification, UpdateNotification):
            name = "on_update"
        else:
            name = "on_delete" if isinstance(notification, DeleteNotification) else "on_add"
        function = getattr(self._handler, name, None)
        return function_name(function) if function is not None else str(self)

    def call(self, notification: Notification[Any], seconds: float) -> HandlerCall:
        """Return the call for a notification that has been running for `seconds`."""
        return HandlerCall(self.of(notification), key_of(notification), time() - seconds, seconds)


class HandlerCalls(Generic[T]):
    """What is known about the calls of one handler.

    The caller sets `current` and `began` before a call, and calls `ended` or `raised` after it.

    Args:
        name: of the listener, for logs.
        handler: as the user passed it, for names in logs.
        stalls: logs functions that block the event loop.
        behind: returns how many notifications wait behind the current call.

    Attributes:
        current: the notification that was delivered last.
        began: when the current call began, by the loop's clock; None if there is none.
        errors: how often the handler raised.
        last_error: the last error, or None.
        longest: the longest finished call, in seconds, awaiting included.
        notable: only calls that are longer than this need `ended`, in seconds: of nearly all calls, nothing is noted.
        on_error: called with each error.
    """

    __slots__ = (
        "_behind",
        "_functions",
        "_name",
        "_quiet_until",
        "_repeated",
        "_slow",
        "_stalls",
        "began",
        "clock",
        "current",
        "errors",
        "last_error",
        "longest",
        "notable",
        "on_error",
    )

    def __init__(self, name: str, handler: Any, stalls: Stalls, behind: Callable[[], int]) -> None:
        self.current: Notification[T] | None = None
        self.began: float | None = None
        self.errors = 0
        self.last_error: HandlerError | None = None
        self.longest = 0.0
        self.notable = 0.0
        self.on_error: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = lambda: 0.0
        self._name = name
        self._functions = HandlerNames(handler)
        self._stalls = stalls
        self._behind = behind
        #: The notification of the last slow call.
        self._slow: Notification[T] | None = None
        self._quiet_until = 0.0
        self._repeated: RepeatedErrors | None = None

    def start(self) -> None:
        """Use the clock of the running event loop."""
        self.clock = clock_of(asyncio.get_running_loop())

    def running(self) -> HandlerCall | None:
        """Return the current call, or None. Any thread may call this."""
        notification = self.current
        began = self.began
        if began is None or notification is None:
            return None
        return self._functions.call(notification, max(0.0, self.clock() - began))

    def ended(self, seconds: float, now: float) -> None:
        """Note a call that took longer than `notable`."""
        self.longest = max(self.longest, seconds)
        self.notable = min(self.longest, _SLOW_CALL)
        if seconds <= _SLOW_CALL:
            return
        self._slow = self.current
        waiting = self._behind() + (self.began is not None)
        if now >= self._quiet_until and waiting > _DEEP:
            self._quiet_until = now + _WHILE
            _log.info("%s took %.1f s for a call, and %d notifications wait", self._name, seconds, waiting)

    def raised(self, error: BaseException) -> None:
        """Count and log an error of the handler."""
        if self.current is None:
            return
        key = key_of(self.current)
        self.count_error()
        self.last_error = HandlerError(origin(error), key, time())
        if self._repeated is None:
            self._repeated = RepeatedErrors(_log)
        self._repeated.report(self._name, error, "%s raised for %s", self._name, key)

    def count_error(self) -> None:
        """Count an error of the handler."""
        self.errors += 1
        self.on_error()

    def blocked(self, seconds: float) -> None:
        """Attribute a block of the event loop to a slow call. If no single call was slow, log nothing."""
        call = self.running()
        culprit = self.current if call is not None and call.seconds > LIMIT else self._slow
        if culprit is not None:
            function = self._functions.of(culprit)
            subject = self._name if function in self._name else f"{self._name}, in {function},"
            self._stalls.report(subject, culprit, key_of, seconds)

    def close(self) -> None:
        """Log what has been counted and not logged yet."""
        if self._repeated is not None:
            self._repeated.close()
