"""Recorders, sinks, logs and watchers of a broadcaster."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import weakref
from typing import TYPE_CHECKING

import anyio
import pytest

from aioinformer import EventRecorder
from aioinformer.errors import KeyFuncError, UsageError
from aioinformer.events import EventBroadcaster, EventSeriesCorrelator, FakeRecorder
from aioinformer.resources import ObjectReference
from tests.support.event_samples import AT, POD, Sink, event
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.events import Event

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}


@pytest.fixture
def sink() -> Sink:
    return Sink()


class RecordedEvents:
    """A recorder with the Events that it recorded."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = AT
        self.recorder = EventRecorder(self.events.append, "web", "host-1", wall=lambda: self.now)


@pytest.mark.conformance("EV-02")
def test_recorded_event_has_all_fields() -> None:
    recorded = RecordedEvents()
    recorded.recorder.event(POD, "Normal", "Started", "it runs", action="Start")
    assert recorded.events == [event(name=f"cart.{AT:x}")]


@pytest.mark.conformance("EV-02")
def test_message_is_formatted_only_with_arguments() -> None:
    recorded = RecordedEvents()
    recorded.recorder.eventf(POD, "Warning", "Failed", "try %d of %s failed", 2, "five")
    recorded.recorder.eventf(POD, "Warning", "Failed", "100 %")
    assert [each.note for each in recorded.events] == ["try 2 of five failed", "100 %"]


@pytest.mark.conformance("EV-02")
def test_event_with_annotations_and_related_object() -> None:
    recorded = RecordedEvents()
    recorded.recorder.annotated_eventf(POD, {"a": "1"}, "Normal", "Bound", "to %s", "node-1", related=NODE)
    [seen] = recorded.events
    assert (seen.annotations, seen.note, seen.action) == ({"a": "1"}, "to node-1", "Bound")
    assert seen.related == ObjectReference("v1", "Node", "node-1")


@pytest.mark.conformance("EV-02")
def test_events_of_cluster_objects_are_in_default() -> None:
    recorded = RecordedEvents()
    recorded.recorder.event(NODE, "Normal", "Ready", "it is ready")
    assert (recorded.events[0].namespace, recorded.events[0].regarding.namespace) == ("default", "")


@pytest.mark.conformance("EV-02")
def test_event_names_are_unique_even_if_the_clock_goes_back() -> None:
    recorded = RecordedEvents()
    for recorded.now in (AT, AT, AT - 1000, AT + 1):
        recorded.recorder.event(POD, "Normal", "Started", "it runs")
    assert len({each.name for each in recorded.events}) == 4


@pytest.mark.conformance("EV-02")
@pytest.mark.parametrize("name", ["system:node", "x" * 250], ids=["signs", "length"])
def test_event_name_is_random_if_the_objects_name_is_unusual(name: str) -> None:
    recorded = RecordedEvents()
    recorded.recorder.event(
        ObjectReference("rbac.authorization.k8s.io/v1", "ClusterRole", name), "Normal", "Made", "it is there"
    )
    assert len(recorded.events[0].name) == 36
    assert name not in recorded.events[0].name


@pytest.mark.conformance("EV-02")
@pytest.mark.parametrize("recorder", [RecordedEvents().recorder, FakeRecorder()], ids=["real", "fake"])
def test_invalid_arguments_are_refused_when_recording(recorder: EventRecorder | FakeRecorder) -> None:
    with pytest.raises(UsageError, match="type of an event must be 'Normal' or 'Warning', not 'Info'"):
        recorder.event(POD, "Info", "Started", "it runs")
    with pytest.raises(UsageError, match="reason"):
        recorder.event(POD, "Normal", "", "it runs")
    with pytest.raises(UsageError, match="message of an event must be a string, not 7"):
        recorder.event(POD, "Normal", "Started", 7)  # type: ignore[arg-type]
    with pytest.raises(KeyFuncError):
        recorder.event({"kind": "Pod", "apiVersion": "v1", "metadata": {}}, "Normal", "Started", "it runs")


@pytest.mark.conformance("EV-13")
def test_fake_recorder_keeps_events_as_text() -> None:
    fake = FakeRecorder()
    fake.event(POD, "Normal", "Started", "it runs")
    fake.eventf(POD, "Warning", "Failed", "%d times", 3)
    assert fake.events == ["Normal Started it runs", "Warning Failed 3 times"]


def test_instance_is_the_host_by_default() -> None:
    instances: list[str] = []
    for instance in (None, "replica-1", ""):
        EventRecorder(lambda event: instances.append(event.instance), "web", instance).event(
            POD, "Normal", "Started", "it runs"
        )
    assert instances == [socket.gethostname(), "replica-1", ""]


