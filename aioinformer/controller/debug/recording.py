"""What is recorded while a debug page exists: changes of objects, runs of keys, and transitions of caches.

All of it has a limit. A change is recorded as two references to states that the cache has had; diffs are computed when
they are read. Values of Secrets are in no diff, whatever the options.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import msgspec

from aioinformer.cache.objects.views import View
from aioinformer.controller.inputs.content import json_of
from aioinformer.controller.inputs.mapping import Owns, Primary
from aioinformer.errors import USER_ERRORS
from aioinformer.functions import origin
from aioinformer.logs import get_logger
from aioinformer.workqueue.requests.outcomes import Park, Unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.running.attached import Attached
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.reflector.state import InformerState
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource
    from aioinformer.workqueue.requests.outcomes import Outcome, Run

_log = get_logger("aioinformer.controller")

#: How many changes of a key, and transitions of a cache, are kept.
CHANGES: Final = 5
TRANSITIONS: Final = 10
#: Of how many keys the runs are remembered, and the seconds after which half of them count.
_KEYS: Final = 2_000
_HALF_LIFE: Final = 300.0
#: What a recorded change takes beside the states.
_OVERHEAD: Final = 500
_DECODED: Final = 8_000
#: At most so many lines of a diff, and characters of a value.
_LINES: Final = 40
_LENGTH: Final = 200
REDACTED: Final = "<redacted>"
_ABSENT: Final = msgspec.UNSET
#: Fields that each write changes.
_NOT_SHOWN: Final = frozenset({"metadata.resourceVersion", "metadata.managedFields", "apiVersion", "kind"})
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class Ran(msgspec.Struct):
    """The runs of a key. The recent ones count more for `heat`."""

    runs: int = 0
    heat: float = 0.0
    seconds: float = 0.0
    longest: float = 0.0
    result: str = ""
    error: str = ""
    failed: float = 0.0
    ended: float = 0.0


class _Changed(msgspec.Struct, frozen=True):
    time: float
    what: str
    old: Record | bytes | None
    new: Record | bytes | None
    size: int
    resource: Resource[Any]
    child: ObjectName | None


class Recording:
    """Records what `follow` is given, until `close`. The page reads it.

    Args:
        limit: bytes for the states of objects; the keys that changed longest ago are dropped first.
        values: whether diffs have values; those of Secrets never.

    Attributes:
        bytes: what the recorded changes take.
        transitions: of each cache, by the name of the informer: time, phase and reason.
        runs: by controller and key.
    """

    def __init__(self, limit: int, *, values: bool) -> None:
        self.limit = limit
        self.values = values
        self.bytes = 0
        self.transitions: dict[str, deque[tuple[float, str, str]]] = {}
        self.runs: OrderedDict[tuple[str, ObjectName], Ran] = OrderedDict()
        self._changes: OrderedDict[tuple[str, ObjectName, bool], deque[_Changed]] = OrderedDict()
        self._followed: WeakSet[SharedIndexInformer[Any]] = WeakSet()
        self._observers: list[_Observer] = []
        #: Of several controllers with one informer, whose observer records for all: by the informer, the resource of
        #: the controllers, and whether it is for owned objects. A resource may own objects of its own kind.
        self.sources: dict[tuple[SharedIndexInformer[Any], str, bool], _Observer] = {}
        self._open = True

    def __len__(self) -> int:
        """Return of how many keys there are changes."""
        return len({(gvr, key) for gvr, key, _ in self._changes})

    def follow(self, active: ActiveController) -> None:
        """Record the runs of a controller, the changes of its primary and of owned objects, and its caches' phases."""
        active.observer = partial(self._ran, active.name)
        for informer in active.inputs.informers():
            if informer not in self._followed:
                self._followed.add(informer)
                informer.add_state_handler(partial(self._moved, informer.name))
                self._moved(informer.name, informer.state)
        self._observers = [each for each in self._observers if not each.has_ended()]
        self.sources = {each: source for each, source in self.sources.items() if not source.has_ended()}
        for attached in active.inputs.attached():
            known = any(each.attached is attached for each in self._observers)
            if isinstance(attached.input, (Primary, Owns)) and not known:
                observer = _Observer(self, active.controller.resource, attached, active.inputs.primary)
                attached.observers.append(observer)
                self._observers.append(observer)

    def close(self) -> None:
        """End the recording. What was recorded stays."""
        self._open = False
        for each in self._observers:
            each.remove()
        self._observers.clear()
        self.sources.clear()

    # What happens.

    def _moved(self, name: str, state: InformerState) -> None:
        known = self.transitions.setdefault(name, deque(maxlen=TRANSITIONS))
        entry = (state.since or time.time(), str(state.phase), state.reason)
        if self._open and (not known or known[-1][1:] != entry[1:]):
            known.append(entry)

    def _ran(self, controller: str, run: Run, name: str, outcome: Outcome, now: float) -> None:
        subject = controller, run.key
        ran = self.runs.pop(subject, None) or Ran()
        self.runs[subject] = ran
        seconds, wall = now - run.started, time.time()
        ran.heat = 1.0 + (ran.heat * 0.5 ** ((wall - ran.ended) / _HALF_LIFE) if ran.runs else 0.0)
        ran.runs, ran.seconds, ran.longest = ran.runs + 1, seconds, max(ran.longest, seconds)
        ran.result, ran.ended = name, wall
        if isinstance(outcome, (Unfinished, Park)):
            why = "" if outcome.error is None else origin(outcome.error)
            ran.error, ran.failed = " - ".join(filter(None, (why, outcome.reason))), wall
        while len(self.runs) > _KEYS:
            self.runs.popitem(last=False)

    def changed(
        self,
        resource: Resource[Any],
        key: ObjectName,
        what: str,
        old: Any,
        new: Any,
        child: tuple[Resource[Any], ObjectName] | None = None,
    ) -> None:
        """Record a change of an object; None is no object.

        Args:
            resource: of the object.
            key: of the object.
            child: its resource and key if the object that changed is another one, which that of the key owns.
        """
        before, after = _state(old), _state(new)
        size = _OVERHEAD + _size(before) + _size(after)
        if size > self.limit:
            return
        # Separate, so that a child whose status changes each second does not hide the changes of its owner.
        subject = resource.gvr, key, child is not None
        known = self._changes.pop(subject, None) or deque[_Changed]()
        self._changes[subject] = known
        of, name = (resource, None) if child is None else child
        known.append(_Changed(time.time(), what, before, after, size, of, name))
        self.bytes += size
        if len(known) > CHANGES:
            self.bytes -= known.popleft().size
        while self.bytes > self.limit:
            _, dropped = self._changes.popitem(last=False)
            self.bytes -= sum(each.size for each in dropped)

    # Reading.

    def changes(self, resource: Resource[Any], key: ObjectName) -> list[dict[str, Any]]:
        """Return the recorded changes of an object and of those that it owns, the last one first."""
        found = [each for child in (False, True) for each in self._changes.get((resource.gvr, key, child), ())]
        return [self._described(each) for each in sorted(found, key=lambda each: each.time, reverse=True)]

    def _described(self, change: _Changed) -> dict[str, Any]:
        old, new = _json(change.old), _json(change.new)
        secret = change.resource.holds_secrets or "Secret" in (old.get("kind"), new.get("kind"))
        lines = []
        for path, before, after in _differences("", old, new) if change.what == "updated" else ():
            if not self.values or secret:
                how = "set" if before is _ABSENT else "removed" if after is _ABSENT else "changed"
                lines.append(f"{path} {how}{f': {REDACTED}' if self.values else ''}")
            else:
                lines += [f"- {path}: {_short(before)}"] if before is not _ABSENT else []
                lines += [f"+ {path}: {_short(after)}"] if after is not _ABSENT else []
        if len(lines) > _LINES:
            lines = [*lines[:_LINES], f"… and {len(lines) - _LINES} more lines"]
        version = (new or old).get("metadata", {}).get("resourceVersion", "")
        managers = [] if change.what == "deleted" else writers(old, new)
        found = {"time": change.time, "what": change.what, "managers": managers, "version": version, "lines": lines}
        return {**found, "child": f"{change.resource.kind} {change.child}" if change.child else ""}


