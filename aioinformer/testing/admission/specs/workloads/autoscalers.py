"""Validation of autoscalers in version v2, in which they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.containers.resources import container_resource_causes
from aioinformer.testing.admission.specs.terms.parts import format_causes, non_negative, one_of
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, segment_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    Part = Mapping[str, Any]

_LONGEST_PERIOD = 1800
_LONGEST_WINDOW = 3600
_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGETS = ("Utilization", "Value", "AverageValue")
_VALUE_AND_UTILIZATION = "may not set both a target raw value and a target utilization"


def autoscaler(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    lowest, highest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if lowest is not None and lowest < 1:
        yield Cause.invalid("spec.minReplicas", str(lowest), "must be greater than or equal to 1")
    if highest == 0:
        yield Cause.required("spec.maxReplicas", "must be set and greater than 0")
    elif highest < 0:
        yield Cause.invalid("spec.maxReplicas", str(highest), "must be greater than or equal to 1")
    if lowest is not None and highest < lowest:
        why = "must be greater than or equal to `minReplicas`"
        yield Cause.invalid("spec.maxReplicas", str(highest), why, missing=highest == 0)
    target = spec.get("scaleTargetRef") or {}
    yield from _reference(target, "spec.scaleTargetRef")
    if _group_is_missing(target.get("apiVersion") or ""):
        version = target.get("apiVersion") or ""
        why = "apiVersion must specify API group"
        yield Cause.invalid("spec.scaleTargetRef.apiVersion", quote(version), why, missing=not version)
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        yield from _metric(metric, f"spec.metrics[{index}]")
    if lowest == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield Cause.forbidden("spec.metrics", why)
    for field in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(field)) is not None:
            yield from _rules(rules, f"spec.behavior.{field}")


def autoscaler_status(obj: Part, old: Part | None) -> Iterator[Cause]:
    status = obj.get("status") or {}
    for field in ("currentReplicas", "desiredReplicas"):
        yield from non_negative(status.get(field), f"status.{field}")


def _reference(reference: Part, path: str) -> Iterator[Cause]:
    """Check a reference by kind and name."""
    for field in ("kind", "name"):
        if value := reference.get(field):
            yield from format_causes(value, f"{path}.{field}", segment_faults)
        else:
            yield Cause.required(f"{path}.{field}")
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        yield Cause.invalid(f"{path}.apiVersion", quote(version), f"unexpected GroupVersion string: {version}")


def _group_is_missing(version: str) -> bool:
    return version.count("/") < 2 and not version.rpartition("/")[0]


def _metric(metric: Part, path: str) -> Iterator[Cause]:
    kind = metric.get("type") or ""
    if not kind:
        yield Cause.required(f"{path}.type", "must specify a metric source type")
    yield from one_of(kind, f"{path}.type", _TYPES)
    present = [source for source in _SOURCES if metric.get(source) is not None]
    for source in present[:1]:
        yield from _SOURCES[source](metric[source], f"{path}.{source}")
    wanted = f"{kind[:1].lower()}{kind[1:]}"
    if kind not in _TYPES:
        yield from one_of(kind, f"{path}.type", _TYPES)
    elif wanted not in present:
        yield Cause.required(f"{path}.{wanted}", "must populate information for the given metric source")
    if len(present) != 1:
        for source in present:
            if source != wanted:
                yield Cause.forbidden(f"{path}.{source}", "must populate the given metric source only")


def _object(source: Part, path: str) -> Iterator[Cause]:
    yield from _reference(source.get("describedObject") or {}, f"{path}.describedObject")
    yield from _identifier(source, path)
    target = yield from _target(source, path)
    if target.get("value") is None and target.get("averageValue") is None:
        yield Cause.required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external(source: Part, path: str) -> Iterator[Cause]:
    yield from _identifier(source, path)
    target = yield from _target(source, path)
    given = [target.get(field) is not None for field in ("value", "averageValue")]
    if not any(given):
        why = "must set either a target value for metric or a per-pod target"
        yield Cause.required(f"{path}.target.averageValue", why)
    if all(given):
        why = "may not set both a target value for metric and a per-pod target"
        yield Cause.forbidden(f"{path}.target.value", why)


def _pods(source: Part, path: str) -> Iterator[Cause]:
    yield from _identifier(source, path)
    target = yield from _target(source, path)
    if target.get("averageValue") is None:
        yield Cause.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource(source: Part, path: str) -> Iterator[Cause]:
    if not source.get("name"):
        yield Cause.required(f"{path}.name", "must specify a resource name")
    yield from _resource_target(source, path)


def _container_resource(source: Part, path: str) -> Iterator[Cause]:
    if name := source.get("name"):
        yield from container_resource_causes(name, f"{path}.name")
    else:
        yield Cause.required(f"{path}.name", "must specify a resource name")
    if container := source.get("container"):
        yield from format_causes(container, f"{path}.container", label_faults)
    else:
        yield Cause.required(f"{path}.container", "must specify a container")
    yield from _resource_target(source, path)


#: In the order in which the API checks them.
_SOURCES: Mapping[str, Callable[[Part, str], Iterator[Cause]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _resource_target(source: Part, path: str) -> Iterator[Cause]:
    """Check the target for a resource: an absolute value or a utilization."""
    target = yield from _target(source, path)
    given = [target.get(field) is not None for field in ("averageUtilization", "averageValue")]
    if not any(given):
        why = "must set either a target raw value or a target utilization"
        yield Cause.required(f"{path}.target.averageUtilization", why)
    if all(given):
        yield Cause.forbidden(f"{path}.target.averageValue", _VALUE_AND_UTILIZATION)


def _identifier(source: Part, path: str) -> Iterator[Cause]:
    if name := (source.get("metric") or {}).get("name"):
        yield from format_causes(name, f"{path}.metric.name", segment_faults)
    else:
        yield Cause.required(f"{path}.metric.name", "must specify a metric name")


def _target(source: Part, path: str) -> Generator[Cause, None, Part]:
    """Check a metric target and return it."""
    target, here = source.get("target") or {}, f"{path}.target"
    kind = target.get("type") or ""
    if not kind:
        yield Cause.required(f"{here}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        why = "must be either Utilization, Value, or AverageValue"
        yield Cause.invalid(f"{here}.type", quote(kind), why, missing=not kind)
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and amount(str(value)) <= 0:
            yield Cause.invalid(f"{here}.{field}", quote(value), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield Cause.invalid(f"{here}.averageUtilization", str(share), "must be greater than 0")
    return target


def _rules(rules: Part, path: str) -> Iterator[Cause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and not 0 <= window <= _LONGEST_WINDOW:
        bound = f"less than or equal to {_LONGEST_WINDOW}" if window > 0 else "greater than or equal to zero"
        yield Cause.invalid(f"{path}.stabilizationWindowSeconds", str(window), f"must be {bound}")
    if rules.get("selectPolicy") is not None:
        yield from one_of(rules["selectPolicy"], f"{path}.selectPolicy", ("Disabled", "Max", "Min"))
    policies = rules.get("policies") or ()
    if not policies:
        yield Cause.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _policy(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and amount(str(tolerance)) < 0:
        yield Cause.invalid(f"{path}.tolerance", quote(tolerance), "must be greater than or equal to 0")


def _policy(policy: Part, path: str) -> Iterator[Cause]:
    yield from one_of(policy.get("type") or "", f"{path}.type", ("Percent", "Pods"))
    for field in ("value", "periodSeconds"):
        number = policy.get(field) or 0
        if number <= 0:
            yield Cause.invalid(f"{path}.{field}", str(number), "must be greater than zero")
    if (period := policy.get("periodSeconds") or 0) > _LONGEST_PERIOD:
        yield Cause.invalid(f"{path}.periodSeconds", str(period), f"must be less than or equal to {_LONGEST_PERIOD}")
