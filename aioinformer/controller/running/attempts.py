"""Attempts: one call of a reconciler, and what its result or error means for the queue."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.controller.inputs.keys import uid_of
from aioinformer.controller.inputs.mapping import Input, Owns
from aioinformer.controller.own_writes.own_writes import StaleCache
from aioinformer.controller.request import (
    NothingToDo,
    NotRunning,
    ReconcileTimeout,
    Result,
    Retry,
    RetryAfter,
    TerminalError,
)
from aioinformer.controller.running.threads import Threads
from aioinformer.errors import ApiError, Conflict, FormerOwner, InformerStopped, Stale, TransportError, UsageError
from aioinformer.functions import origin
from aioinformer.handlers.stalls import Steps
from aioinformer.leaderelection.elector import LeadershipLost
from aioinformer.logs import get_logger
from aioinformer.resources.restmapper import UnknownResource
from aioinformer.workqueue.requests.outcomes import LASTING_CONFLICT, Again, Finished, Outcome, Park, Parked, Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, MutableMapping
    from contextvars import Context as Contextvars

    from aioinformer.cache.lister import Lister
    from aioinformer.cache.objects.record import Record
    from aioinformer.client.client import Client
    from aioinformer.client.targets import Target
    from aioinformer.controller.own_writes.bounds import Bounds
    from aioinformer.controller.own_writes.own_writes import OwnWrites
    from aioinformer.controller.request import Request
    from aioinformer.controller.running.attached import Inputs, Services
    from aioinformer.handlers.repeated import RepeatedErrors
    from aioinformer.leaderelection.elector import Term
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource
    from aioinformer.ring import Membership, SlotGrant
    from aioinformer.workqueue.requests.outcomes import Run

R = TypeVar("R")

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
#: Verbs of requests that are not sent while an input is stale.
_DELETING: Final = frozenset({"delete", "deletecollection"})
#: Outcomes that are no reason for a warning.
_QUIET: Final = frozenset({"success", "again", "conflict", "cancelled", "settled"})
_SUCCESS: Final = ("success", Finished())
#: How many failures from the same line of code a controller logs within a minute, before it counts the others.
_LINES: Final = 10
#: How many errors of a group, and how many conflicts of an apply, one line of the log names.
_NAMED: Final = 5
_LENGTH: Final = 200
#: The most characters of the text of an error that lines and snapshots have.
_TEXT: Final = 1000


class RequestLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the controller and the key to each line, as a prefix and as attributes of the record."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the line with its prefix, and the arguments with the attributes `controller` and `key`."""
        subject = cast("Mapping[str, str]", self.extra)
        extra = {**subject, **(kwargs.get("extra") or {})}
        return f"{subject['controller']} {subject['key']}: {msg}", {**kwargs, "extra": extra}


class RequestContext(msgspec.Struct, eq=False):
    """The `Context` of an attempt. `name` is the controller's; `max_staleness` is that of its inputs, for deletes."""

    attempt: Attempt
    inputs: Inputs
    own: OwnWrites
    services: Services
    name: str
    bounds: Bounds | None = None
    max_staleness: float | None = None
    _log: RequestLog | None = None

    @property
    def log(self) -> RequestLog:
        if self._log is None:  # most attempts log nothing
            self._log = RequestLog(_log, subject_of(self.name, self.attempt.run.key))
        return self._log

    def client(self, key: ObjectName) -> Client:
        """Return a client that records its writes for this key, and refuses them once the right to write is lost.

        It refuses deletes, and the release of a finalizer, while an input is stale.
        """
        guard = partial(_guard, self.attempt, self.inputs.freshness(self.max_staleness))
        return self.own.client(key, fence=self.attempt.before_write, guard=guard, log=self.log, bounds=self.bounds)

    def check_fresh(self) -> None:
        self.inputs.freshness(self.max_staleness)()

    def lister(self, resource: Resource[R] | Input[R], *, owned: bool = False) -> Lister[R]:
        lister: Lister[R] = self.inputs.of(resource, owned=owned).informer.lister()
        return lister

    def owned(self, owner: Any, resource: Resource[R]) -> list[R]:
        attached = self.inputs.of(resource, Owns)
        return cast("Owns[R]", attached.input).owned(attached.informer, uid_of(owner))

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.services.event(obj, type, reason, message)

    def record(self, key: ObjectName) -> Record | None:
        record: Record | None = self.inputs.primary.get_indexer().store.item(str(key))
        return record

    async def observe(self, key: ObjectName) -> None:
        await self.own.settle(key)

    async def to_thread(self, call: Callable[[], R], name: str) -> R:
        """Call a function in a thread, which the attempt does not outlive."""
        attempt = self.attempt
        if attempt.threads is None:
            subject = f"controller {self.name}: {attempt.run.key}"
            guarded = None if attempt.term is None else self.services.guarded_threads
            attempt.threads = Threads(subject, attempt.before_thread, guarded)
        return await attempt.threads.run(call, name)


