"""Detect controllers that trigger themselves: each run writes, and the change of that write causes the next run.

That alone is a reason for a warning, and no proof of a loop: a rollout does the same. The brake needs a proof, as
`repetition` describes it, and only of changes that the runs of the key have made themselves: those with the version of
an answer to one of their writes. A change of anybody else begins the proof anew, and releases the brake.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from aioinformer.cache.objects.record import COMPARED
from aioinformer.cache.objects.views import View, is_part
from aioinformer.client.targets import Metadata, Target
from aioinformer.controller.inputs.content import decode, differing_fields, json_of
from aioinformer.controller.inputs.keys import version_of
from aioinformer.controller.inputs.predicates import Change
from aioinformer.controller.inputs.repetition import Field, FieldChange, Repetition, change_of
from aioinformer.errors import USER_ERRORS
from aioinformer.logs import get_logger
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.workqueue.requests.causes import Cause

_log = get_logger("aioinformer.controller")

#: The number of keys whose fields are compared at a time, and of fields for each change.
_HOT: Final = 512
_FIELDS: Final = 16
#: How many written states, and changes whose run is not known yet, are remembered of a key.
_STATES: Final = 256
#: For how many runs a written state is remembered.
_REMEMBERED: Final = 3
_CHANGES: Final = frozenset({"added", "updated", "deleted"})
#: Causes that come from elsewhere: neither from a write of the key, nor from a timer.
_ELSEWHERE: Final = frozenset({"source", "requested"})
#: The least and the most seconds from a braked run to the next one.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
#: Members of the metadata in which two equal objects differ.
_IDENTITY: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
#: The path of an object as a whole, and the step of fields whose values are not known: they may count.
_OBJECT: Final = "(object)"
_UNKNOWN: Final = "unknown"

#: A state of an object: the resource with its group, the key, and the version; "" if it is deleted.
State: TypeAlias = tuple[str, ObjectName, str]


class _Streak:
    """Runs of one key, each caused by changes alone and after a write of the run before.

    Attributes:
        times: when the last runs ended.
        flaps: how often fields changed, by the object and the path; None until fields are compared. The path is "" for
            fields that the class of the user does not have.
        values: the digests of the last values of each field.
        classes: the name of the class of the user, by the object.
        run: the number of the present run.
        written: the states that runs have written, with the numbers of the runs; the latest last.
        seen: the states that changes have led to, with the fields that changed, until their runs are known.
        repetition: what the runs have changed since anybody else has changed something.
        pause: seconds before the next run, because the runs are a loop; 0 if that is not proven.
        paused: whether the next run, or the present one, waits or has waited for them.
    """

    __slots__ = ("classes", "flaps", "pause", "paused", "repetition", "run", "seen", "times", "values", "written")

    def __init__(self, runs: int) -> None:
        self.times: deque[float] = deque(maxlen=runs)
        self.flaps: Counter[Field] | None = None
        self.values: dict[Field, deque[int]] = {}
        self.classes: dict[str, str] = {}
        self.run = 0
        self.written: OrderedDict[State, int] = OrderedDict()
        self.seen: list[tuple[State, tuple[FieldChange, ...]]] = []
        self.repetition = Repetition()
        self.pause = 0.0
        self.paused = False

    def is_foreign(self) -> bool:
        """Return whether anybody else has changed something, if no write is under way."""
        return len(self.seen) > _STATES or any(state not in self.written for state, _ in self.seen)

    def note_written(self, state: State) -> None:
        """Note a state that the present run has written."""
        self.written[state] = self.run
        self.written.move_to_end(state)
        if len(self.written) > _STATES:
            self.written.popitem(last=False)

    def begin_proof(self) -> None:
        """Forget what the runs have changed."""
        self.seen = []
        self.repetition = Repetition()

    def attribute(self) -> bool:
        """Attribute the changes to the earlier runs that made them; return whether they prove a loop.

        Those of the present run may not be complete.
        """
        earlier: dict[int, list[FieldChange]] = {}
        left = []
        for state, fields in self.seen:
            run = self.written[state]
            if run == self.run:
                left.append((state, fields))
            else:
                earlier.setdefault(run, []).extend(fields)
        self.seen = left
        proven = False
        for run, changes in sorted(earlier.items()):
            proven = self.repetition.add(run, changes) or proven
        return proven

    def end_run(self) -> None:
        """Count a run, and forget what was written long ago."""
        self.run += 1
        while self.written and next(iter(self.written.values())) < self.run - _REMEMBERED:
            self.written.popitem(last=False)


class Loop(msgspec.Struct, frozen=True):
    """A key that triggers itself: `runs` of it, within `seconds`, each after its own write; and which fields change.

    `braked` is why its runs are 1 to 30 s apart; "" if they are not.
    """

    key: ObjectName
    runs: int
    seconds: float
    fields: str
    braked: str


class LoopDetector:
    """Notices keys whose runs trigger themselves: logs a warning with the field that flaps, and brakes proven loops.

    A key triggers itself if it has run often within a short time, and each run but the first was caused by changes
    alone and followed a run that wrote something. Fields are compared only for keys that are halfway there. Their
    values are compared by digests; they are neither kept nor logged, of any kind.

    Args:
        name: of the controller, for logs.
        brake: whether keys are braked.
        runs: the number of runs, each of which follows a write of the run before, that are worth a warning.
        seconds: the time within which they happen.
        quiet: the least time between two warnings, in seconds.
        keys: the number of keys that are remembered.

    Attributes:
        detected: how many runs have triggered themselves.
        last: the key of the last one of them, and when it ended; None for none.
        followed: the keys whose writes and changes are of interest; `wrote` and `saw` ignore all others.
        braked: the keys that are in a loop, and why, for people.
    """

    def __init__(
        self,
        name: str,
        *,
        brake: bool = True,
        runs: int = 10,
        seconds: float = 60.0,
        quiet: float = 60.0,
        keys: int = 10_000,
    ) -> None:
        self.detected = 0
        self.last: tuple[ObjectName, float] | None = None
        self.followed: dict[ObjectName, _Streak] = {}
        self.braked: dict[ObjectName, str] = {}
        self._name = name
        self._brake = brake
        self._runs = runs
        self._seconds = seconds
        self._quiet = quiet
        self._keys = keys
        #: Keys whose last run wrote something, in the order of these runs.
        self._streaks: OrderedDict[ObjectName, _Streak] = OrderedDict()
        #: Of warnings about keys that are braked, and about others.
        self._quiet_until = {True: float("-inf"), False: float("-inf")}

    def ran(self, key: ObjectName, causes: Iterable[Cause], now: float, *, wrote: bool) -> bool:
        """Note the end of a run at the time `now`, and whether it changed anything on the server.

        All of its writes have ended. Return whether that has released the brake: a request need not wait any more.
        """
        streak = self._streaks.get(key)
        if not wrote:
            if streak is None:
                return False
            self.forget(key)
            return streak.pause > 0
        released = False
        if streak is None or not self._goes_on(streak, causes):
            released = streak is not None and streak.pause > 0
            self.forget(key)
            streak = _Streak(self._runs)
        self._streaks.pop(key, None)
        self._expire(now)
        self._streaks[key] = streak
        times = streak.times
        times.append(now)
        if streak.flaps is None and 2 * len(times) >= self._runs and len(self.followed) - len(self.braked) < _HOT:
            streak.flaps = Counter()
            self.followed[key] = streak
        if streak.flaps is not None and self._brake:
            self._prove(key, streak, now)
        if self._is_loop(streak):
            self.detected += 1
            self.last = key, now
            self._warn(key, streak, now)
        return released

    def wrote(self, key: ObjectName, target: Target, metadata: Metadata) -> None:
        """Note what a run of a key has written, by the metadata in the answer."""
        streak = self.followed.get(key)
        if streak is None:
            return
        resource = f"{target.plural}.{target.group}" if target.group else target.plural
        name = ObjectName(target.namespace, metadata.name or target.name)
        if metadata.resource_version:
            streak.note_written((resource, name, metadata.resource_version))
        if target.verb == "delete":
            streak.note_written((resource, name, ""))

    def saw(self, key: ObjectName, resource: Resource[Any], changed: ObjectName, change: Change) -> None:
        """Note a change of the object `changed`, which makes a key run."""
        streak = self.followed.get(key)
        if streak is None or change.trigger not in _CHANGES:
            return
        fields: tuple[FieldChange, ...] = ()
        if not streak.pause:  # otherwise, it only matters who has made the change
            what = f"{resource.group_resource} {changed}"
            fields = _fields_of(what, change)
            if change.trigger == "updated":
                _note_flaps(streak, what, change.new, fields)
        version = "" if change.new is None else version_of(change.new)
        if self._brake and len(streak.seen) <= _STATES:
            streak.seen.append(((resource.group_resource, changed, version), fields))

    def saw_other(self, key: ObjectName) -> None:
        """Note that something makes a key run that is no change of a field."""
        if (streak := self.followed.get(key)) is not None:
            streak.seen.append((("", key, ""), ()))

    def pause(self, key: ObjectName, cause: Cause, now: float, *, running: bool) -> float:
        """Return for how many seconds a cause must wait before a key of `braked` runs.

        A cause that comes from elsewhere, or a change of anybody else, releases the brake.

        Args:
            key: of `braked`.
            cause: why it is to run.
            now: the time.
            running: whether a run is under way: whose change it is shows at the end of that.
        """
        streak = self._streaks[key]
        elsewhere = cause.trigger in _ELSEWHERE or (cause.trigger in _CHANGES and not running and streak.is_foreign())
        if elsewhere or now - streak.times[-1] > self._seconds:
            self.forget(key)
            return 0.0
        streak.paused = True
        return streak.pause if running else max(0.0, streak.times[-1] + streak.pause - now)

    def current(self, now: float) -> list[Loop]:
        """Return the keys that trigger themselves at the time `now`.

        That has ended after a run that wrote nothing, a run with another cause, and `seconds` without a run.
        """
        return [
            Loop(key, len(each.times), each.times[-1] - each.times[0], _flaps_of(each), self.braked.get(key, ""))
            for key, each in self._streaks.items()
            if self._is_loop(each) and now - each.times[-1] <= self._seconds
        ]

    def braked_at(self, now: float) -> dict[str, str]:
        """Return the keys that are braked, and why. Any thread may call this."""
        streaks = self.followed.copy()
        found = {}
        for key, why in self.braked.copy().items():
            streak = streaks.get(key)
            if streak is not None and now - streak.times[-1] <= self._seconds:
                found[str(key)] = why
        return found

    def forget(self, key: ObjectName) -> None:
        """Forget a key."""
        self._streaks.pop(key, None)
        self.followed.pop(key, None)
        self.braked.pop(key, None)

    def clear(self) -> None:
        """Forget all keys."""
        self._streaks.clear()
        self.followed.clear()
        self.braked.clear()

    def _is_loop(self, streak: _Streak) -> bool:
        times = streak.times
        return streak.pause > 0 or (len(times) == self._runs and times[-1] - times[0] <= self._seconds)

    def _goes_on(self, streak: _Streak, causes: Iterable[Cause]) -> bool:
        """Return whether a run belongs to a streak, by its causes and by the changes since the run before."""
        triggers = {cause.trigger for cause in causes}
        if streak.pause:
            return triggers.isdisjoint(_ELSEWHERE) and not streak.is_foreign()
        return triggers <= _CHANGES

    def _expire(self, now: float) -> None:
        """Forget the keys that last ran long ago, and the oldest one if there is no space for another."""
        for key in tuple(islice(self._streaks, 2)):
            if now - self._streaks[key].times[-1] > self._seconds or len(self._streaks) >= self._keys:
                self.forget(key)

    def _prove(self, key: ObjectName, streak: _Streak, now: float) -> None:
        """Brake the key if its runs are a loop, and let its pauses grow if they go on."""
        if streak.pause:
            streak.seen = []
            if streak.paused:
                streak.paused = False
                streak.pause = min(2 * streak.pause, LONGEST_PAUSE)
        elif streak.is_foreign():
            streak.begin_proof()
        elif streak.attribute() and now - streak.times[0] <= self._seconds and streak.repetition.proof is not None:
            (what, path), how = streak.repetition.proof
            self.braked[key] = f"{what} {how}" if path in ("", _OBJECT) else f"{path} of {what} {how}"
            streak.pause = FIRST_PAUSE
            streak.begin_proof()
            self._warn(key, streak, now)
        streak.end_run()

    def _warn(self, key: ObjectName, streak: _Streak, now: float) -> None:
        why = self.braked.get(key, "")
        if now < self._quiet_until[bool(why)]:
            return
        self._quiet_until[bool(why)] = now + self._quiet
        count = len(streak.times)
        seconds = streak.times[-1] - streak.times[0]
        if why:
            loop = f". It is a loop, because {why}: runs are 1 to 30 s apart until something else changes"
        else:
            loop = ""
        _log.warning(
            "controller %s triggers itself: %s ran %d times in %.1f s, each time after a change that followed its own "
            "write: %s%s. Write only what differs from the cached object, or filter the change with when=",
            *(self._name, key, count, seconds, _flaps_of(streak), loop),
        )


def _fields_of(what: str, change: Change) -> tuple[FieldChange, ...]:
    """Return the fields that a change has changed. What is not known is one field that has a new value each time."""
    old = change.old
    new = change.new
    try:
        if change.trigger != "updated":
            return (change_of((what, _OBJECT), _content(old), _content(new)),)
        fields = differing_fields(old, new, _FIELDS)
    except USER_ERRORS:  # objects that are too large, or cannot be decoded
        return (_unknown((what, _OBJECT), new),)
    if fields:
        return tuple(change_of((what, path), before, after) for path, (before, after) in fields.items())
    if not isinstance(new, (View, Mapping)):
        return (_unknown((what, ""), new),)  # a field that the class does not have
    is_whole = change.whole and not is_part(new)
    return (FieldChange((what, _OBJECT), 0, 0) if is_whole else _unknown((what, _OBJECT), new),)


def _unknown(field: Field, new: Any) -> FieldChange:
    return FieldChange(field, 0, hash(("" if new is None else version_of(new), id(new))), _UNKNOWN)


def _content(obj: Any) -> Any:
    """Return what an object says, without what makes it another one than that of its name before; None for none."""
    if obj is None:
        return None
    raw = json_of(obj)
    if len(raw) > COMPARED:
        raise ValueError("the object is too large to be compared")
    content = decode(raw)
    metadata = {name: value for name, value in (content.get("metadata") or {}).items() if name not in _IDENTITY}
    return {**content, "metadata": metadata, "status": None}


def _note_flaps(streak: _Streak, what: str, new: Any, fields: Iterable[FieldChange]) -> None:
    """Count the fields that have changed, for the warning."""
    assert streak.flaps is not None
    for change in fields:
        field = change.field
        if field[1] == _OBJECT:
            continue
        if field not in streak.flaps and len(streak.flaps) >= _FIELDS:
            continue
        streak.flaps[field] += 1
        if not field[1]:
            streak.classes[what] = type(new).__name__
        values = streak.values.setdefault(field, deque([change.before], maxlen=4))
        values.append(change.after)


def _flaps_of(streak: _Streak) -> str:
    flaps = (streak.flaps or Counter()).most_common(3)
    return "; ".join(_described(field, streak) for field, _ in flaps) or "the changed fields are not known"


def _described(field: Field, streak: _Streak) -> str:
    what, path = field
    if not path:
        return (
            f"{what} changes in a field that class {streak.classes[what]} does not have (versions and managed fields "
            "are not compared)"
        )
    if len(set(streak.values[field])) == 2:
        return f"{path} of {what} alternates between two values"
    return f"{path} of {what} takes one value after the other"
