"""What is slow is written of, with its steps."""

from __future__ import annotations

import pytest

from aioinformer.logs import Trace


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer")


def test_what_takes_long_is_written_of_with_the_time_of_each_step(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace("pods: list", clock)
    clock.now += 2
    trace.step("20 objects listed")
    clock.now += 9.5
    trace.step("queued")
    trace.log_if_long(10)
    assert caplog.messages == ["pods: list took 11.5 s: 20 objects listed +2.0 s, queued +9.5 s"]


def test_what_takes_no_longer_than_the_threshold_is_not_written_of(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace("pods: list", clock)
    clock.now += 10
    trace.log_if_long(10)
    assert caplog.messages == []
