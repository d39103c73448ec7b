"""Detect controllers that trigger themselves: each run writes, and the change of that write causes the next run."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from aioinformer.cache.objects.views import View
from aioinformer.controller.inputs.content import differing_fields
from aioinformer.errors import USER_ERRORS
from aioinformer.logs import get_logger
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.workqueue.requests.causes import Cause

_log = get_logger("aioinformer.controller")

#: The number of keys whose fields are compared at a time, and of fields for each.
_HOT: Final = 32
_FIELDS: Final = 16
_CHANGES: Final = frozenset({"added", "updated", "deleted"})


class _Streak:
    """Runs of one key, each caused by changes alone and after a write of the run before.

    Attributes:
        times: when the last runs ended.
        flaps: how often fields changed, by the object and the path; None until fields are compared. The path is "" for
            fields that the class of the user does not have.
        values: the hashes of the last values of each field.
        classes: the name of the class of the user, by the object.
    """

    __slots__ = ("classes", "flaps", "times", "values")

    def __init__(self, runs: int) -> None:
        self.times: deque[float] = deque(maxlen=runs)
        self.flaps: Counter[tuple[str, str]] | None = None
        self.values: dict[tuple[str, str], deque[int]] = {}
        self.classes: dict[str, str] = {}


class Loop(msgspec.Struct, frozen=True):
    """A key that triggers itself: `runs` of it, within `seconds`, each after its own write; and which fields change."""

    key: ObjectName
    runs: int
    seconds: float
    fields: str


class LoopDetector:
    """Logs a warning for keys whose runs trigger themselves. It names the field that flaps.

    A key is in a loop if it has run often within a short time, and each run but the first was caused by changes alone
    and followed a run that wrote something. Fields are compared only for keys that are halfway there. Values of fields
    are never logged, of any kind.

    Args:
        name: of the controller, for logs.
        runs: the number of runs, each of which follows a write of the run before, that make a loop.
        seconds: the time within which they happen.
        quiet: the least time between two warnings, in seconds.
        keys: the number of keys that are remembered.

    Attributes:
        detected: how many runs were part of a loop.
        last: the key of the last one of them, and when it ended; None for none.
    """

    def __init__(
        self, name: str, *, runs: int = 10, seconds: float = 60.0, quiet: float = 60.0, keys: int = 10_000
    ) -> None:
        self.detected = 0
        self.last: tuple[ObjectName, float] | None = None
        self._name = name
        self._runs = runs
        self._seconds = seconds
        self._quiet = quiet
        self._keys = keys
        #: Keys whose last run wrote something, in the order of these runs.
        self._streaks: OrderedDict[ObjectName, _Streak] = OrderedDict()
        #: Those of them whose fields are compared.
        self._hot: dict[ObjectName, _Streak] = {}
        self._quiet_until = float("-inf")

    def ran(self, key: ObjectName, causes: Iterable[Cause], now: float, *, wrote: bool) -> None:
        """Note the end of a run at the time `now`, and whether it changed anything on the server."""
        streak = self._streaks.get(key)
        if not wrote:
            if streak is not None:
                self.forget(key)
            return
        if streak is None or not all(cause.trigger in _CHANGES for cause in causes):
            self.forget(key)
            streak = _Streak(self._runs)
        self._streaks.pop(key, None)
        self._expire(now)
        self._streaks[key] = streak
        times = streak.times
        times.append(now)
        if streak.flaps is None and 2 * len(times) >= self._runs and len(self._hot) < _HOT:
            streak.flaps = Counter()
            self._hot[key] = streak
        if self._is_loop(streak):
            self.detected += 1
            self.last = key, now
            if now >= self._quiet_until:
                self._quiet_until = now + self._quiet
                self._warn(key, streak)

    def saw(self, key: ObjectName, resource: Resource[Any], changed: ObjectName, old: Any, new: Any) -> None:
        """Note that an update from `old` to `new`, of the object `changed`, made a key run."""
        streak = self._hot.get(key)
        if streak is None or streak.flaps is None:
            return
        try:
            fields = differing_fields(old, new, _FIELDS)
        except USER_ERRORS:
            return  # an object that cannot be decoded has no fields to name
        what = f"{resource.group_resource} {changed}"
        if not fields and not isinstance(new, (View, Mapping)):
            streak.flaps[what, ""] += 1
            streak.classes[what] = type(new).__name__
        for path, (before, after) in fields.items():
            field = what, path
            if field not in streak.flaps and len(streak.flaps) >= _FIELDS:
                continue
            streak.flaps[field] += 1
            values = streak.values.setdefault(field, deque([_hash_of(before)], maxlen=4))
            values.append(_hash_of(after))

    def current(self, now: float) -> list[Loop]:
        """Return the keys that trigger themselves at the time `now`.

        A loop has ended after a run that wrote nothing, a run with another cause, and `seconds` without a run.
        """
        return [
            Loop(key, len(each.times), each.times[-1] - each.times[0], _fields_of(each))
            for key, each in self._streaks.items()
            if self._is_loop(each) and now - each.times[-1] <= self._seconds
        ]

    def _is_loop(self, streak: _Streak) -> bool:
        times = streak.times
        return len(times) == self._runs and times[-1] - times[0] <= self._seconds

    def forget(self, key: ObjectName) -> None:
        """Forget a key."""
        self._streaks.pop(key, None)
        self._hot.pop(key, None)

    def _expire(self, now: float) -> None:
        """Forget the keys that last ran long ago, and the oldest one if there is no space for another."""
        for key in tuple(islice(self._streaks, 2)):
            if now - self._streaks[key].times[-1] > self._seconds or len(self._streaks) >= self._keys:
                self.forget(key)

    def _warn(self, key: ObjectName, streak: _Streak) -> None:
        count, seconds = len(streak.times), streak.times[-1] - streak.times[0]
        _log.warning(
            "controller %s triggers itself: %s ran %d times in %.1f s, each time after a change that followed its own "
            "write: %s. Write only what differs from the cached object, or filter the change with when=",
            *(self._name, key, count, seconds, _fields_of(streak)),
        )


def _hash_of(value: Any) -> int:
    return hash(msgspec.json.encode(value))


def _fields_of(streak: _Streak) -> str:
    flaps = (streak.flaps or Counter()).most_common(3)
    return "; ".join(_described(field, streak) for field, _ in flaps) or "the changed fields are not known"


def _described(field: tuple[str, str], streak: _Streak) -> str:
    what, path = field
    if not path:
        return (
            f"{what} changes in a field that class {streak.classes[what]} does not have (versions and managed fields "
            "are not compared)"
        )
    if len(set(streak.values[field])) == 2:
        return f"{path} of {what} alternates between two values"
    return f"{path} of {what} takes one value after the other"
