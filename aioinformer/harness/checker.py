"""Does a controller converge? Counts and compares what changes since the last change by a user."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from aioinformer.harness.process import ACTOR, UNCOUNTED, Write
from aioinformer.harness.story import content, differences
from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from aioinformer.testing.state.storage import Change

#: Since a user's change: how often an object may have the same content, and change; how many objects of a resource may
#: be created; and how many equal requests without effect may be sent in the quiet time at the end.
_REPEATS = 5
_MOST_CHANGES = 30
_MOST_CREATED = 100
_MOST_IDLE = 5


class HarnessFailure(AssertionError):
    """A controller does not do what it must. The notes of the error have the story of the run, and how to repeat it."""


class NotConverged(HarnessFailure):
    """The controller does not come to rest, or does not reconcile a key."""


class Checker:
    """Notes the changes of all objects, and finds those that do not end."""

    def __init__(self) -> None:
        self.changes = 0
        self.last = ""  # the last change
        self.problem = ""  # why the controller does not converge
        self._contents: dict[str, list[Any]] = {}
        self._created: Counter[str] = Counter()

    def note(self, collection: str, change: Change, *, fresh: bool) -> None:
        """Note a change. A change by a user starts the counts anew; while watches are not fresh, nothing is counted."""
        if collection.partition(".")[0] in UNCOUNTED:
            return
        before = None if change.previous is None else content(decode(change.previous.body))
        after = None if change.type == "DELETED" else content(decode(change.record.body))
        what = f"{collection} {change.record.key}"
        fields = "; ".join(differences(before or {}, after or {})) or "no field that counts"
        self.changes += 1
        self.last = f"{what}: {fields}"
        if ACTOR.get() == "user":
            self._contents.clear()
            self._created.clear()
            self.problem = ""
        elif fresh:
            known = self._contents.setdefault(what, [])
            known.append(after)
            self._created[collection] += change.type == "ADDED"
            if known.count(after) >= _REPEATS and before != after:
                self.problem = f"{what} oscillates: it has the same content for the {_REPEATS}th time; {fields}"
            elif len(known) > _MOST_CHANGES:
                self.problem = f"{what} was changed {_MOST_CHANGES} times without a change by a user; {fields}"
            elif self._created[collection] > _MOST_CREATED:
                self.problem = f"{self._created[collection]} {collection} were created without a change by a user"


def idle_writes(writes: list[Write], since: float) -> str:
    """Return which request was repeated although it changes nothing; "" for none."""
    idle = Counter(write.request for write in writes if write.at >= since and not write.changed)
    request, count = idle.most_common(1)[0] if idle else ("", 0)
    if count > _MOST_IDLE:
        return f"{request} was sent {count} times while no object changed"
    return ""
