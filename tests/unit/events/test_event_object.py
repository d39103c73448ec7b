"""The representation of an Event in the two APIs."""

from __future__ import annotations

from aioinformer.resources.references import ObjectReference
from tests.support.event_samples import AT, event

POD_REFERENCE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "namespace": "shop",
    "name": "cart",
    "uid": "u1",
    "resourceVersion": "7",
}


def test_core_event_has_a_count() -> None:
    assert event(count=3, last_time=AT + 10**9).to_core() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "shop", "name": "cart.1"},
        "involvedObject": POD_REFERENCE,
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "message": "it runs",
        "source": {"component": "web", "host": "host-1"},
        "reportingComponent": "web",
        "reportingInstance": "host-1",
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:21Z",
        "count": 3,
    }


def test_events_k8s_io_event_has_a_series() -> None:
    node = ObjectReference("v1", "Node", "node-1")
    assert event(count=3, last_time=AT + 10**9, related=node, annotations={"a": "1"}).to_events() == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop", "name": "cart.1", "annotations": {"a": "1"}},
        "regarding": POD_REFERENCE,
        "related": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
        "type": "Normal",
        "reason": "Started",
        "action": "Start",
        "note": "it runs",
        "reportingController": "web",
        "reportingInstance": "host-1",
        "eventTime": "2023-11-14T22:13:20.500000Z",
        "series": {"count": 3, "lastObservedTime": "2023-11-14T22:13:21.500000Z"},
    }


def test_single_event_has_no_series() -> None:
    assert "series" not in event().to_events()


def test_long_note_is_truncated_between_characters() -> None:
    assert event(note="é" * 600).to_events()["note"] == "é" * 512
    assert event(note="x" + "é" * 600).to_events()["note"] == "x" + "é" * 511
