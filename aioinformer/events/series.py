"""Decide how events.k8s.io/v1 Events are written, in series as in client-go; without event loop or clock.

Events that are equal except for their note form a series. The second one is written at once, so that the series is
visible. Further ones are counted; the count is written every 30 minutes, and when the series ends, after six minutes
without an Event. So an Event that happens a thousand times within minutes costs three writes.

Differences to client-go: when recording ends, all counts are written (client-go loses them); the number of remembered
series is limited (client-go's is not).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from aioinformer.events.correlator import EventCorrelateResult, LRUCache
from aioinformer.events.event import Event

#: Seconds after which the count of a running series is written, and after which a series without an Event ends.
_REFRESH: Final = 1800.0
_FINISH: Final = 360.0


@dataclass(slots=True)
class _Series:
    """The state of a series: its Event with the current count, the written count, and the times of both."""

    event: Event
    last: float
    written: int
    written_at: float


def series_key(event: Event) -> Hashable:
    """Return a key that is equal for the Events of one series."""
    return (
        event.type,
        event.action,
        event.reason,
        event.controller,
        event.instance,
        replace(event.regarding, resource_version=""),
        event.related and replace(event.related, resource_version=""),
    )


class EventSeriesCorrelator:
    """Combines repeated Events into series."""

    period = _FINISH

    def __init__(self) -> None:
        self._series: LRUCache[_Series] = LRUCache()

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """Decide how to write an Event that is recorded now."""
        key = series_key(event)
        known = self._series.get(key)
        if known is None:
            self._series.put(key, _Series(event, now, 1, now))
            return EventCorrelateResult(key, event)
        known.event = replace(known.event, count=known.event.count + 1, last_time=event.last_time)
        known.last = now
        if known.event.count > 2:
            return EventCorrelateResult(key, known.event, skip=True)
        return self._write(key, known, now)

    def due(self, now: float) -> Sequence[EventCorrelateResult]:
        """Return the unwritten counts of series that have ended, and of running ones every `refresh` seconds."""
        results = []
        for key, series in self._series.items():
            over = now - series.last >= _FINISH
            if over:
                self._series.pop(key)
            if series.event.count > series.written and (over or now - series.written_at >= _REFRESH):
                results.append(self._write(key, series, now))
        return results

    def finish(self) -> Sequence[EventCorrelateResult]:
        """Return the unwritten counts of all series, and forget the series."""
        series = self._series.items()
        self._series = LRUCache()
        return [EventCorrelateResult(key, each.event) for key, each in series if each.event.count > each.written]

    def _write(self, key: Hashable, series: _Series, now: float) -> EventCorrelateResult:
        series.written = series.event.count
        series.written_at = now
        return EventCorrelateResult(key, series.event)
