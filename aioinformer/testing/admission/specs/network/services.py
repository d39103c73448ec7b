"""Validation of services.

A service is validated after its addresses and ports have been allocated: faults of requested addresses and ports are
reported first, on their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, one_of
from aioinformer.testing.api.addresses import (
    address_of,
    cidr_faults,
    endpoint_ip_faults,
    family_of,
    ip_faults,
    port_faults,
    target_port_faults,
)
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults, label_value_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Fields = Mapping[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_LOAD_BALANCERS_ONLY = "may only be used when `type` is 'LoadBalancer'"


def is_headless(spec: Fields) -> bool:
    """Return whether the service is headless (`clusterIP` is "None")."""
    return bool(spec.get("clusterIPs") == ["None"])


def needs_health_check(spec: Fields) -> bool:
    """Return whether the service needs a health check port, at which nodes report local endpoints."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def service(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if old is not None:
        yield from _changes(spec, old.get("spec") or {})
    annotations = obj["metadata"].get("annotations") or {}
    if annotations.get(_MODE, "") != annotations.get(_HINTS, "") and {_MODE, _HINTS} <= annotations.keys():
        why = f"must match annotations[{_HINTS}] when both are specified"
        yield Cause.invalid(f"metadata.annotations[{_MODE}]", quote(annotations[_MODE]), why)
    yield from _type(spec)
    names: set[str] = set()
    ports = spec.get("ports") or ()
    for index, port in enumerate(ports):
        yield from _port(port, f"spec.ports[{index}]", names, several=len(ports) > 1)
    for name, value in (spec.get("selector") or {}).items():
        yield from format_causes(name, "spec.selector", label_name_faults)
        yield from format_causes(value, "spec.selector", label_value_faults)
    yield from _affinity(spec)
    yield from address_causes(spec, old)
    known = () if old is None else (old.get("spec") or {}).get("externalIPs") or ()
    for index, address in enumerate(spec.get("externalIPs") or ()):
        here = f"spec.externalIPs[{index}]"
        wrong = [] if address in known else list(format_causes(address, here, ip_faults))
        yield from wrong or format_causes(address, here, endpoint_ip_faults)
    yield from one_of(spec.get("type"), "spec.type", _TYPES)
    yield from _port_numbers(spec)
    yield from _load_balancer(spec, annotations)
    yield from _traffic(spec)


def _changes(spec: Fields, old: Fields) -> Iterator[Cause]:
    if "ExternalName" not in (spec.get("type"), old.get("type")) and not (is_headless(spec) and is_headless(old)):
        yield from _changed_addresses(spec, old)
    name = spec.get("loadBalancerClass")
    if spec.get("type") == old.get("type") == "LoadBalancer" and name != old.get("loadBalancerClass"):
        yield Cause.invalid("spec.loadBalancerClass", quote(name), "may not change once set")
    same_check = spec.get("healthCheckNodePort") == old.get("healthCheckNodePort")
    if needs_health_check(spec) and needs_health_check(old) and not same_check:
        yield Cause.forbidden("spec.healthCheckNodePort", "field is immutable")


def _changed_addresses(spec: Fields, old: Fields) -> Iterator[Cause]:
    addresses, former = spec.get("clusterIPs") or [], old.get("clusterIPs") or []
    for index, (one, other) in enumerate(zip(addresses, former, strict=False)):
        if one != other:
            yield Cause.invalid(f"spec.clusterIPs[{index}]", quote(addresses), "may not change once set")
    if former and not addresses:
        yield Cause.invalid("spec.clusterIPs[0]", "null", "primary clusterIP can not be unset")
    families, others = spec.get("ipFamilies") or [], old.get("ipFamilies") or []
    if is_headless(spec) == is_headless(old) and families and others and families[0] != others[0]:
        yield Cause.invalid("spec.ipFamilies[0]", quote(families), "may not change once set")