class Attempt(msgspec.Struct, eq=False):
    """One call of a reconciler.

    Attributes:
        run: of the queue.
        term: the term of leadership, or the right to work in a slot of a ring; None if the controller needs none.
        follows: another attempt ran in its task before, and may have left something that cancels the task.
        cut: why it was cancelled because its controller stops working; "" if it was not.
        expired: why it was cancelled because of the timeout; "" if it was not.
        abandoned: it has ignored its cancellation, and may not write any more.
        ended: its coroutine has ended; the attempt goes on until its threads have ended.
        result: of a coroutine that has ended in its first step.
        released: the release of a finalizer has begun.
        wrote: whether a write was sent.
        threads: of `Request.to_thread`; None before the first.
        timer: of the timeout.
    """

    run: Run
    term: Term | SlotGrant | None
    follows: bool = False
    cut: str = ""
    expired: str = ""
    abandoned: bool = False
    ended: bool = False
    result: Any = None
    released: bool = False
    wrote: bool = False
    threads: Threads | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def slot(self) -> int | None:
        """The slot of the ring in which it works; None without a ring."""
        return getattr(self.term, "slot", None)

    def before_write(self, membership: Membership | None = None) -> float | None:
        """Check that the reconciler may write; return after how many seconds to ask again, None for never.

        With a membership, it is enough that this replica takes part in the ring, whichever slots it owns.
        """
        self.wrote = True
        right = membership or self.term
        self.check("write", right)
        return None if right is None else right.remaining

    def before_thread(self) -> None:
        """Check that the reconciler may begin a thread."""
        self.check("begin a thread", self.term)
        if self.ended:
            raise UsageError(f"the run for {self.run.key} has ended: await its threads in it")

    def check(self, what: str, right: Term | SlotGrant | Membership | None) -> None:
        """Check that the reconciler may act, by the right to it.

        Raises:
            LeadershipLost: the term is over, or the slot is lost.
            UsageError: the attempt was abandoned. The key may run again, at the same time.
        """
        if right is not None:
            right.check()
        if self.abandoned:
            raise UsageError(f"the reconciler of {self.run.key} goes on after its cancellation, and may not {what}")


class AttemptSteps(Steps):
    """The steps of an attempt after the first one, in a context of its own. They are awaited by the task of a `Root`.

    Args:
        *steps: as for `Steps`.
        context: in which the steps run.
        waits: called with this object when the attempt waits for the first time.
        awaited: what the first step has yielded, in a tuple; empty if the first step was the last of its coroutine.
    """

    __slots__ = ("_awaited", "_context", "_waits")

    def __init__(
        self, *steps: Any, context: Contextvars, waits: Callable[[AttemptSteps], None], awaited: tuple[Any, ...]
    ) -> None:
        super().__init__(*steps)
        self._context = context
        self._waits: Callable[[AttemptSteps], None] | None = waits
        self._awaited = awaited

    def __next__(self) -> Any:
        """Take a step."""
        try:
            if self._awaited:
                [awaited], self._awaited = self._awaited, ()
            else:
                awaited = self._context.run(super().__next__)
        except BaseException:
            self._waits = None  # it refers to the task, the task to the error, and the error to this frame
            raise
        if self._waits is not None:
            waits, self._waits = self._waits, None
            waits(self)
        return awaited

    def throw(self, *error: Any) -> Any:
        """Take a step that begins with an exception."""
        return self._context.run(super().throw, *error)


