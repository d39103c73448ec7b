"""Bring objects of built-in kinds into the form in which kube-apiserver stores them.

These changes belong to the server, not to the client's field manager. Defaults, which belong to the client, are in
`defaults`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.kinds.pod_defaults import admit_pod, readmit_pod
from aioinformer.testing.kinds.pod_status import first_pod_status, keep_unsent_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_PREFIX = "batch.kubernetes.io/"
_UID, _NAME = "controller-uid", "job-name"


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
            readmit_pod(obj["spec"], old["spec"])
        case "services":
            if obj["spec"]["type"] != "LoadBalancer":
                obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}


def _admit_pod(obj: dict[str, Any]) -> None:
    obj["status"] = first_pod_status(obj)
    admit_pod(obj["spec"])


def _admit_job(job: dict[str, Any]) -> None:
    """Add the selector and the labels of a job, unless its client manages them.

    Args:
        job: is changed; has a name and a uid.
    """
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = _own_labels(metadata)
    template = spec["template"].setdefault("metadata", {})
    own = template.get("labels") or {}
    template["labels"] = {**labels, **own}
    if (metadata.get("labels") or {}) == own:
        # A job without labels of its own gets those of its pods, including these.
        metadata["labels"] = dict(template["labels"])
    selector = spec["selector"] = dict(spec.get("selector") or {})
    key = f"{_PREFIX}{_UID}"
    selector["matchLabels"] = {key: labels[key], **(selector.get("matchLabels") or {})}


def _own_labels(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the labels of a job's pods, those without a prefix first."""
    values = {_UID: str(metadata.get("uid", "")), _NAME: str(metadata.get("name", ""))}
    return {f"{prefix}{name}": value for prefix in ("", _PREFIX) for name, value in values.items()}


def _admit_claim(obj: dict[str, Any]) -> None:
    _protect(obj, "kubernetes.io/pvc-protection")


def _admit_volume(obj: dict[str, Any]) -> None:
    _protect(obj, "kubernetes.io/pv-protection")
    obj["status"]["lastPhaseTransitionTime"] = obj["metadata"]["creationTimestamp"]


def _admit_node(obj: dict[str, Any]) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = obj.setdefault("spec", {}).setdefault("taints", [])
    if not any(each.get("key") == taint["key"] and each.get("effect") == taint["effect"] for each in taints):
        taints.append(taint)


def _protect(obj: dict[str, Any], finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


_ON_CREATE: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "pods": _admit_pod,
    "nodes": _admit_node,
    "persistentvolumeclaims": _admit_claim,
    "persistentvolumes": _admit_volume,
    "jobs.batch": _admit_job,
}
