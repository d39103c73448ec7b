"""Backoff: delays after failures, and the header Retry-After."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.backoff import MAX_RETRY_AFTER, Backoff, BackoffOptions, retry_after

DATE = "Sat, 01 Feb 2025 10:00:00 GMT"


@pytest.mark.conformance("REF-06")
def test_delays_double_up_to_the_cap() -> None:
    backoff, now, delays = Backoff(random=lambda: 0.0), 0.0, []
    for _ in range(7):
        delays.append(backoff.next(now))
        now += delays[-1]
    assert delays == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30])


@pytest.mark.conformance("REF-06")
@pytest.mark.parametrize(("chance", "delay"), [(0.0, 0.8), (0.5, 1.2), (0.999, 1.5992)])
def test_jitter_multiplies_a_delay_by_one_to_two(chance: float, delay: float) -> None:
    assert Backoff(random=lambda: chance).next(0) == pytest.approx(delay)


def test_jitter_does_not_accumulate() -> None:
    backoff, now = Backoff(random=lambda: 0.5), 0.0
    for _ in range(10):
        delay = backoff.next(now)
        now += delay
    assert delay == 45


@pytest.mark.conformance("REF-07")
def test_continuous_failures_never_reset_the_backoff() -> None:
    backoff, now, delays = Backoff(random=lambda: 0.0), 0.0, []
    while now < 3600:
        delays.append(backoff.next(now))
        now += delays[-1]
    assert delays == sorted(delays)


@pytest.mark.conformance("REF-07")
def test_two_healthy_minutes_after_a_delay_reset_the_backoff() -> None:
    backoff = Backoff(random=lambda: 0.0)
    now = backoff.next(0)
    now += backoff.next(now)
    assert not backoff.at_rest(now + 119.9)
    assert backoff.at_rest(now + 120)
    assert backoff.next(now + 120) == pytest.approx(0.8)


def test_health_starts_after_the_requested_retry_time() -> None:
    backoff = Backoff(random=lambda: 0.0)
    backoff.next(0)
    backoff.extend(1000)
    assert backoff.next(1100) == pytest.approx(1.6)


@pytest.mark.conformance("REF-08", "REF-01", "WEAK-18")
def test_options_set_the_delays() -> None:
    options = BackoffOptions(initial=0.01, factor=3, cap=0.05, jitter=0)
    backoff = Backoff(options, random=lambda: 0.9)
    assert [backoff.next(0) for _ in range(4)] == pytest.approx([0.01, 0.03, 0.05, 0.05])


@pytest.mark.parametrize("shape", [{"initial": 0}, {"cap": -1}, {"factor": 0.5}, {"jitter": -0.1}])
def test_invalid_options_are_named(shape: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(shape))):
        BackoffOptions(**shape)


def test_third_immediate_failure_is_delayed() -> None:
    backoff = Backoff(random=lambda: 0.0)
    assert max(backoff.limit_burst(10), backoff.limit_burst(10)) <= 10
    assert backoff.limit_burst(10.5) == 12


@pytest.mark.parametrize("shape", [BackoffOptions(), BackoffOptions(initial=0.01, factor=1, cap=0.01, jitter=0)])
def test_delayed_failures_are_not_delayed_again(shape: BackoffOptions) -> None:
    backoff, now = Backoff(shape, random=lambda: 0.0), 0.0
    for _ in range(10):
        delay = backoff.next(now)
        assert backoff.limit_burst(now) < now + delay
        now += delay


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": " 17 "}, 17),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "99999999999999999999"}, MAX_RETRY_AFTER),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Sat, 01 Feb 2025 10:00:42 GMT", "Date": DATE}, 42),
        ({"Retry-After": "Sat, 01 Feb 2025 09:00:00 GMT", "Date": DATE}, 0),
        ({"Retry-After": "Sun, 01 Feb 2026 10:00:00 GMT", "Date": DATE}, MAX_RETRY_AFTER),
        ({"Retry-After": "Sat, 01 Feb 2025 10:00:42 GMT"}, None),
        ({"Retry-After": "Sat, 01 Feb 2025 10:00:42", "Date": DATE}, None),
        ({"Retry-After": "Sat, 99 Feb 2025 10:00:42 GMT", "Date": DATE}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
