"""Conditions of objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from aioinformer.client.changes.conditions import get_condition, is_condition_true, remove_condition, set_condition
from aioinformer.errors import UsageError
from tests.support.view_samples import pod, widget

FIRST, LATER = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("make", [pod, widget])
def test_condition_is_set_and_read(make: Any) -> None:
    ready = set_condition(make(), "Ready", True, "Deployed", "all there", now=FIRST)
    condition = get_condition(ready, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "Deployed", "all there")
    assert condition.last_transition_time == FIRST
    assert is_condition_true(ready, "Ready")
    assert not is_condition_true(make(), "Ready")
    assert get_condition(make(), "Ready") is None


def test_transition_time_is_kept_while_the_status_is() -> None:
    ready = set_condition(widget(), "Ready", "True", "Deployed", now=FIRST)
    same = set_condition(ready, "Ready", True, "Scaled", "3 parts", now=LATER)
    assert get_condition(same, "Ready").last_transition_time == FIRST  # type: ignore[union-attr]
    assert get_condition(same, "Ready").reason == "Scaled"  # type: ignore[union-attr]
    failed = set_condition(same, "Ready", False, "Broken", now=LATER)
    assert get_condition(failed, "Ready").last_transition_time == LATER  # type: ignore[union-attr]


def test_same_condition_returns_the_object_itself() -> None:
    ready = set_condition(widget(), "Ready", True, "Deployed", observed_generation=3, now=FIRST)
    assert set_condition(ready, "Ready", True, "Deployed", now=LATER) is ready
    assert set_condition(ready, "Ready", True, "Deployed", observed_generation=4, now=LATER) is not ready


def test_other_conditions_and_members_are_kept() -> None:
    status = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False", "lastProbeTime": "x"}]}
    obj = widget().evolve({"status": status})
    changed = set_condition(obj, "B", True, "Why", now=FIRST)
    assert changed["status"]["conditions"][0] == status["conditions"][0]
    assert changed["status"]["conditions"][1]["lastProbeTime"] == "x"
    assert len(remove_condition(changed, "B")["status"]["conditions"]) == 1
    assert remove_condition(changed, "C") is changed


def test_time_is_written_in_utc_and_whole_seconds() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    changed = set_condition(widget(), "Ready", True, "Deployed", now=now)
    assert changed["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T10:00:00Z"
    text = set_condition(widget(), "Ready", True, "Deployed")["status"]["conditions"][0]["lastTransitionTime"]
    assert abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize(("status", "reason", "hint"), [("true", "R", "status must be"), (True, "", "reason")])
def test_invalid_conditions_are_refused(status: Any, reason: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        set_condition(widget(), "Ready", status, reason)
    with pytest.raises(UsageError, match="is no condition"):
        get_condition({"status": {"conditions": [{"type": "Ready"}]}}, "Ready")
