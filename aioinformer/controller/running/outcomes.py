"""Outcomes: what the result or the error of a reconciler means for its attempt, for the queue, and for the log."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.controller.request import (
    NothingToDo,
    NotRunning,
    ReconcileTimeout,
    Result,
    Retry,
    RetryAfter,
    TerminalError,
)
from aioinformer.controller.running.attempts import subject_of
from aioinformer.controller.writes.own_writes import StaleCache
from aioinformer.errors import ApiError, Conflict, FormerOwner, InformerStopped, Stale, TransportError, UsageError
from aioinformer.functions import leaves, origin, text_of
from aioinformer.leaderelection.elector import LeadershipLost
from aioinformer.logs import get_logger
from aioinformer.resources.restmapper import UnknownResource
from aioinformer.workqueue.requests.outcomes import LASTING_CONFLICT, Again, Finished, Outcome, Park, Parked, Unfinished

if TYPE_CHECKING:
    from aioinformer.controller.running.attempts import Attempt
    from aioinformer.handlers.repeated import RepeatedErrors
    from aioinformer.workqueue.requests.outcomes import Run

_log = get_logger("aioinformer.controller")

#: Errors of servers, connections and deadlines: their text says all, and a traceback nothing.
_EXPECTED = (
    Retry,
    RetryAfter,
    ApiError,
    TransportError,
    Stale,
    StaleCache,
    ReconcileTimeout,
    ConnectionError,
    TimeoutError,
)
#: Errors of use that may pass without a change of the program.
_PASSING: Final = (InformerStopped, NotRunning, UnknownResource)
#: They end the program. asyncio raises them from the event loop.
_ENDING: Final = (KeyboardInterrupt, SystemExit)
#: The most seconds between two runs of a key that waits for the garbage collector.
_LONGEST_WAIT: Final = 30.0
#: Seconds after which a key runs again whose run needs fresher inputs.
_STALE_PAUSE: Final = 5.0
#: Outcomes that are no reason for a warning.
_QUIET: Final = frozenset({"success", "again", "conflict", "cancelled", "settled"})
_SUCCESS: Final = ("success", Finished())
#: How many failures from the same line of code a controller logs within a minute, before it counts the others.
_LINES: Final = 10
#: How many errors of a group, and how many conflicts of an apply, one line of the log names.
_NAMED: Final = 5
_LENGTH: Final = 200


def outcome_of(attempt: Attempt, task: asyncio.Task[Any], now: float) -> tuple[str, Outcome]:
    """Return what follows an attempt, and its name for statistics.

    What the framework has cancelled is never taken for an error of the reconciler, and the other way round: a
    CancelledError or a TimeoutError that the reconciler itself raises is an error like any other.
    """
    if task.cancelled():
        if attempt.cut:
            return "cancelled", Unfinished(asyncio.CancelledError(attempt.cut), 0.0, counted=False)
        if task.cancelling():
            who = "code outside of the manager cancelled it"
        else:
            who = "nothing cancelled it"
        cancelled = asyncio.CancelledError(f"the reconciler was cancelled, and {who}")
        error: BaseException | None = cancelled
    else:
        error = task.exception()
    if attempt.cut and error is not None:  # its cleanup failed
        return "cancelled", Unfinished(error, 0.0, counted=False)
    if attempt.expired and not isinstance(error, _ENDING):
        late = ReconcileTimeout(attempt.expired)
        late.__cause__ = error
        return "timeout", Unfinished(late)
    if error is None:
        return outcome_of_result(task.result(), now)
    if _all(list(leaves(error)), FormerOwner):
        waited = now - attempt.run.enqueued  # nothing says when the garbage collector is done with the name
        return "waiting", Unfinished(error, min(max(1.0, waited), _LONGEST_WAIT), counted=False)
    name, outcome = outcome_of_error(error)
    if name == "cancelled" and (attempt.term is None or attempt.term.remaining > 0):
        return "error", Unfinished(error)  # another right was missing: for a write in a slot of another replica
    return "error" if name == "conflict" and attempt.run.conflicts + 1 >= LASTING_CONFLICT else name, outcome


def outcome_of_result(result: Any, now: float) -> tuple[str, Outcome]:
    """Return what follows a result, and its name for statistics."""
    if result is None:
        return _SUCCESS
    if not isinstance(result, Result):
        return outcome_of_error(invalid_result(result))
    if result.parked:
        return "parked", Park(result.parked, kind="result")
    after = result.after
    if result.at is not None:
        after = max(0.0, (result.at - datetime.now(UTC)).total_seconds())
    if after is None:
        return ("success", Finished())
    return ("again", Again(now + after, result.priority))


def outcome_of_error(error: BaseException) -> tuple[str, Outcome]:
    """Return what follows an error, and its name for statistics. A group counts as what all its members are."""
    found = list(leaves(error))
    if _all(found, NothingToDo):
        return "success", Finished()
    if _all(found, TerminalError):
        return "parked", Park(_text(found[0]), found[0], kind="terminal")
    if _all(found, RetryAfter):
        seconds = max(each.seconds for each in found if isinstance(each, RetryAfter))
        return "retry_after", Unfinished(error, seconds, counted=False, reason=_text(found[0]))
    if _all(found, Conflict):
        return "conflict", Unfinished(error, counted=False, soon=True, reason=_described(error))
    if _all(found, StaleCache):  # nothing of the reconciler has failed, and its next run waits for the caches
        return "stale", Unfinished(error, 1.0, counted=False)
    if _all(found, Stale):
        return "stale", Unfinished(error, _STALE_PAUSE, counted=False, reason=_text(found[0]))
    if _all(found, LeadershipLost):
        return "cancelled", Unfinished(error, 0.0, counted=False)
    if _all(found, UsageError) and not any(isinstance(each, _PASSING) for each in found):
        return "error", Park(_text(found[0]), error)
    asked = max((each.retry_after or 0.0 for each in found if isinstance(each, ApiError)), default=0.0)
    reason = _text(found[0]) if _all(found, Retry) else ""
    return "error", Unfinished(error, least_delay=min(asked, MAX_RETRY_AFTER), reason=reason)


def invalid_result(result: Any) -> UsageError:
    """Return the error for an invalid result. It parks the key, since the same code would return it again."""
    return UsageError(f"the reconciler returned {_shown(result)}; return None or a Result")


def is_success(result: Any) -> bool:
    """Return whether an attempt with this result has succeeded, and plans no further run."""
    name, _ = outcome_of_result(result, 0.0)
    return name == "success"


def ends_well(error: BaseException) -> bool:
    """Return whether an attempt that ends with this error has succeeded: there was nothing to do."""
    return _all(list(leaves(error)), NothingToDo)


def log_outcome(
    controller: str, run: Run, name: str, outcome: Outcome, following: Parked | float | None, errors: RepeatedErrors
) -> None:
    """Log what follows an attempt that did not simply succeed: `following` is what the queue made of the outcome."""
    what = f"controller {controller}: attempt {run.attempt} for {run.key}"
    extra = subject_of(controller, run.key)
    if isinstance(following, Parked):
        given = outcome.error if isinstance(outcome, Park) else None
        error = given or TerminalError(following.reason)
        level = logging.ERROR if name == "error" else logging.WARNING
        line = "%s: parked until an input changes: %s"
        arguments = [following.reason]
        if following.kind == "result":  # on purpose
            level = logging.INFO
            line = "%s: waits until an input changes: %s"
    elif isinstance(outcome, Unfinished):
        error = outcome.error
        left = (following or 0.0) - asyncio.get_running_loop().time()
        after = "not retried" if following is None else f"retrying in {max(0.0, left):.2g} s"
        if name == "waiting":
            _log_waiting(what, asyncio.get_running_loop().time() - run.enqueued, f"{error}; {after}", extra)
            return
        if name in _QUIET:
            _log.debug("%s ended with %s; %s", what, _described(error), after, extra=extra)
            return
        if all(isinstance(each, _EXPECTED) for each in leaves(error)):
            level = logging.WARNING
        else:
            level = logging.ERROR
        line = "%s failed with %s; %s"
        arguments = [outcome.reason or _described(error), after]
        if name == "retry_after":
            level = logging.INFO
            line = "%s waits: %s; %s"
        elif outcome.soon:
            line = "%s failed with conflict %s in a row: %s; %s"
            arguments = [str(run.conflicts + 1), *arguments]
        elif outcome.reason:
            line = "%s failed: %s; %s"
    else:
        return
    subject = f"the reconciler of controller {controller} ({origin(error)})"
    once = level == logging.INFO
    errors.report(
        subject, error, line, what, *arguments, level=level, key=str(run.key), lines=_LINES, once=once, extra=extra
    )


def _log_waiting(what: str, waited: float, text: str, extra: dict[str, str]) -> None:
    """Log the beginning of a wait for the garbage collector; warn after 30 s, 60 s, 120 s and so on."""
    periods = int(waited / _LONGEST_WAIT)
    if not periods:
        level = logging.INFO if waited < 1 else logging.DEBUG
        _log.log(level, "%s waits for the garbage collector: %s", what, text, extra=extra)
    elif not periods & (periods - 1):
        _log.warning("%s has waited %.0f s for the garbage collector; does it run? %s", what, waited, text, extra=extra)


def _all(errors: list[BaseException], kind: type[BaseException]) -> bool:
    return all(isinstance(each, kind) for each in errors)


def _text(error: BaseException) -> str:
    return text_of(error) or type(error).__name__


def _described(error: BaseException) -> str:
    """Return the type and the text of an error, or of those in a group."""
    members = islice(leaves(error), _NAMED)
    return "; ".join(dict.fromkeys(f"{type(each).__name__}: {text_of(each)}{_conflicts_in(each)}" for each in members))


def _conflicts_in(error: BaseException) -> str:
    """Return the fields and managers of a conflict that its text does not have: it may be cut."""
    if not isinstance(error, Conflict):
        return ""
    shown = str(error)
    conflicts = error.conflicts[:_NAMED]
    missing = [f"{each.field[:_LENGTH]}: {each.message[:_LENGTH]}" for each in conflicts if each.field not in shown]
    return f" ({', '.join(missing)})" if missing else ""


def _shown(result: Any) -> str:
    # Not its repr: it may be an object of the API with all its content.
    if isinstance(result, (bool, int, float)):
        return repr(result)
    return f"an object of type {type(result).__name__}"
