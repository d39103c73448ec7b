"""Attempts: one call of a reconciler, and what its result or error means for the queue."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.controller.request import (
    NothingToDo,
    NotRunning,
    ReconcileTimeout,
    Result,
    RetryAfter,
    TerminalError,
)
from aioinformer.controller.running.threads import Threads
from aioinformer.errors import ApiError, Conflict, InformerStopped, TransportError, UsageError
from aioinformer.inputs.change import uid_of
from aioinformer.inputs.mapping import Input, Owns
from aioinformer.leaderelection.elector import LeadershipLost
from aioinformer.logs import get_logger
from aioinformer.own_writes.own_writes import StaleCache
from aioinformer.resources.restmapper import UnknownResource
from aioinformer.workqueue.requests.outcomes import Again, Finished, Outcome, Park, Parked, Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from aioinformer.cache.lister import Lister
    from aioinformer.client.client import Client
    from aioinformer.controller.running.attached import Inputs
    from aioinformer.leaderelection.elector import Term
    from aioinformer.own_writes.own_writes import OwnWrites
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource
    from aioinformer.workqueue.requests.outcomes import Run

R = TypeVar("R")

_log = get_logger("aioinformer.controller")

#: Errors of servers, connections and deadlines: their text says all, and a traceback nothing.
_EXPECTED: Final = (ApiError, TransportError, StaleCache, ReconcileTimeout, ConnectionError, TimeoutError)
#: Errors of use that may pass without a change of the program.
_PASSING: Final = (InformerStopped, NotRunning, UnknownResource)
#: They end the program. asyncio raises them from the event loop.
_ENDING: Final = (KeyboardInterrupt, SystemExit)
#: Outcomes that are no reason for a warning.
_QUIET: Final = frozenset({"success", "again", "retry_after", "conflict", "cancelled", "settled"})


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


class RequestContext:
    """What an attempt offers to its request; see `Context`.

    Args:
        attempt: the attempt.
        inputs: of the controller.
        own: the own writes of the controller.
        event: records an Event: object, type, reason, message.
        name: of the controller.
        guarded: what runs in threads of attempts that need the leadership.
    """

    __slots__ = ("_attempt", "_guarded", "_inputs", "_log", "_name", "_own", "event")

    def __init__(
        self,
        attempt: Attempt,
        inputs: Inputs,
        own: OwnWrites,
        event: Callable[[Any, str, str, str], None],
        name: str,
        guarded: dict[asyncio.Future[None], str],
    ) -> None:
        self.event = event
        self._guarded = guarded
        self._attempt = attempt
        self._inputs = inputs
        self._own = own
        self._name = name
        self._log: RequestLog | None = None

    @property
    def log(self) -> RequestLog:
        """The log of the request."""
        if self._log is None:  # most attempts log nothing
            self._log = RequestLog(_log, self._name, self._attempt.run.key)
        return self._log

    def client(self, key: ObjectName) -> Client:
        """Return a client that records its writes for this key, and refuses them after the term of leadership."""
        return self._own.client(key, fence=self._attempt.before_write, log=self.log)

    def lister(self, resource: Resource[R] | Input[R], *, owned: bool = False) -> Lister[R]:
        """Return the lister of an input of the controller; of several, the one in `owns` if `owned`."""
        lister: Lister[R] = self._inputs.of(resource, owned=owned).informer.lister()
        return lister

    def owned(self, owner: Any, resource: Resource[R]) -> list[R]:
        """Return the cached objects of an input that an object owns."""
        attached = self._inputs.of(resource, Owns)
        return cast("Owns[R]", attached.input).owned(attached.informer, uid_of(owner))

    async def observe(self, key: ObjectName) -> None:
        """Wait until the caches have the recorded writes of a key."""
        await self._own.settle(key)

    async def to_thread(self, call: Callable[[], R], name: str) -> R:
        """Call a function in a thread, which the attempt does not outlive."""
        attempt = self._attempt
        if attempt.threads is None:
            attempt.threads = Threads(attempt, f"controller {self._name}: {attempt.run.key}", self._guarded)
        return await attempt.threads.run(call, name)


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
        abandoned: it has ignored its cancellation, and may not write any more.
        ended: its coroutine has ended; the attempt goes on until its threads have ended.
        wrote: whether a write was sent.
        threads: of `Request.to_thread`; None before the first.
        timer: of the timeout.
    """

    __slots__ = ("abandoned", "began", "cut", "ended", "expired", "run", "term", "threads", "timer", "wrote")

    def __init__(self, run: Run, began: float, term: Term | None) -> None:
        self.run = run
        self.began = began
        self.term = term
        self.cut = ""
        self.expired = ""
        self.abandoned = self.ended = False
        self.wrote = False
        self.threads: Threads | None = None
        self.timer: asyncio.TimerHandle | None = None

    def before_write(self) -> float | None:
        """Permit a write, or refuse it because the term of leadership is over.

        Returns:
            Seconds after which to ask again; None if the permission does not end.

        Raises:
            LeadershipLost: the term is over.
            UsageError: the attempt was abandoned. The key may run again, at the same time.
        """
        self.wrote = True
        self.check("write")
        return None if self.term is None else self.term.remaining

    def check(self, what: str) -> None:
        """Check that the reconciler may act.

        Raises:
            LeadershipLost: the term is over.
            UsageError: the attempt was abandoned. The key may run again, at the same time.
        """
        if self.term is not None:
            self.term.check()
        if self.abandoned:
            raise UsageError(f"the reconciler of {self.run.key} goes on after its cancellation, and may not {what}")

    def end(self) -> bool:
        """Note that the coroutine has ended; return whether its threads still run, once."""
        first, self.ended = not self.ended, True
        return first and self.in_threads()

    def in_threads(self) -> bool:
        """Return whether a thread of the attempt runs."""
        return self.threads is not None and bool(self.threads.running)


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
    if _all(leaves, StaleCache):  # nothing of the reconciler has failed, and its next run waits for the caches
        return "stale", Retry(error, 1.0, counted=False)
    if _all(leaves, LeadershipLost):
        return "cancelled", Retry(error, 0.0, counted=False)
    if _all(leaves, UsageError) and not any(isinstance(each, _PASSING) for each in leaves):
        return "error", Park(_text(leaves[0]), error)
    asked = max((each.retry_after or 0.0 for each in leaves if isinstance(each, ApiError)), default=0.0)
    return "error", Retry(error, least_delay=min(asked, MAX_RETRY_AFTER))


