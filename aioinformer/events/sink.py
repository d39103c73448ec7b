"""Where Events go: the two APIs of the server that take them, and what else has these two methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from aioinformer.errors import UsageError
from aioinformer.events.correlator import EventCorrelator
from aioinformer.events.series import EventSeriesCorrelator
from aioinformer.resources import catalog
from aioinformer.resources.discovery import Discovery
from aioinformer.transport import Request
from aioinformer.transport.clients import transport_of
from aioinformer.transport.exchange import exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.events.correlator import Correlator
    from aioinformer.events.event import Event
    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection

_TIMEOUT = 30.0
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"


class EventSink(Protocol):
    """Takes Events. What it raises decides what becomes of one: see `aioinformer.events.writer`."""

    def new_correlator(self) -> Correlator:
        """What decides which Events are written here, unless somebody else says it."""
        ...

    async def create(self, event: Event) -> None:
        """Writes a new Event."""
        ...

    async def patch(self, event: Event) -> None:
        """Brings up to date how often and when last an Event happened that was written under this name."""
        ...


class CoreEventSink:
    """Events of core/v1: repetitions are counted, similar ones become one, too many are left out.

    Args:
        transport: reaches the server.
    """

    api_version = "v1"

    def __init__(self, transport: Transport | Connection) -> None:
        self._api = _EventApi(transport, "")

    def new_correlator(self) -> Correlator:
        """client-go's correlation, with its numbers."""
        return EventCorrelator()

    async def create(self, event: Event) -> None:
        """Writes a new Event."""
        await self._api.create(event.namespace, event.to_core())

    async def patch(self, event: Event) -> None:
        """Writes count, message and time of one that is there."""
        await self._api.patch(event.namespace, event.name, event.core_changes())


class SeriesEventSink:
    """Events of events.k8s.io/v1: repetitions make a series.

    Args:
        transport: reaches the server.
    """

    api_version = "events.k8s.io/v1"

    def __init__(self, transport: Transport | Connection) -> None:
        self._api = _EventApi(transport, "events.k8s.io")

    def new_correlator(self) -> Correlator:
        """client-go's series, with its numbers."""
        return EventSeriesCorrelator()

    async def create(self, event: Event) -> None:
        """Writes a new Event."""
        await self._api.create(event.namespace, event.to_events())

    async def patch(self, event: Event) -> None:
        """Writes the series of one that is there."""
        await self._api.patch(event.namespace, event.name, event.events_changes())


async def discover_event_sink(transport: Transport | Connection) -> CoreEventSink | SeriesEventSink:
    """The sink for the newer API where the server has it, for the older one where not (EV-13).

    Raises:
        TransportError: the server was not reached.
        ApiError: the server refuses to tell what it serves.
        DecodeError: it tells something that is no discovery document.
        DiscoveryIncomplete: it cannot tell whether it has the newer API.
    """
    served = await Discovery(transport).resources()
    try:
        served.resolve(f"{SeriesEventSink.api_version}/events")
    except UsageError:
        return CoreEventSink(transport)
    return SeriesEventSink(transport)


class _EventApi:
    """Creates and patches Events of one API."""

    def __init__(self, transport: Transport | Connection, group: str) -> None:
        resource = catalog.find(group, "v1", "events")
        assert resource is not None
        self._resource = resource
        self._transport = transport_of(transport)

    async def create(self, namespace: str, event: Mapping[str, Any]) -> None:
        await self._send("POST", self._resource.path(namespace), _JSON, event)

    async def patch(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        await self._send("PATCH", self._resource.path(namespace, name), _MERGE_PATCH, changes)

    async def _send(self, method: str, path: str, content_type: str, body: Mapping[str, Any]) -> None:
        headers = {"Accept": _JSON, "Content-Type": content_type}
        request = Request(path, method=method, headers=headers, body=msgspec.json.encode(body), total_timeout=_TIMEOUT)
        await exchange(self._transport, request, "Event")
