"""Failures on the object, for people who look at it and not at the log: Events that `kubectl describe` shows.

- From the third failed attempt in a row on, and when a key is parked because of an error, the object gets a Warning
  Event; when it works again, a Normal one.
- There is one Event for each key and reason in ten minutes. A controller records ten in a minute; the rest is counted,
  and one more Event at the end of the minute has the count.
- Texts are scrubbed as those of the debug page are, and have 1 KiB at most.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from aioinformer.controller.scrubbing import scrubbed
from aioinformer.resources.references import ObjectReference
from aioinformer.workqueue.requests.outcomes import FAILURES, LASTING_CONFLICT, Parked, Unfinished

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable

    from aioinformer.resources.keys import ObjectName
    from aioinformer.workqueue.requests.outcomes import Failing, Outcome

FAILED: Final = "ReconcileFailed"
PARKED: Final = "ReconcileParked"
SUCCEEDED: Final = "ReconcileSucceeded"

#: Seconds between two Events of one key and reason; how many Events there are in a period, and its seconds.
_QUIET: Final = 600.0
_EVENTS: Final = 10
_PERIOD: Final = 60.0
#: How many keys are remembered that have failed, and how many Events.
_KEYS: Final = 4096
#: The most bytes of a text.
_BYTES: Final = 1024


def failure_of(outcome: Outcome, following: Parked | float | None, failing: Failing | None) -> tuple[str, str] | None:
    """Return reason and text of what concerns the owner of an object; None for nothing.

    Args:
        outcome: of a run.
        following: what the queue made of it.
        failing: the failures of the key in a row; None if there are none.
    """
    if isinstance(following, Parked):
        if following.kind == "result":  # on purpose
            return None
        return PARKED, f"parked until an input changes: {following.reason}"
    if not isinstance(outcome, Unfinished) or failing is None:
        return None
    if outcome.soon and failing.conflicts >= LASTING_CONFLICT:
        return FAILED, f"{failing.conflicts} attempts conflicted with another writer; it is retried: {failing.error}"
    if outcome.counted and failing.attempts >= FAILURES:
        return FAILED, f"{failing.attempts} attempts have failed; it is retried: {failing.error}"
    return None


def clipped(text: str) -> str:
    """Return a text for people who may not read everything, of 1 KiB at most."""
    shown = str(scrubbed(text))
    if len(raw := shown.encode()) <= _BYTES:
        return shown
    return raw[: _BYTES - 3].decode(errors="ignore") + "…"


class FailureEvents:
    """Decides which failures of a controller become Events, and records these.

    Args:
        name: of the controller, for texts.
        record: records an Event; None if none is wanted.
        call_at: calls a function at a time of the event loop's clock.

    Attributes:
        warned: the keys with a Warning Event that have not worked since; the oldest are the first.
    """

    def __init__(
        self,
        name: str,
        record: Callable[[Any, str, str, str], object] | None,
        call_at: Callable[[float, Callable[[], None]], TimerHandle],
    ) -> None:
        self.warned: OrderedDict[ObjectName, None] = OrderedDict()
        self._name = name
        self._record = record
        self._call_at = call_at
        #: When the last Events of a key and reason were recorded; the oldest are the first.
        self._recorded: OrderedDict[tuple[ObjectName, str], float] = OrderedDict()
        #: How many were recorded in the present period, how many were left out, and the last one of these.
        self._count = 0
        self._left_out = 0
        self._last: tuple[ObjectName, ObjectReference, str, str, str] | None = None
        self._timer: TimerHandle | None = None

    def failed(self, key: ObjectName, about: ObjectReference, reason: str, text: str, now: float) -> None:
        """Record a Warning Event about an object, unless there was one lately."""
        if self._add(key, about, "Warning", reason, text, now):
            self._remember(key)

    def succeeded(self, key: ObjectName, about: ObjectReference | None, now: float) -> None:
        """Record a Normal Event about an object of `warned`, which works again; None if it is gone."""
        del self.warned[key]
        if about is not None:
            self._add(key, about, "Normal", SUCCEEDED, "the object is reconciled again", now)

    def close(self) -> None:
        """Record the count of what was left out. May be repeated."""
        if self._timer is not None:
            end = self._timer.when()
            self._timer.cancel()
            self._end_period(end)

    def _add(self, key: ObjectName, about: ObjectReference, kind: str, reason: str, text: str, now: float) -> bool:
        """Record an Event, or count it; return whether it was recorded."""
        if self._record is None or now - self._recorded.get((key, reason), float("-inf")) < _QUIET:
            return False
        if self._timer is None:
            end = now + _PERIOD
            self._timer = self._call_at(end, lambda: self._end_period(end))
        if self._count >= _EVENTS:
            self._left_out += 1
            self._last = key, about, kind, reason, text
            return False
        self._count += 1
        self._note(key, reason, now)
        self._record(about, kind, reason, clipped(text))
        return True

    def _note(self, key: ObjectName, reason: str, now: float) -> None:
        """Note an Event, so that there is no other one of this key and reason for a while."""
        self._recorded[key, reason] = now
        self._recorded.move_to_end((key, reason))
        while now - next(iter(self._recorded.values())) >= _QUIET:  # so there are at most as many as in this time
            self._recorded.popitem(last=False)

    def _remember(self, key: ObjectName) -> None:
        self.warned[key] = None
        self.warned.move_to_end(key)
        if len(self.warned) > _KEYS:
            self.warned.popitem(last=False)

    def _end_period(self, now: float) -> None:
        self._timer = None
        self._count = 0
        left_out = self._left_out
        last = self._last
        self._left_out = 0
        self._last = None
        if last is not None and self._record is not None:
            key, about, kind, reason, text = last
            self._note(key, reason, now)
            if kind == "Warning":
                self._remember(key)
            if left_out > 1:
                more = f"and {left_out - 1:,} more Events of controller {self._name}, left out in this minute"
                text = f"({more}) {text}"
            self._record(about, kind, reason, clipped(text))
