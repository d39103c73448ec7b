"""Record Events, as in client-go's tools/record and tools/events."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.events.broadcaster import EventBroadcaster, EventWatch
    from aioinformer.events.correlator import (
        Correlator,
        CorrelatorOptions,
        EventAggregator,
        EventCorrelateResult,
        EventCorrelator,
        EventLogger,
        EventSourceObjectSpamFilter,
        LRUCache,
        combined_message,
        event_aggregator_by_reason,
        event_key,
        spam_key,
    )
    from aioinformer.events.event import NORMAL, WARNING, Event
    from aioinformer.events.recorder import EventRecorder, FakeRecorder, Recorder, check, generate_event_name
    from aioinformer.events.series import EventSeriesCorrelator, SeriesOptions, series_key
    from aioinformer.events.sink import CoreEventSink, EventSink, SeriesEventSink, discover_event_sink
    from aioinformer.events.writer import EventRecording, RecordingOptions, RecordingStatistics

__all__ = [
    "NORMAL",
    "WARNING",
    "CoreEventSink",
    "Correlator",
    "CorrelatorOptions",
    "Event",
    "EventAggregator",
    "EventBroadcaster",
    "EventCorrelateResult",
    "EventCorrelator",
    "EventLogger",
    "EventRecorder",
    "EventRecording",
    "EventSeriesCorrelator",
    "EventSink",
    "EventSourceObjectSpamFilter",
    "EventWatch",
    "FakeRecorder",
    "LRUCache",
    "Recorder",
    "RecordingOptions",
    "RecordingStatistics",
    "SeriesEventSink",
    "SeriesOptions",
    "check",
    "combined_message",
    "discover_event_sink",
    "event_aggregator_by_reason",
    "event_key",
    "generate_event_name",
    "series_key",
    "spam_key",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "broadcaster": "EventBroadcaster EventWatch",
            "correlator": (
                "Correlator CorrelatorOptions EventAggregator EventCorrelateResult EventCorrelator EventLogger "
                "EventSourceObjectSpamFilter LRUCache combined_message event_aggregator_by_reason event_key "
                "spam_key"
            ),
            "event": "Event NORMAL WARNING",
            "recorder": "EventRecorder FakeRecorder Recorder check generate_event_name",
            "series": "EventSeriesCorrelator SeriesOptions series_key",
            "sink": "CoreEventSink EventSink SeriesEventSink discover_event_sink",
            "writer": "EventRecording RecordingOptions RecordingStatistics",
        },
    )
