"""Choose the checks for storage, admission, priority, certificate and device kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.cluster.priority_levels import flow_schema, priority_level
from aioinformer.testing.admission.specs.cluster.resource_claims import (
    device_class,
    resource_claim,
    resource_claim_template,
    resource_slice,
)
from aioinformer.testing.admission.specs.cluster.runtime_classes import runtime_class
from aioinformer.testing.admission.specs.cluster.signing_requests import signing_request
from aioinformer.testing.admission.specs.extension.admission_policies import (
    mutating_binding,
    mutating_policy,
    validating_binding,
    validating_policy,
)
from aioinformer.testing.admission.specs.extension.api_services import api_service
from aioinformer.testing.admission.specs.extension.webhooks import webhooks
from aioinformer.testing.admission.specs.storage.claims import claim
from aioinformer.testing.admission.specs.storage.persistent_volumes import persistent_volume
from aioinformer.testing.admission.specs.storage.storage import (
    csi_driver,
    csi_node,
    csi_storage_capacity,
    storage_class,
    volume_attachment,
    volume_attributes_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.testing.api.statuses import Cause

    Check = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Iterable[Cause]]

CLUSTER_CHECKS: Mapping[str, Check] = {
    "apiservices.apiregistration.k8s.io": api_service,
    "certificatesigningrequests.certificates.k8s.io": signing_request,
    "csidrivers.storage.k8s.io": csi_driver,
    "csinodes.storage.k8s.io": csi_node,
    "csistoragecapacities.storage.k8s.io": csi_storage_capacity,
    "deviceclasses.resource.k8s.io": device_class,
    "flowschemas.flowcontrol.apiserver.k8s.io": flow_schema,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": mutating_policy,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": mutating_binding,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
    "persistentvolumeclaims": claim,
    "persistentvolumes": persistent_volume,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": priority_level,
    "resourceclaims.resource.k8s.io": resource_claim,
    "resourceclaimtemplates.resource.k8s.io": resource_claim_template,
    "resourceslices.resource.k8s.io": resource_slice,
    "runtimeclasses.node.k8s.io": runtime_class,
    "storageclasses.storage.k8s.io": storage_class,
    "validatingadmissionpolicies.admissionregistration.k8s.io": validating_policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": validating_binding,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
    "volumeattachments.storage.k8s.io": volume_attachment,
    "volumeattributesclasses.storage.k8s.io": volume_attributes_class,
}
"""By group resource."""
