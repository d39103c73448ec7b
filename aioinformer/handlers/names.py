"""Names of handlers and of their running calls, for logs, metrics and `HandlerRegistration`."""

from __future__ import annotations

from time import time
from typing import Any, Final

import msgspec

from aioinformer.functions import function_name
from aioinformer.handlers.notifications import (
    DeleteNotification,
    HandlerWrapper,
    Notification,
    UpdateNotification,
)
from aioinformer.resources.keys import DeletedFinalStateUnknown, deletion_handling_meta_namespace_key_func

_METHODS: Final = ("on_add", "on_update", "on_delete")


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


def key_of(notification: Notification[Any]) -> str:
    """Return the key of the object of a notification."""
    obj = notification.new if isinstance(notification, UpdateNotification) else notification.obj
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    try:
        return deletion_handling_meta_namespace_key_func(obj)
    except Exception:
        return "an object without key"


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
