"""Record Events, as in client-go's tools/record and tools/events."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(
    __name__,
    {
        "broadcaster": "EventWatch",
        "correlator": (
            "Correlator CorrelatorOptions EventAggregator EventCorrelateResult EventCorrelator EventLogger "
            "EventSourceObjectSpamFilter event_key spam_key"
        ),
        "event": "Event NORMAL WARNING",
        "recorder": "Recorder check generate_event_name",
        "series": "EventSeriesCorrelator series_key",
        "sink": "CoreEventSink EventSink SeriesEventSink",
        "writer": "EventRecording RecordingStatistics",
    },
)
