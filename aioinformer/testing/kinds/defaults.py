"""Defaults of built-in kinds, and the form in which kube-apiserver stores them.

Defaults belong to the manager that wrote the object, as if it had set them. What the server adds later belongs to no
manager. Kinds that configure a cluster have no defaults here, beyond constants.
"""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.kinds.pods import (
    admit_pod,
    align_pod_addresses,
    default_pod_spec,
    fill,
    first_pod_status,
    keep_unsent_fields,
    readmit_pod,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RBAC = "rbac.authorization.k8s.io"
_ROLLING = "RollingUpdate"
_PREFIX = "batch.kubernetes.io/"
_UID = "controller-uid"
_NAME = "job-name"


def default_object(group_resource: str, obj: dict[str, Any]) -> None:
    """Fill in the defaults of an object.

    Args:
        obj: is changed.
    """
    set_defaults = _DEFAULTS.get(group_resource)
    if set_defaults is not None:
        try:
            set_defaults(obj)
        except (AttributeError, KeyError, TypeError):
            # A value has the wrong type; the validation reports it.
            return


def _spec(obj: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = obj.setdefault("spec", {})
    return spec


def _default_template(spec: dict[str, Any]) -> None:
    template = spec.setdefault("template", {})
    default_pod_spec(template.setdefault("spec", {}))


def _replication_controller(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    fill(spec, replicas=1)
    if spec.get("template"):
        _default_template(spec)


def _pod(obj: dict[str, Any]) -> None:
    default_pod_spec(_spec(obj), in_template=False)
    align_pod_addresses(obj.get("status") or {})


def _deployment(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, progressDeadlineSeconds=600, replicas=1, revisionHistoryLimit=10, strategy={})
    strategy = spec["strategy"]
    fill(strategy, type=_ROLLING)
    if strategy["type"] == _ROLLING:
        fill(strategy, rollingUpdate={})
        fill(strategy["rollingUpdate"], maxSurge="25%", maxUnavailable="25%")
    _default_template(spec)


def _replica_set(obj: dict[str, Any]) -> None:
    fill(_spec(obj), replicas=1)
    _default_template(obj["spec"])


def _daemon_set(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(obj["metadata"], annotations={})
    fill(obj["metadata"]["annotations"], **{"deprecated.daemonset.template.generation": "1"})
    fill(spec, revisionHistoryLimit=10, updateStrategy={})
    fill(spec["updateStrategy"], type=_ROLLING)
    if spec["updateStrategy"]["type"] == _ROLLING:
        fill(spec["updateStrategy"], rollingUpdate={})
        fill(spec["updateStrategy"]["rollingUpdate"], maxSurge=0, maxUnavailable=1)
    _default_template(spec)


def _stateful_set(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(
        spec,
        persistentVolumeClaimRetentionPolicy={},
        podManagementPolicy="OrderedReady",
        replicas=1,
        revisionHistoryLimit=10,
        updateStrategy={},
    )
    fill(spec["persistentVolumeClaimRetentionPolicy"], whenDeleted="Retain", whenScaled="Retain")
    fill(spec["updateStrategy"], type=_ROLLING)
    if spec["updateStrategy"]["type"] == _ROLLING:
        fill(spec["updateStrategy"], rollingUpdate={})
        fill(spec["updateStrategy"]["rollingUpdate"], partition=0)
    for claim in spec.get("volumeClaimTemplates") or ():
        _claim(claim)
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim", status={})
        fill(claim["status"], phase="Pending")
    _default_template(spec)


def _job(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    if labels := ((spec.get("template") or {}).get("metadata") or {}).get("labels"):
        fill(obj["metadata"], labels=dict(labels))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        fill(spec, completions=1)
    fill(
        spec,
        backoffLimit=6,
        completionMode="NonIndexed",
        manualSelector=False,
        parallelism=1,
        podReplacementPolicy="TerminatingOrFailed",
        suspend=False,
    )
    _default_template(spec)


def _cron_job(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, concurrencyPolicy="Allow", failedJobsHistoryLimit=1, successfulJobsHistoryLimit=3, suspend=False)
    job = spec.setdefault("jobTemplate", {})
    fill(job, metadata={})
    template = job.setdefault("spec", {}).setdefault("template", {})
    fill(template, metadata={})
    default_pod_spec(template.setdefault("spec", {}))


def _service(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        timeout = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
        if timeout is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP")
        port["targetPort"] = port.get("targetPort") or port.get("port")
    is_external = spec["type"] in ("NodePort", "LoadBalancer")
    if is_external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if is_external or spec["type"] == "ClusterIP":
        fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
        for point in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if point.get("ip"):
                fill(point, ipMode="VIP")


def _endpoints(obj: dict[str, Any]) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            fill(port, protocol="TCP")


def _endpoint_slice(obj: dict[str, Any]) -> None:
    for port in obj.get("ports") or ():
        fill(port, name="", protocol="TCP")
    for endpoint in obj.get("endpoints") or ():
        fill(endpoint, conditions={})


def _network_policy(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _autoscaler(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, minReplicas=1)
    if not spec.get("metrics") and obj.get("apiVersion") == "autoscaling/v2":
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _limit_range(obj: dict[str, Any]) -> None:
    for limit in _spec(obj).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        fill(limit, default={}, defaultRequest={})
        fill(limit["default"], **(limit.get("max") or {}))
        fill(limit["defaultRequest"], **limit["default"])
        fill(limit["defaultRequest"], **(limit.get("min") or {}))


def _webhooks(obj: dict[str, Any]) -> None:
    for webhook in obj.get("webhooks") or ():
        fill(
            webhook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if obj["kind"] == "MutatingWebhookConfiguration":
            fill(webhook, reinvocationPolicy="Never")
        if service := (webhook.get("clientConfig") or {}).get("service"):
            fill(service, port=443)
        for rule in webhook.get("rules") or ():
            fill(rule, scope="*")


def _policy(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, failurePolicy="Fail")
    _default_matches(spec.get("matchConstraints"))


def _policy_binding(obj: dict[str, Any]) -> None:
    _default_matches(_spec(obj).get("matchResources"))


def _default_matches(matches: dict[str, Any] | None) -> None:
    if matches is None:
        return
    fill(matches, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in matches.get(field) or ():
            fill(rule, scope="*")


def _api_service(obj: dict[str, Any]) -> None:
    if service := _spec(obj).get("service"):
        fill(service, port=443)


def _ingress_class(obj: dict[str, Any]) -> None:
    if parameters := _spec(obj).get("parameters"):
        fill(parameters, scope="Cluster")


def _secret(obj: dict[str, Any]) -> None:
    if plain := obj.pop("stringData", None):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    fill(obj, type="Opaque")


def _claim(obj: dict[str, Any]) -> None:
    fill(_spec(obj), volumeMode="Filesystem")


def _binding(obj: dict[str, Any]) -> None:
    obj["roleRef"]["apiGroup"] = obj["roleRef"].get("apiGroup") or _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=_RBAC)


def _node(obj: dict[str, Any]) -> None:
    spec = obj.get("spec") or {}
    if (first := spec.get("podCIDR")) and (spec.get("podCIDRs") or [""])[0] != first:
        spec["podCIDRs"] = [first]
    status = obj.get("status") or {}
    if status.get("capacity"):
        fill(status, allocatable=dict(status["capacity"]))


def _namespace(obj: dict[str, Any]) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):
        fill(metadata, labels={})
        metadata["labels"]["kubernetes.io/metadata.name"] = metadata["name"]


def _filled(place: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    """Return what fills in constant values: at the top, or in the spec."""

    def set_defaults(obj: dict[str, Any]) -> None:
        fill(_spec(obj) if place == "spec" else obj, **deepcopy(values))

    return set_defaults


_ADMISSION = "admissionregistration.k8s.io"
_DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "cronjobs.batch": _cron_job,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "csidrivers.storage.k8s.io": _filled(
        "spec",
        attachRequired=True,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        podInfoOnMount=False,
        requiresRepublish=False,
        seLinuxMount=False,
        storageCapacity=False,
        volumeLifecycleModes=["Persistent"],
    ),
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "events": _filled("", involvedObject={}, reportingComponent="", reportingInstance="", source={}),
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "jobs.batch": _job,
    "leases.coordination.k8s.io": _filled("", spec={}),
    "limitranges": _limit_range,
    f"mutatingadmissionpolicies.{_ADMISSION}": _policy,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": _policy_binding,
    f"mutatingwebhookconfigurations.{_ADMISSION}": _webhooks,
    "namespaces": _namespace,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _filled("spec", persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
    "pods": _pod,
    "podtemplates": _default_template,
    "priorityclasses.scheduling.k8s.io": _filled("", preemptionPolicy="PreemptLowerPriority"),
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replication_controller,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "secrets": _secret,
    "services": _service,
    "statefulsets.apps": _stateful_set,
    "storageclasses.storage.k8s.io": _filled("", reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    f"validatingadmissionpolicies.{_ADMISSION}": _policy,
    f"validatingadmissionpolicybindings.{_ADMISSION}": _policy_binding,
    f"validatingwebhookconfigurations.{_ADMISSION}": _webhooks,
}


def prepare_new(group_resource: str, obj: dict[str, Any]) -> None:
    """Prepare a new object, `obj` is changed."""
    prepare = _ON_CREATE.get(group_resource)
    if prepare is not None:
        prepare(obj)


def prepare_changed(group_resource: str, obj: dict[str, Any], old: Mapping[str, Any], subresource: str) -> None:
    """Prepare an object that replaces another one, `obj` is changed.

    Args:
        obj: what is written; its status is final.
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
    spec = job["spec"]
    metadata = job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = _own_labels(metadata)
    template = spec["template"].setdefault("metadata", {})
    own = template.get("labels") or {}
    template["labels"] = {**labels, **own}
    if (metadata.get("labels") or {}) == own:
        # A job without labels of its own gets those of its pods, including these.
        metadata["labels"] = dict(template["labels"])
    selector = dict(spec.get("selector") or {})
    spec["selector"] = selector
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
