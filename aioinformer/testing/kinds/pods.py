"""Pods: the defaults of their specs, also in templates, and the parts of their status that the server sets."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MODE = 0o644
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = "[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::({_TAG}))?(@{_DIGEST})?", re.ASCII)
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_WITH_MODES = ("configMap", "secret", "downwardAPI", "projected")
_QUALITY_RESOURCES = ("cpu", "memory")
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def fill(target: dict[str, Any], **defaults: Any) -> None:
    """Set the values that are missing."""
    for name, value in defaults.items():
        if target.get(name) is None:
            target[name] = value


def default_pod_spec(spec: dict[str, Any], *, in_template: bool = True) -> None:
    """Fill in the defaults of a pod spec.

    Args:
        spec: is changed.
        in_template: whether it is the spec of a template.
    """
    fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    if not in_template:
        fill(spec, enableServiceLinks=True)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
    # Both names are the same field; the deprecated name follows the new one.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = account
        spec["serviceAccount"] = account
    for container in _items(spec, "initContainers", "containers", "ephemeralContainers"):
        _default_container(container, host_network=bool(spec.get("hostNetwork")), in_template=in_template)
    for volume in _items(spec, "volumes"):
        _default_volume(volume)


def admit_pod(spec: dict[str, Any]) -> None:
    """Add what admission gives to new pods. It does not belong to the client's field manager."""
    fill(spec, preemptionPolicy="PreemptLowerPriority", priority=0)
    _add_tolerations(spec)


def readmit_pod(spec: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Add what admission gives to updated pods: tolerations, and the priority of the old pod."""
    fill(spec, **{name: old[name] for name in ("preemptionPolicy", "priority") if name in old})
    _add_tolerations(spec)


def _add_tolerations(spec: dict[str, Any]) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in _TOLERATED_TAINTS:
        if not any(each.get("key", key) == key for each in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            )


def _default_container(container: dict[str, Any], *, host_network: bool, in_template: bool) -> None:
    fill(
        container,
        imagePullPolicy=_pull_policy(str(container.get("image", ""))),
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in _items(container, "ports"):
        fill(port, protocol="TCP")
        if host_network:
            fill(port, hostPort=port.get("containerPort"))
    for variable in _items(container, "env"):
        if reference := (variable.get("valueFrom") or {}).get("fieldRef"):
            fill(reference, apiVersion="v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            _default_probe(probe)
    hooks: Iterable[Any] = (container.get("lifecycle") or {}).values()
    for hook in hooks:
        if isinstance(hook, dict) and hook.get("httpGet"):
            fill(hook["httpGet"], path="/", scheme="HTTP")
    if not in_template and (limits := container["resources"].get("limits")):
        # Requests default to the limits.
        requests = container["resources"].setdefault("requests", {})
        fill(requests, **limits)


def _pull_policy(image: str) -> str:
    """Return the default pull policy: "Always" for "latest" or no version. Invalid references get "IfNotPresent"."""
    found = _IMAGE.fullmatch(image)
    if found is None:
        return "IfNotPresent"
    tag, digest = found.groups()
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _default_probe(probe: dict[str, Any]) -> None:
    fill(probe, failureThreshold=3, periodSeconds=10, successThreshold=1, timeoutSeconds=1)
    if probe.get("httpGet"):
        fill(probe["httpGet"], path="/", scheme="HTTP")
    if probe.get("grpc"):
        fill(probe["grpc"], service="")


def _default_volume(volume: dict[str, Any]) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for source in _WITH_MODES:
        if volume.get(source) is not None:
            fill(volume[source], defaultMode=_MODE)
    if volume.get("hostPath") is not None:
        fill(volume["hostPath"], type="")
    items: list[dict[str, Any]] = [
        item
        for source in ("downwardAPI", "projected")
        for each in _parts(volume.get(source) or {})
        for item in _items(each, "items")
    ]
    for item in items:
        if item.get("fieldRef"):
            fill(item["fieldRef"], apiVersion="v1")
    for each in _items(volume.get("projected") or {}, "sources"):
        if each.get("serviceAccountToken"):
            fill(each["serviceAccountToken"], expirationSeconds=3600)


def _parts(source: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return [source, *(each["downwardAPI"] for each in _items(source, "sources") if each.get("downwardAPI"))]


def _items(holder: dict[str, Any], *names: str) -> Iterable[dict[str, Any]]:
    return [each for name in names for each in holder.get(name) or () if isinstance(each, dict)]


def first_pod_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a new pod."""
    condition = _GATED | {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}
    conditions = {"conditions": [condition]} if obj["spec"].get("schedulingGates") else {}
    return {"phase": "Pending", **conditions, "qosClass": quality_of_service(obj["spec"])}


def align_pod_addresses(status: dict[str, Any]) -> None:
    """Make `podIP` the first of `podIPs`. If they differ, `podIP` wins, as older clients set only that."""
    address = status.get("podIP")
    addresses = status.get("podIPs") or []
    first = addresses[0].get("ip", "") if addresses else ""
    if address and address != first:
        status["podIPs"] = [{"ip": address}]
    elif first and not address:
        status["podIP"] = first


def keep_unsent_fields(status: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Restore fields that older kubelets do not send.

    Args:
        status: is changed.
    """
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and old.get(field):
            status[field] = old[field]
    seen: dict[str, list[Any]] = defaultdict(list)
    for condition in old.get("conditions") or ():
        seen[condition.get("type", "")].append(condition.get("observedGeneration"))
    for condition in status.get("conditions") or ():
        generations = seen[condition.get("type", "")]
        generation = generations.pop(0) if generations else None
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def set_condition(status: dict[str, Any], condition: Mapping[str, str], now: str) -> None:
    """Set a condition of a pod. The transition time is kept if its status does not change.

    Args:
        status: is changed.
    """
    conditions = status.setdefault("conditions", [])
    updated = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"]:
                updated["lastTransitionTime"] = each.get("lastTransitionTime")
            conditions[index] = updated
            return
    conditions.append(updated)


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Return the class for a pod's requests and limits."""
    of_pod = spec.get("resources") or {}
    # Pod-level resources take precedence.
    if of_pod.get("requests") or of_pod.get("limits"):
        containers = [of_pod]
    else:
        containers = [each.get("resources") or {} for each in _containers(spec)]
    asked = [
        section.get(name)
        for resources in containers
        for section in (resources.get("requests") or {}, resources.get("limits") or {})
        for name in _QUALITY_RESOURCES
    ]
    if not any(value is not None for value in asked):
        return "BestEffort"
    guaranteed = all(
        (resources.get("limits") or {}).get(name) is not None
        and (resources.get("requests") or {}).get(name) == resources["limits"][name]
        for resources in containers
        for name in _QUALITY_RESOURCES
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    fields = ("containers", "initContainers")
    return [each for field in fields for each in spec.get(field) or () if isinstance(each, dict)]
