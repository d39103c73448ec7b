"""What must be true of pods, and of the templates that pods are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.specs.containers import container_causes
from aioinformer.testing.specs.volumes import volume_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.testing.api.statuses import Cause


def pod(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """A pod; of one that is there already hardly anything may be changed."""
    yield from pod_spec_causes(obj.get("spec") or {}, "spec")


def pod_spec_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the specification of a pod.

    Args:
        path: "spec", or where else it stands: "spec.template.spec".
    """
    yield from volume_causes(spec, path)
    yield from container_causes(spec, path)
