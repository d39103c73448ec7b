"""Validation of resource quotas and limit ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.pod_totals import may_be_overcommitted
from aioinformer.testing.admission.specs.pods.containers.resources import (
    STANDARD_RESOURCES,
    container_resource_causes,
    quantity_causes,
    resource_causes,
)
from aioinformer.testing.admission.specs.terms.parts import duplicate
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults
from aioinformer.testing.schemas.quantities import amount, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Fields = Mapping[str, Any]

_QUOTA_PAGES = ("hugepages-", "requests.hugepages-")
_QUOTA_RESOURCES = STANDARD_RESOURCES - {"storage"}
_POD_RESOURCES = frozenset(
    {"pods", *(f"{part}{name}" for part in ("", "requests.", "limits.") for name in ("cpu", "memory"))}
)
#: The standard resources that each scope applies to.
_SCOPES = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
    "CrossNamespacePodAffinity": _POD_RESOURCES,
}
_EXISTS_ONLY = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
_OPPOSITE_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def resource_quota(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    hard, scopes = spec.get("hard") or {}, spec.get("scopes")
    yield from _amounts(hard, "spec.hard")
    yield from _scopes(scopes, hard)
    if spec.get("scopeSelector") is not None:
        yield from _scope_selector(spec["scopeSelector"], scopes, hard)
    if old is not None and set(scopes or ()) != set((old.get("spec") or {}).get("scopes") or ()):
        yield Cause.invalid("spec.scopes", quote(scopes), "field is immutable")


def resource_quota_status(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    status = obj.get("status") or {}
    for part in ("hard", "used"):
        yield from _amounts(status.get(part) or {}, f"status.{part}")


def _amounts(amounts: Mapping[str, str], path: str) -> Iterator[Cause]:
    for name, quantity in sorted(amounts.items()):
        here = f"{path}[{name}]"
        yield from resource_causes(name, here)
        if "/" not in name and not _is_standard(name):
            yield Cause.invalid(here, quote(name), "must be a standard resource for quota")
        yield from quantity_causes(name, quantity, here)


def _is_standard(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.startswith(_QUOTA_PAGES)


def _scopes(scopes: Sequence[str] | None, hard: Mapping[str, str]) -> Iterator[Cause]:
    for scope in scopes or ():
        if scope not in _SCOPES:
            yield Cause.invalid("spec.scopes", quote(scopes), "unsupported scope")
        for _ in _out_of_scope(scope, hard):
            yield Cause.invalid("spec.scopes", quote(scopes), "unsupported scope applied to resource")
    yield from _conflicts(scopes or (), scopes, "spec.scopes")


def _out_of_scope(scope: str, hard: Mapping[str, str]) -> list[str]:
    """Return the resources that the scope does not apply to."""
    return [name for name in hard if _is_standard(name) and scope in _SCOPES and name not in _SCOPES[scope]]


def _conflicts(found: Sequence[str], scopes: Sequence[str] | None, path: str) -> Iterator[Cause]:
    for pair in _OPPOSITE_SCOPES:
        if set(pair) <= set(found):
            yield Cause.invalid(path, quote(scopes), "conflicting scopes")


def _scope_selector(selector: Fields, scopes: Sequence[str] | None, hard: Mapping[str, str]) -> Iterator[Cause]:
    path, expressions = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or ()
    for expression in expressions:
        scope, operator, values = (
            expression.get("scopeName", ""),
            expression.get("operator", ""),
            expression.get("values"),
        )
        if scope not in _SCOPES:
            yield Cause.invalid(f"{path}.scopeName", quote(scope), "unsupported scope")
        for _ in _out_of_scope(scope, hard):
            yield Cause.invalid(path, quote(_go_selector(expressions)), "unsupported scope applied to resource")
        if scope in _EXISTS_ONLY and operator != "Exists":
            yield Cause.invalid(f"{path}.operator", quote(operator), _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield Cause.required(f"{path}.values", why)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield Cause.invalid(f"{path}.values", quote(values), why)
        else:
            yield Cause.invalid(f"{path}.operator", quote(operator), "not a valid selector operator")
    yield from _conflicts([each.get("scopeName", "") for each in expressions], scopes, path)


def _go_selector(expressions: Sequence[Fields]) -> Fields:
    """Return the scope selector with its Go field names."""
    names = {"ScopeName": "scopeName", "Operator": "operator", "Values": "values"}
    return {"MatchExpressions": [{go: each.get(name) for go, name in names.items()} for each in expressions]}


def limit_range(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        faults = label_name_faults(kind)
        if not faults and "/" not in kind and kind not in _TYPES:
            faults = ["must be a standard limit type or fully qualified"]
        yield from (Cause.invalid(f"{path}.type", quote(kind), why) for why in faults)
        if kind in seen:
            yield duplicate(kind, f"{path}.type")
        seen.add(kind)
        yield from _limit(limit, kind, path)


def _limit(limit: Fields, kind: str, path: str) -> Iterator[Cause]:
    check_name = container_resource_causes if kind in ("Pod", "Container") else resource_causes
    yield from _resource_names(limit, ("max", "min"), check_name, path)
    defaults = ("default", "defaultRequest")
    if kind == "Pod":
        for field in defaults:
            if limit.get(field):
                yield Cause.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
        limit = {field: value for field, value in limit.items() if field not in defaults}
    yield from _resource_names(limit, defaults, check_name, path)
    if kind == "PersistentVolumeClaim" and not any("storage" in (limit.get(field) or {}) for field in ("min", "max")):
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield Cause.required(f"{path}.limits", why)
    yield from _resource_names(limit, ("maxLimitRequestRatio",), check_name, path)
    fields = ("max", "min", *defaults, "maxLimitRequestRatio")
    for name in sorted({name for field in fields for name in limit.get(field) or ()}):
        found = {field: canonical(limit[field][name]) for field in fields if name in (limit.get(field) or {})}
        yield from _ordered(found, name, path)


def _resource_names(
    limit: Fields, fields: Sequence[str], check_name: Callable[[str, str], Iterator[Cause]], path: str
) -> Iterator[Cause]:
    for field in fields:
        for name in sorted(limit.get(field) or ()):
            yield from check_name(name, f"{path}.{field}[{name}]")


#: Pairs of fields whose first value may not exceed the second; then the reported field, and the field whose value is
#: quoted.
_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _ordered(found: Mapping[str, str], name: str, path: str) -> Iterator[Cause]:
    for low, high, field, quoted, why in _ORDER:
        if low in found and high in found and amount(found[low]) > amount(found[high]):
            text = why.format(found[low], found[high])
            yield Cause.invalid(f"{path}.{field}[{name}]", quote(found[quoted]), text)
    if (ratio := found.get("maxLimitRequestRatio")) is not None:
        here = f"{path}.maxLimitRequestRatio[{name}]"
        if amount(ratio) < 1:
            yield Cause.invalid(here, quote(ratio), f"ratio {ratio} is less than 1")
        if "min" in found and "max" in found and amount(found["min"]):
            most = float(amount(found["max"]) / amount(found["min"]))
            if amount(ratio) > most:
                why = f"ratio {ratio} is greater than max/min = {most:f}"
                yield Cause.invalid(here, quote(ratio), why)
    limit, request = found.get("default"), found.get("defaultRequest")
    if limit and request and amount(limit) != amount(request) and not may_be_overcommitted(name):
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield Cause.invalid(f"{path}.defaultRequest[{name}]", quote(request), why)
