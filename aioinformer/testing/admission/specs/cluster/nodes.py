"""Validation of nodes and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.containers.resources import quantity_causes
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, one_of
from aioinformer.testing.api.addresses import cidr_faults, network_of
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, label_value_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Fields = Mapping[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")
# The API reports taints under the path of the metadata.
_TAINTS = "metadata.taints"


def node(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _taints(spec.get("taints") or ())
    yield from _resources(obj)
    yield from _pod_cidrs(spec.get("podCIDRs") or ())
    if old is not None:
        yield from _changed(obj, old)
        yield from _taints(spec.get("taints") or ())
        if (spec.get("externalID") or "") != ((old.get("spec") or {}).get("externalID") or ""):
            yield Cause.forbidden("spec.externalID", "may not be updated")


def node_status(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    yield from _changed(obj, old or {})


def _changed(obj: Fields, old: Fields) -> Iterator[Cause]:
    spec, former = obj.get("spec") or {}, old.get("spec") or {}
    yield from _resources(obj)
    addresses = (obj.get("status") or {}).get("addresses") or []
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            same = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            yield duplicate(same, f"status.addresses[{index}]")
    ranges, others = spec.get("podCIDRs") or [], former.get("podCIDRs") or []
    if others and len(ranges) != len(others):
        yield _set_once("podCIDR", "podCIDRs")
    elif others:
        yield from (_set_once("podCIDR", "podCIDRs") for one, other in zip(ranges, others, strict=True) if one != other)
    if former.get("providerID") and former["providerID"] != spec.get("providerID"):
        yield _set_once("providerID", "providerID")


def _set_once(what: str, field: str) -> Cause:
    return Cause.forbidden(f"spec.{field}", f'node updates may not change {what} except from "" to valid')


def _taints(taints: Sequence[Fields]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path, key, effect = f"{_TAINTS}[{index}]", taint.get("key", ""), taint.get("effect", "")
        yield from format_causes(key, f"{path}.key", label_name_faults)
        if faults := label_value_faults(taint.get("value") or ""):
            yield Cause.invalid(f"{path}.value", quote(taint["value"]), ";".join(faults))
        if effect:
            yield from one_of(effect, f"{path}.effect", _EFFECTS)
        else:
            yield Cause.required(f"{path}.effect")
        if (key, effect) in seen:
            same = {
                "Key": key,
                "Value": taint.get("value") or "",
                "Effect": effect,
                "TimeAdded": taint.get("timeAdded"),
            }
            why = f"Duplicate value: {quote(same)}: taints must be unique by key and effect pair"
            yield Cause("FieldValueDuplicate", path, why)
        seen.add((key, effect))


def _resources(obj: Fields) -> Iterator[Cause]:
    for part in ("capacity", "allocatable"):
        for name, quantity in sorted(((obj.get("status") or {}).get(part) or {}).items()):
            yield from quantity_causes(name, quantity, f"status.{part}.{name}")


def _pod_cidrs(ranges: Sequence[str]) -> Iterator[Cause]:
    for index, text in enumerate(ranges):
        yield from format_causes(text, f"spec.podCIDRs[{index}]", cidr_faults)
    networks = [network for network in map(network_of, ranges) if network is not None]
    if len(ranges) > 1 and (len(ranges) > 2 or len({network.version for network in networks}) == 1):
        yield Cause.invalid("spec.podCIDRs", quote(ranges), "may specify no more than one CIDR for each IP family")


def namespace(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    """Check a new namespace. Updates of a namespace can only be wrong in the metadata."""
    for name in () if old is not None else (obj.get("spec") or {}).get("finalizers") or ():
        yield from format_causes(name, "spec.finalizers", label_name_faults)
        if "/" not in name and name not in _FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield Cause.invalid("spec.finalizers", quote(name), why)


def namespace_status(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    terminating = "deletionTimestamp" in obj["metadata"]
    phase, wanted = (obj.get("status") or {}).get("phase", ""), "Terminating" if terminating else "Active"
    if phase != wanted:
        why = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if terminating else ''}empty"
        yield Cause.invalid("status.Phase", quote(phase), why)
