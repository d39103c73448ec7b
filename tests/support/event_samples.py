"""Sample Events, and a sink with faults."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.errors import ApiError
from aioinformer.events import Event, EventCorrelator
from aioinformer.resources import ObjectReference

if TYPE_CHECKING:
    from aioinformer.events import Correlator

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "shop", "name": "cart", "uid": "u1", "resourceVersion": "7"},
}
REFERENCE = ObjectReference("v1", "Pod", "cart", "shop", "u1", "7")

#: 2023-11-14T22:13:20.5Z in nanoseconds.
AT = 1_700_000_000_500_000_000

_EVENT = Event("shop", "cart.1", REFERENCE, "Normal", "Started", "it runs", "Start", "web", "host-1", AT, AT)


def event(**changes: Any) -> Event:
    return replace(_EVENT, **changes)


class Sink:
    """Keeps written Events by name.

    Attributes:
        events: the stored Events.
        writes: "create name count" or "patch name count" for each write, failed ones included.
        failures: the errors of the next writes.
        answering: while cleared, writes do not return.
    """

    def __init__(self, correlator: Correlator | None = None) -> None:
        self.events: dict[str, Event] = {}
        self.writes: list[str] = []
        self.failures: deque[Exception] = deque()
        self.answering = asyncio.Event()
        self.answering.set()
        self._correlator = correlator or EventCorrelator()

    def new_correlator(self) -> Correlator:
        return self._correlator

    async def create(self, event: Event) -> None:
        await self._write("create", event)
        if event.name in self.events:
            raise ApiError(409, "AlreadyExists")
        self.events[event.name] = event

    async def patch(self, event: Event) -> None:
        await self._write("patch", event)
        if event.name not in self.events:
            raise ApiError(404, "NotFound")
        self.events[event.name] = event

    async def _write(self, verb: str, event: Event) -> None:
        self.writes.append(f"{verb} {event.name} {event.count}")
        await self.answering.wait()
        if self.failures:
            raise self.failures.popleft()
