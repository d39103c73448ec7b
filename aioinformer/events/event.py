"""An Event of Kubernetes: what a component says of an object, in the two forms that the API has for it.

The older form (core/v1) counts repetitions in `count`, and has no action; the newer one (events.k8s.io/v1) counts them
in `series`, and wants to know who did what. Both are one collection on the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.references import ObjectReference

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

#: Longer ones are refused by events.k8s.io/v1; in bytes.
_LONGEST_NOTE = 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One Event, or a number of the same.

    Attributes:
        namespace: where it is kept: that of the object, or "default".
        name: of the Event itself.
        regarding: the object it is about.
        type: "Normal" or "Warning".
        reason: why, for machines: "FailedScheduling".
        note: what, for people.
        action: what was done, for machines.
        related: another object that plays a part in it.
        controller: who says it.
        instance: which one of those.
        annotations: of the Event.
        first_time: when it happened first, in nanoseconds since 1970.
        last_time: when it happened last.
        count: how often it happened.
    """

    namespace: str
    name: str
    regarding: ObjectReference
    type: str
    reason: str
    note: str
    action: str
    controller: str
    instance: str
    first_time: int
    last_time: int
    related: ObjectReference | None = None
    annotations: Mapping[str, str] | None = None
    count: int = 1

    def to_core(self) -> dict[str, Any]:
        """As core/v1 has it."""
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": self._metadata(),
            "involvedObject": self.regarding.to_dict(),
            "type": self.type,
            "reason": self.reason,
            "source": {"component": self.controller, "host": self.instance},
            "reportingComponent": self.controller,
            "reportingInstance": self.instance,
            "firstTimestamp": _seconds(self.first_time),
            **self._action(),
            **self.core_changes(),
        }

    def core_changes(self) -> dict[str, Any]:
        """What a repetition changes in core/v1."""
        return {"count": self.count, "lastTimestamp": _seconds(self.last_time), "message": self.note}

    def to_events(self) -> dict[str, Any]:
        """As events.k8s.io/v1 has it; a note that is too long for it is cut."""
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": self._metadata(),
            "regarding": self.regarding.to_dict(),
            "type": self.type,
            "reason": self.reason,
            "note": self.note.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            "reportingController": self.controller,
            "reportingInstance": self.instance or self.controller,
            "eventTime": _microseconds(self.first_time),
            **self._action(),
        }
        return event if self.count == 1 else {**event, **self.events_changes()}

    def events_changes(self) -> dict[str, Any]:
        """What a repetition changes in events.k8s.io/v1."""
        return {"series": {"count": self.count, "lastObservedTime": _microseconds(self.last_time)}}

    def _metadata(self) -> dict[str, Any]:
        annotations = {"annotations": dict(self.annotations)} if self.annotations else {}
        return {"namespace": self.namespace, "name": self.name, **annotations}

    def _action(self) -> dict[str, Any]:
        related = {"related": self.related.to_dict()} if self.related is not None else {}
        return {"action": self.action, **related}


def _seconds(nanoseconds: int) -> str:
    return _at(nanoseconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def _microseconds(nanoseconds: int) -> str:
    return _at(nanoseconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _at(nanoseconds: int) -> datetime:
    # In whole numbers: a float of seconds since 1970 is not exact to the microsecond.
    seconds, rest = divmod(nanoseconds, 10**9)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
