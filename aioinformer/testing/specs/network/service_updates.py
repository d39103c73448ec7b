"""What becomes of a service that is updated, before anybody looks at whether it is right.

Clients mean less than they say. One that leaves out the address or the ports that its service was given does not mean
to give them back; one that changes the type does not mean to keep what the new type has no use for, if he did not touch
it. So some fields are carried over from the old service, and some are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.specs.network.services import needs_health_check

if TYPE_CHECKING:
    from collections.abc import Mapping

    Fields = Mapping[str, Any]

_EXTERNAL = "ExternalName"
_WITH_NODE_PORTS = ("LoadBalancer", "NodePort")


def name_addresses(spec: dict[str, Any]) -> None:
    """Says in the plural what a client said of the address of a new service."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def carry_over(spec: dict[str, Any], old: Fields) -> None:
    """Takes over what the old service was given and the new one does not speak of.

    Args:
        spec: of the new service; is changed.
        old: spec of the old one.
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
        # Who changes the one means the other as well.
        _set(spec, "clusterIPs", [spec["clusterIP"]] if spec.get("clusterIP") else None)


def drop_unneeded(spec: dict[str, Any], old: Fields) -> None:
    """Drops what the new type has no use for, as long as it is still what the old service had.

    Args:
        spec: of the new service; is changed.
        old: spec of the old one.
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
    """Whether nodes listen for a service, at ports that are looked for if it has none."""
    balances = spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    return spec["type"] == "NodePort" or balances


def is_reached_from_outside(spec: Fields) -> bool:
    """Whether there is a way in from outside of the cluster."""
    return spec["type"] in _WITH_NODE_PORTS or (spec["type"] == "ClusterIP" and bool(spec.get("externalIPs")))


def _carry_over_ports(ports: Any, others: Any) -> None:
    """A port is known by its name, whatever else of it was changed."""
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
