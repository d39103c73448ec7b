"""Record Events, as in client-go's tools/record and tools/events."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.events.broadcaster import EventBroadcaster as EventBroadcaster
    from aioinformer.events.broadcaster import EventWatch as EventWatch
    from aioinformer.events.correlator import Correlator as Correlator
    from aioinformer.events.correlator import CorrelatorOptions as CorrelatorOptions
    from aioinformer.events.correlator import EventAggregator as EventAggregator
    from aioinformer.events.correlator import EventCorrelateResult as EventCorrelateResult
    from aioinformer.events.correlator import EventCorrelator as EventCorrelator
    from aioinformer.events.correlator import EventLogger as EventLogger
    from aioinformer.events.correlator import EventSourceObjectSpamFilter as EventSourceObjectSpamFilter
    from aioinformer.events.correlator import LRUCache as LRUCache
    from aioinformer.events.correlator import combined_message as combined_message
    from aioinformer.events.correlator import event_aggregator_by_reason as event_aggregator_by_reason
    from aioinformer.events.correlator import event_key as event_key
    from aioinformer.events.correlator import spam_key as spam_key
    from aioinformer.events.event import NORMAL as NORMAL
    from aioinformer.events.event import WARNING as WARNING
    from aioinformer.events.event import Event as Event
    from aioinformer.events.recorder import EventRecorder as EventRecorder
    from aioinformer.events.recorder import FakeRecorder as FakeRecorder
    from aioinformer.events.recorder import Recorder as Recorder
    from aioinformer.events.recorder import check as check
    from aioinformer.events.recorder import generate_event_name as generate_event_name
    from aioinformer.events.series import EventSeriesCorrelator as EventSeriesCorrelator
    from aioinformer.events.series import SeriesOptions as SeriesOptions
    from aioinformer.events.series import series_key as series_key
    from aioinformer.events.sink import CoreEventSink as CoreEventSink
    from aioinformer.events.sink import EventSink as EventSink
    from aioinformer.events.sink import SeriesEventSink as SeriesEventSink
    from aioinformer.events.sink import discover_event_sink as discover_event_sink
    from aioinformer.events.writer import EventRecording as EventRecording
    from aioinformer.events.writer import RecordingOptions as RecordingOptions
    from aioinformer.events.writer import RecordingStatistics as RecordingStatistics
else:  # a type checker must not accept misspelt names
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
