"""Series of Events, with the time as an argument."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.events.series import EventSeriesCorrelator, SeriesOptions
from aioinformer.resources.references import ObjectReference
from tests.support.event_samples import event

MINUTE = 60.0


class Correlation:
    def __init__(self, **options: Any) -> None:
        self.correlator = EventSeriesCorrelator(SeriesOptions(**options))
        self.number = 0

    def record(self, now: float, **changes: Any) -> int:
        """Record an Event; return the count that is written, 0 for no write."""
        self.number += 1
        recorded = event(name=f"cart.{self.number}", last_time=int(now), **changes)
        result = self.correlator.event_correlate(recorded, now)
        return 0 if result.skip else result.event.count

    def due(self, now: float) -> list[tuple[str, int]]:
        return [(each.event.name, each.event.count) for each in self.correlator.due(now)]


@pytest.mark.conformance("EV-10")
def test_first_repetition_is_written_and_later_ones_counted() -> None:
    correlation = Correlation()
    assert [correlation.record(float(second)) for second in range(5)] == [1, 2, 0, 0, 0]


@pytest.mark.conformance("EV-10")
@pytest.mark.parametrize("change", ["type", "action", "reason", "controller", "instance", "related"])
def test_event_with_another_field_starts_a_series(change: str) -> None:
    correlation = Correlation()
    correlation.record(0.0)
    other = ObjectReference("v1", "Node", "node-1") if change == "related" else "another"
    assert correlation.record(1.0, **{change: other}) == 1


@pytest.mark.conformance("EV-10")
def test_another_note_or_object_version_continues_the_series() -> None:
    correlation = Correlation()
    correlation.record(0.0)
    later = ObjectReference("v1", "Pod", "cart", "shop", "u1", "8")
    assert correlation.record(1.0, note="again", regarding=later) == 2


@pytest.mark.conformance("EV-11")
def test_running_series_is_written_every_30_minutes() -> None:
    correlation = Correlation()
    for minute in range(40):
        correlation.record(minute * MINUTE)
        assert correlation.due(minute * MINUTE) == ([("cart.1", 32)] if minute == 31 else [])


@pytest.mark.conformance("EV-11")
def test_series_ends_after_six_minutes_and_is_written() -> None:
    correlation = Correlation()
    for second in range(10):
        correlation.record(float(second))
    assert correlation.due(9 + 6 * MINUTE - 1) == []
    assert correlation.due(9 + 6 * MINUTE) == [("cart.1", 10)]
    assert correlation.record(9 + 6 * MINUTE) == 1


@pytest.mark.conformance("EV-11")
def test_single_event_is_forgotten_after_six_minutes() -> None:
    correlation = Correlation()
    correlation.record(0.0)
    assert correlation.due(6 * MINUTE) == []
    assert correlation.record(6 * MINUTE) == 1


@pytest.mark.conformance("EV-11")
def test_fully_written_series_ends_without_a_write() -> None:
    correlation = Correlation()
    correlation.record(0.0)
    correlation.record(1.0)
    assert correlation.due(10 * MINUTE) == []


def test_finish_writes_unwritten_counts() -> None:
    correlation = Correlation()
    for second in range(5):
        correlation.record(float(second))
    correlation.record(5.0, reason="Other")
    assert [(each.event.name, each.event.count) for each in correlation.correlator.finish()] == [("cart.1", 5)]


def test_number_of_remembered_series_is_limited() -> None:
    correlation = Correlation(size=2)
    for reason in ("a", "b", "c"):
        correlation.record(0.0, reason=reason)
    assert [correlation.record(1.0, reason="c"), correlation.record(1.0, reason="a")] == [2, 1]


@pytest.mark.parametrize("options", [{"finish": 0.0}, {"finish": 10.0, "refresh": 5.0}, {"size": 0}])
def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        SeriesOptions(**options)
