"""Errors that repeat: one traceback for each function and minute, and their number."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.shell.collection import Collection
from tests.shell.virtual_time import settled

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


def decoder(body: bytes) -> Any:
    raise ValueError


def index(pod: Any) -> list[str]:
    return [pod.metadata.labels["owner"]]


@pytest.mark.parametrize(
    "options",
    [{"indexers": {"owner": index}}, {"transform": index}, {"decoder": decoder}, {}],
    ids=["index function", "transform", "decoder", "handler"],
)
async def test_function_that_raises_for_each_object_logs_few_lines(
    caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    caplog.set_level("INFO")
    pods = Collection(*(f"p{number}" for number in range(300)))
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, **options)
    if not options:
        informer.add_event_handler(on_add=index)
    async with informer:
        await settled()
        assert sum(record.exc_info is not None for record in caplog.records) == ("decoder" not in options)
        assert len(caplog.records) < 20
        before = len(caplog.records)
        for number in range(200):
            pods.put(f"q{number}")
            await settled()
        assert len(caplog.records) == before
    if "decoder" not in options:
        assert "raised 499 more errors within 60 s" in caplog.text


async def test_doubled_number_of_undecodable_objects_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, transform=index, indexers={"owner": index})
    async with informer:
        for number in range(9):
            await settled()
            pods.put(f"p{number}")
        await settled()
    logged = [record.getMessage() for record in caplog.records if "degraded" in record.getMessage()]
    assert [line.split(": ")[2].split()[0] for line in logged] == ["1", "2", "4", "8"]
