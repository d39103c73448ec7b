"""HorizontalPodAutoscalers: stored in version 2, converted to and from version 1.

Version 1 has one metric, CPU utilization. Everything else of version 2 is in annotations, as JSON in the form of the
earliest versions: other metrics, current metrics, conditions, behavior. Written in version 1, annotations become fields
again; they are never stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_BEHAVIOR, _CONDITIONS = f"{_PREFIX}behavior", f"{_PREFIX}conditions"
_DROPPED = (
    _METRICS,
    _CURRENT,
    _BEHAVIOR,
    _CONDITIONS,
    f"{_PREFIX}scale-down-tolerance",
    f"{_PREFIX}scale-up-tolerance",
)
_DEFAULT_SHARE = 80

# Fields of a metric in version 1, in the order in which they are written, with their places in version 2. Those that
# end with "!" are written even if they are not set.
_Fields = tuple[tuple[str, tuple[str, ...]], ...]
_NAME, _SELECTOR = ("metric", "name"), ("metric", "selector")
_AVERAGE, _SHARE = ("target", "averageValue"), ("target", "averageUtilization")
_RESOURCE: _Fields = (("name", ("name",)), ("targetAverageUtilization", _SHARE), ("targetAverageValue", _AVERAGE))
_WANTED: Mapping[str, _Fields] = {
    "object": (
        ("target", ("describedObject",)),
        ("metricName", _NAME),
        ("targetValue!", ("target", "value")),
        ("selector", _SELECTOR),
        ("averageValue", _AVERAGE),
    ),
    "pods": (("metricName", _NAME), ("targetAverageValue!", _AVERAGE), ("selector", _SELECTOR)),
    "resource": _RESOURCE,
    "containerResource": (*_RESOURCE, ("container", ("container",))),
    "external": (
        ("metricName", _NAME),
        ("metricSelector", _SELECTOR),
        ("targetValue", ("target", "value")),
        ("targetAverageValue", _AVERAGE),
    ),
}
_NOW, _NOW_AVERAGE = ("current", "value"), ("current", "averageValue")
_NOW_RESOURCE: _Fields = (
    ("name", ("name",)),
    ("currentAverageUtilization", ("current", "averageUtilization")),
    ("currentAverageValue!", _NOW_AVERAGE),
)
_MEASURED: Mapping[str, _Fields] = {
    "object": (
        ("target", ("describedObject",)),
        ("metricName", _NAME),
        ("currentValue!", _NOW),
        ("selector", _SELECTOR),
        ("averageValue", _NOW_AVERAGE),
    ),
    "pods": (("metricName", _NAME), ("currentAverageValue!", _NOW_AVERAGE), ("selector", _SELECTOR)),
    "resource": _NOW_RESOURCE,
    "containerResource": (*_NOW_RESOURCE, ("container", ("container",))),
    "external": (
        ("metricName", _NAME),
        ("metricSelector", _SELECTOR),
        ("currentValue!", _NOW),
        ("currentAverageValue", _NOW_AVERAGE),
    ),
}
_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = ("Type", "Value", "PeriodSeconds")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")


def autoscaler_v1(newer: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an autoscaler from version 2 to version 1."""
    spec, status = newer.get("spec") or {}, newer.get("status") or {}
    metrics, current = spec.get("metrics") or (), status.get("currentMetrics") or ()
    noted: dict[str, Any] = {}
    if others := [_flat(metric, _WANTED) for metric in metrics if _share(metric, "target") is None]:
        noted[_METRICS] = others
    if current:
        noted[_CURRENT] = [_flat(metric, _MEASURED) for metric in current]
    if spec.get("behavior") is not None:
        noted[_BEHAVIOR] = _go_behavior(spec["behavior"])
    if status.get("conditions"):
        noted[_CONDITIONS] = [_condition(each) for each in status["conditions"]]
    older_spec = {name: spec[name] for name in ("scaleTargetRef", "minReplicas", "maxReplicas") if name in spec}
    shares = [share for metric in metrics if (share := _share(metric, "target")) is not None]
    if shares:
        older_spec["targetCPUUtilizationPercentage"] = shares[0]
    older_status = {name: status[name] for name in ("observedGeneration", "lastScaleTime") if name in status}
    older_status |= {name: status.get(name) or 0 for name in ("currentReplicas", "desiredReplicas")}
    used = [share for metric in current if (share := _share(metric, "current")) is not None]
    if used:
        older_status["currentCPUUtilizationPercentage"] = used[-1]
    metadata = _with_annotations(newer.get("metadata") or {}, {name: _json(value) for name, value in noted.items()})
    return _autoscaler("autoscaling/v1", metadata, older_spec, older_status)


