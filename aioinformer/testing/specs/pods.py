"""What must be true of pods, and of the templates that pods are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import labelling_causes
from aioinformer.testing.specs.containers import container_causes
from aioinformer.testing.specs.volumes import volume_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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


def template_causes(template: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a template of pods: its metadata and its specification.

    Args:
        path: "spec.template", or where else it stands.
    """
    spec = template.get("spec") or {}
    yield from labelling_causes(template.get("metadata") or {}, path)
    yield from pod_spec_causes(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield Cause.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_template(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """A template that is an object of its own."""
    yield from template_causes(obj.get("template") or {}, "template")