def test_empty_component_is_refused() -> None:
    with pytest.raises(UsageError, match="component"):
        EventBroadcaster().new_recorder("")


@pytest.mark.conformance("EV-01", "EV-09")
async def test_each_sink_gets_all_events_and_correlates_separately() -> None:
    counting, series = Sink(), Sink(EventSeriesCorrelator())
    async with EventBroadcaster() as broadcaster:
        for sink in (counting, series):
            broadcaster.start_recording_to_sink(sink)
        recorder = broadcaster.new_recorder("web")
        for _ in range(3):
            recorder.event(POD, "Normal", "Started", "it runs")
            await settled()
        assert [len(counting.writes), len(series.writes)] == [3, 2]
    assert [each.count for sink in (counting, series) for each in sink.events.values()] == [3, 3]


@pytest.mark.conformance("EV-09")
async def test_events_before_the_start_and_at_the_end_are_written(sink: Sink) -> None:
    broadcaster = EventBroadcaster()
    broadcaster.start_recording_to_sink(sink)
    recorder = broadcaster.new_recorder("web")
    recorder.event(POD, "Normal", "Early", "it runs")
    async with broadcaster:
        recorder.event(POD, "Normal", "Late", "it runs")
    assert sorted(each.reason for each in sink.events.values()) == ["Early", "Late"]


@pytest.mark.conformance("EV-09")
async def test_end_waits_for_a_hanging_sink_up_to_the_grace(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    sink.answering.clear()
    loop = asyncio.get_running_loop()
    async with EventBroadcaster(grace=5.0) as broadcaster:
        to_sink = broadcaster.start_recording_to_sink(sink)
        recorder = broadcaster.new_recorder("web")
        recorder.event(POD, "Normal", "Started", "it runs")
        left = loop.time()
    assert loop.time() - left == pytest.approx(5.0)
    assert (to_sink.statistics().dropped, to_sink.statistics().waiting) == (1, 0)
    assert "1 events were dropped: not written before the end" in caplog.text


@pytest.mark.conformance("EV-09")
async def test_queued_events_are_written_in_a_cancelled_scope(sink: Sink) -> None:
    sink.answering.clear()
    asyncio.get_running_loop().call_later(3, sink.answering.set)
    with anyio.CancelScope() as scope:
        async with EventBroadcaster() as broadcaster:
            broadcaster.start_recording_to_sink(sink)
            broadcaster.new_recorder("web").event(POD, "Normal", "Started", "it runs")
            scope.cancel()
            await asyncio.sleep(0)
    assert [each.reason for each in sink.events.values()] == ["Started"]


async def test_cancelled_end_leaves_no_task(sink: Sink) -> None:
    sink.answering.clear()

    async def run() -> None:
        async with EventBroadcaster(grace=1000.0) as broadcaster:
            broadcaster.start_recording_to_sink(sink)
            broadcaster.new_recorder("web").event(POD, "Normal", "Started", "it runs")

    running = asyncio.create_task(run())
    await settled()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.conformance("EV-09")
async def test_events_after_the_end_are_dropped_and_counted(sink: Sink) -> None:
    async with EventBroadcaster() as broadcaster:
        broadcaster.start_recording_to_sink(sink)
        recorder = broadcaster.new_recorder("web")
    recorder.event(POD, "Normal", "Started", "it runs")
    assert (sink.events, broadcaster.dropped) == ({}, 1)
    with pytest.raises(UsageError, match="has ended"):
        broadcaster.start_recording_to_sink(Sink())
    with pytest.raises(UsageError, match="has ended"):
        broadcaster.start_event_watcher(print)
    with pytest.raises(UsageError, match="has ended"):
        broadcaster.start_logging()


@pytest.mark.conformance("EV-09")
async def test_broadcaster_runs_once() -> None:
    async with EventBroadcaster() as broadcaster:
        pass
    with pytest.raises(UsageError, match="make another one"):
        async with broadcaster:
            pass


@pytest.mark.conformance("EV-12")
async def test_second_recording_to_a_sink_is_refused(sink: Sink) -> None:
    async with EventBroadcaster() as broadcaster:
        broadcaster.start_recording_to_sink(sink)
        with pytest.raises(UsageError, match="every event twice"):
            broadcaster.start_recording_to_sink(sink)


class OnlyCreates:
    async def create(self, event: Event) -> None: ...


async def discover() -> Sink:
    return Sink()


def test_what_receives_no_events_is_refused() -> None:
    broadcaster = EventBroadcaster()
    with pytest.raises(UsageError, match=r"not OnlyCreates$"):
        broadcaster.start_recording_to_sink(OnlyCreates())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"not coroutine; write `await discover\(\.\.\.\)`"):
        broadcaster.start_recording_to_sink(discover())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected a function of an Event, not str"):
        broadcaster.start_event_watcher("print")  # type: ignore[arg-type]