def outcome_of_rubbish(result: Any) -> tuple[str, Outcome]:
    """Return what follows a result that is none: the same code would return it again."""
    return "error", Park(f"the reconciler returned {_shown(result)}; return None or a Result")


def log_outcome(controller: str, run: Run, name: str, outcome: Outcome, following: Parked | float | None) -> None:
    """Log what follows an attempt that did not simply succeed.

    Args:
        controller: its name.
        run: of the attempt.
        name: of the outcome.
        outcome: of the attempt.
        following: what the queue made of it.
    """
    what = f"controller {controller}: attempt {run.attempt} for {run.key}"
    if isinstance(following, Parked):
        level = logging.ERROR if name == "error" else logging.WARNING
        wrong = outcome.error if isinstance(outcome, Park) else None
        _log.log(level, "%s: parked until an input changes: %s", what, following.reason, exc_info=wrong)
    elif isinstance(outcome, Retry):
        error, now = outcome.error, asyncio.get_running_loop().time()
        after = f"retrying in {max(0.0, following - now):.2g} s" if following is not None else "not retried"
        if name in _QUIET:
            _log.debug("%s ended with %s: %s; %s", what, type(error).__name__, error, after)
        elif all(isinstance(each, _EXPECTED) for each in _leaves(error)):
            _log.warning("%s failed with %s: %s; %s", what, type(error).__name__, error, after)
        else:
            _log.error("%s failed; %s", what, after, exc_info=error)


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
