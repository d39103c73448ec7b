"""Traces: an operation that takes long is logged with its steps."""

from __future__ import annotations

import logging

import pytest

from aioinformer.logs import Trace

LOGGER = logging.getLogger("aioinformer.reflector")


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer")


def test_slow_operation_is_logged_with_the_time_of_each_step(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace(LOGGER, "pods: list", clock)
    clock.now += 2
    trace.step("20 objects listed")
    clock.now += 9.5
    trace.step("queued")
    trace.log_if_long(10)
    assert caplog.messages == ["pods: list took 11.5 s: 20 objects listed +2.0 s, queued +9.5 s"]
    assert [record.name for record in caplog.records] == [LOGGER.name]


def test_fast_operation_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    trace = Trace(LOGGER, "pods: list", clock)
    clock.now += 10
    trace.log_if_long(10)
    assert caplog.messages == []
