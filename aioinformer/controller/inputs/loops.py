"""Detect controllers that trigger themselves: each run writes, and the change of that write causes the next run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.controller.inputs.content import differing_fields
from aioinformer.errors import USER_ERRORS, OptionError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.controller.request import Cause
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource

_log = get_logger("aioinformer.controller")

#: The longest value in a log line, in characters.
_SHOWN: Final = 40
#: The number of keys whose fields are compared at a time, and of fields for each.
_HOT: Final = 32
_FIELDS: Final = 16
_CHANGES: Final = frozenset({"added", "updated", "deleted"})


class LoopOptions(msgspec.Struct, frozen=True):
    """When a key is in a loop.

    Attributes:
        runs: so many runs, each of which follows a write of the run before.
        seconds: within so many seconds.
        quiet: the least time between two warnings, in seconds.
        keys: remember at most so many keys.
    """

    runs: int = 10
    seconds: float = 60.0
    quiet: float = 60.0
    keys: int = 10_000

    def __post_init__(self) -> None:
        if self.runs < 3 or self.seconds <= 0 or self.quiet < 0 or self.keys < 1:
            raise OptionError(f"LoopOptions: expected runs >= 3, seconds > 0, quiet >= 0 and keys >= 1, not {self}")


class _Streak:
    """Runs of one key, each caused by a change after a write of the run before."""

    __slots__ = ("flaps", "times")

    def __init__(self, runs: int) -> None:
        self.times: deque[float] = deque(maxlen=runs)
        #: (resource and key of a changed object, path) -> how often it changed, and its last values; None if not hot.
        self.flaps: dict[tuple[str, str], _Flaps] | None = None


class _Flaps:
    __slots__ = ("count", "values")

    def __init__(self) -> None:
        self.count = 0
        self.values: deque[str] = deque(maxlen=4)


class LoopDetector:
    """Logs a warning for keys whose runs trigger themselves. It names the field that flaps.

    A key is in a loop if it has run often within a short time, and each run but the first was caused by changes alone
    and followed a run that wrote something. Fields are compared only for keys that are halfway there. Values of Secrets
    are never logged.

    Args:
        name: of the controller, for logs.
        options: when a key is in a loop.

    Attributes:
        detected: how many runs were part of a loop.
    """

    def __init__(self, name: str, options: LoopOptions | None = None) -> None:
        self.detected = 0
        self._name = name
        self._options = options or LoopOptions()
        #: Keys whose last run wrote something, in the order of these runs.
        self._streaks: dict[ObjectName, _Streak] = {}
        self._hot: dict[ObjectName, _Streak] = {}
        self._quiet_until = float("-inf")

    def ran(self, key: ObjectName, causes: Iterable[Cause], now: float, *, wrote: bool) -> None:
        """Note a run.

        Args:
            key: of the run.
            causes: of the run.
            now: when it ended, in seconds.
            wrote: whether it changed anything on the server.
        """
        options = self._options
        streak = self._streaks.pop(key, None)
        self._expire(now)
        if streak is None or not all(cause.trigger in _CHANGES for cause in causes):
            self._hot.pop(key, None)
            streak = _Streak(options.runs)
        if not wrote:
            self._hot.pop(key, None)
            return
        streak.times.append(now)
        self._streaks[key] = streak
        if streak.flaps is None and 2 * len(streak.times) >= options.runs and len(self._hot) < _HOT:
            streak.flaps = {}
            self._hot[key] = streak
        if len(streak.times) == options.runs and now - streak.times[0] <= options.seconds:
            self.detected += 1
            if now >= self._quiet_until:
                self._quiet_until = now + options.quiet
                self._warn(key, streak)

    def saw(self, key: ObjectName, resource: Resource[Any], changed: ObjectName, old: Any, new: Any) -> None:
        """Note that an update of an object made a key run.

        Args:
            key: the key.
            resource: of the object.
            changed: the key of the object.
            old: its state before.
            new: its state after.
        """
        streak = self._hot.get(key)
        if streak is None or streak.flaps is None:
            return
        try:
            fields = differing_fields(old, new, _FIELDS)
        except USER_ERRORS:
            return  # an object that cannot be decoded has no fields to name
        what = f"{resource.group_resource} {changed}"
        for path, values in fields.items():
            flaps = streak.flaps.get((what, path))
            if flaps is None:
                if len(streak.flaps) >= _FIELDS:
                    continue
                flaps = streak.flaps[what, path] = _Flaps()
            flaps.count += 1
            if not resource.holds_secrets:
                flaps.values.extend(map(_shown, values[bool(flaps.values) :]))

    def forget(self, key: ObjectName) -> None:
        """Forget a key."""
        self._streaks.pop(key, None)
        self._hot.pop(key, None)

    def _expire(self, now: float) -> None:
        while self._streaks:
            key = next(iter(self._streaks))
            if len(self._streaks) < self._options.keys and now - self._streaks[key].times[-1] <= self._options.seconds:
                return
            self.forget(key)

    def _warn(self, key: ObjectName, streak: _Streak) -> None:
        seconds = streak.times[-1] - streak.times[0]
        flaps = sorted((streak.flaps or {}).items(), key=lambda each: (-each[1].count, each[0]))
        named = "; ".join(_described(*name, flap) for name, flap in flaps[:3]) or "the changed fields are not known"
        others = len(self._hot) - (key in self._hot)
        more = f"; {others} more keys may be in a loop" if others else ""
        _log.warning(
            "controller %s triggers itself: %s ran %d times in %.1f s, each time after a change that followed its own "
            "write: %s%s. Write only what differs from the cached object, or filter the change with when=",
            self._name,
            key,
            len(streak.times),
            seconds,
            named,
            more,
        )


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode() if value is not None else "absent"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _described(what: str, path: str, flaps: _Flaps) -> str:
    values = list(flaps.values)
    if not values:
        took = "changes (values of Secrets are not shown)"
    elif len(set(values)) == 2:
        took = f"alternates between {values[0]} and {values[1]}"
    else:
        took = f"takes the values {', '.join(values)}"
    return f"{path} of {what} {took}"
