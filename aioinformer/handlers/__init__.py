"""Notifications, and the listeners that deliver them to handlers."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.handlers.coalescing import CoalescingHandler
    from aioinformer.handlers.names import HandlerCall, HandlerError
    from aioinformer.handlers.notifications import (
        FilteringResourceEventHandler,
        ResourceEventHandler,
        ResourceEventHandlerDetailedFuncs,
        ResourceEventHandlerFuncs,
    )
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.handlers.synctrack import AsyncTracker, Lazy, SingleFileTracker
    from aioinformer.handlers.threaded import ThreadedHandler

__all__ = [
    "AsyncTracker",
    "CoalescingHandler",
    "FilteringResourceEventHandler",
    "HandlerCall",
    "HandlerError",
    "HandlerRegistration",
    "Lazy",
    "ResourceEventHandler",
    "ResourceEventHandlerDetailedFuncs",
    "ResourceEventHandlerFuncs",
    "SingleFileTracker",
    "ThreadedHandler",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "coalescing": "CoalescingHandler",
            "names": "HandlerCall HandlerError",
            "notifications": (
                "FilteringResourceEventHandler ResourceEventHandler ResourceEventHandlerDetailedFuncs "
                "ResourceEventHandlerFuncs"
            ),
            "registration": "HandlerRegistration",
            "synctrack": "AsyncTracker Lazy SingleFileTracker",
            "threaded": "ThreadedHandler",
        },
    )
