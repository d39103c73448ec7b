"""Validation of events.

An event of the core group is hardly checked, unless it has an `eventTime`: then it must name its reporter. An event of
`events.k8s.io` must have an `eventTime` and no deprecated fields; only its series, labels and annotations may change.
Fields have the names under which the server stores them, for both groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_TYPES = ("Normal", "Warning")
_MICROSECONDS = len("2006-01-02T15:04:05.000000")
_REFERENCE = {
    "kind": "Kind",
    "namespace": "Namespace",
    "name": "Name",
    "uid": "UID",
    "apiVersion": "APIVersion",
    "resourceVersion": "ResourceVersion",
    "fieldPath": "FieldPath",
}
_GO_NAMES = {
    "involvedObject": _REFERENCE,
    "related": _REFERENCE,
    "source": {"component": "Component", "host": "Host"},
}
_UNCHANGED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def event_causes(event: Mapping[str, Any], old: Mapping[str, Any] | None, *, newer: bool) -> list[Cause]:
    """Return what is wrong with an event.

    Args:
        event: in its stored form.
        old: the stored event that it replaces.
        newer: whether the request uses `events.k8s.io`.
    """
    causes = list(_reporter_causes(event, newer=newer) if event.get("eventTime") else _namespace_causes(event))
    if newer and old is None:
        causes += _creation_causes(event)
    elif newer and old is not None:
        causes += _change_causes(event, old)
    return causes


def _namespace_causes(event: Mapping[str, Any]) -> Iterator[Cause]:
    namespace, involved = event["metadata"].get("namespace", ""), _involved(event)
    if namespace != involved if involved else namespace != "default":
        yield Cause.invalid("involvedObject.namespace", quote(involved), "does not match event.namespace")


def _reporter_causes(event: Mapping[str, Any], *, newer: bool) -> Iterator[Cause]:
    namespace, involved = event["metadata"].get("namespace", ""), _involved(event)
    if not involved and namespace not in ("default", "kube-system"):
        yield Cause.invalid("involvedObject.namespace", '""', "does not match event.namespace")
    reporter = event.get("reportingComponent") or ""
    field = "reportingController" if newer else "reportingComponent"
    if not reporter:
        yield Cause.required(field)
    yield from (Cause.invalid(field, quote(reporter), why) for why in label_name_faults(reporter))
    for name, longest in _LONGEST.items():
        text = event.get(name) or ""
        if not text and name != "message":
            yield Cause.required(name)
        if len(text.encode()) > longest:
            yield Cause.invalid(name, '""', f"can have at most {longest} characters")


def _creation_causes(event: Mapping[str, Any]) -> Iterator[Cause]:
    yield from _series(event)
    if not event.get("eventTime"):
        yield Cause.required("eventTime")
    if event.get("type") not in _TYPES:
        yield Cause.invalid("type", '""', f"has invalid value: {event.get('type') or ''}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(name):
            yield Cause.invalid(name, '""', "needs to be unset")


def _change_causes(event: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    if event.get("series") != old.get("series"):
        yield from _series(event)
    for name in _UNCHANGED:
        new, former = event.get(name), old.get(name)
        if name == "eventTime" and _to_microseconds(new) == _to_microseconds(former):
            continue
        if (new or None) != (former or None):
            field = "reportingController" if name == "reportingComponent" else name
            yield Cause.invalid(field, quote(_go_value(name, new)), "field is immutable")


def _series(event: Mapping[str, Any]) -> Iterator[Cause]:
    series = event.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        yield Cause.invalid("series.count", '""', "should be at least 2")
    if not series.get("lastObservedTime"):
        yield Cause.required("series.lastObservedTime")


def _involved(event: Mapping[str, Any]) -> str:
    return str((event.get("involvedObject") or {}).get("namespace") or "")


def _to_microseconds(time: str | None) -> str:
    return (time or "").removesuffix("Z")[:_MICROSECONDS]


def _go_value(field: str, value: Any) -> Any:
    """Return the value as a struct with all fields, by their Go names."""
    if field not in _GO_NAMES or value is None:
        return value
    return {go: value.get(name, "") for name, go in _GO_NAMES[field].items()}