async def test_stopped_watcher_is_freed() -> None:
    class Handler:
        def __call__(self, event: Event) -> None: ...

    async with EventBroadcaster() as broadcaster:
        await settled()
        handler = Handler()
        freed = weakref.ref(handler)
        broadcaster.start_event_watcher(handler).stop()
        del handler
        await settled()
        gc.collect()
        assert freed() is None


@pytest.mark.conformance("EV-09")
@pytest.mark.parametrize("form", ["sync", "async"])
async def test_watcher_gets_each_event_until_stopped(form: str) -> None:
    seen: list[str] = []

    async def coroutine(event: Event) -> None:
        await asyncio.sleep(1)
        seen.append(event.reason)

    async with EventBroadcaster() as broadcaster:
        watch = broadcaster.start_event_watcher(
            coroutine if form == "async" else lambda event: seen.append(event.reason)
        )
        recorder = broadcaster.new_recorder("web")
        for reason in ("A", "A", "B"):
            recorder.event(POD, "Normal", reason, "it runs")
        await settled()
        watch.stop()
        recorder.event(POD, "Normal", "C", "it runs")
    assert seen == ["A", "A", "B"]


@pytest.mark.conformance("EV-01")
async def test_failing_watchers_do_not_affect_other_receivers(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()

    async def hang(event: Event) -> None:
        await asyncio.Event().wait()

    def fail(event: Event) -> None:
        raise RuntimeError("no")

    async with EventBroadcaster(queue_size=2, grace=1.0) as broadcaster:
        hanging, failing = broadcaster.start_event_watcher(hang), broadcaster.start_event_watcher(fail)
        broadcaster.start_recording_to_sink(sink)
        recorder = broadcaster.new_recorder("web")
        for _ in range(5):
            recorder.event(POD, "Normal", "Started", "it runs")
            await settled()
        assert (hanging.dropped, failing.errors) == (2, 5)
        failing.stop()
    assert (hanging.dropped, failing.dropped) == (4, 0), "of five, one is being delivered"
    assert [each.count for each in sink.events.values()] == [5]
    assert "raised for event shop/cart" in caplog.text


@pytest.mark.parametrize(
    ("events", "stops", "seconds"), [(0, False, 0), (0, True, 0), (1, False, 3), (3, False, 9), (3, True, 9)]
)
async def test_end_lasts_until_watchers_have_what_is_queued(events: int, stops: bool, seconds: float) -> None:
    seen: list[Event] = []
    loop = asyncio.get_running_loop()

    async def slow(event: Event) -> None:
        await asyncio.sleep(3)
        seen.append(event)

    async with EventBroadcaster(grace=1000.0, queue_size=3) as broadcaster:
        watch = broadcaster.start_event_watcher(slow)
        await settled()
        recorder = broadcaster.new_recorder("web")
        for _ in range(events):
            recorder.event(POD, "Normal", "Started", "it runs")
        if stops:
            watch.stop()
            recorder.event(POD, "Normal", "Late", "it runs")
            watch.stop()
        began = loop.time()
    assert loop.time() - began == pytest.approx(seconds)
    assert ([each.reason for each in seen], watch.dropped) == (["Started"] * events, 0)


async def test_watcher_that_awaits_a_cancelled_future_continues() -> None:
    received: list[str] = []

    async def cut(event: Event) -> None:
        received.append(event.reason)
        cancelled = asyncio.get_running_loop().create_future()
        cancelled.cancel()
        await cancelled

    async with EventBroadcaster() as broadcaster:
        watch = broadcaster.start_event_watcher(cut)
        recorder = broadcaster.new_recorder("web")
        for reason in ("A", "B"):
            recorder.event(POD, "Normal", reason, "it runs")
    assert (received, watch.errors) == (["A", "B"], 2)


@pytest.mark.conformance("EV-09")
async def test_events_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "audit"):
        async with EventBroadcaster() as broadcaster:
            broadcaster.start_logging(logging.getLogger("audit"))
            for obj in (POD, NODE):
                broadcaster.new_recorder("web").event(obj, "Warning", "Failed", "it does not run")
    assert [record.getMessage() for record in caplog.records] == [
        "Pod shop/cart: Warning Failed: it does not run",
        "Node node-1: Warning Failed: it does not run",
    ]
