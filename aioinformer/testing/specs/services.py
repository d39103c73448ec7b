"""What must be true of services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def service(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    kind = spec.get("type", "ClusterIP")
    if spec.get("clusterIP") == "None" and kind in ("NodePort", "LoadBalancer"):
        yield Cause.invalid("spec.clusterIPs[0]", '"None"', f"may not be set to 'None' for {kind} services")
