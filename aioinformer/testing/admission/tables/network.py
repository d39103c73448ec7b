"""Cells of services, endpoints, ingresses and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.tables.cells import age, condition, field, join_shortened, labels, name, selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aioinformer.testing.admission.tables.cells import Cells

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _service(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    cluster_ips = field(obj, "spec.clusterIPs", []) or [field(obj, "spec.clusterIP", "<none>")]
    return [
        name(obj),
        field(obj, "spec.type", "ClusterIP"),
        cluster_ips[0],
        _external_ip(obj),
        ",".join(map(_service_port, field(obj, "spec.ports", []))) or "<none>",
        age(obj, now),
        labels(field(obj, "spec.selector")),
    ]


def _external_ip(obj: Mapping[str, Any]) -> str:
    addresses = field(obj, "spec.externalIPs", [])
    match field(obj, "spec.type", "ClusterIP"):
        case "ClusterIP" | "NodePort":
            return ",".join(addresses) or "<none>"
        case "LoadBalancer":
            return ",".join([*_ingress_points(obj), *addresses]) or "<pending>"
        case "ExternalName":
            return str(field(obj, "spec.externalName", ""))
    return "<unknown>"


def _ingress_points(obj: Mapping[str, Any]) -> list[str]:
    points = (point.get("ip") or point.get("hostname") for point in field(obj, "status.loadBalancer.ingress", []))
    return sorted({point for point in points if point})


def _service_port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def _endpoints(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), join_shortened(_subset_addresses(obj)) if obj.get("subsets") else "<none>", age(obj, now)]


def _subset_addresses(obj: Mapping[str, Any]) -> Iterator[str]:
    for subset in obj.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            yield from (f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in addresses)


def _endpoint_slice(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    ports = (str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ())
    addresses = (address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ())
    cells = (join_shortened(ports) or "<unset>", join_shortened(addresses) or "<unset>")
    return [name(obj), obj.get("addressType", ""), *cells, age(obj, now)]


def _ingress(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [
        name(obj),
        field(obj, "spec.ingressClassName", "<none>"),
        _hosts(field(obj, "spec.rules", [])),
        ",".join(_ingress_points(obj)),
        "80, 443" if field(obj, "spec.tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[Any]) -> str:
    # Rules without a host are not shown, but are counted in the rest.
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _ingress_class(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    default = field(obj, "metadata.annotations", {}).get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters = field(obj, "spec.parameters")
    text = "<none>"
    if parameters:
        group = parameters.get("apiGroup")
        text = f"{parameters['kind']}.{group}" if group is not None else parameters["kind"]
        text += f"/{parameters['name']}"
    shown = name(obj) + (" (default)" if default else "")
    return [shown, field(obj, "spec.controller", ""), text, age(obj, now)]


def _ip_address(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    parent = field(obj, "spec.parentRef")
    text = "<none>"
    if parent:
        kind = f"{parent['resource']}.{parent['group']}" if parent.get("group") else parent.get("resource", "")
        text = "/".join(part for part in (kind.lower(), parent.get("namespace"), parent.get("name", "")) if part)
    # The server sends the age although it has no column.
    return [name(obj), text, age(obj, now)]


def _network_policy(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), selector(field(obj, "spec.podSelector")), age(obj, now)]


def _service_cidr(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), ",".join(field(obj, "spec.cidrs", [])), age(obj, now)]


def _node(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    ready = condition(obj, "Ready")
    status = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if field(obj, "spec.unschedulable"):
        status.append("SchedulingDisabled")
    info = field(obj, "status.nodeInfo", {})
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        name(obj),
        ",".join(status),
        ",".join(_roles(field(obj, "metadata.labels", {}))) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        (info.get("kernelVersion") or "<unknown>") + architecture,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _roles(node_labels: Mapping[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in node_labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {node_labels.get("kubernetes.io/role", "")}) - {""})


def _address(obj: Mapping[str, Any], kind: str) -> str:
    addresses = (item["address"] for item in field(obj, "status.addresses", []) if item.get("type") == kind)
    return next(addresses, "<none>")


NETWORK_CELLS: Mapping[str, Cells] = {
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "ingressclasses.networking.k8s.io": _ingress_class,
    "ingresses.networking.k8s.io": _ingress,
    "ipaddresses.networking.k8s.io": _ip_address,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "servicecidrs.networking.k8s.io": _service_cidr,
    "services": _service,
}
"""By group resource."""
