"""Notifications, and the listeners that deliver them to handlers."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.handlers.coalescing import CoalescingHandler as CoalescingHandler
    from aioinformer.handlers.names import HandlerCall as HandlerCall
    from aioinformer.handlers.names import HandlerError as HandlerError
    from aioinformer.handlers.notifications import FilteringResourceEventHandler as FilteringResourceEventHandler
    from aioinformer.handlers.notifications import ResourceEventHandler as ResourceEventHandler
    from aioinformer.handlers.notifications import (
        ResourceEventHandlerDetailedFuncs as ResourceEventHandlerDetailedFuncs,
    )
    from aioinformer.handlers.notifications import ResourceEventHandlerFuncs as ResourceEventHandlerFuncs
    from aioinformer.handlers.registration import HandlerRegistration as HandlerRegistration
    from aioinformer.handlers.synctrack import AsyncTracker as AsyncTracker
    from aioinformer.handlers.synctrack import Lazy as Lazy
    from aioinformer.handlers.synctrack import SingleFileTracker as SingleFileTracker
    from aioinformer.handlers.threaded import ThreadedHandler as ThreadedHandler
else:  # a type checker must not accept misspelt names
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
