"""The sinks that Events are written to: the two APIs of the server, and the interface for other sinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from aioinformer.client.client import Client
from aioinformer.errors import UsageError
from aioinformer.events.correlator import Correlator, EventCorrelator
from aioinformer.events.event import Event
from aioinformer.events.series import EventSeriesCorrelator
from aioinformer.resources import catalog
from aioinformer.resources.discovery import Discovery
from aioinformer.transport import Transport
from aioinformer.transport.clients import Connection


class EventSink(Protocol):
    """Writes Events. `aioinformer.events.writer` says which errors are retried."""

    def new_correlator(self) -> Correlator:
        """Return the default correlator for this sink."""

    async def create(self, event: Event) -> None:
        """Create an Event."""

    async def patch(self, event: Event) -> None:
        """Update the count and the last time of the Event with this name."""


class _ApiEventSink:
    """Writes Events to one API of the server, in its form."""

    _group: ClassVar[str]
    #: Return the object to create for an Event, and the patch after a repetition.
    _forms: ClassVar[tuple[Callable[[Event], dict[str, Any]], Callable[[Event], dict[str, Any]]]]

    def __init__(self, transport: Transport | Connection) -> None:
        resource = catalog.find(self._group, "v1", "events")
        assert resource is not None, "Events are built in"
        # The writer repeats what fails.
        self._events = Client(transport, retry=False).resource(resource)

    async def create(self, event: Event) -> None:
        """Create an Event."""
        await self._events.create(self._forms[0](event))

    async def patch(self, event: Event) -> None:
        """Update the Event with this name after a repetition."""
        await self._events.patch(event.name, self._forms[1](event), namespace=event.namespace)


class CoreEventSink(_ApiEventSink):
    """Writes Events to core/v1: counts repetitions, combines similar Events, and limits each source.

    Args:
        transport: sends the requests; a `Connection` or a transport.
    """

    api_version = "v1"
    _group = ""
    _forms = (Event.to_core, Event.core_changes)

    def new_correlator(self) -> Correlator:
        """Return client-go's correlator with its default limits."""
        return EventCorrelator()


class SeriesEventSink(_ApiEventSink):
    """Writes Events to events.k8s.io/v1, with repetitions as a series.

    Args:
        transport: sends the requests; a `Connection` or a transport.
    """

    api_version = "events.k8s.io/v1"
    _group = "events.k8s.io"
    _forms = (Event.to_events, Event.events_changes)

    def new_correlator(self) -> Correlator:
        """Return client-go's series correlator with its default times."""
        return EventSeriesCorrelator()


async def discover_event_sink(transport: Transport | Connection) -> CoreEventSink | SeriesEventSink:
    """Return a sink for events.k8s.io/v1 if the server has it, otherwise for core/v1.

    Raises:
        TransportError: the server was not reached.
        ApiError: the server refused discovery.
        DecodeError: the server's answer is not a discovery document.
        DiscoveryIncomplete: discovery does not show whether the server has events.k8s.io/v1.
    """
    served = await Discovery(transport).resources()
    try:
        served.resolve(f"{SeriesEventSink.api_version}/events")
    except UsageError:
        return CoreEventSink(transport)
    return SeriesEventSink(transport)
