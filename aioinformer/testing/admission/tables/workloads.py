"""Cells of workloads, jobs, autoscalers and disruption budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.tables.cells import (
    age,
    condition,
    containers,
    field,
    human_duration,
    instant,
    join_shortened,
    labels,
    name,
    selector,
    since,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aioinformer.testing.admission.tables.cells import Cells


def _template(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = field(obj, "spec.template.spec", {})
    return spec


def _deployment(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        f"{field(obj, 'status.readyReplicas', 0)}/{field(obj, 'spec.replicas', 1)}",
        field(obj, "status.updatedReplicas", 0),
        field(obj, "status.availableReplicas", 0),
        age(obj, now),
        *containers(_template(obj)),
        selector(field(obj, "spec.selector"), empty=""),
    ]


def _replica_set(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    cells = [*_replicas(obj), age(obj, now), *containers(_template(obj))]
    return [*cells, selector(field(obj, "spec.selector"))]


def _replication_controller(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    cells = [*_replicas(obj), age(obj, now), *containers(_template(obj))]
    return [*cells, labels(field(obj, "spec.selector"))]


def _replicas(obj: Mapping[str, Any]) -> list[Any]:
    status = [field(obj, f"status.{key}", 0) for key in ("replicas", "readyReplicas")]
    return [name(obj), field(obj, "spec.replicas", 1), *status]


def _scale(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), field(obj, "spec.replicas", 0), field(obj, "status.replicas", 0), age(obj, now)]


def _stateful_set(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    ready = f"{field(obj, 'status.readyReplicas', 0)}/{field(obj, 'spec.replicas', 1)}"
    return [name(obj), ready, age(obj, now), *containers(_template(obj))]


def _daemon_set(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name(obj),
        *(field(obj, f"status.{count}", 0) for count in counts),
        labels(field(_template(obj), "nodeSelector")),
        age(obj, now),
        *containers(_template(obj)),
        selector(field(obj, "spec.selector")),
    ]


def _job(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        _job_status(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *containers(_template(obj)),
        selector(field(obj, "spec.selector")),
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
    succeeded, wanted = field(obj, "status.succeeded", 0), field(obj, "spec.completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = field(obj, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Mapping[str, Any], now: datetime) -> str:
    start = instant(field(obj, "status.startTime", ""))
    end = instant(field(obj, "status.completionTime", "")) or now
    return human_duration(end - start) if start else ""


def _cron_job(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    suspend = field(obj, "spec.suspend")
    job = field(obj, "spec.jobTemplate.spec", {})
    last = since(obj, "status.lastScheduleTime", now)
    return [
        name(obj),
        field(obj, "spec.schedule", ""),
        field(obj, "spec.timeZone", "<none>"),
        "<unset>" if suspend is None else str(suspend),
        len(field(obj, "status.active", [])),
        "<none>" if last == "<unknown>" else last,
        age(obj, now),
        *containers(field(job, "template.spec", {})),
        selector(field(job, "selector")),
    ]


def _pod_template(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), *containers(field(obj, "template.spec", {})), labels(field(obj, "template.metadata.labels"))]


def _controller_revision(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    owners = (owner for owner in field(obj, "metadata.ownerReferences", []) if owner.get("controller"))
    owner = next(owners, None)
    controller = "<none>"
    if owner:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [name(obj), controller, obj.get("revision", 0), age(obj, now)]


def _disruption_budget(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    bounds = (str(field(obj, f"spec.{key}", "N/A")) for key in ("minAvailable", "maxUnavailable"))
    return [name(obj), *bounds, field(obj, "status.disruptionsAllowed", 0), age(obj, now)]


def _autoscaler(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        f"{field(obj, 'spec.scaleTargetRef.kind', '')}/{field(obj, 'spec.scaleTargetRef.name', '')}",
        join_shortened(_metrics(obj), most=2, separator=", ") or "<none>",
        str(field(obj, "spec.minReplicas", "<unset>")),
        field(obj, "spec.maxReplicas", 0),
        field(obj, "status.currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(obj: Mapping[str, Any]) -> Iterator[str]:
    """Yield each metric as "current/target"."""
    target = field(obj, "spec.targetCPUUtilizationPercentage")
    if target is not None:
        current = field(obj, "status.currentCPUUtilizationPercentage")
        yield f"cpu: {'<unknown>' if current is None else f'{current}%'}/{target}%"
    statuses = field(obj, "status.currentMetrics", [])
    for position, metric in enumerate(field(obj, "spec.metrics", [])):
        kind = metric.get("type", "")
        source = kind[:1].lower() + kind[1:]
        spec = metric.get(source)
        if spec is None:
            yield "<unknown type>"
            continue
        status = field(statuses[position], source, {}) if position < len(statuses) else {}
        prefix = f"{spec.get('name')}: " if source in ("resource", "containerResource") else ""
        yield prefix + _metric(source, spec, status)


def _metric(source: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    average = field(spec, "target.averageValue")
    if average is not None:
        suffix = " (avg)" if source in ("external", "object") else ""
        return f"{field(status, 'current.averageValue', '<unknown>')}/{average}{suffix}"
    if source in ("resource", "containerResource"):
        current, wanted = field(status, "current.averageUtilization"), field(spec, "target.averageUtilization")
        percents = ("<unknown>" if current is None else f"{current}%", "<auto>" if wanted is None else f"{wanted}%")
        return "/".join(percents)
    return f"{field(status, 'current.value', '<unknown>')}/{field(spec, 'target.value', '0')}"


WORKLOAD_CELLS: Mapping[str, Cells] = {
    "controllerrevisions.apps": _controller_revision,
    "cronjobs.batch": _cron_job,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _disruption_budget,
    "podtemplates": _pod_template,
    "replicasets.apps": _replica_set,
    "replicationcontrollers": _replication_controller,
    "scales.autoscaling": _scale,
    "statefulsets.apps": _stateful_set,
}
"""By group resource."""
