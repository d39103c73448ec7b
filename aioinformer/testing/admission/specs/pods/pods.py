"""Validation of pods and pod templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.label_keys import with_label_keys
from aioinformer.testing.admission.specs.pods.affinity import affinity_causes, spread_causes
from aioinformer.testing.admission.specs.pods.containers.containers import container_causes, image_causes
from aioinformer.testing.admission.specs.pods.containers.environment import file_reference_causes
from aioinformer.testing.admission.specs.pods.containers.resources import requirement_causes
from aioinformer.testing.admission.specs.pods.placement import gate_causes, toleration_causes
from aioinformer.testing.admission.specs.pods.pod_annotations import (
    annotation_causes,
    annotation_change_causes,
    disagreement_causes,
)
from aioinformer.testing.admission.specs.pods.pod_changes import change_causes
from aioinformer.testing.admission.specs.pods.pod_fields import (
    alias_causes,
    class_causes,
    dns_causes,
    host_name_causes,
    host_port_causes,
    name_causes,
    policy_causes,
    readiness_causes,
    resource_claim_causes,
)
from aioinformer.testing.admission.specs.pods.pod_security import pod_security_causes, user_namespace_causes
from aioinformer.testing.admission.specs.pods.windows import host_process_causes, system_causes
from aioinformer.testing.admission.specs.storage.volumes import volume_causes
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import label_causes, labelling_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def pod(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check a pod. An update may change only few fields."""
    spec = obj.get("spec") or {}
    annotations = obj["metadata"].get("annotations") or {}
    yield from pod_causes(obj, new=old is None)
    if old is None:
        if spec.get("ephemeralContainers"):
            yield Cause.forbidden("spec.ephemeralContainers", "cannot be set on create")
        if spec.get("nodeName") and spec.get("schedulingGates"):
            yield Cause.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
        yield from disagreement_causes(annotations, spec, "spec")
    else:
        former = old["metadata"].get("annotations") or {}
        yield from annotation_change_causes(annotations, former, "metadata.annotations")
        yield from annotation_causes(annotations, spec, "metadata.annotations")
        yield from change_causes(spec, old.get("spec") or {})


def pod_causes(obj: Mapping[str, Any], *, new: bool = False) -> Iterator[Cause]:
    """Check a pod, independent of the pod that it replaces.

    Args:
        new: whether the pod is created. Its label keys are then merged into its selectors.
    """
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    yield from annotation_causes(metadata.get("annotations") or {}, spec, "metadata.annotations")
    whole = with_label_keys(spec, metadata.get("labels") or {}) if new else spec
    yield from pod_spec_causes(whole, "spec", str(metadata.get("name") or ""))
    if not spec.get("serviceAccountName"):
        yield from _tokens_without_account(spec)
    yield from image_causes(spec, "spec")


def pod_spec_causes(spec: Mapping[str, Any], path: str, pod: str = "") -> Iterator[Cause]:
    """Check a pod spec.

    Args:
        path: of the spec, such as "spec" or "spec.template.spec".
        pod: the name of the pod; "" in a template.
    """
    yield from volume_causes(spec, path, pod)
    yield from resource_claim_causes(spec.get("resourceClaims") or (), f"{path}.resourceClaims")
    yield from container_causes(spec, path)
    yield from host_port_causes(spec, path, of_pod=bool(pod))
    yield from policy_causes(spec, path)
    yield from label_causes(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    yield from pod_security_causes(spec, path)
    yield from affinity_causes(spec.get("affinity") or {}, f"{path}.affinity")
    yield from dns_causes(spec, path)
    yield from readiness_causes(spec.get("readinessGates") or (), f"{path}.readinessGates")
    yield from gate_causes(spec.get("schedulingGates") or (), f"{path}.schedulingGates")
    yield from spread_causes(spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints")
    yield from host_process_causes(spec, path)
    yield from user_namespace_causes(spec, path)
    yield from host_name_causes(spec, path)
    yield from name_causes(spec, path)
    yield from toleration_causes(spec.get("tolerations") or (), f"{path}.tolerations")
    yield from alias_causes(spec.get("hostAliases") or (), f"{path}.hostAliases")
    yield from class_causes(spec, path)
    if spec.get("overhead"):
        yield from requirement_causes({"limits": spec["overhead"]}, f"{path}.overhead", ())
    yield from system_causes(spec, path)
    yield from file_reference_causes(spec, path)


def template_causes(template: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the metadata and the spec of a pod template.

    Args:
        path: of the template, such as "spec.template".
    """
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    yield from labelling_causes(metadata, path)
    yield from annotation_causes(annotations, spec, f"{path}.annotations")
    yield from pod_spec_causes(spec, f"{path}.spec")
    yield from disagreement_causes(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield Cause.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_template(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check a PodTemplate object."""
    yield from template_causes(obj.get("template") or {}, "template")


def _tokens_without_account(spec: Mapping[str, Any]) -> Iterator[Cause]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                yield Cause.forbidden(path, "must not be specified when serviceAccountName is not set")
