"""What a simulation reads of an object, whatever tier it comes from."""

from __future__ import annotations

from typing import Any

from tests.simulation.collection import REFUSED


def key_of(obj: Any) -> str:
    """`namespace/name`."""
    if isinstance(obj, dict):
        return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}"


def serial_of(obj: Any) -> int:
    """Which write made it."""
    return int(_labels(obj)["write"])


def app_of(obj: Any) -> str:
    """The label that selections look at."""
    return str(_labels(obj)["app"])


def refused(obj: Any) -> bool:
    """Whether it is one that a transform refuses."""
    return REFUSED in _labels(obj)


def identity_of(obj: Any) -> tuple[str, str, int]:
    """Which version of which object it is: uid, version, write."""
    if isinstance(obj, dict):
        return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], serial_of(obj)
    return obj.metadata.uid, obj.metadata.resource_version, serial_of(obj)


def _labels(obj: Any) -> Any:
    return obj["metadata"]["labels"] if isinstance(obj, dict) else obj.metadata.labels
