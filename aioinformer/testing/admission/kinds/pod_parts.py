"""The pod subresources `ephemeralcontainers` and `resize`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

POD_PARTS = frozenset({"ephemeralcontainers", "resize"})
"""Subresources of pods."""

_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_CONTAINERS = ("containers", "initContainers")
_SIZES = ("resources", "resizePolicy")


def keep_other_parts(obj: dict[str, Any], old: Mapping[str, Any], part: str) -> None:
    """Restore everything that the subresource does not write from the old pod.

    Args:
        obj: is changed.
        old: the pod that it replaces.
        part: "ephemeralcontainers" or "resize". A resize that renames containers is not changed; validation rejects it.
    """
    for field in _METADATA:
        obj["metadata"].pop(field, None)
        if field in old["metadata"]:
            obj["metadata"][field] = old["metadata"][field]
    spec = obj.get("spec") or {}
    if part == "resize" and any(_names(spec, field) != _names(old["spec"], field) for field in _CONTAINERS):
        return
    kept = obj["spec"] = deepcopy(old["spec"])
    if part == "ephemeralcontainers":
        _copy_fields(kept, spec, "ephemeralContainers")
        return
    _copy_fields(kept, spec, "resources")
    for field in _CONTAINERS:
        for container, sized in zip(kept.get(field) or (), spec.get(field) or (), strict=True):
            _copy_fields(container, sized, *_SIZES)


def _names(spec: Mapping[str, Any], field: str) -> list[str]:
    return [container.get("name", "") for container in spec.get(field) or ()]


def _copy_fields(target: dict[str, Any], source: Mapping[str, Any], *fields: str) -> None:
    for field in fields:
        target.pop(field, None)
        if field in source:
            target[field] = source[field]
