"""What the queue of requests hands out and takes back: its options, runs, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from aioinformer.backoff import BackoffOptions
from aioinformer.errors import OptionError
from aioinformer.resources.keys import ObjectName
from aioinformer.workqueue.requests.causes import Cause

#: The number of conflicts in a row from which on they are no coincidence.
LASTING_CONFLICT: Final = 5
#: The number of failures in a row from which on people see them: on the debug page, and on the object.
FAILURES: Final = 3
#: The group of a key, by default.
by_namespace: Final = attrgetter("namespace")


class QueueOptions(msgspec.Struct, frozen=True):
    """The options of a queue of requests.

    Attributes:
        backoff: the delays after failed attempts of a key. Only a success resets them.
        max_attempts: a key is parked when this many attempts in a row have failed; None for no limit.
        min_interval: seconds between the starts of two runs of a key, retries included.
        group: returns the group of a key, always the same one; its namespace by default. Groups take turns.
        group_limit: how many runs of a group there may be at a time; None for no limit.

    Raises:
        OptionError: a value is out of range.
    """

    backoff: BackoffOptions = BackoffOptions(initial=0.05, factor=2.0, cap=300.0, jitter=1.0)
    max_attempts: int | None = None
    min_interval: float = 0.0
    group: Callable[[ObjectName], Hashable] = by_namespace
    group_limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_attempts", "group_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(f"QueueOptions: {name} must be at least 1 or None, not {value!r}")
        if not 0 <= self.min_interval < float("inf"):
            raise OptionError(f"QueueOptions: min_interval must be seconds, 0 or more, not {self.min_interval!r}")


class Run(msgspec.Struct, eq=False):
    """One run of a key, until `finish`. Times are seconds of the event loop's clock.

    Attributes:
        key: of the object.
        causes: why it runs; each different cause once, in the order of arrival, at most 8.
        causes_left_out: how many further causes were merged.
        attempt: 1 plus the number of failed attempts since the last success.
        enqueued: when the first cause arrived. A retry keeps the time of the run that failed.
        priority: of the request.
        due: when it could have started.
        started: when it was handed out.
        early: it starts before the end of a backoff, because an input changed. If it fails, it does not count.
        released: its worker is free, as `RequestQueue.release` describes.
        conflicts: how many runs in a row before this one ended with a conflict.
        changed: when the oldest change of an input arrived that the run answers; None for none. A retry keeps it.
    """

    key: ObjectName
    causes: tuple[Cause, ...] = ()
    causes_left_out: int = 0
    attempt: int = 1
    enqueued: float = 0.0
    priority: int = 0
    due: float = 0.0
    started: float = 0.0
    early: bool = False
    released: bool = False
    conflicts: int = 0
    changed: float | None = None


class Finished(msgspec.Struct, frozen=True):
    """The run succeeded. The key runs again at its next cause; one that arrived during the run counts."""


class Again(msgspec.Struct, frozen=True):
    """The run succeeded. The key runs again at this time of the event loop's clock, or earlier for another cause.

    Without a priority, the next run has that of this one.
    """

    at: float
    priority: int | None = None


class Unfinished(msgspec.Struct, frozen=True):
    """The run did not succeed. The key runs again with the same causes and priority.

    Attributes:
        error: why; the latest one is part of snapshots.
        delay: seconds until the next run; None for the delay of the backoff.
        counted: the attempt failed: it counts for the backoff and for `max_attempts`. Otherwise no cause waits.
        soon: the run conflicted with another writer: the delay is 20 to 40 ms, and doubles with each conflict in a row.
            From the fifth one on, a conflict is a failed attempt like any other.
        least_delay: seconds before which no run starts, an early one included: the server asked to wait.
        reason: for people, in snapshots; "" for the type of the error, the place that raised it, and its text.
    """

    error: BaseException
    delay: float | None = None
    counted: bool = True
    soon: bool = False
    least_delay: float = 0.0
    reason: str = ""


class Park(msgspec.Struct, frozen=True):
    """The key does not run again before a change of an input or `retry_parked`; the reason is for people.

    The error is for the log, with its traceback unless it is a warning. The kind is that of `Parked`.
    """

    reason: str
    error: BaseException | None = None
    kind: str = "error"


Outcome: TypeAlias = Finished | Again | Unfinished | Park


class Parked(msgspec.Struct, frozen=True):
    """Why a key does not run; since when, by the event loop's clock; and after which attempt, 1 for the first.

    The kind of the reason is for metrics: "result" (`Result(parked=…)`), "terminal" (`TerminalError`), "attempts"
    (`max_attempts` have failed), or "error" (a mistake that the same code would repeat). The cause is the type of the
    error and the place that raised it, as of `Failing`; "" for a result.
    """

    reason: str
    since: float
    attempts: int
    kind: str = "error"
    cause: str = ""


class Failing(msgspec.Struct, eq=False):
    """A key whose last run did not succeed.

    Attributes:
        attempts: how many attempts failed since the last success.
        error: the reason of the latest outcome; without one, the type of its error, the place that raised it, and its
            text.
        cause: the type and the place alone: keys that fail for one cause have the same one.
        until: the end of the backoff, by the event loop's clock.
        delay: the latest delay of the backoff, without jitter.
        least: the time before which no run starts, an early one included.
        bypassed: whether a change has started an early run in this backoff.
        conflicts: how many runs in a row ended with a conflict.
        since: when the first of these runs ended, by the event loop's clock.
    """

    attempts: int = 0
    error: str = ""
    cause: str = ""
    until: float = float("-inf")
    delay: float = 0.0
    least: float = float("-inf")
    bypassed: bool = False
    conflicts: int = 0
    since: float = 0.0
