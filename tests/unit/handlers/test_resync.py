"""Resync periods of handlers, and when they are due."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.handlers.resync import ResyncSchedule, checked_period, effective_period


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
