"""Resync periods of handlers, and when they are due."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.handlers.resync import ResyncPeriods, ResyncSchedule, checked_period, effective_period


@pytest.mark.conformance("SI-27", "SI-28")
@pytest.mark.parametrize(
    ("requested", "check", "period"), [(0, 10, 0), (10, 0, 0), (5, 10, 10), (30, 10, 30), (10, 10, 10)]
)
def test_handler_resync_period_is_at_least_the_check_period(requested: float, check: float, period: float) -> None:
    assert effective_period(requested, check) == period


@pytest.mark.conformance("SI-26")
def test_handler_takes_part_in_due_resyncs() -> None:
    schedule = ResyncSchedule(25)
    schedule.adopt(10, now=100)
    assert [schedule.decide(now) for now in (110, 120, 125, 130, 149, 150)] == [False, False, True, False, False, True]


@pytest.mark.parametrize("period", [-1, float("nan"), "5", None])
def test_invalid_period_is_named(period: Any) -> None:
    with pytest.raises(UsageError, match="my_period"):
        checked_period(period, "my_period")


@pytest.mark.parametrize(
    ("default", "requested", "final", "period", "check", "lines"),
    [
        (10, None, False, 10, 10, []),
        (10, 0, False, 0, 10, []),
        (10, 10, True, 10, 10, []),
        (10, 30, False, 30, 10, []),
        (10, 5, False, 5, 5, []),
        (10, 5, True, 10, 10, ["it resyncs every 10 s, not every 5 s: its informer is running already"]),
        (10, 0.2, False, 1, 1, ["a resync period of 0.2 s is raised to 1 s"]),
        (10, 1, False, 1, 1, []),
        (0.5, None, False, 1, 1, ["a resync period of 0.5 s is raised to 1 s"]),
        (0, None, False, 0, 0, []),
        (0, 5, False, 5, 0, ["it requests resyncs, but its informer has resync_period=0: it gets no resyncs"]),
    ],
)
def test_periods_are_negotiated_between_informer_and_handlers(
    default: float,
    requested: float | None,
    final: bool,
    period: float,
    check: float,
    lines: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    periods = ResyncPeriods(default)
    assert periods.negotiate(requested, "it", final=final) == period
    assert (periods.check, periods.default) == (check, max(default, 1) if default else 0)
    assert caplog.messages == lines


@pytest.mark.parametrize("period", [-1, "5"])
def test_invalid_periods_are_refused_by_informers_and_handlers(period: Any) -> None:
    with pytest.raises(UsageError, match="resync_period must be 0"):
        ResyncPeriods(period)
    with pytest.raises(UsageError, match="resync_period must be 0"):
        ResyncPeriods(10).negotiate(period, "it", final=False)
