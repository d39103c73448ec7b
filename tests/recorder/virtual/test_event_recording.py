"""What becomes of Events on their way to a sink that is slow, away, or refuses them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.events.correlator import CorrelatorOptions, EventCorrelator
from aioinformer.events.series import EventSeriesCorrelator
from aioinformer.events.writer import EventRecording, RecordingOptions
from tests.recorder.samples import Sink, event
from tests.shell.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GONE = TransportError("no answer")


@asynccontextmanager
async def recording(sink: Sink, **options: Any) -> AsyncIterator[EventRecording]:
    recording = EventRecording(sink, options=RecordingOptions(**options), random=lambda: 0.5)
    task = asyncio.create_task(recording.run())
    try:
        yield recording
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.conformance("EV-03")
async def test_an_event_is_created_and_its_repetitions_are_patches() -> None:
    sink = Sink()
    async with recording(sink) as to_sink:
        for _ in range(3):
            to_sink.record(event())
            await settled()
    assert sink.writes == ["create cart.1 1", "patch cart.1 2", "patch cart.1 3"]


@pytest.mark.conformance("EV-03")
async def test_a_patch_of_an_event_that_has_expired_creates_it() -> None:
    sink = Sink()
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        sink.events.clear()
        to_sink.record(event())
        await settled()
    assert sink.events["cart.1"].count == 2
    assert sink.writes[1:] == ["patch cart.1 2", "create cart.1 2"]


@pytest.mark.conformance("EV-03", "EV-12")
@pytest.mark.parametrize("failure", [GONE, DecodeError("no event"), OSError()], ids=lambda error: type(error).__name__)
async def test_what_gets_no_answer_is_tried_twelve_times_ten_seconds_apart(failure: Exception) -> None:
    sink = Sink()
    sink.failures.extend([failure] * 20)
    loop = asyncio.get_running_loop()
    async with recording(sink) as to_sink:
        began = loop.time()
        to_sink.record(event())
        times = []
        while len(sink.writes) < 12:
            before = len(sink.writes)
            await asyncio.sleep(0.25)
            times += [loop.time() - began] * (len(sink.writes) - before)
        await asyncio.sleep(1000)
    assert len(sink.writes) == 12
    assert times[:3] == pytest.approx([0.25, 5.25, 16.5], abs=0.3)
    assert times[-1] == pytest.approx(5 + 10 * 11.25, abs=0.5)
    assert (to_sink.statistics().refused, to_sink.statistics().waiting) == (1, 0)


@pytest.mark.conformance("EV-03")
@pytest.mark.parametrize("status", [400, 403, 404, 422, 500])
async def test_what_the_server_refuses_is_not_tried_again(status: int, caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    sink.failures.append(ApiError(status, "No", "not here"))
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await asyncio.sleep(1000)
    assert sink.writes == ["create cart.1 1"]
    assert to_sink.statistics().refused == 1
    assert "event shop/cart.1 was not written" in caplog.text


async def test_a_server_that_says_when_to_ask_again_is_asked_then() -> None:
    sink = Sink()
    sink.failures.append(ApiError(429, "TooManyRequests", retry_after=60.0))
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await asyncio.sleep(59)
        assert len(sink.writes) == 1
        await asyncio.sleep(2)
    assert sink.events["cart.1"].count == 1


async def test_an_event_that_is_there_already_was_written_when_the_answer_got_lost() -> None:
    sink = Sink()
    sink.events["cart.1"] = event()
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        to_sink.record(event())
        await settled()
    assert sink.events["cart.1"].count == 2
    assert to_sink.statistics().refused == 0


async def test_what_repeats_after_a_lost_answer_is_counted_where_it_was_written() -> None:
    sink = Sink()
    sink.failures.append(GONE)
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        sink.events["cart.1"] = event()
        to_sink.record(event())
        await asyncio.sleep(20)
    assert sink.writes[1:] == ["create cart.1 2", "patch cart.1 2"]
    assert sink.events["cart.1"].count == 2


@pytest.mark.conformance("EV-12")
async def test_an_event_that_appears_between_patch_and_create_is_patched_by_the_next_try() -> None:
    sink = Sink()
    sink.failures.extend([ApiError(404, "NotFound"), ApiError(409, "AlreadyExists")])
    sink.events["cart.1"] = event()
    async with recording(sink) as to_sink:
        to_sink.record(event(count=2))
        await asyncio.sleep(20)
    assert sink.writes == ["patch cart.1 2", "create cart.1 2", "patch cart.1 2"]


@pytest.mark.conformance("EV-01", "WEAK-27")
async def test_recording_does_not_wait_for_a_sink_that_hangs_and_drops_what_is_too_much() -> None:
    sink = Sink(EventCorrelator(CorrelatorOptions(burst_size=5000, max_events=5000)))
    sink.answering.clear()
    async with recording(sink) as to_sink:
        await settled()
        for number in range(1500):
            to_sink.record(event(name=f"cart.{number}", note=str(number)))
            await asyncio.sleep(0)
        statistics = to_sink.statistics()
        assert (statistics.waiting, statistics.dropped) == (1008, 492)
        sink.answering.set()
        await settled()
    assert len(sink.events) == 1008


@pytest.mark.conformance("WEAK-27")
async def test_repetitions_while_the_sink_is_away_are_one_write() -> None:
    sink = Sink()
    sink.failures.append(GONE)
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        for _ in range(9):
            to_sink.record(event())
        await asyncio.sleep(100)
    assert sink.writes == ["create cart.1 1", "create cart.1 10"]


@pytest.mark.conformance("EV-03")
async def test_a_repetition_during_a_write_that_fails_waits_for_the_next_try() -> None:
    sink = Sink()
    sink.answering.clear()
    sink.failures.append(GONE)
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        to_sink.record(event())
        sink.answering.set()
        await settled()
        assert sink.writes == ["create cart.1 1"]
        await asyncio.sleep(100)
    assert sink.writes[1:] == ["create cart.1 2"]


@pytest.mark.conformance("WEAK-27")
async def test_an_event_that_waits_for_its_next_try_holds_up_no_other() -> None:
    sink = Sink()
    sink.failures.extend([GONE] * 8)
    async with recording(sink) as to_sink:
        for number in range(9):
            to_sink.record(event(name=f"cart.{number}", note=str(number)))
        await settled()
        assert list(sink.events) == ["cart.8"]
        await asyncio.sleep(100)
    assert len(sink.events) == 9


@pytest.mark.conformance("EV-12")
async def test_eight_events_are_written_at_a_time_and_never_one_of_them_twice() -> None:
    sink = Sink()
    sink.answering.clear()
    async with recording(sink) as to_sink:
        for number in range(20):
            to_sink.record(event(name="cart.0", note="0"))
            to_sink.record(event(name=f"cart.{number}", note=str(number)))
        await settled()
        assert len(sink.writes) == 8
        assert len({write.split()[1] for write in sink.writes}) == 8


@pytest.mark.conformance("EV-11")
async def test_a_series_that_is_over_is_written_without_another_event() -> None:
    sink = Sink(EventSeriesCorrelator())
    async with recording(sink) as to_sink:
        for _ in range(10):
            to_sink.record(event())
            await settled()
        assert sink.writes == ["create cart.1 1", "patch cart.1 2"]
        await asyncio.sleep(13 * 60)
    assert sink.writes[2:] == ["patch cart.1 10"]


async def test_a_series_that_is_over_and_not_yet_written_does_not_make_room_for_the_next_one() -> None:
    sink = Sink(EventSeriesCorrelator())
    sink.failures += [GONE] * 40
    async with recording(sink, tries=100) as to_sink:
        to_sink.record(event(name="cart.1"))
        await asyncio.sleep(400)
        to_sink.record(event(name="cart.2"))
        await asyncio.sleep(300)
    assert set(sink.events) == {"cart.1", "cart.2"}


async def test_a_drain_writes_what_waits_for_its_next_try_at_once() -> None:
    sink = Sink()
    sink.failures.append(GONE)
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        async with asyncio.timeout(0.1):
            await to_sink.drain()
    assert sink.events["cart.1"].count == 1


async def test_a_drain_tries_once_and_says_what_was_lost() -> None:
    sink = Sink()
    sink.failures.extend([GONE] * 3)
    async with recording(sink) as to_sink:
        to_sink.record(event())
        await settled()
        await to_sink.drain()
    assert len(sink.writes) == 2
    assert to_sink.statistics().refused == 1


@pytest.mark.parametrize("option", ["queue_size", "workers", "tries", "retry_period", "retry_jitter"])
def test_an_option_that_makes_no_sense_is_refused_by_name(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        RecordingOptions(**{option: -1})
