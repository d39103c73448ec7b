"""Cells of the resources that have columns of their own, besides pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.selectors import selector_text
from aioinformer.testing.tables.pods import age, condition, field, human_duration, instant, name, since

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aioinformer.testing.tables.pods import Cells

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _deployment(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        f"{field(obj, 'status.readyReplicas', 0)}/{field(obj, 'spec.replicas', 1)}",
        field(obj, "status.updatedReplicas", 0),
        field(obj, "status.availableReplicas", 0),
        age(obj, now),
        *_containers(obj),
        _selector(field(obj, "spec.selector"), empty=""),
    ]


def _replica_set(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    counts = [field(obj, f"status.{key}", 0) for key in ("replicas", "readyReplicas")]
    cells = [name(obj), field(obj, "spec.replicas", 1), *counts, age(obj, now), *_containers(obj)]
    return [*cells, _selector(field(obj, "spec.selector"))]


def _scale(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), field(obj, "spec.replicas", 0), field(obj, "status.replicas", 0), age(obj, now)]


def _job(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        _job_status(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *_containers(obj),
        _selector(field(obj, "spec.selector")),
    ]


def _job_status(obj: Mapping[str, Any]) -> str:
    for kind in ("Complete", "Failed"):
        if condition(obj, kind) == "True":
            return kind
    if field(obj, "metadata.deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition(obj, kind) == "True":
            return kind
    return "Running"


def _job_completions(obj: Mapping[str, Any]) -> str:
    succeeded = field(obj, "status.succeeded", 0)
    wanted = field(obj, "spec.completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = field(obj, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Mapping[str, Any], now: datetime) -> str:
    start = instant(field(obj, "status.startTime", ""))
    end = instant(field(obj, "status.completionTime", "")) or now
    return human_duration(end - start) if start else ""


def _service(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    cluster_ips = field(obj, "spec.clusterIPs", []) or [field(obj, "spec.clusterIP", "<none>")]
    return [
        name(obj),
        field(obj, "spec.type", "ClusterIP"),
        cluster_ips[0],
        _external_ip(obj),
        ",".join(map(_service_port, field(obj, "spec.ports", []))) or "<none>",
        age(obj, now),
        _labels(field(obj, "spec.selector")),
    ]


def _external_ip(obj: Mapping[str, Any]) -> str:
    addresses = field(obj, "spec.externalIPs", [])
    match field(obj, "spec.type", "ClusterIP"):
        case "ClusterIP" | "NodePort":
            return ",".join(addresses) or "<none>"
        case "LoadBalancer":
            return ",".join([*_ingress_points(obj), *addresses]) or "<pending>"
        case "ExternalName":
            return str(field(obj, "spec.externalName", ""))
    return "<unknown>"


def _ingress_points(obj: Mapping[str, Any]) -> list[str]:
    points = (point.get("ip") or point.get("hostname") for point in field(obj, "status.loadBalancer.ingress", []))
    return sorted({point for point in points if point})


def _service_port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _node(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    ready = condition(obj, "Ready")
    status = ["NotReady" if ready else "Unknown"]
    if ready == "True":
        status = ["Ready"]
    if field(obj, "spec.unschedulable"):
        status.append("SchedulingDisabled")
    info = field(obj, "status.nodeInfo", {})
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        name(obj),
        ",".join(status),
        ",".join(_roles(field(obj, "metadata.labels", {}))) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        (info.get("kernelVersion") or "<unknown>") + architecture,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _roles(node_labels: Mapping[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in node_labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {node_labels.get("kubernetes.io/role", "")}) - {""})


def _address(obj: Mapping[str, Any], kind: str) -> str:
    addresses = (item["address"] for item in field(obj, "status.addresses", []) if item.get("type") == kind)
    return next(addresses, "<none>")


def _event(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    """Return the cells of an event of the core group or of events.k8s.io."""
    new = "regarding" in obj or "note" in obj
    first_field = "deprecatedFirstTimestamp" if new else "firstTimestamp"
    last_field = "deprecatedLastTimestamp" if new else "lastTimestamp"
    if obj.get(first_field):
        first = since(obj, first_field, now)
    else:
        first = since(obj, "eventTime", now)
    last = since(obj, last_field, now) if obj.get(last_field) else first
    times = obj.get("deprecatedCount" if new else "count") or 1
    if obj.get("series"):
        last = since(obj, "series.lastObservedTime", now)
        times = field(obj, "series.count", 0)
    about = obj.get("regarding" if new else "involvedObject") or {}
    kind = about.get("kind", "").lower()
    source = obj.get("deprecatedSource" if new else "source") or {}
    component = source.get("component") or obj.get("reportingController") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        str(obj.get("note" if new else "message") or "").strip(),
        first,
        times,
        name(obj),
    ]


def _namespace(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), field(obj, "status.phase", ""), age(obj, now)]


def _containers(obj: Mapping[str, Any]) -> list[str]:
    """Return two cells: the names and the images of a template's containers."""
    items = field(obj, "spec.template.spec.containers", [])
    return [",".join(str(item.get(key, "")) for item in items) for key in ("name", "image")]


def _labels(items: Mapping[str, Any] | None) -> str:
    """Return labels as a selector, sorted; "<none>" without labels."""
    return ",".join(f"{key}={value}" for key, value in sorted((items or {}).items())) or "<none>"


def _selector(label_selector: Mapping[str, Any] | None, *, empty: str = "<none>") -> str:
    """Return a LabelSelector in the form of the query parameter."""
    return selector_text(label_selector or {}) or empty


def _config_map(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


RESOURCE_CELLS: Mapping[str, Cells] = {
    "configmaps": _config_map,
    "deployments.apps": _deployment,
    "events": _event,
    "events.events.k8s.io": _event,
    "jobs.batch": _job,
    "namespaces": _namespace,
    "nodes": _node,
    "replicasets.apps": _replica_set,
    "scales.autoscaling": _scale,
    "services": _service,
}
"""By group resource."""
