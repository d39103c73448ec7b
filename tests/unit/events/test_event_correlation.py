"""The forms of an Event; aggregation, counting, the spam filter and series, with the time as an argument."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

import pytest

from aioinformer.events import CorrelatorOptions, EventCorrelateResult, EventCorrelator, EventSeriesCorrelator
from aioinformer.events.correlator import CACHE_SIZE, LRUCache
from aioinformer.resources import ObjectReference
from tests.support.event_samples import AT, event

POD_REFERENCE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "namespace": "shop",
    "name": "cart",
    "uid": "u1",
    "resourceVersion": "7",
}


def test_core_event_has_a_count() -> None:
    assert event(count=3, last_time=AT + 10**9).to_core() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "shop", "name": "cart.1"},
        "involvedObject": POD_REFERENCE,
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "message": "it runs",
        "source": {"component": "web", "host": "host-1"},
        "reportingComponent": "web",
        "reportingInstance": "host-1",
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:21Z",
        "count": 3,
    }


def test_events_k8s_io_event_has_a_series() -> None:
    node = ObjectReference("v1", "Node", "node-1")
    assert event(count=3, last_time=AT + 10**9, related=node, annotations={"a": "1"}).to_events() == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop", "name": "cart.1", "annotations": {"a": "1"}},
        "regarding": POD_REFERENCE,
        "related": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "note": "it runs",
        "reportingController": "web",
        "reportingInstance": "host-1",
        "eventTime": "2023-11-14T22:13:20.500000Z",
        "series": {"count": 3, "lastObservedTime": "2023-11-14T22:13:21.500000Z"},
    }
    assert "series" not in event().to_events()


def test_events_k8s_io_event_without_instance_names_its_controller() -> None:
    assert event(instance="").to_events()["reportingInstance"] == "web"


def test_long_note_is_truncated_between_characters() -> None:
    assert event(note="é" * 600).to_events()["note"] == "é" * 512
    assert event(note="x" + "é" * 600).to_events()["note"] == "x" + "é" * 511


UNLIMITED = 10_000


def remember_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LRUCache, "__init__", partialmethod(LRUCache.__init__, 2))


class Correlation:
    """A correlator with a clock that advances with each Event."""

    def __init__(self, **options: Any) -> None:
        self.correlator = EventCorrelator(CorrelatorOptions(**{"burst_size": UNLIMITED, **options}))
        self.now = 100.0
        self.number = 0

    def record(self, *, after: float = 1.0, **changes: Any) -> EventCorrelateResult:
        self.now += after
        self.number += 1
        return self.correlator.event_correlate(event(name=f"cart.{self.number}", **changes), self.now)


@pytest.mark.conformance("EV-06")
def test_repetition_keeps_the_first_name_and_counts() -> None:
    correlation = Correlation()
    correlation.record(first_time=1, last_time=1)
    again = correlation.record(first_time=2, last_time=2).event
    assert (again.name, again.count, again.first_time, again.last_time) == ("cart.1", 2, 1, 2)


@pytest.mark.conformance("EV-06")
@pytest.mark.parametrize("change", ["type", "reason", "note", "controller", "instance", "regarding"])
def test_event_with_another_field_is_counted_separately(change: str) -> None:
    correlation = Correlation()
    correlation.record()
    part = ObjectReference("v1", "Pod", "cart", "shop", "u1", field_path="spec.containers{web}")
    other: Any = {change: part if change == "regarding" else "another"}
    assert correlation.record(**other).event.count == 1


@pytest.mark.conformance("EV-05")
def test_similar_events_are_combined_from_the_tenth_message() -> None:
    correlation = Correlation()
    notes = [
        correlation.record(note=f"try {number}", annotations={"try": str(number)}).event for number in range(1, 13)
    ]
    assert [each.note for each in notes[:9]] == [f"try {number}" for number in range(1, 10)]
    combined = [(each.name, each.count, each.note) for each in notes[9:]]
    assert combined == [
        ("cart.10", 1, "(combined from similar events): try 10"),
        ("cart.10", 2, "(combined from similar events): try 11"),
        ("cart.10", 3, "(combined from similar events): try 12"),
    ]
    assert [each.annotations for each in notes[8:11]] == [{"try": "9"}, None, None], (
        "those of one Event are not for all"
    )
    again = correlation.record(note="try 3").event
    assert (again.name, again.note, again.count) == ("cart.3", "try 3", 2)


@pytest.mark.conformance("EV-05")
@pytest.mark.parametrize(("silence", "note"), [(600.0, "(combined from similar events): x"), (600.5, "x")])
def test_aggregation_restarts_after_ten_minutes_of_silence(silence: float, note: str) -> None:
    correlation = Correlation()
    for number in range(20):
        correlation.record(note=f"try {number}", after=500)
    assert correlation.record(note="x", after=silence).event.note == note


@pytest.mark.conformance("EV-05")
@pytest.mark.parametrize("change", ["type", "reason", "controller", "instance"])
def test_events_with_another_field_are_not_similar(change: str) -> None:
    correlation = Correlation()
    for number in range(20):
        correlation.record(note=f"try {number}")
    other: Any = {change: "another"}
    assert correlation.record(note="x", **other).event.note == "x"


@pytest.mark.conformance("EV-07")
def test_spam_filter_allows_25_events_then_one_in_five_minutes() -> None:
    correlation = Correlation(burst_size=25)
    skipped = [correlation.record(after=0).skip for _ in range(27)]
    assert skipped == [False] * 25 + [True] * 2
    assert [correlation.record(after=299).skip, correlation.record(after=2).skip, correlation.record(after=1).skip] == [
        True,
        False,
        True,
    ]


@pytest.mark.conformance("EV-04", "EV-07")
def test_skipped_events_are_still_combined_and_counted() -> None:
    correlation = Correlation(burst_size=1, qps=1.0)
    for number in range(20):
        correlation.record(after=0, note=f"try {number}")
    written = correlation.record(after=1.5, note="x")
    assert (written.skip, written.event.count) == (False, 12)


@pytest.mark.conformance("EV-08")
def test_default_limits_are_those_of_client_go() -> None:
    options = CorrelatorOptions()
    assert (options.burst_size, options.qps, CACHE_SIZE) == (25, 1 / 300, 4096)
    assert (options.max_events, options.max_interval) == (10, 600)


@pytest.mark.conformance("EV-08")
def test_interval_and_rate_are_configurable() -> None:
    correlation = Correlation(max_events=2, max_interval=5.0, burst_size=1, qps=0.125)
    results = [correlation.record(after=after, note=note) for after, note in ((0, "a"), (4, "b"), (6, "c"), (4, "d"))]
    assert [each.event.note for each in results] == [
        "a",
        "(combined from similar events): b",
        "c",
        "(combined from similar events): d",
    ]
    assert [each.skip for each in results] == [False, True, False, True]


@pytest.mark.conformance("EV-07", "EV-08")
@pytest.mark.parametrize(
    ("options", "pods", "skipped"),
    [
        ({"burst_size": 1}, "aab", [False, True, False]),
        ({"burst_size": 3, "spam_key_func": lambda event: event.type}, "abcd", [False, False, False, True]),
        ({"burst_size": 1, "remembered": 2}, "abaca", [False, False, True, False, True]),
    ],
    ids=["each object", "own function", "least recently used is forgotten"],
)
def test_bucket_of_an_event_is_found_by_its_key(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], pods: str, skipped: list[bool]
) -> None:
    if "remembered" in options:
        remember_two(monkeypatch)
    correlation = Correlation(**{name: value for name, value in options.items() if name != "remembered"})
    references = [ObjectReference("v1", "Pod", name, "shop") for name in pods]
    assert [correlation.record(after=0, regarding=each).skip for each in references] == skipped


@pytest.mark.conformance("EV-08")
def test_least_recently_used_event_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_two(monkeypatch)
    correlation = Correlation(max_events=UNLIMITED)
    for note in ("a", "b", "a", "c"):
        correlation.record(note=note)
    assert [correlation.record(note="a").event.count, correlation.record(note="b").event.count] == [3, 1]


@pytest.mark.parametrize("option", ["burst_size", "max_events", "qps", "max_interval"])
def test_error_names_the_invalid_option(option: str) -> None:
    nothing: Any = {option: 0}
    with pytest.raises(ValueError, match=option):
        CorrelatorOptions(**nothing)


MINUTE = 60.0


class Series:
    def __init__(self) -> None:
        self.correlator = EventSeriesCorrelator()
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
    series = Series()
    assert [series.record(float(second)) for second in range(5)] == [1, 2, 0, 0, 0]


@pytest.mark.conformance("EV-10")
@pytest.mark.parametrize("change", ["type", "action", "reason", "controller", "instance", "related"])
def test_event_with_another_field_starts_a_series(change: str) -> None:
    series = Series()
    series.record(0.0)
    other = ObjectReference("v1", "Node", "node-1") if change == "related" else "another"
    assert series.record(1.0, **{change: other}) == 1


@pytest.mark.conformance("EV-10")
def test_another_note_or_object_version_continues_the_series() -> None:
    series = Series()
    for second, version in enumerate("789"):
        pod = ObjectReference("v1", "Pod", "cart", "shop", "u1", version)
        node = ObjectReference("v1", "Node", "node-1", resource_version=version)
        assert series.record(float(second), note=version, regarding=pod, related=node) == (1, 2, 0)[second]


@pytest.mark.conformance("EV-11")
def test_running_series_is_written_every_30_minutes() -> None:
    series = Series()
    for minute in range(40):
        series.record(minute * MINUTE)
        assert series.due(minute * MINUTE) == ([("cart.1", 32)] if minute == 31 else [])


@pytest.mark.conformance("EV-11")
@pytest.mark.parametrize(("events", "written"), [(1, []), (2, []), (10, [("cart.1", 10)])])
def test_series_ends_after_six_minutes_and_is_written_if_it_was_not(
    events: int, written: list[tuple[str, int]]
) -> None:
    series = Series()
    for second in range(events):
        series.record(float(second))
    end = events - 1 + 6 * MINUTE
    assert series.due(end - 1) == []
    assert series.due(end) == written
    assert series.record(end) == 1


def test_finish_writes_unwritten_counts() -> None:
    series = Series()
    for second in range(5):
        series.record(float(second))
    series.record(5.0, reason="Other")
    finished = [each.event for each in series.correlator.finish()]
    assert [(each.name, each.count, each.first_time, each.last_time) for each in finished] == [("cart.1", 5, AT, 4)]
    assert series.correlator.finish() == []


def test_number_of_remembered_series_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_two(monkeypatch)
    series = Series()
    for reason in ("a", "b", "c"):
        series.record(0.0, reason=reason)
    assert [series.record(1.0, reason="c"), series.record(1.0, reason="a")] == [2, 1]
