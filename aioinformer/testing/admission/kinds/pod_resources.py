"""Defaults for the resources of a pod: from its containers, or from its own limits."""

from __future__ import annotations

from typing import Any

from aioinformer.testing.admission.common.pod_totals import PAGES, may_be_overcommitted, total_resources, written_like

_BOUNDED = ("cpu", "memory")


def default_pod_resources(spec: dict[str, Any]) -> None:
    """Fill in the requests and limits of a pod. Those of its containers have been filled in before.

    Args:
        spec: is changed, if the pod has resources.
    """
    resources = spec.get("resources") or {}
    requests, limits = (dict(resources.get(part) or {}) for part in ("requests", "limits"))
    if requests or limits:
        for name, size in total_resources(spec, "limits").items():
            if name.startswith(PAGES) and name not in requests and name not in limits:
                limits[name] = written_like(size, "i")
    if limits:
        for name, size in total_resources(spec, "requests").items():
            if _is_bounded(name) and may_be_overcommitted(name) and name not in requests:
                requests[name] = written_like(size, limits.get(name, ""))
        requests |= {name: limit for name, limit in limits.items() if _is_bounded(name) and name not in requests}
        resources |= {"limits": limits, "requests": requests}


def _is_bounded(resource: str) -> bool:
    return resource in _BOUNDED or resource.startswith(PAGES)
