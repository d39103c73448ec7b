"""Series of Events, with the time as an argument."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.events.series import EventSeriesCorrelator, SeriesOptions
from aioinformer.resources.references import ObjectReference
from tests.recorder.samples import event

MINUTE = 60.0


class Correlation:
    def __init__(self, **options: Any) -> None:
        self.correlator = EventSeriesCorrelator(SeriesOptions(**options))
        self.number = 0

    def see(self, now: float, **changes: Any) -> int:
        """The count that is written, 0 for nothing."""
        self.number += 1
        seen = event(name=f"cart.{self.number}", last_time=int(now), **changes)
        result = self.correlator.event_correlate(seen, now)
        return 0 if result.skip else result.event.count

    def due(self, now: float) -> list[tuple[str, int]]:
        return [(each.event.name, each.event.count) for each in self.correlator.due(now)]


@pytest.mark.conformance("EV-10")
def test_the_first_repetition_is_written_and_later_ones_are_counted() -> None:
    correlation = Correlation()
    assert [correlation.see(float(second)) for second in range(5)] == [1, 2, 0, 0, 0]


@pytest.mark.conformance("EV-10")
@pytest.mark.parametrize("change", ["type", "action", "reason", "controller", "instance", "related"])
def test_what_differs_is_another_event(change: str) -> None:
    correlation = Correlation()
    correlation.see(0.0)
    other = ObjectReference("v1", "Node", "node-1") if change == "related" else "another"
    assert correlation.see(1.0, **{change: other}) == 1


@pytest.mark.conformance("EV-10")
def test_another_note_and_another_version_of_the_object_belong_to_the_series() -> None:
    correlation = Correlation()
    correlation.see(0.0)
    later = ObjectReference("v1", "Pod", "cart", "shop", "u1", "8")
    assert correlation.see(1.0, note="again", regarding=later) == 2


@pytest.mark.conformance("EV-11")
def test_a_series_that_goes_on_is_written_every_half_an_hour() -> None:
    correlation = Correlation()
    for minute in range(40):
        correlation.see(minute * MINUTE)
        assert correlation.due(minute * MINUTE) == ([("cart.1", 32)] if minute == 31 else [])


@pytest.mark.conformance("EV-11")
def test_a_series_is_over_after_six_minutes_and_written_for_the_last_time() -> None:
    correlation = Correlation()
    for second in range(10):
        correlation.see(float(second))
    assert correlation.due(9 + 6 * MINUTE - 1) == []
    assert correlation.due(9 + 6 * MINUTE) == [("cart.1", 10)]
    assert correlation.see(9 + 6 * MINUTE) == 1


@pytest.mark.conformance("EV-11")
def test_a_single_event_is_forgotten_after_six_minutes_without_a_write() -> None:
    correlation = Correlation()
    correlation.see(0.0)
    assert correlation.due(6 * MINUTE) == []
    assert correlation.see(6 * MINUTE) == 1


@pytest.mark.conformance("EV-11")
def test_a_series_of_which_everything_was_written_ends_without_a_write() -> None:
    correlation = Correlation()
    correlation.see(0.0)
    correlation.see(1.0)
    assert correlation.due(10 * MINUTE) == []


def test_the_end_writes_what_was_only_counted() -> None:
    correlation = Correlation()
    for second in range(5):
        correlation.see(float(second))
    correlation.see(5.0, reason="Other")
    assert [(each.event.name, each.event.count) for each in correlation.correlator.finish()] == [("cart.1", 5)]


def test_no_more_series_are_remembered_than_there_is_room_for() -> None:
    correlation = Correlation(size=2)
    for reason in ("a", "b", "c"):
        correlation.see(0.0, reason=reason)
    assert [correlation.see(1.0, reason="c"), correlation.see(1.0, reason="a")] == [2, 1]


@pytest.mark.parametrize("options", [{"finish": 0.0}, {"finish": 10.0, "refresh": 5.0}, {"size": 0}])
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        SeriesOptions(**options)
