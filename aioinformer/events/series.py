"""Decide how events.k8s.io/v1 Events are written, in series as in client-go; without event loop or clock.

Events that are equal except for their note form a series. The second one is written at once, so that the series is
visible. Further ones are counted; the count is written every 30 minutes, and when the series ends, after six minutes
without an Event. So an Event that happens a thousand times within minutes costs three writes.

Differences to client-go: when recording ends, all counts are written (client-go loses them); the number of remembered
series is limited (client-go's is not).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aioinformer.events.correlator import EventCorrelateResult, LRUCache

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from aioinformer.events.event import Event


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """The times and the size of the correlation; times in seconds.

    Attributes:
        refresh: how often the count of a running series is written.
        finish: a series ends after this time without an Event.
        size: how many series are remembered. The least recently used one is forgotten first, with its unwritten count.
    """

    refresh: float = 1800.0
    finish: float = 360.0
    size: int = 4096

    def __post_init__(self) -> None:
        if not 0 < self.finish <= self.refresh:
            raise ValueError(f"times must be 0 < finish <= refresh, not {self.finish!r} and {self.refresh!r}")
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size!r}")


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
    """Combines repeated Events into series.

    Args:
        options: times and size.
    """

    def __init__(self, options: SeriesOptions | None = None) -> None:
        self._options = options or SeriesOptions()
        self._series: LRUCache[_Series] = LRUCache(self._options.size)
        self.period = self._options.finish

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
            over = now - series.last >= self._options.finish
            if over:
                self._series.pop(key)
            if series.event.count > series.written and (over or now - series.written_at >= self._options.refresh):
                results.append(self._write(key, series, now))
        return results

    def finish(self) -> Sequence[EventCorrelateResult]:
        """Return the unwritten counts of all series, and forget the series."""
        series, self._series = self._series.items(), LRUCache(self._options.size)
        return [EventCorrelateResult(key, each.event) for key, each in series if each.event.count > each.written]

    def _write(self, key: Hashable, series: _Series, now: float) -> EventCorrelateResult:
        series.written, series.written_at = series.event.count, now
        return EventCorrelateResult(key, series.event)
