"""The quality-of-service class of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_QUALITY_RESOURCES = ("cpu", "memory")


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Return the class for a pod's requests and limits."""
    of_pod = spec.get("resources") or {}
    # Pod-level resources take precedence.
    containers = (
        [of_pod]
        if of_pod.get("requests") or of_pod.get("limits")
        else [each.get("resources") or {} for each in _containers(spec)]
    )
    asked = [
        section.get(name)
        for resources in containers
        for section in (resources.get("requests") or {}, resources.get("limits") or {})
        for name in _QUALITY_RESOURCES
    ]
    if not any(value is not None for value in asked):
        return "BestEffort"
    guaranteed = all(
        (resources.get("limits") or {}).get(name) is not None
        and (resources.get("requests") or {}).get(name) == resources["limits"][name]
        for resources in containers
        for name in _QUALITY_RESOURCES
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    fields = ("containers", "initContainers")
    return [each for field in fields for each in spec.get(field) or () if isinstance(each, dict)]
