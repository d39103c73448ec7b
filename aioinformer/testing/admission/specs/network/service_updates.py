"""Prepare the update of a service before it is validated.

A client that leaves out the addresses or ports that its service was given does not release them: they are carried over
from the old service. A client that changes the type does not have to unset the fields that the new type does not use:
if they are unchanged, they are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.network.services import needs_health_check

if TYPE_CHECKING:
    from collections.abc import Mapping

    Fields = Mapping[str, Any]

_EXTERNAL = "ExternalName"
_WITH_NODE_PORTS = ("LoadBalancer", "NodePort")


def name_addresses(spec: dict[str, Any]) -> None:
    """Copy `clusterIP` of a new service to `clusterIPs`."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def carry_over(spec: dict[str, Any], old: Fields) -> None:
    """Copy allocated values of the old service that the new one leaves out.

    Args:
        spec: of the new service; is changed.
        old: spec of the old service.
    """
    if _EXTERNAL not in (spec["type"], old["type"]):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and old.get(field):
                spec[field] = old[field]
    if gets_node_ports(spec) and gets_node_ports(old):
        _carry_over_ports(spec.get("ports") or (), old.get("ports") or ())
    if needs_health_check(spec) and needs_health_check(old) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)
    if (spec.get("clusterIP") or "") != (old.get("clusterIP") or "") and _same(spec, old, "clusterIPs"):
        # A client that changes `clusterIP` alone also means `clusterIPs`.
        _set(spec, "clusterIPs", [spec["clusterIP"]] if spec.get("clusterIP") else None)


def drop_unneeded(spec: dict[str, Any], old: Fields) -> None:
    """Drop unchanged fields that the new type does not use.

    Args:
        spec: of the new service; is changed.
        old: spec of the old service.
    """
    if spec["type"] == _EXTERNAL != old["type"]:
        if _same(spec, old, "clusterIP") and _same(spec, old, "clusterIPs"):
            _drop_same(spec, old, "clusterIP", "clusterIPs")
        _drop_same(spec, old, "ipFamilies", "ipFamilyPolicy")
    if spec["type"] == _EXTERNAL:
        spec.pop("internalTrafficPolicy", None)
    if spec["type"] not in _WITH_NODE_PORTS and old["type"] in _WITH_NODE_PORTS:
        for port in (_node_ports(spec) <= _node_ports(old) and spec.get("ports")) or ():
            port.pop("nodePort", None)
    if needs_health_check(old) and not needs_health_check(spec):
        _drop_same(spec, old, "healthCheckNodePort")
    if old["type"] == "LoadBalancer" != spec["type"]:
        _drop_same(spec, old, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_reached_from_outside(old) and not is_reached_from_outside(spec):
        _drop_same(spec, old, "externalTrafficPolicy")


def gets_node_ports(spec: Fields) -> bool:
    """Return whether the service has node ports; missing ones are allocated."""
    balances = spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    return spec["type"] == "NodePort" or balances


def is_reached_from_outside(spec: Fields) -> bool:
    """Return whether the service is reachable from outside of the cluster."""
    return spec["type"] in _WITH_NODE_PORTS or (spec["type"] == "ClusterIP" and bool(spec.get("externalIPs")))


def _carry_over_ports(ports: Any, others: Any) -> None:
    """Copy node ports between ports of the same name."""
    used = {port["nodePort"] for port in ports if port.get("nodePort")}
    former = {port.get("name", ""): port.get("nodePort", 0) for port in others}
    for port in ports:
        number = former.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number


def _node_ports(spec: Fields) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _same(spec: Fields, old: Fields, field: str) -> bool:
    return (spec.get(field) or None) == (old.get(field) or None)


def _drop_same(spec: dict[str, Any], old: Fields, *fields: str) -> None:
    for field in fields:
        if spec.get(field) == old.get(field):
            spec.pop(field, None)


def _set(spec: dict[str, Any], field: str, value: Any) -> None:
    if value is None:
        spec.pop(field, None)
    else:
        spec[field] = value
