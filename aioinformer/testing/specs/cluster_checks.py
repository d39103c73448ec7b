"""Which checks apply to the kinds that rule a cluster: storage, admission, priority, certificates, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.specs.admission_policies import (
    mutating_binding,
    mutating_policy,
    validating_binding,
    validating_policy,
)
from aioinformer.testing.specs.claims import claim
from aioinformer.testing.specs.persistent_volumes import persistent_volume
from aioinformer.testing.specs.storage import (
    csi_driver,
    csi_node,
    csi_storage_capacity,
    storage_class,
    volume_attachment,
    volume_attributes_class,
)
from aioinformer.testing.specs.webhooks import webhooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.testing.api.statuses import Cause

    Check = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Iterable[Cause]]

CLUSTER_CHECKS: Mapping[str, Check] = {
    "csidrivers.storage.k8s.io": csi_driver,
    "csinodes.storage.k8s.io": csi_node,
    "csistoragecapacities.storage.k8s.io": csi_storage_capacity,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": mutating_policy,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": mutating_binding,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
    "persistentvolumeclaims": claim,
    "persistentvolumes": persistent_volume,
    "storageclasses.storage.k8s.io": storage_class,
    "validatingadmissionpolicies.admissionregistration.k8s.io": validating_policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": validating_binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
    "volumeattachments.storage.k8s.io": volume_attachment,
    "volumeattributesclasses.storage.k8s.io": volume_attributes_class,
}
"""By group resource."""
