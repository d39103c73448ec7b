"""Attempts: one call of a reconciler, and what its result or error means for the queue."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aioinformer.controller.queue.outcomes import Again, Finished, Outcome, Park, Retry
from aioinformer.controller.request import (
    NothingToDo,
    ReconcileTimeout,
    Result,
    RetryAfter,
    StaleCache,
    TerminalError,
)
from aioinformer.errors import ApiError, Conflict, TransportError
from aioinformer.leaderelection.elector import LeadershipLost

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from aioinformer.controller.queue.outcomes import Run
    from aioinformer.leaderelection.elector import Term

#: Errors of servers, connections and deadlines: their text says all, and a traceback nothing.
_EXPECTED: Final = (ApiError, TransportError, StaleCache, ReconcileTimeout, ConnectionError, TimeoutError)
#: They end the program. asyncio raises them from the event loop.
_ENDING: Final = (KeyboardInterrupt, SystemExit)


class RequestLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the controller and the key to each line, as a prefix and as attributes of the record.

    Args:
        logger: gets the lines.
        controller: the name of the controller.
        key: of the request.
    """

    def __init__(self, logger: logging.Logger, controller: str, key: object) -> None:
        super().__init__(logger)
        self._controller = controller
        self._key = key

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the line with its prefix, and the arguments with the attributes `controller` and `key`."""
        extra = {"controller": self._controller, "key": str(self._key), **(kwargs.get("extra") or {})}
        return f"{self._controller} {self._key}: {msg}", {**kwargs, "extra": extra}


class Attempt:
    """One call of a reconciler.

    Args:
        run: of the queue.
        began: when, by the clock of the event loop.
        term: the term of leadership; None if the controller needs none.

    Attributes:
        run, began, term: as given.
        cut: why it was cancelled because its controller stops working; "" if it was not.
        expired: why it was cancelled because of the timeout; "" if it was not.
        wrote: whether a write was sent.
        timer: of the timeout.
    """

    __slots__ = ("began", "cut", "expired", "run", "term", "timer", "wrote")

    def __init__(self, run: Run, began: float, term: Term | None) -> None:
        self.run = run
        self.began = began
        self.term = term
        self.cut = ""
        self.expired = ""
        self.wrote = False
        self.timer: asyncio.TimerHandle | None = None

    def before_write(self) -> float | None:
        """Permit a write, or refuse it because the term of leadership is over.

        Returns:
            Seconds after which to ask again; None if the permission does not end.

        Raises:
            LeadershipLost: the term is over.
        """
        self.wrote = True
        if self.term is None:
            return None
        self.term.check()
        return self.term.remaining


def outcome_of(attempt: Attempt, task: asyncio.Task[Any], now: float) -> tuple[str, Outcome]:
    """Return what follows an attempt, and its name for statistics.

    What the framework has cancelled is never taken for an error of the reconciler, and the other way round: a
    CancelledError or a TimeoutError that the reconciler itself raises is an error like any other.

    Args:
        attempt: the attempt.
        task: of the attempt; it has ended.
        now: the time of the event loop.
    """
    if task.cancelled():
        if attempt.cut:
            return "cancelled", Retry(asyncio.CancelledError(attempt.cut), 0.0, counted=False)
        who = "other code than the manager cancelled it" if task.cancelling() else "nothing had cancelled it"
        error: BaseException | None = asyncio.CancelledError(f"the reconciler was cancelled, and {who}")
    else:
        error = task.exception()
    if attempt.cut and error is not None:  # its cleanup failed
        return "cancelled", Retry(error, 0.0, counted=False)
    if attempt.expired and not isinstance(error, _ENDING):
        late = ReconcileTimeout(attempt.expired)
        late.__cause__ = error
        return "timeout", Retry(late)
    return outcome_of_result(task.result(), now) if error is None else outcome_of_error(error)


def outcome_of_result(result: Any, now: float) -> tuple[str, Outcome]:
    """Return what follows a result, and its name for statistics."""
    if result is None:
        return "success", Finished()
    if not isinstance(result, Result):
        return outcome_of_rubbish(result)
    if result.parked:
        return "parked", Park(result.parked)
    after = result.after
    if result.at is not None:
        after = max(0.0, (result.at - datetime.now(UTC)).total_seconds())
    return ("success", Finished()) if after is None else ("again", Again(now + after, result.priority))


def outcome_of_error(error: BaseException) -> tuple[str, Outcome]:
    """Return what follows an error, and its name for statistics. A group counts as what all its members are."""
    leaves = list(_leaves(error))
    if _all(leaves, NothingToDo):
        return "success", Finished()
    if _all(leaves, TerminalError):
        return "parked", Park(_text(leaves[0]))
    if _all(leaves, RetryAfter):
        seconds = max(each.seconds for each in leaves if isinstance(each, RetryAfter))
        return "retry_after", Retry(error, seconds, counted=False)
    if _all(leaves, Conflict):
        return "conflict", Retry(error, counted=False, soon=True)
    if _all(leaves, LeadershipLost):
        return "cancelled", Retry(error, 0.0, counted=False)
    return "error", Retry(error)


def outcome_of_rubbish(result: Any) -> tuple[str, Outcome]:
    """Return what follows a result that is none: the same code would return it again."""
    return "error", Park(f"the reconciler returned {_shown(result)}; return None or a Result")


def with_traceback(error: BaseException) -> bool:
    """Return whether the log needs the traceback of an error to explain it."""
    return not all(isinstance(each, _EXPECTED) for each in _leaves(error))


def is_quiet(name: str) -> bool:
    """Return whether the outcome of this name is no reason for a log line."""
    return name in ("success", "again", "retry_after", "conflict", "cancelled")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _all(errors: list[BaseException], kind: type[BaseException]) -> bool:
    return all(isinstance(each, kind) for each in errors)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _shown(result: Any) -> str:
    # Not its repr: it may be an object of the API with all its content.
    return repr(result) if isinstance(result, (bool, int, float)) else f"an object of type {type(result).__name__}"
