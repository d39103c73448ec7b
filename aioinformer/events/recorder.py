"""What components call to record Events: client-go's EventRecorder, and one for tests."""

from __future__ import annotations

import re
import socket
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from aioinformer.errors import UsageError
from aioinformer.events.event import NORMAL, WARNING, Event
from aioinformer.resources.references import get_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.resources.references import ObjectReference

_TYPES = (NORMAL, WARNING)
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Recorder(Protocol):
    """What a component needs to record Events; `EventRecorder` and `FakeRecorder` are it."""

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
        """Records an Event about an object."""
        ...

    def eventf(self, obj: Any, type: str, reason: str, message: str, *args: object, **options: Any) -> None:
        """The same, with a message whose `%` are filled from the arguments, as in `logging`."""
        ...

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
        """The same, with annotations for the Event."""
        ...


class _Recording(ABC):
    """The forms of `event`, for those who say what becomes of an Event that can be like this."""

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
        """Records an Event about an object.

        Args:
            obj: what it is about: what the cache hands out, a model, a mapping with `apiVersion` and `kind`, or an
                `ObjectReference`.
            type: "Normal" or "Warning".
            reason: why, for machines: one word in UpperCamelCase, of a small set.
            message: what, for people. It is stored on the server, for everybody who may read Events.
            action: what was done, for machines; the reason by default. Only the newer API shows it.
            related: another object that plays a part in it.
            annotations: of the Event.

        Raises:
            UsageError: the type is another, the reason is empty, or nothing says of which kind the object is.
            KeyFuncError: the object has no name.
        """
        check(type, reason, message)
        other = get_reference(related) if related is not None else None
        self._take(get_reference(obj), type, reason, message, action or reason, other, annotations)

    @abstractmethod
    def _take(
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
        """As `event`, with a message whose `%` are filled from the arguments, as in `logging`.

        Args:
            obj: what it is about.
            type: "Normal" or "Warning".
            reason: why, for machines.
            message: a format.
            args: fill it.
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
        """As `eventf`, with annotations for the Event.

        Args:
            obj: what it is about.
            annotations: of the Event.
            type: "Normal" or "Warning".
            reason: why, for machines.
            message: a format.
            args: fill it.
            options: `action` and `related`, as for `event`.
        """
        self.eventf(obj, type, reason, message, *args, annotations=annotations, **options)


class EventRecorder(_Recording):
    """Records Events of one component; a broadcaster makes it.

    Every method is a plain call that never waits, made on the thread of the event loop; other threads call
    `loop.call_soon_threadsafe(recorder.event, …)`.

    Args:
        record: takes the Events.
        component: who says it, as `reportingController`: "example.com/my-controller", or without a domain.
        instance: which one of those; by default, the name of the host.
        wall: nanoseconds since 1970.
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
            raise UsageError("component must say who records the events; it must not be empty")
        self._record = record
        self._component = component
        self._instance = socket.gethostname() if instance is None else instance
        self._wall = wall
        self._last_name = 0

    def _take(
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
        # Clocks may show the same twice, or go back; a name must not come twice.
        self._last_name = max(at, self._last_name + 1)
        return generate_event_name(obj, self._last_name)


class FakeRecorder(_Recording):
    """Keeps what is recorded, for tests.

    Attributes:
        events: as "type reason message", oldest first.
    """

    def __init__(self) -> None:
        self.events: list[str] = []

    def _take(self, regarding: ObjectReference, type: str, reason: str, message: str, *rest: object) -> None:
        self.events.append(f"{type} {reason} {message}")


def check(type: str, reason: str, message: str) -> None:
    """Does nothing if Events can be like this.

    Raises:
        UsageError: the type is unknown, the reason is empty, or the message is no text.
    """
    if type not in _TYPES:
        raise UsageError(f"type of an event must be {' or '.join(map(repr, _TYPES))}, not {type!r}")
    if not reason or not isinstance(reason, str):
        raise UsageError(f"reason of an event must be a word for machines, not {reason!r}")
    if not isinstance(message, str):
        raise UsageError(f"message of an event must be a text, not {message!r}")


def generate_event_name(obj: str, number: int) -> str:
    """A name for an Event: that of the object and a number, or any if objects are named as Events cannot be."""
    name = f"{obj}.{number:x}"
    return name if _SUBDOMAIN.fullmatch(name) else str(uuid4())
