"""Writing Events to a sink that is slow, unreachable, or refuses them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.events import CorrelatorOptions, EventCorrelator, EventRecording, EventSeriesCorrelator
from tests.support.event_samples import Sink, event
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NO_ANSWER = TransportError("no answer")


@pytest.fixture
def sink() -> Sink:
    return Sink()


@asynccontextmanager
async def recording(sink: Sink) -> AsyncIterator[EventRecording]:
    recording = EventRecording(sink, random=lambda: 0.5)
    task = asyncio.create_task(recording.run())
    try:
        yield recording
    finally:
        task.cancel()
        await asyncio.wait({task})


async def record(writer: EventRecording) -> None:
    writer.record(event())
    await settled()


@pytest.mark.conformance("EV-03")
async def test_event_is_created_and_repetitions_are_patches(sink: Sink) -> None:
    async with recording(sink) as writer:
        for _ in range(3):
            await record(writer)
    assert sink.writes == ["create cart.1 1", "patch cart.1 2", "patch cart.1 3"]


@pytest.mark.conformance("EV-03")
async def test_patch_of_an_expired_event_creates_it(sink: Sink) -> None:
    async with recording(sink) as writer:
        await record(writer)
        sink.events.clear()
        await record(writer)
    assert sink.events["cart.1"].count == 2
    assert sink.writes[1:] == ["patch cart.1 2", "create cart.1 2"]


@pytest.mark.conformance("EV-03", "EV-12")
@pytest.mark.parametrize(
    "failure", [NO_ANSWER, DecodeError("no event"), OSError()], ids=lambda error: type(error).__name__
)
async def test_unanswered_write_is_tried_twelve_times(sink: Sink, failure: Exception) -> None:
    sink.failures.extend([failure] * 20)
    loop = asyncio.get_running_loop()
    async with recording(sink) as writer:
        began = loop.time()
        writer.record(event())
        times = []
        while len(sink.writes) < 12:
            before = len(sink.writes)
            await asyncio.sleep(0.25)
            times += [loop.time() - began] * (len(sink.writes) - before)
        await asyncio.sleep(1000)
    assert len(sink.writes) == 12
    assert times[:3] == pytest.approx([0.25, 5.25, 16.5], abs=0.3)
    assert times[-1] == pytest.approx(5 + 10 * 11.25, abs=0.5)
    assert (writer.statistics().refused, writer.statistics().waiting) == (1, 0)


@pytest.mark.conformance("EV-03")
@pytest.mark.parametrize("status", [400, 403, 404, 422, 500])
async def test_refused_write_is_not_retried(sink: Sink, status: int, caplog: pytest.LogCaptureFixture) -> None:
    sink.failures.append(ApiError(status, "No", "not here"))
    async with recording(sink) as writer:
        writer.record(event())
        await asyncio.sleep(1000)
    assert sink.writes == ["create cart.1 1"]
    assert writer.statistics().refused == 1
    assert "event shop/cart.1 was not written" in caplog.text


async def test_refusal_with_retry_after_is_retried_then(sink: Sink) -> None:
    sink.failures.append(ApiError(429, "TooManyRequests", retry_after=60.0))
    async with recording(sink) as writer:
        writer.record(event())
        await asyncio.sleep(59)
        assert len(sink.writes) == 1
        await asyncio.sleep(2)
    assert sink.events["cart.1"].count == 1


async def test_already_exists_counts_as_written(sink: Sink) -> None:
    sink.events["cart.1"] = event()
    async with recording(sink) as writer:
        await record(writer)
        await record(writer)
    assert sink.events["cart.1"].count == 2
    assert writer.statistics().refused == 0


async def test_repetition_after_a_lost_answer_patches_the_event(sink: Sink) -> None:
    sink.failures.append(NO_ANSWER)
    async with recording(sink) as writer:
        await record(writer)
        sink.events["cart.1"] = event()
        writer.record(event())
        await asyncio.sleep(20)
    assert sink.writes[1:] == ["create cart.1 2", "patch cart.1 2"]
    assert sink.events["cart.1"].count == 2


@pytest.mark.conformance("EV-12")
async def test_event_created_meanwhile_is_patched_by_the_next_try(sink: Sink) -> None:
    sink.failures.extend([ApiError(404, "NotFound"), ApiError(409, "AlreadyExists")])
    sink.events["cart.1"] = event()
    async with recording(sink) as writer:
        writer.record(event(count=2))
        await asyncio.sleep(20)
    assert sink.writes == ["patch cart.1 2", "create cart.1 2", "patch cart.1 2"]


@pytest.mark.conformance("EV-01", "WEAK-27")
async def test_hanging_sink_does_not_delay_recording(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(EventCorrelator(CorrelatorOptions(burst_size=5000, max_events=5000)))
    sink.answering.clear()
    async with recording(sink) as writer:
        await settled()
        for number in range(1500):
            writer.record(event(name=f"cart.{number}", note=str(number)))
            await asyncio.sleep(0)
        statistics = writer.statistics()
        assert (statistics.waiting, statistics.dropped) == (1008, 492)
        assert [record.getMessage() for record in caplog.records] == [
            "event recording: events are dropped, because 1000 are waiting"
        ]
        sink.answering.set()
        await settled()
    assert len(sink.events) == 1008


@pytest.mark.conformance("WEAK-27")
async def test_repetitions_during_an_outage_are_one_write(sink: Sink) -> None:
    sink.failures.append(NO_ANSWER)
    async with recording(sink) as writer:
        await record(writer)
        for _ in range(9):
            writer.record(event())
        await asyncio.sleep(100)
    assert sink.writes == ["create cart.1 1", "create cart.1 10"]


@pytest.mark.conformance("EV-03")
async def test_repetition_during_a_failing_write_joins_the_next_try(sink: Sink) -> None:
    sink.answering.clear()
    sink.failures.append(NO_ANSWER)
    async with recording(sink) as writer:
        await record(writer)
        writer.record(event())
        sink.answering.set()
        await settled()
        assert sink.writes == ["create cart.1 1"]
        await asyncio.sleep(100)
    assert sink.writes[1:] == ["create cart.1 2"]


@pytest.mark.conformance("WEAK-27")
async def test_waiting_for_a_retry_delays_no_other_event(sink: Sink) -> None:
    sink.failures.extend([NO_ANSWER] * 8)
    async with recording(sink) as writer:
        for number in range(9):
            writer.record(event(name=f"cart.{number}", note=str(number)))
        await settled()
        assert list(sink.events) == ["cart.8"]
        await asyncio.sleep(100)
    assert len(sink.events) == 9


@pytest.mark.conformance("EV-12")
async def test_eight_different_events_are_written_at_a_time(sink: Sink) -> None:
    sink.answering.clear()
    async with recording(sink) as writer:
        for number in range(20):
            writer.record(event(name="cart.0", note="0"))
            writer.record(event(name=f"cart.{number}", note=str(number)))
        await settled()
        assert len(sink.writes) == 8
        assert len({write.split()[1] for write in sink.writes}) == 8


@pytest.mark.conformance("EV-11")
async def test_ended_series_is_written_without_another_event() -> None:
    sink = Sink(EventSeriesCorrelator())
    async with recording(sink) as writer:
        for _ in range(10):
            await record(writer)
        assert sink.writes == ["create cart.1 1", "patch cart.1 2"]
        await asyncio.sleep(13 * 60)
    assert sink.writes[2:] == ["patch cart.1 10"]


async def test_queued_write_of_an_ended_series_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.events.writer._TRIES", 100)
    sink = Sink(EventSeriesCorrelator())
    sink.failures += [NO_ANSWER] * 40
    async with recording(sink) as writer:
        writer.record(event(name="cart.1"))
        await asyncio.sleep(400)
        writer.record(event(name="cart.2"))
        await asyncio.sleep(300)
    assert set(sink.events) == {"cart.1", "cart.2"}


@pytest.mark.parametrize(("failures", "written"), [(1, True), (3, False)])
async def test_drain_tries_waiting_writes_once_and_at_once(sink: Sink, failures: int, written: bool) -> None:
    sink.failures.extend([NO_ANSWER] * failures)
    async with recording(sink) as writer:
        await record(writer)
        async with asyncio.timeout(0.1):
            await writer.drain()
    assert len(sink.writes) == 2
    assert (len(sink.events), writer.statistics().refused) == (int(written), int(not written))


@pytest.mark.conformance("EV-03")
async def test_missing_permission_is_logged_once_for_each_namespace(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    sink.failures.extend(ApiError(403, "Forbidden", "no") for _ in range(100))
    async with recording(sink) as writer:
        for number in range(20):
            for namespace in ("shop", "pay"):
                writer.record(replace(event(), namespace=namespace, name=f"cart.{number}", note=f"note {number}"))
            await asyncio.sleep(61)
    assert writer.statistics().refused > 10
    lines = [each.getMessage() for each in caplog.records if "403" in each.getMessage()]
    assert len(lines) == 2
    assert "grant `create` and `patch` of events" in lines[0]


async def test_statistics_count_each_event_once(sink: Sink) -> None:
    """Each recorded Event is skipped, or part of a write; each write is waiting, written, refused or dropped."""
    async with recording(sink) as writer:

        def counts() -> dict[str, int]:
            statistics = writer.statistics()
            return {name: count for name in statistics.__dataclass_fields__ if (count := getattr(statistics, name))}

        sink.answering.clear()
        sink.failures += [NO_ANSWER, ApiError(422, "Invalid")]
        for number in range(26):  # one more than a source may write about an object
            writer.record(event(name=f"cart.{number}", reason=str(number)))
        assert counts() == {"recorded": 26, "skipped": 1, "waiting": 25}
        await settled()
        assert counts() == {"recorded": 26, "skipped": 1, "waiting": 25}, "eight writes are under way"
        sink.answering.set()
        await settled()
        assert counts() == {"recorded": 26, "skipped": 1, "retries": 1, "refused": 1, "waiting": 1, "written": 23}
        sink.answering.clear()
        await asyncio.sleep(20)
        assert counts()["waiting"] == 1
        writer.close()
        assert counts() == {"recorded": 26, "skipped": 1, "retries": 1, "refused": 1, "dropped": 1, "written": 23}
        writer.record(event(regarding=replace(event().regarding, name="other")))
        assert counts()["dropped"] == 2


async def test_correlator_of_the_user_is_used(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    writer = EventRecording(sink, EventSeriesCorrelator(), name="shop")
    for _ in range(3):
        writer.record(event())
    assert writer.statistics().skipped == 1
    writer.close()
    writer.record(event(reason="Late"))
    assert [record.getMessage() for record in caplog.records] == [
        "shop: 1 events were dropped: not written before the end"
    ]


async def test_failures_that_were_not_logged_are_counted_at_the_end(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    sink.failures += [ApiError(422, "Invalid", "no")] * 5
    async with recording(sink) as writer:
        for number in range(5):
            writer.record(event(name=f"cart.{number}", reason=str(number)))
        await settled()
        assert len(caplog.records) == 3
    assert "2 more errors" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 4
