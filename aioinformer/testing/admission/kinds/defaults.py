"""Defaults of built-in kinds.

Defaults belong to the manager that wrote the object, as if it had set them. Values that admission and storage add later
are in `strategies`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.kinds.cluster_defaults import CLUSTER_DEFAULTS
from aioinformer.testing.admission.kinds.pod_defaults import default_pod_spec, fill
from aioinformer.testing.admission.kinds.pod_status import align_pod_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RBAC = "rbac.authorization.k8s.io"
_ROLLING = "RollingUpdate"


def default_object(group_resource: str, obj: dict[str, Any]) -> None:
    """Fill in the defaults of an object.

    Args:
        group_resource: such as "deployments.apps".
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


def _pod(obj: dict[str, Any]) -> None:
    default_pod_spec(_spec(obj), in_template=False)
    align_pod_addresses(obj.get("status") or {})


def _pod_template(obj: dict[str, Any]) -> None:
    _default_template(obj)


def _replication_controller(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(obj["metadata"], labels=dict(labels))
    fill(spec, replicas=1)
    if spec.get("template") is not None:
        _default_template(spec)


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
    _default_failure_policy(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        fill(spec, completions=1)
    fill(
        spec,
        backoffLimit=2**31 - 1 if "backoffLimitPerIndex" in spec else 6,
        completionMode="NonIndexed",
        manualSelector=False,
        parallelism=1,
        podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
        suspend=False,
    )
    _default_template(spec)


def _default_failure_policy(spec: dict[str, Any]) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def _cron_job(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, concurrencyPolicy="Allow", failedJobsHistoryLimit=1, successfulJobsHistoryLimit=3, suspend=False)
    job = spec.setdefault("jobTemplate", {})
    fill(job, metadata={})
    _default_failure_policy(job.setdefault("spec", {}))
    template = job["spec"].setdefault("template", {})
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


def _secret(obj: dict[str, Any]) -> None:
    if plain := obj.pop("stringData", None):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    fill(obj, type="Opaque")


def _claim(obj: dict[str, Any]) -> None:
    fill(_spec(obj), volumeMode="Filesystem")


def _volume(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath"):
        fill(spec["hostPath"], type="")
    if spec.get("iscsi"):
        fill(spec["iscsi"], iscsiInterface="default")
    if spec.get("azureDisk"):
        fill(spec["azureDisk"], cachingMode="ReadWrite", fsType="ext4", kind="Shared", readOnly=False)


def _limit_range(obj: dict[str, Any]) -> None:
    for limit in _spec(obj).get("limits") or ():
        if limit.get("type") == "Container":
            if limit.get("max"):
                limit["default"] = {**limit["max"], **(limit.get("default") or {})}
            requests = {
                **(limit.get("min") or {}),
                **(limit.get("default") or {}),
                **(limit.get("defaultRequest") or {}),
            }
            if requests:
                limit["defaultRequest"] = requests


def _network_policy(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, policyTypes=["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            fill(port, protocol="TCP")


def _autoscaler(obj: dict[str, Any]) -> None:
    spec = _spec(obj)
    fill(spec, minReplicas=1)
    if obj["apiVersion"] == "autoscaling/v1":
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if spec.get("behavior") is not None:
        rules = spec["behavior"]
        doubled = {"type": "Percent", "value": 100, "periodSeconds": 15}
        four = {"type": "Pods", "value": 4, "periodSeconds": 15}
        fill(rules, scaleUp={}, scaleDown={})
        fill(rules["scaleUp"], stabilizationWindowSeconds=0, selectPolicy="Max", policies=[four, doubled])
        fill(rules["scaleDown"], selectPolicy="Max", policies=[doubled])


def _binding(obj: dict[str, Any]) -> None:
    obj["roleRef"]["apiGroup"] = obj["roleRef"].get("apiGroup") or _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=_RBAC)


def _storage_class(obj: dict[str, Any]) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(obj: dict[str, Any]) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def _ingress_class(obj: dict[str, Any]) -> None:
    if parameters := _spec(obj).get("parameters"):
        fill(parameters, scope="Cluster")


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


def _event(obj: dict[str, Any]) -> None:
    fill(obj, involvedObject={}, reportingComponent="", reportingInstance="", source={})


def _lease(obj: dict[str, Any]) -> None:
    fill(obj, spec={})


_DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "events": _event,
    "leases.coordination.k8s.io": _lease,
    "pods": _pod,
    "podtemplates": _pod_template,
    "replicationcontrollers": _replication_controller,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "daemonsets.apps": _daemon_set,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "services": _service,
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "limitranges": _limit_range,
    "networkpolicies.networking.k8s.io": _network_policy,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "storageclasses.storage.k8s.io": _storage_class,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "namespaces": _namespace,
    "nodes": _node,
    **CLUSTER_DEFAULTS,
}