def autoscaler_v2(older: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an autoscaler from version 1 to version 2."""
    annotations = (older.get("metadata") or {}).get("annotations") or {}
    spec, status = dict(older.get("spec") or {}), dict(older.get("status") or {})
    share = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = _noted(annotations, _METRICS, lambda value: _deep(value, _WANTED)) or []
    if share is not None or not metrics:
        wanted = _DEFAULT_SHARE if share is None else share
        metrics.append(_processor(target={"type": "Utilization", "averageUtilization": wanted}))
    spec["metrics"] = metrics
    if behavior := _noted(annotations, _BEHAVIOR, _read_behavior):
        spec["behavior"] = behavior
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = _noted(annotations, _CURRENT, lambda value: _deep(value, _MEASURED))
    if current is not None:
        status["currentMetrics"] = current
    elif used is not None:
        status["currentMetrics"] = [_processor(current={"averageUtilization": used})]
    conditions = _noted(annotations, _CONDITIONS, lambda value: [_condition(each) for each in value])
    if conditions is not None:
        status["conditions"] = conditions
    status.setdefault("currentMetrics", None)
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    status.setdefault("desiredReplicas", 0)
    return _autoscaler("autoscaling/v2", _with_annotations(older.get("metadata") or {}, {}), spec, status)


def _autoscaler(version: str, metadata: Any, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    named = {"kind": "HorizontalPodAutoscaler", "apiVersion": version, "metadata": metadata}
    return {**named, "spec": spec, "status": status}


def _with_annotations(metadata: Mapping[str, Any], added: Mapping[str, str]) -> dict[str, Any]:
    kept = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in _DROPPED}
    changed = {name: value for name, value in metadata.items() if name != "annotations"}
    return changed | ({"annotations": {**kept, **added}} if kept or added else {})


def _processor(**use: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", **use}}


def _share(metric: Mapping[str, Any], of: str) -> int | None:
    """Return the CPU utilization of a metric, if it has one."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    share: int | None = (resource.get(of) or {}).get("averageUtilization")
    return share


def _flat(metric: Mapping[str, Any], kinds: Mapping[str, _Fields]) -> dict[str, Any]:
    """Convert a metric from version 2 to version 1."""
    flat: dict[str, Any] = {"type": metric.get("type", "")}
    for kind, fields in kinds.items():
        if metric.get(kind) is None:
            continue
        found = flat[kind] = {}
        for name, path in fields:
            value: Any = metric[kind]
            for part in path:
                value = (value or {}).get(part)
            if value is None and name.endswith("!"):
                value = "0"
            if value is not None:
                found[name.removesuffix("!")] = _reference(value) if name == "target" else value
    return flat


def _reference(target: Mapping[str, Any]) -> dict[str, Any]:
    return {name: target[name] for name in ("kind", "name", "apiVersion") if name in target}


def _deep(metrics: Any, kinds: Mapping[str, _Fields]) -> list[dict[str, Any]]:
    """Convert metrics from version 1 to version 2."""
    found = []
    for flat in metrics:
        metric: dict[str, Any] = {"type": flat.get("type", "")}
        for kind, fields in kinds.items():
            if flat.get(kind) is None:
                continue
            metric[kind] = {}
            for name, path in fields:
                value = flat[kind].get(name.removesuffix("!"))
                # Besides a utilization, an average value of 0 means none.
                if value is not None and not (value == "0" and "currentAverageUtilization" in flat[kind]):
                    place = metric[kind]
                    for part in path[:-1]:
                        place = place.setdefault(part, {})
                    place[path[-1]] = value
            if kinds is _WANTED:
                _name_target(kind, metric[kind].setdefault("target", {}))
        found.append(metric)
    return found


def _name_target(kind: str, target: dict[str, Any]) -> None:
    """Set the type of a target, which version 1 does not name."""
    if kind == "object" and "averageValue" in target and target.get("value") == "0":
        del target["value"]
    if "averageUtilization" in target:
        target["type"] = "Utilization"
    elif kind == "external":
        target["type"] = "Value" if "value" in target else "AverageValue"
    else:
        target["type"] = "Value" if kind == "object" and "averageValue" not in target else "AverageValue"


def _go_behavior(behavior: Mapping[str, Any]) -> dict[str, Any]:
    """Return the behavior with all fields of the Go type, by their Go names."""
    found: dict[str, Any] = {}
    for name in ("ScaleUp", "ScaleDown"):
        rules = behavior.get(_lower(name))
        found[name] = None if rules is None else {field: rules.get(_lower(field)) for field in _RULES}
        if rules is not None and rules.get("policies") is not None:
            found[name]["Policies"] = [{part: each.get(_lower(part)) for part in _POLICY} for each in rules["policies"]]
    return found


def _read_behavior(behavior: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, rules in behavior.items():
        if rules is not None:
            fields = {_lower(field): value for field, value in rules.items() if value is not None}
            if "policies" in fields:
                fields["policies"] = [{_lower(part): each[part] for part in each} for each in fields["policies"]]
            found[_lower(name)] = fields
    return found


def _condition(condition: Mapping[str, Any]) -> dict[str, Any]:
    always = {"type": "", "status": "", "lastTransitionTime": None}
    return always | {name: condition[name] for name in _CONDITION if condition.get(name)}


def _noted(annotations: Mapping[str, str], name: str, read: Callable[[Any], Any]) -> Any:
    """Return the value of an annotation; None if it is missing or malformed."""
    try:
        return read(json.loads(annotations[name]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _json(value: Any) -> str:
    """Encode JSON like Go, with HTML characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
