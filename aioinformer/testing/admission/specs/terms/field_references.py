"""References to fields and resources of a pod, as used by `valueFrom` and downward API volumes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import format_causes, one_of
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults
from aioinformer.testing.schemas.quantities import amount, canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SUBSCRIPTED = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL)
_CONVERTED = {"spec.host": "spec.nodeName"}
# fmt: off
_KNOWN = frozenset({
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.host",
    "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
})
# fmt: on
_RESOURCES = tuple(
    f"{part}.{resource}" for part in ("limits", "requests") for resource in ("cpu", "ephemeral-storage", "memory")
)
_SIZES = ("1", *(f"1{letter}{binary}" for binary in ("", "i") for letter in "kMGTPE"))
_UNITS = tuple(size.replace("ki", "Ki") for size in _SIZES)
_DIVISORS = {
    "cpu": (("1m", "1"), "cpu resource"),
    "memory": (_UNITS, "memory resource"),
    "ephemeral-storage": (_UNITS, "local ephemeral storage resource"),
    "hugepages": (_UNITS, "hugepages resource"),
}


def field_reference(reference: Mapping[str, Any], path: str, known: Sequence[str]) -> Iterator[Cause]:
    """Check a reference to a field of the pod.

    Args:
        known: the fields that may be referenced here, sorted.
    """
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    for name, value in (("apiVersion", version), ("fieldPath", field)):
        if not value:
            yield Cause.required(f"{path}.{name}")
            return
    subscripted = _SUBSCRIPTED.fullmatch(field)
    if why := _conversion_fault(version, field, subscripted):
        yield Cause.invalid(f"{path}.fieldPath", quote(field), f"error converting fieldPath: {why}")
    elif subscripted:
        key = subscripted[2].lower() if subscripted[1] == "metadata.annotations" else subscripted[2]
        yield from format_causes(key, path, label_name_faults)
    else:
        yield from one_of(_CONVERTED.get(field, field), f"{path}.fieldPath", known)


def resource_reference(reference: Mapping[str, Any], path: str, *, of_volume: bool) -> Iterator[Cause]:
    """Check a reference to a resource limit or request of a container.

    Args:
        of_volume: whether the reference must name the container.
    """
    resource = reference.get("resource", "")
    pages = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if of_volume and not reference.get("containerName"):
        yield Cause.required(f"{path}.containerName")
    elif not resource:
        yield Cause.required(f"{path}.resource")
    elif not pages:
        yield from one_of(resource, f"{path}.resource", _RESOURCES)
    divisor = reference.get("divisor") or "0"
    allowed = _DIVISORS.get("hugepages" if pages else resource.partition(".")[2])
    if allowed and (pages or resource in _RESOURCES) and amount(divisor) and canonical(divisor) not in allowed[0]:
        why = f"only divisor's values {_joined(allowed[0])} are supported with the {allowed[1]}"
        yield Cause.invalid(f"{path}.divisor", quote(resource), why)


def _conversion_fault(version: str, field: str, subscripted: re.Match[str] | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        if subscripted[1] in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    return "" if field in _KNOWN else f"field label not supported: {field}"


def _joined(divisors: Sequence[str]) -> str:
    return " and ".join(divisors) if len(divisors) == 2 else ", ".join(divisors)
