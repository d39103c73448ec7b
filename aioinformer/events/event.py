"""A Kubernetes Event, and its representation in the two APIs.

core/v1 counts repetitions in `count`. events.k8s.io/v1 counts them in `series`, and requires an action and a reporting
instance. On the server, both APIs are views of the same collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aioinformer.resources.references import ObjectReference

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

#: events.k8s.io/v1 refuses longer notes; in bytes.
_MAX_NOTE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One Event with its repetitions.

    Attributes:
        namespace: the namespace of the Event: that of the object, or "default".
        name: the name of the Event.
        regarding: the object that the Event is about.
        type: "Normal" or "Warning".
        reason: the reason, for machines, such as "FailedScheduling".
        note: the message, for people.
        action: the action taken, for machines.
        related: another object that is involved.
        controller: the component that reports the Event.
        instance: the instance of that component.
        annotations: the annotations of the Event.
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
        """Return the core/v1 object."""
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
        """Return the core/v1 fields that a repetition changes."""
        return {"count": self.count, "lastTimestamp": _seconds(self.last_time), "message": self.note}

    def to_events(self) -> dict[str, Any]:
        """Return the events.k8s.io/v1 object; a note that is too long is truncated."""
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": self._metadata(),
            "regarding": self.regarding.to_dict(),
            "type": self.type,
            "reason": self.reason,
            "note": self.note.encode()[:_MAX_NOTE_BYTES].decode(errors="ignore"),
            "reportingController": self.controller,
            "reportingInstance": self.instance or self.controller,
            "eventTime": _microseconds(self.first_time),
            **self._action(),
        }
        return event if self.count == 1 else {**event, **self.events_changes()}

    def events_changes(self) -> dict[str, Any]:
        """Return the events.k8s.io/v1 fields that a repetition changes."""
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
    # Integers only: a float of seconds since 1970 is not exact to the microsecond.
    seconds, rest = divmod(nanoseconds, 10**9)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
