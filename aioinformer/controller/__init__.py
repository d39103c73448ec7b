"""Controllers: reconcilers that are awaited for each object that changed, with retries, own writes and leadership."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.controller.queue.outcomes import (
        Again,
        Failing,
        Finished,
        Outcome,
        Park,
        Parked,
        QueueOptions,
        Retry,
        Run,
    )
    from aioinformer.controller.queue.request_queue import QueueSnapshot, RequestQueue
    from aioinformer.controller.request import (
        LOW_PRIORITY,
        NORMAL_PRIORITY,
        Cause,
        NothingToDo,
        ReconcileTimeout,
        Request,
        Result,
        RetryAfter,
        StaleCache,
        TerminalError,
    )

__all__ = [
    "LOW_PRIORITY",
    "NORMAL_PRIORITY",
    "Again",
    "Cause",
    "Failing",
    "Finished",
    "NothingToDo",
    "Outcome",
    "Park",
    "Parked",
    "QueueOptions",
    "QueueSnapshot",
    "ReconcileTimeout",
    "Request",
    "RequestQueue",
    "Result",
    "Retry",
    "RetryAfter",
    "Run",
    "StaleCache",
    "TerminalError",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "queue.outcomes": "Again Failing Finished Outcome Park Parked QueueOptions Retry Run",
            "queue.request_queue": "QueueSnapshot RequestQueue",
            "request": (
                "LOW_PRIORITY NORMAL_PRIORITY Cause NothingToDo ReconcileTimeout Request Result RetryAfter StaleCache "
                "TerminalError"
            ),
        },
    )
