"""Values that a simulation reads from objects of any storage tier."""

from __future__ import annotations

from typing import Any

from tests.system.simulation.collection import REFUSED


def key_of(obj: Any) -> str:
    """Return `namespace/name`."""
    if isinstance(obj, dict):
        return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}"


def serial_of(obj: Any) -> int:
    """Return the serial number of its write."""
    return int(_labels(obj)["write"])


def app_of(obj: Any) -> str:
    """Return the label of selections."""
    return str(_labels(obj)["app"])


def refused(obj: Any) -> bool:
    """Return whether a transform refuses it."""
    return REFUSED in _labels(obj)


def identity_of(obj: Any) -> tuple[str, str, int]:
    """Return uid, version and serial number."""
    if isinstance(obj, dict):
        return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], serial_of(obj)
    return obj.metadata.uid, obj.metadata.resource_version, serial_of(obj)


def _labels(obj: Any) -> Any:
    return obj["metadata"]["labels"] if isinstance(obj, dict) else obj.metadata.labels
