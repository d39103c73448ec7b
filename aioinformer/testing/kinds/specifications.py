"""Mistakes in the specifications of built-in kinds, as kube-apiserver words them.

It checks thousands of fields. These are the mistakes that people make and the ones that tools are tried with: templates
that are not selected, wrong names of containers, requests beyond limits, schedules, services; events have a module of
their own. Everything else in a specification is taken as it comes, and what is left out altogether is let through: a
test that is about something else need not write whole pods.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.quantities import QuantityError, amount
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import label_faults
from aioinformer.testing.kinds.event_checks import event_causes
from aioinformer.testing.kinds.rights import RIGHTS, rights_causes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.testing.api.served import Served

#: In the order in which they are looked at.
# fmt: off
_VOLUMES = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)
# fmt: on
_MACRO = re.compile(r"@(?:every \S+|annually|yearly|monthly|weekly|daily|midnight|hourly)")


def specification_causes(served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Cause]:
    """What is wrong with an object whose defaults are filled in.

    Args:
        old: what it replaces.
    """
    if served.collection == "events":
        former = None if old is None else served.kept(old)
        return event_causes(served.kept(obj), former, newer=served.conversion is not None)
    if served.resource.group == RIGHTS:
        return rights_causes(served.resource.plural, obj)
    check = _CHECKS.get(served.resource.group_resource)
    spec = obj.get("spec")
    return list(check(spec)) if check is not None and isinstance(spec, dict) else []


def _lease(spec: Mapping[str, Any]) -> Iterator[Cause]:
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield Cause.invalid("spec.leaseDurationSeconds", str(duration), "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield Cause.invalid("spec.leaseTransitions", str(transitions), "must be greater than or equal to 0")


def _workload(spec: Mapping[str, Any]) -> Iterator[Cause]:
    selected = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = (selected or {}).get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        yield Cause.invalid("spec.template.metadata.labels", _shown(labels), why)
    yield from _pod(template.get("spec") or {}, "spec.template.spec")


def _deployment(spec: Mapping[str, Any]) -> Iterator[Cause]:
    yield from _workload(spec)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield Cause.forbidden("spec.strategy.rollingUpdate", why)


def _job(spec: Mapping[str, Any]) -> Iterator[Cause]:
    yield from _pod((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")


def _cron_job(spec: Mapping[str, Any]) -> Iterator[Cause]:
    schedule = spec.get("schedule", "")
    fields = schedule.split()
    if schedule.startswith("@"):
        if not _MACRO.fullmatch(schedule):
            yield Cause.invalid("spec.schedule", _shown(schedule), f"unrecognized descriptor: {schedule}")
    elif schedule and len(fields) != 5:
        why = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield Cause.invalid("spec.schedule", _shown(schedule), why)
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    yield from _pod(template.get("spec") or {}, "spec.jobTemplate.spec.template.spec")


def _pod(spec: Mapping[str, Any], path: str = "spec") -> Iterator[Cause]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume(volume, f"{path}.volumes[{index}]")
    if spec.get("containers") == []:
        yield Cause.required(f"{path}.containers")
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, f"{path}.{field}[{index}]", names)


def _volume(volume: Mapping[str, Any], path: str) -> Iterator[Cause]:
    sources = [name for name in _VOLUMES if volume.get(name) is not None]
    for second in sources[1:]:
        yield Cause.forbidden(f"{path}.{second}", "may not specify more than 1 volume type")


def _container(container: Mapping[str, Any], path: str, names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if name == "":
        yield Cause.required(f"{path}.name")
    elif faults := label_faults(name):
        yield from (Cause.invalid(f"{path}.name", _shown(name), why) for why in faults)
    elif name in names:
        yield Cause("FieldValueDuplicate", f"{path}.name", f"Duplicate value: {_shown(name)}")
    names.add(name)
    for index, variable in enumerate(container.get("env") or ()):
        if variable.get("value") and variable.get("valueFrom") is not None:
            why = "may not be specified when `value` is not empty"
            yield Cause.invalid(f"{path}.env[{index}].valueFrom", '""', why)
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    for resource, request in sorted((resources.get("requests") or {}).items()):
        if resource in limits and _exceeds(request, limits[resource]):
            why = f"must be less than or equal to {resource} limit of {limits[resource]}"
            yield Cause.invalid(f"{path}.resources.requests", _shown(request), why)


def _exceeds(request: Any, limit: Any) -> bool:
    try:
        return amount(str(request)) > amount(str(limit))
    except QuantityError:
        return False


def _service(spec: Mapping[str, Any]) -> Iterator[Cause]:
    kind = spec.get("type", "ClusterIP")
    if spec.get("clusterIP") == "None" and kind in ("NodePort", "LoadBalancer"):
        yield Cause.invalid("spec.clusterIPs[0]", '"None"', f"may not be set to 'None' for {kind} services")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Cause]]] = {
    "cronjobs.batch": _cron_job,
    "daemonsets.apps": _workload,
    "deployments.apps": _deployment,
    "jobs.batch": _job,
    "leases.coordination.k8s.io": _lease,
    "pods": _pod,
    "replicasets.apps": _workload,
    "services": _service,
    "statefulsets.apps": _workload,
}
