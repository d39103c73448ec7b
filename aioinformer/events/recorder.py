"""The recorders that components call: `EventRecorder`, as in client-go, and `FakeRecorder` for tests."""

from __future__ import annotations

import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from aioinformer.errors import UsageError
from aioinformer.events.event import NORMAL, WARNING, Event
from aioinformer.resources.references import get_reference

if TYPE_CHECKING:
    from aioinformer.resources.references import ObjectReference

_TYPES = (NORMAL, WARNING)
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Recorder(Protocol):
    """The interface for recording Events; `EventRecorder` and `FakeRecorder` implement it."""

    def event(
        self,
        obj: Any,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Any = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record an Event about an object."""

    def eventf(self, obj: Any, type: str, reason: str, message: str, *args: object, **options: Any) -> None:
        """Record an Event with a message in %-format, as in `logging`."""

    def annotated_eventf(
        self,
        obj: Any,
        annotations: Mapping[str, str],
        type: str,
        reason: str,
        message: str,
        *args: object,
        **options: Any,
    ) -> None:
        """Record an Event with annotations and a message in %-format."""


class _BaseRecorder(ABC):
    """Checks the arguments of the three methods and passes them to `_record_event`."""

    def event(
        self,
        obj: Any,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Any = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record an Event about an object.

        Args:
            obj: the object: one from the cache, a model, a mapping with `apiVersion` and `kind`, or an
                `ObjectReference`.
            type: "Normal" or "Warning".
            reason: the reason, for machines: one word in UpperCamelCase, from a small set.
            message: the message, for people. Everyone who may read Events on the server can read it.
            action: the action taken, for machines; the reason by default. Only events.k8s.io/v1 shows it.
            related: another object that is involved.
            annotations: annotations for the Event.

        Raises:
            UsageError: the type is neither of the two, the reason is empty, or the kind of the object is unknown.
            KeyFuncError: the object has no name.
        """
        check(type, reason, message)
        other = get_reference(related) if related is not None else None
        self._record_event(get_reference(obj), type, reason, message, action or reason, other, annotations)

    @abstractmethod
    def _record_event(
        self,
        regarding: ObjectReference,
        type: str,
        reason: str,
        message: str,
        action: str,
        related: ObjectReference | None,
        annotations: Mapping[str, str] | None,
    ) -> None: ...

    def eventf(self, obj: Any, type: str, reason: str, message: str, *args: object, **options: Any) -> None:
        """Record an Event with a message in %-format, as in `logging`.

        Args:
            obj, type, reason: as for `event`.
            message, args: the format of the message, and its arguments.
            options: `action`, `related` and `annotations`, as for `event`.
        """
        self.event(obj, type, reason, message % args if args else message, **options)

    def annotated_eventf(
        self,
        obj: Any,
        annotations: Mapping[str, str],
        type: str,
        reason: str,
        message: str,
        *args: object,
        **options: Any,
    ) -> None:
        """Record an Event with annotations and a message in %-format.

        Args:
            obj, annotations, type, reason: as for `event`.
            message, args: the format of the message, and its arguments.
            options: `action` and `related`, as for `event`.
        """
        self.eventf(obj, type, reason, message, *args, annotations=annotations, **options)


class EventRecorder(_BaseRecorder):
    """Records Events of one component; `EventBroadcaster.new_recorder` returns one.

    No method waits. Call them on the thread of the event loop; on other threads, call
    `loop.call_soon_threadsafe(recorder.event, …)`.

    Args:
        record: called with each Event.
        component: the component that reports the Events (`reportingController`), such as
            "example.com/my-controller" or "my-controller".
        instance: the name of its instance; the host name by default.
        wall: returns nanoseconds since 1970.

    Raises:
        UsageError: the component is empty.
    """

    def __init__(
        self,
        record: Callable[[Event], None],
        component: str,
        instance: str | None = None,
        *,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        if not component:
            raise UsageError('component must not be empty; pass the name of your component, such as "my-controller"')
        self._record = record
        self._component = component
        self._instance = socket.gethostname() if instance is None else instance
        self._wall = wall
        self._last_number = 0

    def _record_event(
        self,
        regarding: ObjectReference,
        type: str,
        reason: str,
        message: str,
        action: str,
        related: ObjectReference | None,
        annotations: Mapping[str, str] | None,
    ) -> None:
        at = self._wall()
        self._record(
            Event(
                namespace=regarding.namespace or "default",
                name=self._name(regarding.name, at),
                regarding=regarding,
                type=type,
                reason=reason,
                note=message,
                action=action,
                controller=self._component,
                instance=self._instance,
                first_time=at,
                last_time=at,
                related=related,
                annotations=annotations,
            )
        )

    def _name(self, obj: str, at: int) -> str:
        # Clocks may repeat a value or go back; names must be unique.
        self._last_number = max(at, self._last_number + 1)
        return generate_event_name(obj, self._last_number)


class FakeRecorder(_BaseRecorder):
    """Keeps recorded Events as text, for tests.

    Attributes:
        events: the Events as "type reason message", oldest first.
    """

    def __init__(self) -> None:
        self.events: list[str] = []

    def _record_event(self, regarding: ObjectReference, type: str, reason: str, message: str, *rest: object) -> None:
        self.events.append(f"{type} {reason} {message}")


def check(type: str, reason: str, message: str) -> None:
    """Raise unless an Event may have this type, reason and message.

    Raises:
        UsageError: the type is unknown, the reason is empty, or the message is not a string.
    """
    if type not in _TYPES:
        raise UsageError(f"type of an event must be {' or '.join(map(repr, _TYPES))}, not {type!r}")
    if not reason or not isinstance(reason, str):
        raise UsageError(f'reason of an event must be a word such as "FailedMount", not {reason!r}')
    if not isinstance(message, str):
        raise UsageError(f"message of an event must be a string, not {message!r}")


def generate_event_name(obj: str, number: int) -> str:
    """Return the object's name with a number, or a random name if that is not a valid name for an Event."""
    name = f"{obj}.{number:x}"
    return name if _SUBDOMAIN.fullmatch(name) else str(uuid4())
