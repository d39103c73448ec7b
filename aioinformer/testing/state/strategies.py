"""What the API changes in objects before it stores them: admission, status isolation and generations.

These changes belong to the server, not to the client's field manager. Defaults, which belong to the client, are in
`defaults`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.data_sources import settle_data_source
from aioinformer.testing.admission.common.job_selectors import settle_selector
from aioinformer.testing.admission.common.label_keys import with_label_keys
from aioinformer.testing.admission.kinds.pod_defaults import admit_pod, readmit_pod
from aioinformer.testing.admission.kinds.pod_parts import POD_PARTS, keep_other_parts
from aioinformer.testing.admission.kinds.pod_status import first_pod_status, keep_unsent_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.api.served import Served

_WITH_GENERATION = frozenset(
    {
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "cronjobs.batch",
        "jobs.batch",
        "customresourcedefinitions.apiextensions.k8s.io",
        "endpointslices.discovery.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "ingresses.networking.k8s.io",
        "ingressclasses.networking.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)
#: Objects of these kinds get a generation with their first change.
_GENERATION_ON_CHANGE = frozenset({"csidrivers.storage.k8s.io"})
#: Objects of these kinds keep the generation 1.
_CONSTANT_GENERATION = frozenset({"priorityclasses.scheduling.k8s.io"})
#: Updates ignore the spec.
_IMMUTABLE_SPEC = frozenset({"namespaces", "certificatesigningrequests.certificates.k8s.io"})
_KEEPS_STATUS_ON_CREATE = frozenset({"nodes"})
_RETURNS_DELETED = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "podtemplates",
        "persistentvolumes",
        "persistentvolumeclaims",
        "resourcequotas",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
_CREATED_BY_UPDATE = frozenset(
    {
        "endpoints",
        "events",
        "limitranges",
        "services",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
_NEEDS_VERSION = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "runtimeclasses.node.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
_ORPHANS_BY_DEFAULT = frozenset({"jobs.batch", "replicationcontrollers"})
_FIRST_STATUS: Mapping[str, Mapping[str, Any]] = {
    "namespaces": {"phase": "Active"},
    "persistentvolumes": {"phase": "Pending"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "services": {"loadBalancer": {}},
    "customresourcedefinitions.apiextensions.k8s.io": {
        "conditions": [],
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [],
    },
}
# The metadata field that a write of the status may not change.
_KEPT_BY_STATUS = {"deployments.apps": "labels", "pods": "ownerReferences"}
_NOT_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})


def needs_version(served: Served) -> bool:
    """Return whether an update must have a resourceVersion."""
    return served.custom or served.resource.group_resource in _NEEDS_VERSION


def returns_deleted(served: Served) -> bool:
    """Return whether a deletion is answered with the object instead of a Status."""
    return served.resource.group_resource in _RETURNS_DELETED


def is_created_by_update(served: Served) -> bool:
    """Return whether an update creates a missing object."""
    return served.resource.group_resource in _CREATED_BY_UPDATE


def default_policy(served: Served) -> str:
    """Return the default propagation policy of deletions: the oldest kinds orphan their dependents."""
    return "Orphan" if served.resource.group_resource in _ORPHANS_BY_DEFAULT else "Background"


def prepare_create(served: Served, obj: dict[str, Any]) -> None:
    """Set the initial values of a new object. A status from the client is dropped."""
    name = served.resource.group_resource
    if name == "serviceaccounts":
        _keep_secret_names(obj)
    if "status" in served.subresources:
        if name not in _KEEPS_STATUS_ON_CREATE:
            obj.pop("status", None)
        if not served.custom:
            obj["status"] = _first_status(served, obj)
    if served.custom or name in _WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    admit = _ADMISSION.get(name)
    if admit is not None:
        admit(obj)


def prepare_update(served: Served, obj: dict[str, Any], old: Mapping[str, Any], subresource: str) -> None:
    """Restore the fields of the old object that this kind of write may not change.

    Args:
        obj: is changed.
        old: the object that it replaces.
        subresource: "" for the object itself, or "status".
    """
    if subresource in ("status", "approval"):
        replaced = obj.get("status")
        kept_metadata = dict(old["metadata"])
        kept_metadata["managedFields"] = obj["metadata"].get("managedFields")
        if not kept_metadata["managedFields"]:
            del kept_metadata["managedFields"]
        if not served.custom:
            # For built-in kinds, status writes may also change labels, annotations and finalizers.
            for name in ("labels", "annotations", "finalizers", "ownerReferences"):
                if name == _KEPT_BY_STATUS.get(served.resource.group_resource):
                    continue
                kept_metadata.pop(name, None)
                if obj["metadata"].get(name):
                    kept_metadata[name] = obj["metadata"][name]
        kept_metadata["resourceVersion"] = obj["metadata"].get("resourceVersion", "")
        obj.clear()
        obj.update({name: value for name, value in old.items() if name not in ("status", "metadata")})
        obj["metadata"] = kept_metadata
        if replaced is not None:
            obj["status"] = replaced
        if served.resource.group_resource == "pods":
            keep_unsent_fields(obj.setdefault("status", {}), old.get("status") or {})
        return
    if subresource in POD_PARTS and served.resource.group_resource == "pods":
        keep_other_parts(obj, old, subresource)
    if "status" in served.subresources:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
    if served.resource.group_resource == "services" and obj["spec"]["type"] != "LoadBalancer":
        obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}
    if served.resource.group_resource == "serviceaccounts":
        _keep_secret_names(obj)
    if served.resource.group_resource == "pods":
        readmit_pod(obj["spec"], old["spec"])
    if served.resource.group_resource in _IMMUTABLE_SPEC:
        obj["spec"] = old.get("spec", {})
    if served.resource.group_resource == "statefulsets.apps":
        _admit_stateful_set(obj)
    if served.resource.group_resource == "leases.coordination.k8s.io":
        _admit_lease(obj)
    if served.resource.group_resource == "persistentvolumeclaims":
        settle_data_source(obj["spec"], old.get("spec"))
    if served.resource.group_resource == "endpointslices.discovery.k8s.io":
        _drop_topology(obj)
    generation = old["metadata"].get("generation")
    if generation is None and served.resource.group_resource in _GENERATION_ON_CHANGE and _spec(obj) != _spec(old):
        generation = 0
    if generation is None:
        obj["metadata"].pop("generation", None)
    else:
        counts_status = served.custom and "status" not in served.subresources
        changed = _spec(obj) != _spec(old) or (counts_status and obj.get("status") != old.get("status"))
        changed = changed or (
            served.resource.group_resource == "deployments.apps"
            and obj["metadata"].get("annotations") != old["metadata"].get("annotations")
        )
        if served.resource.group_resource in _CONSTANT_GENERATION:
            changed = False
        obj["metadata"]["generation"] = generation + changed


def _keep_secret_names(account: dict[str, Any]) -> None:
    """Drop everything but the names of a service account's secrets."""
    if account.get("secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in account["secrets"]]


def _first_status(served: Served, obj: Mapping[str, Any]) -> dict[str, Any]:
    name = served.resource.group_resource
    if name == "pods":
        return first_pod_status(obj)
    if name in _FIRST_STATUS:
        return dict(_FIRST_STATUS[name])
    return dict(obj.get("status") or {})


def _drop_topology(obj: dict[str, Any]) -> None:
    """Drop the deprecated topology, which clients cannot write in v1."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _admit_namespace(obj: dict[str, Any]) -> None:
    obj.setdefault("metadata", {}).setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _admit_pod(obj: dict[str, Any]) -> None:
    obj["spec"] = dict(with_label_keys(obj["spec"], obj["metadata"].get("labels") or {}))
    admit_pod(obj["spec"])


def _admit_claim(obj: dict[str, Any]) -> None:
    settle_data_source(obj["spec"])
    _protect(obj, "kubernetes.io/pvc-protection")


def _admit_volume(obj: dict[str, Any]) -> None:
    _protect(obj, "kubernetes.io/pv-protection")
    obj["status"]["lastPhaseTransitionTime"] = obj["metadata"]["creationTimestamp"]


def _admit_attributes(obj: dict[str, Any]) -> None:
    _protect(obj, "kubernetes.io/vac-protection")


def _admit_node(obj: dict[str, Any]) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = obj.setdefault("spec", {}).setdefault("taints", [])
    if not any(each.get("key") == taint["key"] and each.get("effect") == taint["effect"] for each in taints):
        taints.append(taint)


def _admit_stateful_set(obj: dict[str, Any]) -> None:
    """Drop `maxUnavailable`, whose feature gate is off by default."""
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    rolling.pop("maxUnavailable", None)


def _admit_lease(obj: dict[str, Any]) -> None:
    """Drop the fields of coordinated leader election, whose feature gate is off by default."""
    for field in ("strategy", "preferredHolder"):
        obj["spec"].pop(field, None)


def _protect(obj: dict[str, Any], finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


_ADMISSION: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "pods": _admit_pod,
    "endpointslices.discovery.k8s.io": _drop_topology,
    "namespaces": _admit_namespace,
    "nodes": _admit_node,
    "persistentvolumeclaims": _admit_claim,
    "persistentvolumes": _admit_volume,
    "jobs.batch": settle_selector,
    "leases.coordination.k8s.io": _admit_lease,
    "statefulsets.apps": _admit_stateful_set,
    "volumeattributesclasses.storage.k8s.io": _admit_attributes,
}


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in _NOT_SPEC}
