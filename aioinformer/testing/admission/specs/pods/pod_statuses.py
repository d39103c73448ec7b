"""Validation of the status of a pod.

Restart rules of containers, and the users and devices in container statuses, are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.pod_annotations import annotation_causes, annotation_change_causes
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, immutable
from aioinformer.testing.api.addresses import family_of, ip_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"
_CONTAINERS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


def pod_status(obj: Part, old: Part | None) -> Iterator[Cause]:
    """Check the status of a pod."""
    assert old is not None
    spec, status, former = obj.get("spec") or {}, obj.get("status") or {}, old.get("status") or {}
    new, before = (each["metadata"].get("annotations") or {} for each in (obj, old))
    yield from annotation_change_causes(new, before, "metadata.annotations")
    yield from annotation_causes(new, spec, "metadata.annotations")
    yield from _conditions(status.get("conditions") or ())
    yield from _nomination(status.get("nominatedNodeName") or "", former.get("nominatedNodeName") or "", spec)
    if (generation := status.get("observedGeneration", 0)) < 0:
        yield Cause.invalid("status.observedGeneration", str(generation), _NOT_NEGATIVE)
    yield from immutable(status.get("qosClass", ""), former.get("qosClass", ""), "status.qosClass")
    for field, containers in _CONTAINERS.items():
        yield from _terminations(status, former, field, spec, containers)
    yield from _claims(status.get("resourceClaimStatuses") or (), spec)
    yield from _addresses(status, former, "podIPs")
    if hosts := status.get("hostIPs"):
        if status.get("hostIP", "") != hosts[0].get("ip", ""):
            yield Cause.invalid("status.hostIPs[0].ip", quote(hosts[0].get("ip", "")), "must be equal to `hostIP`")
        yield from _addresses(status, former, "hostIPs")


def _conditions(conditions: Sequence[Part]) -> Iterator[Cause]:
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}]"
        if (generation := condition.get("observedGeneration", 0)) < 0:
            yield Cause.invalid(f"{path}.observedGeneration", str(generation), _NOT_NEGATIVE)
        if (kind := condition.get("type", "")) not in _SYSTEM_CONDITIONS:
            yield from format_causes(kind, f"{path}.Type", label_name_faults)


def _nomination(name: str, former: str, spec: Part) -> Iterator[Cause]:
    if not name or name == former:
        return
    yield from format_causes(name, "status.nominatedNodeName", subdomain_faults)
    if spec.get("nodeName"):
        why = "may not be set on pods that are already bound to a node"
        yield Cause.forbidden("status.nominatedNodeName", why)


def _terminations(status: Part, former: Part, field: str, spec: Part, containers: str) -> Iterator[Cause]:
    """Check that terminated containers stay terminated unless their restart policy allows a restart."""
    now = {each.get("name"): each.get("state") or {} for each in reversed(status.get(field) or ())}
    specs = {each.get("name"): each for each in spec.get(containers) or ()}
    for index, each in enumerate(former.get(field) or ()):
        name, end = each.get("name"), (each.get("state") or {}).get("terminated")
        if end is None or name not in now or now[name].get("terminated") is not None:
            continue
        policy = specs.get(name, {}).get("restartPolicy") or spec.get("restartPolicy")
        failed = bool(end.get("exitCode"))
        restarts = name in specs and (policy == "Always" or (policy == "OnFailure" and failed))
        if containers == "ephemeralContainers" or not restarts:
            yield Cause.forbidden(f"status.{field}[{index}].state", "may not be transitioned to non-terminated state")


def _claims(claims: Sequence[Part], spec: Part) -> Iterator[Cause]:
    known = {each.get("name") for each in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        path, name = f"status.resourceClaimStatuses[{index}]", claim.get("name", "")
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            yield Cause.invalid(f"{path}.name", quote(name), why)
        if name in seen:
            yield duplicate(name, f"{path}.name")
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            yield from format_causes(claim["resourceClaimName"], f"{path}.resourceClaimName", subdomain_faults)


def _addresses(status: Part, former: Part, field: str) -> Iterator[Cause]:
    found = [each.get("ip", "") for each in status.get(field) or ()]
    known = [each.get("ip", "") for each in former.get(field) or ()]
    for index, address in enumerate(found):
        if address not in known:
            yield from format_causes(address, f"status.{field}[{index}]", ip_faults)
    families = [family_of(address) for address in found]
    if len(found) > 1 and sorted(families) != ["IPv4", "IPv6"]:
        why = "may specify no more than one IP for each IP family"
        yield Cause.invalid(f"status.{field}", quote([{"IP": address} for address in found]), why)