def _guard(attempt: Attempt, check_fresh: Callable[[], None], target: Target) -> None:
    if attempt.released or target.verb in _DELETING or target.subresource == "eviction":
        check_fresh()


def left_to_do(attempt: Attempt, request: Request[Any], end: BaseException) -> Coroutine[Any, Any, Any] | None:
    """Return what belongs to an attempt after the end of the reconciler: its threads, then the release of a finalizer.

    None if nothing is left. `end` is a StopIteration with the result, or the error.
    """
    has_ended, attempt.ended = attempt.ended, True
    if attempt.threads is not None and not has_ended and attempt.threads.running:
        return attempt.threads.join(end)
    if request.release is None or attempt.released or attempt.cut or attempt.expired:
        return None
    # Exactly if the attempt succeeds, and nothing is planned: otherwise, the key would rest and keep its finalizer.
    name, _ = outcome_of_result(end.value, 0.0) if isinstance(end, StopIteration) else outcome_of_error(end)
    attempt.released = name == "success"
    return request.finish() if attempt.released else None


def outcome_of(attempt: Attempt, task: asyncio.Task[Any], now: float) -> tuple[str, Outcome]:
    """Return what follows an attempt, and its name for statistics.

    What the framework has cancelled is never taken for an error of the reconciler, and the other way round: a
    CancelledError or a TimeoutError that the reconciler itself raises is an error like any other.
    """
    if task.cancelled():
        if attempt.cut:
            return "cancelled", Unfinished(asyncio.CancelledError(attempt.cut), 0.0, counted=False)
        who = "other code than the manager cancelled it" if task.cancelling() else "nothing had cancelled it"
        cancelled = asyncio.CancelledError(f"the reconciler was cancelled, and {who}")
        if attempt.follows and task.cancelling():  # perhaps by something that an earlier attempt has left
            return "error", Unfinished(cancelled, counted=False)
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
    if _all(list(_leaves(error)), FormerOwner):
        waited = now - attempt.run.enqueued  # nothing says when the garbage collector is done with the name
        return "waiting", Unfinished(error, min(max(1.0, waited), _LONGEST_WAIT), counted=False)
    name, outcome = outcome_of_error(error)
    return "error" if name == "conflict" and attempt.run.conflicts + 1 >= LASTING_CONFLICT else name, outcome


def outcome_of_result(result: Any, now: float) -> tuple[str, Outcome]:
    """Return what follows a result, and its name for statistics."""
    if result is None:
        return _SUCCESS
    if not isinstance(result, Result):
        return outcome_of_invalid_result(result)
    if result.parked:
        return "parked", Park(result.parked, kind="result")
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
        return "parked", Park(_text(leaves[0]), leaves[0], kind="terminal")
    if _all(leaves, RetryAfter):
        seconds = max(each.seconds for each in leaves if isinstance(each, RetryAfter))
        return "retry_after", Unfinished(error, seconds, counted=False, reason=_text(leaves[0]))
    if _all(leaves, Conflict):
        return "conflict", Unfinished(error, counted=False, soon=True, reason=_described(error))
    if _all(leaves, StaleCache):  # nothing of the reconciler has failed, and its next run waits for the caches
        return "stale", Unfinished(error, 1.0, counted=False)
    if _all(leaves, Stale):
        return "stale", Unfinished(error, _STALE_PAUSE, counted=False, reason=_text(leaves[0]))
    if _all(leaves, LeadershipLost):
        return "cancelled", Unfinished(error, 0.0, counted=False)
    if _all(leaves, UsageError) and not any(isinstance(each, _PASSING) for each in leaves):
        return "error", Park(_text(leaves[0]), error)
    asked = max((each.retry_after or 0.0 for each in leaves if isinstance(each, ApiError)), default=0.0)
    reason = _text(leaves[0]) if _all(leaves, Retry) else ""
    return "error", Unfinished(error, least_delay=min(asked, MAX_RETRY_AFTER), reason=reason)


