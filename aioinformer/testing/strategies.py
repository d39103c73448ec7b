"""What the API does to an object of each resource before it stores it: defaults, status isolation, generations.

Only what informers and kubectl can tell apart is here; a field that is merely defaulted by the real server (such as a
container's `terminationMessagePath`) is left alone.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.served import Served

_WITH_GENERATION = frozenset(
    {
        "pods",
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
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)
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
_FIRST_STATUS: Mapping[str, Mapping[str, Any]] = {
    "pods": {"phase": "Pending", "qosClass": "BestEffort"},
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
_NOT_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})


def returns_deleted(served: Served) -> bool:
    """Whether a deletion is answered with the object rather than with a Status."""
    return served.resource.group_resource in _RETURNS_DELETED


def prepare_create(served: Served, obj: dict[str, Any]) -> None:
    """Makes a client's object what is stored at first: its status is the server's."""
    name = served.resource.group_resource
    if "status" in served.subresources and name not in _KEEPS_STATUS_ON_CREATE:
        obj.pop("status", None)
        first = _FIRST_STATUS.get(name)
        if first is not None:
            obj["status"] = dict(first)
        elif not served.custom and served.resource.group_resource not in _KEEPS_STATUS_ON_CREATE:
            obj["status"] = {}
    if served.custom or name in _WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    else:
        obj["metadata"].pop("generation", None)
    if name == "services":
        spec = obj.setdefault("spec", {})
        if spec.get("type") != "ExternalName" and not spec.get("clusterIP"):
            number = zlib.crc32(obj["metadata"]["uid"].encode())
            spec["clusterIP"] = f"10.96.{number >> 8 & 255}.{number % 254 + 1}"
        if "clusterIP" in spec:
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if name == "namespaces":
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        obj.setdefault("spec", {})["finalizers"] = ["kubernetes"]
    prepare_any(served, obj)


def prepare_update(served: Served, obj: dict[str, Any], old: Mapping[str, Any], subresource: str) -> None:
    """Takes from the old object what this kind of write may not change.

    Args:
        subresource: "" for the object itself, or "status".
    """
    if subresource == "status":
        replaced = obj.get("status")
        kept_metadata = dict(old["metadata"])
        kept_metadata["managedFields"] = obj["metadata"].get("managedFields")
        if not kept_metadata["managedFields"]:
            del kept_metadata["managedFields"]
        if not served.custom:
            # Built-in kinds let a status write change labels, annotations and finalizers as well.
            for name in ("labels", "annotations", "finalizers", "ownerReferences"):
                kept_metadata.pop(name, None)
                if obj["metadata"].get(name):
                    kept_metadata[name] = obj["metadata"][name]
        kept_metadata["resourceVersion"] = obj["metadata"].get("resourceVersion", "")
        obj.clear()
        obj.update({name: value for name, value in old.items() if name not in ("status", "metadata")})
        obj["metadata"] = kept_metadata
        if replaced is not None:
            obj["status"] = replaced
        return
    if "status" in served.subresources:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
    if served.resource.group_resource == "namespaces":
        obj["spec"] = old.get("spec", {})
    if served.resource.group_resource == "services":
        # A client that does not know the address of its service does not mean to take it away.
        for field in ("clusterIP", "clusterIPs"):
            if field in old.get("spec", {}):
                obj.setdefault("spec", {}).setdefault(field, old["spec"][field])
    prepare_any(served, obj)
    generation = old["metadata"].get("generation")
    if generation is None:
        obj["metadata"].pop("generation", None)
    else:
        obj["metadata"]["generation"] = generation + (_spec(obj) != _spec(old))


def prepare_any(served: Served, obj: dict[str, Any]) -> None:
    """What happens to an object on every write."""
    if served.resource.group_resource == "secrets":
        plain = obj.pop("stringData", None)
        if plain:
            data = obj.setdefault("data", {})
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()
        obj.setdefault("type", "Opaque")
    elif served.resource.group_resource == "services":
        obj.setdefault("spec", {}).setdefault("type", "ClusterIP")
    elif served.resource.group_resource == "pods":
        spec = obj.setdefault("spec", {})
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("schedulerName", "default-scheduler")
    elif served.resource.group_resource in ("deployments.apps", "replicasets.apps", "statefulsets.apps"):
        obj.setdefault("spec", {}).setdefault("replicas", 1)


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in _NOT_SPEC}
