"""Validation of network policies, service CIDRs and IP addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import format_causes, immutable, one_of, segments, selector_causes
from aioinformer.testing.api.addresses import (
    canonical_cidr_faults,
    cidr_faults,
    network_of,
    port_faults,
    port_name_faults,
)
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import segment_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Fields = Mapping[str, Any]

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


def network_policy(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from selector_causes(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, others in _DIRECTIONS:
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                yield from _port(port, f"{path}.ports[{place}]")
            for place, peer in enumerate(rule.get(others) or ()):
                yield from _peer(peer, f"{path}.{others}[{place}]")
    types = spec.get("policyTypes") or ()
    if len(types) > len(_TYPES):
        yield Cause.invalid("spec.policyTypes", quote(types), "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        yield from one_of(kind, f"spec.policyTypes[{index}]", _TYPES)


def _port(port: Fields, path: str) -> Iterator[Cause]:
    if port.get("protocol") is not None:
        yield from one_of(port["protocol"], f"{path}.protocol", _PROTOCOLS)
    first, last = port.get("port"), port.get("endPort")
    if isinstance(first, str) or first is None:
        if last is not None:
            why = "non-numeric" if first is not None else "not specified"
            yield Cause.invalid(f"{path}.endPort", str(last), f"may not be specified when `port` is {why}")
        if first is not None:
            yield from format_causes(first, f"{path}.port", port_name_faults)
        return
    yield from (Cause.invalid(f"{path}.port", str(first), why) for why in port_faults(first))
    if last is not None:
        if last < first:
            yield Cause.invalid(f"{path}.endPort", str(first), "must be greater than or equal to `port`")
        yield from (Cause.invalid(f"{path}.endPort", str(last), why) for why in port_faults(last))


def _peer(peer: Fields, path: str) -> Iterator[Cause]:
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    for field in selectors:
        yield from selector_causes(peer[field], f"{path}.{field}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _ip_block(block, f"{path}.ipBlock")
        if selectors:
            yield Cause.forbidden(path, "may not specify both ipBlock and another peer")
    elif not selectors:
        yield Cause.required(path, "must specify a peer")


def _ip_block(block: Fields, path: str) -> Iterator[Cause]:
    cidr = block.get("cidr")
    if not cidr:
        yield Cause.required(f"{path}.cidr")
        return
    yield from format_causes(cidr, f"{path}.cidr", cidr_faults)
    network = network_of(cidr)
    for index, exception in enumerate((network is not None and block.get("except")) or ()):
        here = f"{path}.except[{index}]"
        yield from format_causes(exception, here, cidr_faults)
        part = network_of(exception)
        if network is None or part is None:
            continue
        within = part.version == network.version and part.network_address in network
        if not within or part.prefixlen <= network.prefixlen:
            yield Cause.invalid(here, quote(exception), "must be a strict subset of `cidr`")


def service_cidr(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    path, cidrs = "spec.cidrs", (obj.get("spec") or {}).get("cidrs") or []
    former = cidrs if old is None else (old.get("spec") or {}).get("cidrs") or []
    if len(cidrs) == len(former):
        for index, (cidr, other) in enumerate(zip(cidrs, former, strict=True)):
            yield from immutable(cidr, other, f"{path}[{index}]")
    elif len(former) == 1 and len(cidrs) == 2:
        yield from immutable(cidrs[0], former[0], f"{path}[0]")
    else:
        yield Cause.invalid(path, quote(cidrs or None), "field is immutable")
        return
    if old is None or len(cidrs) != len(former):
        yield from _cidrs(cidrs, path)


def _cidrs(cidrs: Sequence[str], path: str) -> Iterator[Cause]:
    if not cidrs:
        yield Cause.required(path, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield Cause.invalid(path, quote({"CIDRs": cidrs}), "may only hold up to 2 values")
        return
    for index, cidr in enumerate(cidrs):
        yield from format_causes(cidr, f"{path}[{index}]", canonical_cidr_faults)
    families = [network.version for network in map(network_of, cidrs) if network is not None]
    if families in ([4, 4], [6, 6]):
        why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield Cause.invalid(path, quote(cidrs), why)


def ip_address(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    parent, path = (obj.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        yield Cause.required(path)
    if old is not None and parent != (old.get("spec") or {}).get("parentRef"):
        yield Cause.invalid(path, quote(_go_reference(parent)), "field is immutable")
    if old is not None or parent is None:
        return
    if parent.get("group"):
        yield from format_causes(parent["group"], f"{path}.group", subdomain_faults)
    yield from segments(parent, path, "resource", "name")
    if parent.get("namespace"):
        yield from format_causes(parent["namespace"], f"{path}.namespace", segment_faults)


def _go_reference(parent: Fields | None) -> Fields | None:
    """Return a reference with its Go field names."""
    if parent is None:
        return None
    return {field.title(): parent.get(field, "") for field in ("group", "resource", "namespace", "name")}
