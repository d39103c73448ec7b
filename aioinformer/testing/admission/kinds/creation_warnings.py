"""Warnings of the API about created and updated objects."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.kinds.pod_warnings import (
    pod_template_warnings,
    pod_warnings,
    template_warnings,
    workload_warnings,
)
from aioinformer.testing.api.addresses import cidr_warnings, ip_warnings
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_USE_NAMESPACES = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_USE_FIELD = 'use "storageClassName" attribute instead'
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def creation_warnings(group_resource: str, body: bytes) -> list[str]:
    """Return the warnings for a new object.

    Args:
        group_resource: such as "services".
        body: as stored.
    """
    warn = _WARNINGS.get(group_resource)
    return [] if warn is None else list(warn(decode(body)))


def update_warnings(group_resource: str, body: bytes, subresource: str) -> list[str]:
    """Return the warnings for a changed object.

    Args:
        group_resource: such as "services".
        body: as stored.
        subresource: the subresource that was written; "" for the object itself.
    """
    warn = _UPDATE_WARNINGS.get(f"{group_resource}/{subresource}")
    return [] if warn is None else list(warn(decode(body)))


def _service(obj: Mapping[str, Any]) -> Iterator[str]:
    spec, path = obj.get("spec") or {}, "spec"
    external, headless = spec["type"] == "ExternalName", spec.get("clusterIP") == "None"
    addresses = spec.get("externalIPs") or ()
    if _HINTS in (obj["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if headless and spec["type"] == "ClusterIP":
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if addresses:
            yield "spec.externalIPs is ignored for headless services"
        if spec["sessionAffinity"] != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(addresses):
        yield from ip_warnings(f"{path}.externalIPs[{index}]", address)
    if addresses and not headless and not external:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from ip_warnings(f"{path}.loadBalancerIP", spec.get("loadBalancerIP") or "")
    for index, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from cidr_warnings(f"{path}.loadBalancerSourceRanges[{index}]", cidr)
    if addresses and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and not external:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _load_balancer(obj: Mapping[str, Any]) -> Iterator[str]:
    for index, point in enumerate(((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        yield from ip_warnings(f"status.loadBalancer.ingress[{index}]", point.get("ip") or "")


def _endpoints(obj: Mapping[str, Any]) -> Iterator[str]:
    for index, subset in enumerate(obj.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(field) or ()):
                yield from ip_warnings(f"subsets[{index}].{field}[{place}].ip", address["ip"])


def _slice_addresses(obj: Mapping[str, Any]) -> Iterator[str]:
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        for place, address in enumerate(endpoint.get("addresses") or ()):
            yield from ip_warnings(f"endpoints[{index}].addresses[{place}]", address)


def _slice(obj: Mapping[str, Any]) -> Iterator[str]:
    if obj.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    yield from _slice_addresses(obj)


def _ingress(obj: Mapping[str, Any]) -> Iterator[str]:
    named = (obj.get("spec") or {}).get("ingressClassName") is not None
    if _INGRESS_CLASS in (obj["metadata"].get("annotations") or {}) and not named:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _secret(obj: Mapping[str, Any]) -> Iterator[str]:
    """Warn of certificates and keys without PEM data. Their content is not checked."""
    if obj.get("type") == "kubernetes.io/tls":
        for name, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN" not in base64.b64decode((obj.get("data") or {}).get(name) or ""):
                yield f"tls: failed to find any PEM data in {what} input"
                return


def _account(obj: Mapping[str, Any]) -> Iterator[str]:
    if _MOUNTABLE in (obj["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_MOUNTABLE}]: {_USE_NAMESPACES}"


def _node(obj: Mapping[str, Any]) -> Iterator[str]:
    spec = obj.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, cidr in enumerate(spec.get("podCIDRs") or ()):
        yield from cidr_warnings(f"spec.podCIDRs[{index}]", cidr)


def _network_policy(obj: Mapping[str, Any]) -> Iterator[str]:
    spec = obj.get("spec") or {}
    for direction, others in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            for place, peer in enumerate(rule.get(others) or ()):
                path, block = f"spec.{direction}[{index}].{others}[{place}].ipBlock", peer.get("ipBlock") or {}
                yield from cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
                for number, cidr in enumerate(block.get("except") or ()):
                    yield from cidr_warnings(f"{path}.except[{number}]", cidr)


def _volume(obj: Mapping[str, Any]) -> Iterator[str]:
    if _STORAGE_CLASS in (obj["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_STORAGE_CLASS}]: deprecated since v1.8; {_USE_FIELD}"


def _claim(obj: Mapping[str, Any]) -> Iterator[str]:
    yield from _volume(obj)
    for part, sizes in ((obj.get("spec") or {}).get("resources") or {}).items():
        size = (sizes or {}).get("storage")
        if size is not None and amount(size) % 1:
            where = f"spec.resources.{part}[storage]"
            yield f'{where}: fractional byte value "{size}" is invalid, must be an integer'


def _driver(obj: Mapping[str, Any]) -> Iterator[str]:
    spec = obj["spec"]
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        yield _TOKENS


def _stateful_set(obj: Mapping[str, Any]) -> Iterator[str]:
    yield from workload_warnings(obj)
    if obj["spec"]["revisionHistoryLimit"] < 0:
        kept = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {kept}"


_WARNINGS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "cronjobs.batch": template_warnings,
    "csidrivers.storage.k8s.io": _driver,
    "daemonsets.apps": workload_warnings,
    "deployments.apps": template_warnings,
    "endpoints": _endpoints,
    "endpointslices.discovery.k8s.io": _slice,
    "ingresses.networking.k8s.io": _ingress,
    "jobs.batch": template_warnings,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _claim,
    "pods": pod_warnings,
    "podtemplates": pod_template_warnings,
    "replicasets.apps": template_warnings,
    "replicationcontrollers": template_warnings,
    "secrets": _secret,
    "serviceaccounts": _account,
    "services": _service,
    "statefulsets.apps": _stateful_set,
}
_UPDATE_WARNINGS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "endpoints/": _endpoints,
    "endpointslices.discovery.k8s.io/": _slice_addresses,
    "ingresses.networking.k8s.io/status": _load_balancer,
    "networkpolicies.networking.k8s.io/": _network_policy,
    "nodes/": _node,
    "secrets/": _secret,
    "services/": _service,
    "services/status": _load_balancer,
}
