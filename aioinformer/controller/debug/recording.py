"""What is recorded while a debug page exists: changes of objects, runs of keys, and transitions of caches.

All of it has a limit. Diffs and figures are computed when they are read. Values of Secrets are in no diff, whatever the
options.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from sys import maxsize
from time import time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import msgspec

from aioinformer.controller.debug.history import CHANGES, Histories, LastFew
from aioinformer.controller.inputs.mapping import Owns, Primary
from aioinformer.errors import USER_ERRORS
from aioinformer.functions import origin
from aioinformer.resources.keys import ObjectName, split_meta_namespace_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.controller.debug.history import Change, History, State
    from aioinformer.controller.running.active import ActiveController, EndedRun
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.reflector.state import InformerState
    from aioinformer.resources.resource import Resource
    from aioinformer.workqueue.requests.outcomes import Park, Unfinished

#: How many runs of a key, and transitions of a cache, are kept.
RUNS: Final = 10
TRANSITIONS: Final = 10
#: Of how many keys the runs are kept, and the errors.
_KEYS: Final = 2_000
#: How many runs are kept until the page is read: each is a tuple, so that it costs nearly nothing.
_RECENT: Final = 5_000
#: At most so many lines of a diff, and characters of a value.
_LINES: Final = 40
_LENGTH: Final = 200
REDACTED: Final = "<redacted>"
_ABSENT: Final = msgspec.UNSET
#: Fields that each write changes.
_NOT_SHOWN: Final = frozenset({"metadata.resourceVersion", "metadata.managedFields", "apiVersion", "kind"})
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Followed(msgspec.Struct, frozen=True, eq=False):
    """An input whose changes are recorded.

    Attributes:
        gvr: of the resource of the controller.
        owns: the input, if it is one of owned objects; None for the controller's own ones.
        resource, informer: of the objects.
        primary: the informer of the controller's own objects.
    """

    gvr: str
    owns: Owns[Any] | None
    resource: Resource[Any]
    informer: SharedIndexInformer[Any]
    primary: SharedIndexInformer[Any]

    def changes(self, key: ObjectName, history: History) -> Iterator[tuple[Change, str]]:
        """Yield the changes of an object, or those of the objects that it owns, with the key of the owned object."""
        if self.owns is None:
            yield from ((change, "") for change in history.changes(str(key)))
        else:
            for child in history.naming(_encode(key.name)):
                name = split_meta_namespace_key(child)
                yield from ((each, child) for each in history.changes(child) if self._shows(each, name, key, self.owns))

    def _shows(self, change: Change, child: ObjectName, owner: ObjectName, owns: Owns[Any]) -> bool:
        states = [_json(state) for state in change[1:] if state.raw]
        try:
            return any(owner in owns.owners(state, child, self.primary) for state in states)
        except USER_ERRORS:  # owner references that are none
            return False


class Recording:
    """Records what `follow` is given, until `close`. The page reads it.

    Args:
        limit: bytes for the states of objects; the objects that changed longest ago are dropped first.
        values: whether diffs have values; those of Secrets never.

    Attributes:
        histories: the changes, by informer.
        transitions: of each cache, by the name of the informer: time, phase and reason.
        runs: the last runs by controller and key, those of `recent_runs` after `fold`: when each ended and began, by
            the clock of the event loop, and the name of its result.
        recent_runs: as those of `ActiveController`.
        errors: by controller and key, the time and the text of the last error of a key that has failed.
    """

    def __init__(self, limit: int, *, values: bool) -> None:
        self.values = values
        self.transitions: LastFew[str] = LastFew(TRANSITIONS, maxsize)
        self.runs: LastFew[tuple[str, ObjectName]] = LastFew(RUNS, _KEYS)
        self.recent_runs: deque[EndedRun] = deque(maxlen=_RECENT)
        self.errors: LastFew[tuple[str, ObjectName]] = LastFew(1, _KEYS)
        self.histories = Histories(limit)
        self._followed: WeakSet[SharedIndexInformer[Any]] = WeakSet()
        self._inputs: dict[HandlerRegistration[Any], _Followed] = {}
        self._open = True

    def follow(self, active: ActiveController) -> None:
        """Record the runs of a controller, the changes of its primary and of owned objects, and its caches' phases."""
        active.recent_runs = self.recent_runs
        active.on_failure = partial(self._failed, active.name)
        for informer in active.inputs.informers():
            if informer not in self._followed:
                self._followed.add(informer)
                informer.add_state_handler(partial(self._moved, informer.name))
                self._moved(informer.name, informer.state)
        self._inputs = {each: known for each, known in self._inputs.items() if not each.has_ended()}
        gvr = active.controller.resource.gvr
        primary = active.inputs.primary
        for each in active.inputs.attached():
            if isinstance(each.input, (Primary, Owns)):
                owns = each.input if isinstance(each.input, Owns) else None
                self._inputs[each.registration] = _Followed(gvr, owns, each.input.resource, each.informer, primary)
        self.histories.follow({each.informer for each in self._inputs.values()})

    def close(self) -> None:
        """End the recording. What was recorded stays."""
        self._open = False
        for each in self.histories.values():
            each.close()

    def _moved(self, name: str, state: InformerState) -> None:
        known = self.transitions[name]
        entry = (state.since or time(), str(state.phase), state.reason)
        if self._open and (not known or known[-1][1:] != entry[1:]):
            known.append(entry)

    def _failed(self, controller: str, key: ObjectName, outcome: Unfinished | Park) -> None:
        why = "" if outcome.error is None else origin(outcome.error)
        self.errors[controller, key].append((time(), " - ".join(filter(None, (why, outcome.reason)))))

    # Reading.

    def changes(self, resource: Resource[Any], key: ObjectName) -> list[dict[str, Any]]:
        """Return the last changes of an object, and the last ones of those that it owns, the last one first."""
        own: dict[Any, tuple[Change, Resource[Any], str]] = {}
        owned: dict[Any, tuple[Change, Resource[Any], str]] = {}
        for each in self._inputs.values():
            if each.gvr == resource.gvr:
                found = own if each.owns is None else owned
                for change, child in each.changes(key, self.histories[each.informer]):
                    # Of several controllers with one informer, each has the change.
                    found[child, change[0], id(change[1])] = change, each.resource, child
        # Separate, so that a child whose status changes each second does not hide the changes of its owner.
        latest = [shown for found in (own, owned) for shown in sorted(found.values(), key=_when)[-CHANGES:]]
        # Not `reverse=True`: changes of one batch have one time, and must not keep their order.
        return [self._described(*shown) for shown in sorted(latest, key=_when)[::-1]]

    def fold(self) -> LastFew[tuple[str, ObjectName]]:
        """Add the recent runs to `runs`, and return these."""
        while self.recent_runs:
            controller, key, *run = self.recent_runs.popleft()
            self.runs[controller, key].append(run)
        return self.runs

    def ran(self, controller: str, key: ObjectName) -> dict[str, Any] | None:
        """Return what is known of the last runs of a key; None for none."""
        entries = self.fold().get((controller, key))
        if not entries:
            return None
        ended, began, result = entries[-1]
        return {
            "count": len(entries),
            "more": len(entries) == RUNS,
            "last": ended - began,
            "longest": longest(entries),
            "result": result,
            "ended": time() - (asyncio.get_running_loop().time() - ended),
        }

    def _described(self, change: Change, resource: Resource[Any], child: str) -> dict[str, Any]:
        at, before_it, after_it = change
        what = "updated"
        if not before_it.raw:
            what = "added"
        elif not after_it.raw:
            what = "deleted"
        old = _json(before_it)
        new = _json(after_it)
        secret = resource.holds_secrets or "Secret" in (old.get("kind"), new.get("kind"))
        lines = []
        for path, before, after in _differences("", old, new) if what == "updated" else ():
            if not self.values or secret:
                how = "changed"
                if before is _ABSENT:
                    how = "set"
                elif after is _ABSENT:
                    how = "removed"
                lines.append(f"{path} {how}{f': {REDACTED}' if self.values else ''}")
            else:
                lines += [f"- {path}: {_short(before)}"] if before is not _ABSENT else []
                lines += [f"+ {path}: {_short(after)}"] if after is not _ABSENT else []
        if what == "updated" and not lines:
            lines = ["nothing but managed fields"]
        if len(lines) > _LINES:
            lines = [*lines[:_LINES], f"… and {len(lines) - _LINES} more lines"]
        version = (new or old).get("metadata", {}).get("resourceVersion", "")
        managers = [] if what == "deleted" else writers(old, new)
        found = {"time": at, "what": what, "managers": managers, "version": version, "lines": lines}
        return {**found, "child": f"{resource.kind} {child}" if child else ""}


def longest(entries: Iterable[tuple[float, float, str]]) -> float:
    """Return how long the longest of some runs took."""
    return max(ended - began for ended, began, _ in entries)


def writers(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the field managers that wrote a change: those whose entries in the managed fields differ.

    Entries have whole seconds, or no time. If none differs, the latest ones are returned, one of which has written it;
    those of the subresource if only the status has changed.
    """
    before, after = ((each.get("metadata") or {}).get("managedFields") or [] for each in (old, new))
    found = [each for each in after if each not in before]
    if not found:
        parts = {name for name in {*old, *new} - {"metadata"} if old.get(name) != new.get(name)}
        found = [each for each in after if (each.get("subresource") == "status") == (parts == {"status"})]
        latest = max((each.get("time") or "" for each in found), default="")
        found = [each for each in found if (each.get("time") or "") == latest]
    return [" ".join(filter(None, (each.get("manager"), each.get("subresource")))) for each in found]


def _json(state: State) -> dict[str, Any]:
    try:
        return _decode(state.json)
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


def _when(shown: tuple[Change, Any, str]) -> float:
    return shown[0][0]


def _short(value: Any) -> str:
    text = _encode(value).decode()
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}… ({len(text)} characters)"
