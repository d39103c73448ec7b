"""Aggregation, counting and the spam filter, with the time as an argument."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.events.correlator import CorrelatorOptions, EventCorrelateResult, EventCorrelator
from tests.recorder.samples import REFERENCE, event

LAVISH = 10_000


class Correlation:
    """A correlator at a time that moves on by itself."""

    def __init__(self, **options: Any) -> None:
        self.correlator = EventCorrelator(CorrelatorOptions(**{"burst_size": LAVISH, **options}))
        self.now = 100.0
        self.number = 0

    def see(self, *, after: float = 1.0, **changes: Any) -> EventCorrelateResult:
        self.now += after
        self.number += 1
        return self.correlator.event_correlate(event(name=f"cart.{self.number}", **changes), self.now)


@pytest.mark.conformance("EV-06")
def test_a_repetition_is_the_first_event_once_more() -> None:
    correlation = Correlation()
    correlation.see(first_time=1, last_time=1)
    again = correlation.see(first_time=2, last_time=2).event
    assert (again.name, again.count, again.first_time, again.last_time) == ("cart.1", 2, 1, 2)


@pytest.mark.conformance("EV-06")
@pytest.mark.parametrize("change", ["type", "reason", "note", "controller", "instance"])
def test_whatever_says_something_else_is_another_event(change: str) -> None:
    correlation = Correlation()
    correlation.see()
    other: Any = {change: "another"}
    assert correlation.see(**other).event.count == 1


@pytest.mark.conformance("EV-06")
def test_another_part_of_the_same_object_has_events_of_its_own() -> None:
    correlation = Correlation()
    correlation.see()
    part = type(REFERENCE)("v1", "Pod", "cart", "shop", "u1", field_path="spec.containers{web}")
    assert correlation.see(regarding=part).event.count == 1


@pytest.mark.conformance("EV-05")
def test_from_the_tenth_different_message_on_similar_events_are_one() -> None:
    correlation = Correlation()
    notes = [correlation.see(note=f"try {number}").event for number in range(1, 13)]
    assert [each.note for each in notes[:9]] == [f"try {number}" for number in range(1, 10)]
    combined = [(each.name, each.count, each.note) for each in notes[9:]]
    assert combined == [
        ("cart.10", 1, "(combined from similar events): try 10"),
        ("cart.10", 2, "(combined from similar events): try 11"),
        ("cart.10", 3, "(combined from similar events): try 12"),
    ]


@pytest.mark.conformance("EV-05")
def test_one_of_the_first_nine_messages_keeps_its_own_count() -> None:
    correlation = Correlation()
    for number in range(1, 13):
        correlation.see(note=f"try {number}")
    again = correlation.see(note="try 3").event
    assert (again.name, again.note, again.count) == ("cart.3", "try 3", 2)


@pytest.mark.conformance("EV-05")
@pytest.mark.parametrize(("silence", "note"), [(600.0, "(combined from similar events): x"), (600.5, "x")])
def test_ten_minutes_of_silence_begin_the_aggregation_anew(silence: float, note: str) -> None:
    correlation = Correlation()
    for number in range(20):
        correlation.see(note=f"try {number}", after=500)
    assert correlation.see(note="x", after=silence).event.note == note


@pytest.mark.conformance("EV-05")
@pytest.mark.parametrize("change", ["type", "reason", "controller", "instance"])
def test_events_of_another_sort_are_not_similar(change: str) -> None:
    correlation = Correlation()
    for number in range(20):
        correlation.see(note=f"try {number}")
    other: Any = {change: "another"}
    assert correlation.see(note="x", **other).event.note == "x"


@pytest.mark.conformance("EV-07")
def test_each_object_has_25_events_and_one_more_in_five_minutes() -> None:
    correlation = Correlation(burst_size=25)
    skipped = [correlation.see(after=0).skip for _ in range(27)]
    assert skipped == [False] * 25 + [True] * 2
    assert [correlation.see(after=299).skip, correlation.see(after=2).skip, correlation.see(after=1).skip] == [
        True,
        False,
        True,
    ]


@pytest.mark.conformance("EV-07")
def test_what_is_too_much_of_one_object_takes_nothing_from_another() -> None:
    correlation = Correlation(burst_size=1)
    correlation.see(after=0)
    assert correlation.see(after=0).skip
    assert not correlation.see(after=0, regarding=type(REFERENCE)("v1", "Pod", "search", "shop")).skip


@pytest.mark.conformance("EV-04", "EV-07")
def test_events_that_are_too_many_are_combined_and_counted_all_the_same() -> None:
    correlation = Correlation(burst_size=1, qps=1.0)
    for number in range(20):
        correlation.see(after=0, note=f"try {number}")
    written = correlation.see(after=1.5, note="x")
    assert (written.skip, written.event.count) == (False, 12)


@pytest.mark.conformance("EV-08")
def test_the_numbers_are_client_gos_unless_others_are_chosen() -> None:
    options = CorrelatorOptions()
    assert (options.lru_cache_size, options.burst_size, options.qps) == (4096, 25, 1 / 300)
    assert (options.max_events, options.max_interval) == (10, 600)


@pytest.mark.conformance("EV-08")
def test_the_interval_and_the_rate_can_be_chosen() -> None:
    correlation = Correlation(max_events=2, max_interval=5.0, burst_size=1, qps=0.125)
    results = [correlation.see(after=after, note=note) for after, note in ((0, "a"), (4, "b"), (6, "c"), (4, "d"))]
    assert [each.event.note for each in results] == [
        "a",
        "(combined from similar events): b",
        "c",
        "(combined from similar events): d",
    ]
    assert [each.skip for each in results] == [False, True, False, True]


@pytest.mark.conformance("EV-08")
def test_every_number_and_function_can_be_chosen() -> None:
    correlation = Correlation(
        max_events=2,
        max_interval=5.0,
        key_func=lambda event: (event.reason, event.regarding.name),
        message_func=lambda event: "many pods",
        spam_key_func=lambda event: event.type,
        burst_size=3,
    )
    pods = [type(REFERENCE)("v1", "Pod", name, "shop") for name in ("a", "b", "c", "d")]
    results = [correlation.see(after=0, regarding=pod) for pod in pods]
    assert [each.event.note for each in results] == ["it runs", "many pods", "many pods", "many pods"]
    assert [each.skip for each in results] == [False, False, False, True]


@pytest.mark.conformance("EV-08")
def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    correlation = Correlation(lru_cache_size=2, max_events=LAVISH)
    for note in ("a", "b", "a", "c"):
        correlation.see(note=note)
    assert [correlation.see(note="a").event.count, correlation.see(note="b").event.count] == [3, 1]


@pytest.mark.conformance("EV-08")
def test_a_bucket_that_is_in_use_is_not_the_one_to_be_forgotten() -> None:
    correlation = Correlation(lru_cache_size=2, burst_size=1)
    cart, search, web = (type(REFERENCE)("v1", "Pod", name, "shop") for name in ("cart", "search", "web"))
    for pod in (cart, search, cart, web):
        correlation.see(regarding=pod, after=0)
    assert correlation.see(regarding=cart, after=0).skip


@pytest.mark.parametrize("option", ["lru_cache_size", "burst_size", "max_events", "qps", "max_interval"])
def test_a_number_that_makes_no_sense_is_refused_by_name(option: str) -> None:
    nothing: Any = {option: 0}
    with pytest.raises(ValueError, match=option):
        CorrelatorOptions(**nothing)
