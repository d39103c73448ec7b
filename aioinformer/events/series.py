"""Which of many Events are written, and as what: client-go's series for events.k8s.io/v1, without loop or clock.

An Event that says the same as one of the last minutes, whatever its note, makes a series of it (EV-10). The second one
is written at once, so that everybody sees a series; those that follow are counted, and written every half an hour, and
when the series is over: after six minutes without another one (EV-11). So an Event that happens a thousand times costs
three writes.

Where client-go is not followed: it keeps what it has counted to itself when it ends. Here the end of the recorder is
the end of every series. And it remembers as many series as there are; here it is a number of them.
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
    """The numbers of series; times in seconds.

    Attributes:
        refresh: a series that goes on is written so often.
        finish: a series, or a single Event, is over after so long.
        size: so many are remembered; the one that was seen longest ago is forgotten first, with what was not written.
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
    """What is remembered of an Event: as it is now, how much of it was written, and when that and the last one were."""

    event: Event
    last: float
    written: int
    written_at: float


def series_key(event: Event) -> Hashable:
    """The same for Events that make a series."""
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
    """Makes series of Events that repeat.

    Args:
        options: numbers.
    """

    def __init__(self, options: SeriesOptions | None = None) -> None:
        self._options = options or SeriesOptions()
        self._series: LRUCache[_Series] = LRUCache(self._options.size)
        self.period = self._options.finish

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """What becomes of an Event that happens now."""
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
        """The last word on series that are over, which are forgotten; and on those that go on, every half an hour."""
        results = []
        for key, series in self._series.items():
            over = now - series.last >= self._options.finish
            if over:
                self._series.pop(key)
            if series.event.count > series.written and (over or now - series.written_at >= self._options.refresh):
                results.append(self._write(key, series, now))
        return results

    def finish(self) -> Sequence[EventCorrelateResult]:
        """The last word on all series; nothing is remembered after that."""
        series, self._series = self._series.items(), LRUCache(self._options.size)
        return [EventCorrelateResult(key, each.event) for key, each in series if each.event.count > each.written]

    def _write(self, key: Hashable, series: _Series, now: float) -> EventCorrelateResult:
        series.written, series.written_at = series.event.count, now
        return EventCorrelateResult(key, series.event)