def _type(spec: Fields) -> Iterator[Cause]:
    kind, headless = spec.get("type"), is_headless(spec)
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield Cause.required("spec.ports")
    if headless and kind in ("LoadBalancer", "NodePort"):
        yield Cause.invalid("spec.clusterIPs[0]", '"None"', f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield Cause.forbidden(f"spec.{field}", "may not be set for ExternalName services")
        if name := (spec.get("externalName") or "").removesuffix("."):
            yield from format_causes(name, "spec.externalName", subdomain_faults)
        else:
            yield Cause.required("spec.externalName")


def _port(port: Fields, path: str, names: set[str], *, several: bool) -> Iterator[Cause]:
    if name := port.get("name"):
        yield from format_causes(name, f"{path}.name", label_faults)
        if name in names:
            yield duplicate(name, f"{path}.name")
        names.add(name)
    elif several:
        yield Cause.required(f"{path}.name")
    yield from (Cause.invalid(f"{path}.port", quote(port["port"]), why) for why in port_faults(port["port"]))
    yield from one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    target = port.get("targetPort", 0)
    yield from (Cause.invalid(f"{path}.targetPort", quote(target), why) for why in target_port_faults(target))
    if (protocol := port.get("appProtocol")) is not None:
        yield from format_causes(protocol, f"{path}.appProtocol", label_name_faults)


def _affinity(spec: Fields) -> Iterator[Cause]:
    affinity = spec.get("sessionAffinity")
    yield from one_of(affinity, "spec.sessionAffinity", ("ClientIP", "None"))
    if affinity == "ClientIP":
        timeout = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < timeout <= _LONGEST_AFFINITY:
            why = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield Cause.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", str(timeout), why)


def address_causes(spec: Fields, old: Fields | None) -> Iterator[Cause]:
    """Check the cluster IPs of a service and their families.

    Args:
        old: the service that is replaced.
    """
    if spec.get("type") == "ExternalName":
        return
    address, addresses = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    path = "spec.clusterIPs"
    if address and not addresses:
        yield Cause.required(path)
    elif address and addresses[0] != address:
        yield Cause.invalid(path, quote(addresses), "first value must match `clusterIP`")
    elif addresses and not address:
        yield Cause.invalid(path, quote(addresses), "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        yield from one_of(family, f"spec.ipFamilies[{index}]", _FAMILIES)
        if family in families[:index]:
            yield duplicate(family, f"spec.ipFamilies[{index}]")
    if (policy := spec.get("ipFamilyPolicy")) is not None:
        yield from one_of(policy, "spec.ipFamilyPolicy", _FAMILY_POLICIES)
    known = () if old is None else (old.get("spec") or {}).get("clusterIPs") or ()
    wrong = list(_malformed(addresses, known))
    yield from wrong
    if len(addresses) > len(_FAMILIES):
        yield Cause.invalid(path, quote(addresses), "may only hold up to 2 values")
    if not wrong and addresses != ["None"]:
        yield from _family_mismatches(addresses, families)


def _malformed(addresses: list[str], known: Any) -> Iterator[Cause]:
    if len(addresses) > 1 and addresses[0] == "None":
        yield Cause.invalid("spec.clusterIPs", quote(addresses), "'None' must be the first and only value")
    for index, address in enumerate(addresses):
        if (index or address != "None") and address not in known:
            yield from format_causes(address, f"spec.clusterIPs[{index}]", ip_faults)


def _family_mismatches(addresses: list[str], families: list[str]) -> Iterator[Cause]:
    found = [family_of(address) for address in addresses]
    if len(addresses) > 1 and len(set(found)) == 1:
        why = "may specify no more than one IP for each IP family"
        yield Cause.invalid("spec.clusterIPs", quote(addresses), why)
    for index, (family, wanted) in enumerate(zip(found, families, strict=False)):
        if family != wanted and wanted in _FAMILIES:
            why = f"expected an {wanted} value as indicated by `ipFamilies[{index}]`"
            yield Cause.invalid(f"spec.clusterIPs[{index}]", quote(addresses[index]), why)


def _port_numbers(spec: Fields) -> Iterator[Cause]:
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield Cause.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if number := port.get("nodePort"):
            if (port.get("protocol", ""), number) in seen:
                yield duplicate(number, f"spec.ports[{index}].nodePort")
            seen.add((port.get("protocol", ""), number))
    seen.clear()
    for index, port in enumerate(ports):
        protocol, number = port.get("protocol", ""), port["port"]
        if (protocol, number) in seen:
            same = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(same, f"spec.ports[{index}]")
        seen.add((protocol, number))


def _load_balancer(spec: Fields, annotations: Fields) -> Iterator[Cause]:
    balances = spec.get("type") == "LoadBalancer"
    path = "spec.LoadBalancerSourceRanges"
    ranges = {f"{path}[{index}]": text for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ())}
    sources = [(here, text.strip()) for here, text in ranges.items()]
    if not ranges and _SOURCE_RANGES in annotations:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        text = annotations[_SOURCE_RANGES].strip()
        sources = [(path, each.strip()) for each in text.split(",")] if text else []
    if not balances and (ranges or _SOURCE_RANGES in annotations):
        yield Cause.forbidden(path, _LOAD_BALANCERS_ONLY)
    for here, text in sources:
        yield from format_causes(text, here, cidr_faults)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balances:
        yield Cause.forbidden("spec.allocateLoadBalancerNodePorts", _LOAD_BALANCERS_ONLY)
    if (name := spec.get("loadBalancerClass")) is not None:
        if balances:
            yield from format_causes(name, "spec.loadBalancerClass", label_name_faults)
        else:
            yield Cause.forbidden("spec.loadBalancerClass", _LOAD_BALANCERS_ONLY)


def _traffic(spec: Fields) -> Iterator[Cause]:
    kind, policy, check = spec.get("type"), spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort")
    if kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs")):
        yield from one_of(policy, "spec.externalTrafficPolicy", _TRAFFIC)
    elif policy:
        why = "may only be set for externally-accessible services"
        yield Cause.invalid("spec.externalTrafficPolicy", quote(policy), why)
    if check and not needs_health_check(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield Cause.invalid("spec.healthCheckNodePort", str(check), why)
    elif check:
        yield from (Cause.invalid("spec.healthCheckNodePort", str(check), why) for why in port_faults(check))
    if (inner := spec.get("internalTrafficPolicy")) is not None:
        yield from one_of(inner, "spec.internalTrafficPolicy", _TRAFFIC)
    if (distribution := spec.get("trafficDistribution")) is not None:
        yield from one_of(distribution, "spec.trafficDistribution", _DISTRIBUTIONS)


def service_status(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    """Check the addresses of a load balancer."""
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    path = "status.loadBalancer.ingress"
    if points and (obj.get("spec") or {}).get("type") != "LoadBalancer":
        yield Cause.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, point in enumerate(points):
        here, mode = f"{path}[{index}]", point.get("ipMode")
        if address := point.get("ip"):
            yield from format_causes(address, f"{here}.ip", ip_faults)
        if mode is not None and not address:
            yield Cause.forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set")
        elif mode is not None:
            yield from one_of(mode, f"{here}.ipMode", ("Proxy", "VIP"))
        yield from host_causes(point.get("hostname") or "", f"{here}.hostname")


def host_causes(name: str, path: str) -> Iterator[Cause]:
    """Check an optional host name."""
    if name:
        yield from format_causes(name, path, subdomain_faults)
    if address_of(name) is not None:
        yield Cause.invalid(path, quote(name), "must be a DNS name, not an IP address")
