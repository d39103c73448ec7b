"""Bring objects of built-in kinds into the form in which kube-apiserver stores them.

These changes belong to the server, not to the client's field manager. Defaults, which belong to the client, are in
`defaults`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.label_keys import with_label_keys
from aioinformer.testing.admission.kinds.pod_defaults import admit_pod, readmit_pod
from aioinformer.testing.admission.kinds.pod_status import first_pod_status, keep_unsent_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def prepare_new(group_resource: str, obj: dict[str, Any]) -> None:
    """Prepare a new object, `obj` is changed."""
    prepare = _ON_CREATE.get(group_resource)
    if prepare is not None:
        prepare(obj)


def prepare_changed(group_resource: str, obj: dict[str, Any], old: Mapping[str, Any], subresource: str) -> None:
    """Prepare an object that replaces another one, `obj` is changed.

    Args:
        group_resource: "pods", "deployments.apps".
        obj: what is written; its status is final.
        old: the object that it replaces.
        subresource: the part that is written, "" for the object itself.
    """
    if subresource == "status":
        if group_resource == "pods":
            keep_unsent_fields(obj.setdefault("status", {}), old.get("status") or {})
        return
    match group_resource:
        case "pods":
            if subresource:
                from aioinformer.testing.admission.kinds.pod_parts import POD_PARTS, keep_other_parts

                if subresource in POD_PARTS:
                    keep_other_parts(obj, old, subresource)
            readmit_pod(obj["spec"], old["spec"])
        case "services":
            if obj["spec"]["type"] != "LoadBalancer":
                obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}
        case "statefulsets.apps":
            _admit_stateful_set(obj)
        case "leases.coordination.k8s.io":
            _admit_lease(obj)
        case "persistentvolumeclaims":
            from aioinformer.testing.admission.common.data_sources import set_data_source

            set_data_source(obj["spec"], old.get("spec"))
        case "endpointslices.discovery.k8s.io":
            _drop_topology(obj)


def _drop_topology(obj: dict[str, Any]) -> None:
    """Drop the deprecated topology, which clients cannot write in v1."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _admit_pod(obj: dict[str, Any]) -> None:
    obj["status"] = first_pod_status(obj)
    obj["spec"] = dict(with_label_keys(obj["spec"], obj["metadata"].get("labels") or {}))
    admit_pod(obj["spec"])


def _admit_job(obj: dict[str, Any]) -> None:
    from aioinformer.testing.admission.common.job_selectors import settle_selector

    settle_selector(obj)


def _admit_claim(obj: dict[str, Any]) -> None:
    from aioinformer.testing.admission.common.data_sources import set_data_source

    set_data_source(obj["spec"])
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


_ON_CREATE: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "pods": _admit_pod,
    "endpointslices.discovery.k8s.io": _drop_topology,
    "nodes": _admit_node,
    "persistentvolumeclaims": _admit_claim,
    "persistentvolumes": _admit_volume,
    "jobs.batch": _admit_job,
    "leases.coordination.k8s.io": _admit_lease,
    "statefulsets.apps": _admit_stateful_set,
    "volumeattributesclasses.storage.k8s.io": _admit_attributes,
}