def outcome_of_invalid_result(result: Any) -> tuple[str, Outcome]:
    """Return what follows an invalid result: the key is parked, since the same code would return it again."""
    return "error", Park(f"the reconciler returned {_shown(result)}; return None or a Result")


def log_outcome(
    controller: str, run: Run, name: str, outcome: Outcome, following: Parked | float | None, errors: RepeatedErrors
) -> None:
    """Log what follows an attempt that did not simply succeed: `following` is what the queue made of the outcome."""
    what, extra = f"controller {controller}: attempt {run.attempt} for {run.key}", subject_of(controller, run.key)
    if isinstance(following, Parked):
        given = outcome.error if isinstance(outcome, Park) else None
        error, level = given or TerminalError(following.reason), logging.ERROR if name == "error" else logging.WARNING
        line, arguments = "%s: parked until an input changes: %s", [following.reason]
    elif isinstance(outcome, Unfinished):
        error, left = outcome.error, (following or 0.0) - asyncio.get_running_loop().time()
        after = "not retried" if following is None else f"retrying in {max(0.0, left):.2g} s"
        if name == "waiting":
            _log_waiting(what, asyncio.get_running_loop().time() - run.enqueued, f"{error}; {after}", extra)
            return
        if name in _QUIET:
            _log.debug("%s ended with %s; %s", what, _described(error), after, extra=extra)
            return
        level = logging.WARNING if all(isinstance(each, _EXPECTED) for each in _leaves(error)) else logging.ERROR
        line, arguments = "%s failed with %s; %s", [outcome.reason or _described(error), after]
        if name == "retry_after":
            level, line = logging.INFO, "%s waits: %s; %s"
        elif outcome.soon:
            line, arguments = "%s failed with conflict %s in a row: %s; %s", [str(run.conflicts + 1), *arguments]
        elif outcome.reason:
            line = "%s failed: %s; %s"
    else:
        return
    subject, once = f"the reconciler of controller {controller} ({origin(error)})", name == "retry_after"
    errors.report(
        subject, error, line, what, *arguments, level=level, key=str(run.key), lines=_LINES, once=once, extra=extra
    )


def subject_of(controller: str, key: object) -> dict[str, str]:
    """Return the attributes of log records about a key."""
    return {"controller": controller, "key": str(key)}


def _log_waiting(what: str, waited: float, text: str, extra: dict[str, str]) -> None:
    """Log the beginning of a wait for the garbage collector; warn after 30 s, 60 s, 120 s and so on."""
    periods = int(waited / _LONGEST_WAIT)
    if not periods:
        level = logging.INFO if waited < 1 else logging.DEBUG
        _log.log(level, "%s waits for the garbage collector: %s", what, text, extra=extra)
    elif not periods & (periods - 1):
        _log.warning("%s has waited %.0f s for the garbage collector; does it run? %s", what, waited, text, extra=extra)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _all(errors: list[BaseException], kind: type[BaseException]) -> bool:
    return all(isinstance(each, kind) for each in errors)


def _text(error: BaseException) -> str:
    return _shortened(error) or type(error).__name__


def _shortened(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a method of a class of the user
        return ""
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}… ({len(text)} characters)"


def _described(error: BaseException) -> str:
    """Return the type and the text of an error, or of those in a group."""
    leaves = islice(_leaves(error), _NAMED)
    return "; ".join(
        dict.fromkeys(f"{type(each).__name__}: {_shortened(each)}{_conflicts_in(each)}" for each in leaves)
    )


def _conflicts_in(error: BaseException) -> str:
    """Return the fields and managers of a conflict that its text does not have: it may be cut."""
    if not isinstance(error, Conflict):
        return ""
    shown, conflicts = str(error), error.conflicts[:_NAMED]
    missing = [f"{each.field[:_LENGTH]}: {each.message[:_LENGTH]}" for each in conflicts if each.field not in shown]
    return f" ({', '.join(missing)})" if missing else ""


def _shown(result: Any) -> str:
    # Not its repr: it may be an object of the API with all its content.
    return repr(result) if isinstance(result, (bool, int, float)) else f"an object of type {type(result).__name__}"
