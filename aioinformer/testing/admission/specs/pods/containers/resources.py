"""Validation of resource requests, limits and claims of containers and pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.pod_totals import (
    PAGES,
    may_be_overcommitted,
    resources_of,
    total_resources,
    written_like,
)
from aioinformer.testing.admission.specs.terms.parts import duplicate
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults
from aioinformer.testing.schemas.quantities import QuantityError, amount, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from decimal import Decimal

    Part = Mapping[str, Any]

_QUOTA_PAGES = "requests.hugepages-"
_REQUESTS = "requests."
_NATIVE = "kubernetes.io/"
_COMPUTE = ("cpu", "memory")
_CONTAINER_RESOURCES = (*_COMPUTE, "ephemeral-storage")
_POD_RESOURCES = ("cpu", PAGES, "memory")
# fmt: off
_COUNTED = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})
# fmt: on
STANDARD_RESOURCES = _COUNTED | {
    *_CONTAINER_RESOURCES,
    *(f"{part}.{name}" for part in ("requests", "limits") for name in _CONTAINER_RESOURCES),
    "storage",
    "requests.storage",
}


def requirement_causes(resources: Part, path: str, claims: Iterable[str]) -> Iterator[Cause]:
    """Check the requests, limits and claims of a container.

    Args:
        claims: the names of the resource claims of its pod.
    """
    yield from _bounds(resources, path, container_resource_causes)
    yield from _claims(resources.get("claims") or (), f"{path}.claims", sorted(claims))


def pod_requirement_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the requests and limits of a pod, which bound those of its containers.

    Args:
        path: of the spec.
    """
    resources, here = spec.get("resources"), f"{path}.resources"
    if resources is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield Cause.forbidden(here, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield Cause.forbidden(f"{here}.claims", "claims may not be set for Resources at pod-level")
    yield from _bounds(resources, here, _pod_resource)
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or ()]
    yield from _claims(resources.get("claims") or (), f"{here}.claims", sorted(claims))
    for part, bounded in (("requests", lambda name: True), ("limits", lambda name: name.startswith(PAGES))):
        total = total_resources(spec, part)
        for name, quantity in sorted((resources.get(part) or {}).items()):
            if name in total and bounded(name) and total[name] > amount(quantity):
                least = written_like(total[name], quantity)
                why = f"must be greater than or equal to aggregate container {part} of {least}"
                yield Cause.invalid(f"{here}.{part}[{name}]", quote(canonical(quantity)), why)
    most = resources.get("limits") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, quantity in sorted(resources_of(container, "limits").items()):
            if name in most and amount(quantity) > amount(most[name]):
                why = f"must be less than or equal to pod limits of {canonical(most[name])}"
                place = f"{here}.containers[{index}][{name}].limits"
                yield Cause.invalid(place, quote(canonical(quantity)), why)


def _bounds(resources: Part, path: str, check_name: Callable[[str, str], Iterator[Cause]]) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, quantity in sorted(limits.items()):
        here = f"{path}.limits[{name}]"
        yield from check_name(name, here)
        yield from quantity_causes(name, quantity, here)
        yield from _huge_pages(name, quantity, here)
    for name, quantity in sorted(requests.items()):
        here = f"{path}.requests[{name}]"
        yield from check_name(name, here)
        yield from quantity_causes(name, quantity, here)
        if name not in limits:
            if not may_be_overcommitted(name):
                yield Cause.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif relation := _violated_relation(name, amount(quantity), amount(limits[name])):
            why = f"must be {relation} to {name} limit of {canonical(limits[name])}"
            yield Cause.invalid(f"{path}.requests", quote(canonical(quantity)), why)
        yield from _huge_pages(name, quantity, here)
    asked = {*limits, *requests}
    if any(name.startswith(PAGES) for name in asked) and asked.isdisjoint(_COMPUTE):
        yield Cause.forbidden(path, "HugePages require cpu or memory")


def container_resource_causes(name: str, path: str) -> Iterator[Cause]:
    """Check the name of a resource that a container requests."""
    yield from resource_causes(name, path)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(PAGES):
            yield Cause.invalid(path, quote(name), "must be a standard resource for containers")
    elif _NATIVE not in name and not _is_extended(name):
        yield Cause.invalid(path, quote(name), "doesn't follow extended resource name standard")


def _pod_resource(name: str, path: str) -> Iterator[Cause]:
    causes = list(resource_causes(name, path))
    yield from causes
    if not causes and name not in _COMPUTE and not name.startswith(PAGES):
        yield Cause.unsupported(path, quote(name), _POD_RESOURCES)


def resource_causes(name: str, path: str) -> Iterator[Cause]:
    """Check the name of a resource."""
    faults = label_name_faults(name)
    if not faults and "/" not in name and name not in STANDARD_RESOURCES and not name.startswith((PAGES, _QUOTA_PAGES)):
        faults = ["must be a standard resource type or fully qualified"]
    yield from (Cause.invalid(path, quote(name), why) for why in faults)


def quantity_causes(name: str, quantity: str, path: str) -> Iterator[Cause]:
    """Check the quantity of a resource."""
    size = amount(quantity)
    if size < 0:
        yield Cause.invalid(path, quote(canonical(quantity)), "must be greater than or equal to 0")
    if size != int(size) and (name in _COUNTED or _is_extended(name)):
        yield Cause.invalid(path, quote(canonical(quantity)), "must be an integer")


def _huge_pages(name: str, quantity: str, path: str) -> Iterator[Cause]:
    if not name.startswith(PAGES):
        return
    try:
        page = amount(name.removeprefix(PAGES))
    except QuantityError:
        page = amount("0")
    if page <= 0 or page != int(page) or amount(quantity) % page:
        why = f"{canonical(quantity)} is not positive integer multiple of {name}"
        yield Cause.invalid(path, quote(canonical(quantity)), why)


def _violated_relation(name: str, request: Decimal, limit: Decimal) -> str:
    if request != limit and not may_be_overcommitted(name):
        return "equal"
    return "less than or equal" if request > limit else ""


def _is_extended(name: str) -> bool:
    if "/" not in name or _NATIVE in name or name.startswith(_REQUESTS):
        return False
    return not label_name_faults(f"{_REQUESTS}{name}")


def _claims(claims: Sequence[Part], path: str, known: Sequence[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield Cause.required(here)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            yield duplicate(name, here)
        else:
            if request:
                yield from (Cause.invalid(f"{here}.request", quote(request), why) for why in label_faults(request))
            if key in seen:
                yield duplicate(key, here)
            elif not request:
                yield from (duplicate(name, here) for each in seen if each.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            which = f": {', '.join(known)}" if known else " which is empty"
            why = f"Not found: {quote(name)}: must be one of the names in pod.spec.resourceClaims{which}"
            yield Cause("FieldValueNotFound", here, why)
