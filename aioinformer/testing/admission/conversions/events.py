"""Events: stored as those of the core group, converted to and from `events.k8s.io`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# In the field order of the newer kind.
_CORE_NAMES = {
    "eventTime": "eventTime",
    "series": "series",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
    "action": "action",
    "reason": "reason",
    "regarding": "involvedObject",
    "related": "related",
    "note": "message",
    "type": "type",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_ALWAYS: Mapping[str, Any] = {"involvedObject": {}, "source": {}, "reportingComponent": "", "reportingInstance": ""}


def core_event(newer: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event from `events.k8s.io/v1` to `v1`."""
    fields = {core: newer[name] for name, core in _CORE_NAMES.items() if newer.get(name) is not None}
    return {"kind": "Event", "apiVersion": "v1", "metadata": newer.get("metadata", {}), **_ALWAYS, **fields}


def newer_event(core: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an event from `v1` to `events.k8s.io/v1`."""
    fields = {name: core[core_name] for name, core_name in _CORE_NAMES.items() if core.get(core_name) not in (None, "")}
    whole = {"regarding": {}, "deprecatedSource": {}, **fields}
    return {"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": core.get("metadata", {}), **whole}