class _Observer(msgspec.Struct, frozen=True, eq=False):
    """Records the changes of the objects of one input, or those of owned objects for their owners."""

    recording: Recording
    resource: Resource[Any]
    attached: Attached
    primary: SharedIndexInformer[Any]

    def __call__(self, key: ObjectName, what: str, old: Any, new: Any) -> None:
        declared, sources = self.attached.input, self.recording.sources
        subject = self.attached.informer, self.resource.gvr, isinstance(declared, Owns)
        if (source := sources.setdefault(subject, self)) is not self:
            if not source.has_ended():
                return
            sources[subject] = self
        try:
            if not isinstance(declared, Owns):
                self.recording.changed(self.resource, key, what, old, new)
                return
            states = [state for state in (old, new) if state is not None]
            for owner in dict.fromkeys(each for state in states for each in declared.owners(state, key, self.primary)):
                self.recording.changed(self.resource, owner, what, old, new, (declared.resource, key))
        except Exception:  # the controller must not miss a change
            self.remove()
            _log.exception("changes of %s are not recorded any more: %s", self.attached.input.resource.gvr, key)

    def has_ended(self) -> bool:
        """Return whether the input is detached."""
        return self.attached.registration.has_ended()

    def remove(self) -> None:
        """Record no more."""
        self.attached.observers[:] = [each for each in self.attached.observers if each is not self]


def writers(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the field managers that wrote a change: those whose entries in the managed fields differ.

    Entries have whole seconds. If none differs, the latest ones are returned, one of which has written it.
    """
    before, after = ((each.get("metadata") or {}).get("managedFields") or [] for each in (old, new))
    latest = max((str(each.get("time")) for each in after), default="")
    found = [each for each in after if each not in before] or [each for each in after if each.get("time") == latest]
    return [" ".join(filter(None, (each.get("manager"), each.get("subresource")))) for each in found]


def _state(obj: Any) -> Record | bytes | None:
    if obj is None or isinstance(obj, View):
        return None if obj is None else obj._record
    try:
        return json_of(obj)
    except USER_ERRORS:  # a class of the user has no JSON form
        return None


def _size(state: Record | bytes | None) -> int:
    # A record of the tier "dict" has no bytes.
    return 0 if state is None else len(state if isinstance(state, bytes) else state.raw) or _DECODED


def _json(state: Record | bytes | None) -> dict[str, Any]:
    try:
        return {} if state is None else _decode(state if isinstance(state, bytes) else state.json)
    except (ValueError, RecursionError):
        return {}


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, former and new value of what differs. Lists are compared by position."""
    if path in _NOT_SHOWN or (old is not _ABSENT and new is not _ABSENT and old == new):
        return
    if isinstance(old, list) and isinstance(new, list):
        old, new = ({str(at): each for at, each in enumerate(value)} for value in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            step = name if name.replace("-", "").replace("_", "").isalnum() else f"['{name}']"
            inner = f"{path}{'.' if path and not step.startswith('[') else ''}{step}"
            yield from _differences(inner, old.get(name, _ABSENT), new.get(name, _ABSENT))
    else:
        yield path, old, new


def _short(value: Any) -> str:
    text = _encode(value).decode()
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}… ({len(text)} characters)"
