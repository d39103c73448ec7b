"""API errors, resync periods, options and states."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import ApiError, Expired, ResourceVersionTooLarge, UsageError, api_error
from aioinformer.handlers.resync import ResyncSchedule, checked_period, effective_period
from aioinformer.reflector import InformerState, ListOptions, Phase, ReflectorOptions

# Errors.

TOO_LARGE = "Too large resource version"


@pytest.mark.conformance("REF-49", "REF-50")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (410, None, Expired),
        (0, {"code": 410}, Expired),
        (500, {"reason": "Expired"}, Expired),
        (500, {"reason": "Gone"}, Expired),
        (504, {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "message": f"{TOO_LARGE}: 5"}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "details": {"causes": [{"message": TOO_LARGE}]}}, ResourceVersionTooLarge),
        (504, {"reason": "Timeout", "message": "slow"}, ApiError),
        (400, {"reason": "BadRequest", "message": TOO_LARGE}, ApiError),
    ],
)
def test_error_class_follows_status_and_reason(status: int, body: Any, kind: type[ApiError]) -> None:
    assert type(api_error(status, body)) is kind


def test_retry_after_comes_from_header_then_body() -> None:
    body = {"details": {"retryAfterSeconds": 5}}
    assert api_error(429, body, retry_after=3).retry_after == 3
    assert api_error(429, body).retry_after == 5
    assert api_error(429, {"details": {"retryAfterSeconds": 0}}).retry_after is None


@pytest.mark.parametrize(
    "body", [{"details": 7}, {"details": {"causes": 7}}, {"details": {"causes": [7]}}, {"code": "x"}, {"message": 7}]
)
def test_any_body_makes_an_error(body: Any) -> None:
    assert api_error(0, body).status == 500


# Resync.


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


# Options and states.


def test_set_list_options_are_sent_in_wire_spelling() -> None:
    assert ListOptions().to_query() == []
    full = ListOptions("a=b", "c=d", "5", "Exact", 7, "token", True, True, True, 9)
    assert dict(full.to_query()) == {
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
        "resourceVersion": "5",
        "resourceVersionMatch": "Exact",
        "limit": "7",
        "continue": "token",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "timeoutSeconds": "9",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_size": -1},
        {"min_watch_timeout": 0.5},
        {"idle_timeout": -1},
        {"max_frame": 0},
        {"list_resource_version": "5"},
    ],
)
def test_invalid_option_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReflectorOptions(**wrong)


def test_state_describes_phase_and_reason() -> None:
    healthy = [phase for phase in Phase if InformerState(phase, "", 0).healthy]
    assert healthy == [Phase.WATCHING, Phase.POLLING]
    assert str(InformerState(Phase.FORBIDDEN, "403 Forbidden", 0)) == "forbidden: 403 Forbidden"
    assert str(InformerState(Phase.WATCHING, "", 0)) == "watching"
