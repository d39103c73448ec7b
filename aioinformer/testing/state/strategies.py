"""What the server changes in objects before it stores them: status isolation, generations, names and uids.

These changes belong to the server, not to the client's field manager. Changes that depend on the specification of a
kind are part of `Admission`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from aioinformer.testing.patches.json_patches import same, same_in_go

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.admission import Admission

_WITH_GENERATION = frozenset({
    "pods", "podtemplates", "replicationcontrollers", "daemonsets.apps", "deployments.apps", "replicasets.apps",
    "statefulsets.apps", "cronjobs.batch", "jobs.batch", "customresourcedefinitions.apiextensions.k8s.io",
    "endpointslices.discovery.k8s.io", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy", "ingressclasses.networking.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
})  # fmt: skip
#: Updates ignore the spec.
_IMMUTABLE_SPEC = frozenset({"namespaces"})
_KEEPS_STATUS_ON_CREATE = frozenset({"nodes"})
_RETURNS_DELETED = frozenset({
    "pods", "services", "serviceaccounts", "podtemplates", "persistentvolumes", "persistentvolumeclaims",
    "resourcequotas", "storageclasses.storage.k8s.io",
})  # fmt: skip
_CREATED_BY_UPDATE = frozenset({
    "endpoints", "events", "limitranges", "services", "events.events.k8s.io", "leases.coordination.k8s.io",
    "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
})  # fmt: skip
_NEEDS_VERSION = frozenset(
    [
        "apiservices.apiregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
    ]
)
_ORPHANS_BY_DEFAULT = frozenset({"jobs.batch", "replicationcontrollers"})
_FIRST_STATUS: Mapping[str, Mapping[str, Any]] = {
    "namespaces": {"phase": "Active"},
    "pods": {"phase": "Pending"},
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
# The API's alphabet for generated names: no vowels, no characters that look alike.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 63 - 5
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
    if served.resource.group_resource in _ORPHANS_BY_DEFAULT:
        return "Orphan"
    return "Background"


def prepare_create(served: Served, obj: dict[str, Any], admission: Admission | None) -> None:
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
    if name == "namespaces":
        _settle_namespace(obj)
    if admission is not None:
        admission.prepare(served, obj, None, "")


def prepare_update(
    served: Served, obj: dict[str, Any], old: Mapping[str, Any], subresource: str, admission: Admission | None
) -> None:
    """Restore the fields of the old object that this kind of write may not change.

    Args:
        obj: is changed.
    """
    if subresource == "status":
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
        if admission is not None:
            admission.prepare(served, obj, old, subresource)
        return
    if "status" in served.subresources:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
    if served.resource.group_resource == "serviceaccounts":
        _keep_secret_names(obj)
    if admission is not None:
        admission.prepare(served, obj, old, subresource)
    if served.resource.group_resource in _IMMUTABLE_SPEC:
        obj["spec"] = old.get("spec", {})
    generation = old["metadata"].get("generation")
    if generation is None:
        obj["metadata"].pop("generation", None)
    else:
        counts_status = served.custom and "status" not in served.subresources
        is_equal = same if served.custom else same_in_go
        changed = not is_equal(_spec(obj), _spec(old)) or (counts_status and obj.get("status") != old.get("status"))
        changed = changed or (
            served.resource.group_resource == "deployments.apps"
            and obj["metadata"].get("annotations") != old["metadata"].get("annotations")
        )
        obj["metadata"]["generation"] = generation + changed


def _keep_secret_names(account: dict[str, Any]) -> None:
    """Drop everything but the names of a service account's secrets."""
    if account.get("secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in account["secrets"]]


def _first_status(served: Served, obj: Mapping[str, Any]) -> dict[str, Any]:
    name = served.resource.group_resource
    if name in _FIRST_STATUS:
        return dict(_FIRST_STATUS[name])
    return dict(obj.get("status") or {})


def _settle_namespace(obj: dict[str, Any]) -> None:
    obj.setdefault("metadata", {}).setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in _NOT_SPEC}


class Naming:
    """Make random uids and names."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def generated(self, prefix: str) -> str:
        """Return a name that begins with as much of a prefix as fits."""
        return prefix[:_LONGEST_PREFIX] + "".join(self._rng.choices(_SUFFIX_ALPHABET, k=5))
