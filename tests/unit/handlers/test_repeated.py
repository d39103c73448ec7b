"""Errors that repeat: one traceback for each function and minute, and their number."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from aioinformer.handlers.repeated import RepeatedErrors

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("aioinformer.handlers")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [f"{record.getMessage()}{' with traceback' * bool(record.exc_info)}" for record in caplog.records]


def report(errors: RepeatedErrors, times: int, subject: str = "f", error: type[Exception] = ValueError) -> None:
    for number in range(times):
        errors.report(subject, error(), "%s raised for %d", subject, number)


async def test_one_traceback_a_minute_and_the_count(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 1000)
    assert lines() == ["f raised for 0 with traceback"]
    await asyncio.sleep(61)
    count = "f raised 999 more errors within 60 s after the last traceback; the last one was ValueError"
    assert lines()[1:] == [count]
    report(errors, 1)
    assert lines()[2:] == ["f raised for 0 with traceback"]
    await asyncio.sleep(61)
    assert len(lines()) == 3


async def test_each_function_has_its_own_traceback(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 2, "f")
    report(errors, 2, "g", KeyError)
    assert lines() == ["f raised for 0 with traceback", "g raised for 0 with traceback"]


async def test_close_logs_the_counts_and_leaves_no_timer(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 3)
    errors.close()
    assert "f raised 2 more errors" in lines()[1]
    await asyncio.sleep(120)
    assert len(lines()) == 2


def test_without_an_event_loop_the_next_traceback_has_the_count(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("aioinformer.handlers.repeated.monotonic", lambda: now)
    errors = RepeatedErrors(_log)
    report(errors, 3)
    now = 61.0
    report(errors, 1)
    assert [line[:13] for line in lines()] == ["f raised for ", "f raised 2 mo", "f raised for "]
