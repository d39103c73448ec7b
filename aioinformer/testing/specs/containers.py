"""What must be true of the containers of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.quantities import QuantityError, amount
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import label_faults
from aioinformer.testing.specs.parts import duplicate, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def container_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with all the containers of a pod's specification.

    Args:
        spec: of the pod.
        path: of the specification.
    """
    if not spec.get("containers"):
        yield Cause.required(f"{path}.containers")
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, f"{path}.{field}[{index}]", names)


def _container(container: Mapping[str, Any], path: str, names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if name == "":
        yield Cause.required(f"{path}.name")
    elif faults := label_faults(name):
        yield from (Cause.invalid(f"{path}.name", shown(name), why) for why in faults)
    elif name in names:
        yield duplicate(name, f"{path}.name")
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
            yield Cause.invalid(f"{path}.resources.requests", shown(request), why)


def _exceeds(request: Any, limit: Any) -> bool:
    try:
        return amount(str(request)) > amount(str(limit))
    except QuantityError:
        return False
