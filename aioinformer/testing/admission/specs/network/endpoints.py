"""Validation of endpoints and endpoint slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.network.services import PROTOCOLS
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, immutable, one_of
from aioinformer.testing.api.addresses import canonical_ip_faults, endpoint_ip_faults, family_of, ip_faults, port_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults, label_value_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Fields = Mapping[str, Any]

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100
_MOST_PORTS = 20000
_MOST_HINTS = 8


def endpoints(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield Cause.required(path, "must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(field) or ()):
                yield from _address(address, f"{path}.{field}[{place}]")
        ports = subset.get("ports") or ()
        for place, port in enumerate(ports):
            yield from _port(port, f"{path}.ports[{place}]", several=len(ports) > 1)


def _address(address: Fields, path: str) -> Iterator[Cause]:
    ip = address.get("ip", "")
    yield from format_causes(ip, f"{path}.ip", ip_faults)
    if address.get("hostname"):
        yield from format_causes(address["hostname"], f"{path}.hostname", label_faults)
    if address.get("nodeName") is not None:
        yield from format_causes(address["nodeName"], f"{path}.nodeName", subdomain_faults)
    yield from format_causes(ip, f"{path}.ip", endpoint_ip_faults)


def _port(port: Fields, path: str, *, several: bool) -> Iterator[Cause]:
    if port.get("name"):
        yield from format_causes(port["name"], f"{path}.name", label_faults)
    elif several:
        yield Cause.required(f"{path}.name")
    yield from (Cause.invalid(f"{path}.port", quote(port["port"]), why) for why in port_faults(port["port"]))
    yield from one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from format_causes(port["appProtocol"], f"{path}.appProtocol", label_name_faults)


def endpoint_slice(obj: Fields, old: Fields | None) -> Iterator[Cause]:
    kind = obj.get("addressType", "")
    if not kind:
        yield Cause.required("addressType")
    else:
        yield from one_of(kind, "addressType", _ADDRESS_TYPES)
    yield from _ports(obj.get("ports") or ())
    found = obj.get("endpoints") or ()
    if len(found) > _MOST_ENDPOINTS:
        yield Cause.too_many("endpoints", len(found), _MOST_ENDPOINTS)
    else:
        for index, endpoint in enumerate(found):
            yield from _endpoint(endpoint, kind, f"endpoints[{index}]")
    if old is not None:
        yield from immutable(kind, old.get("addressType", ""), "addressType")


def _ports(ports: Sequence[Fields]) -> Iterator[Cause]:
    if len(ports) > _MOST_PORTS:
        yield Cause.too_many("ports", len(ports), _MOST_PORTS)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from format_causes(name, f"{path}.name", label_faults)
        if name in names:
            yield duplicate(name, f"{path}.name")
        names.add(name)
        yield from one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from format_causes(port["appProtocol"], f"{path}.appProtocol", label_name_faults)


def _endpoint(endpoint: Fields, kind: str, path: str) -> Iterator[Cause]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield Cause.required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield Cause.too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        yield from _slice_address(address, kind, f"{path}.addresses", index)
    if endpoint.get("nodeName") is not None:
        yield from format_causes(endpoint["nodeName"], f"{path}.nodeName", subdomain_faults)
    if endpoint.get("hostname") is not None:
        yield from format_causes(endpoint["hostname"], f"{path}.hostname", label_faults)
    hints = endpoint.get("hints") or {}
    for field, faults in (("forZones", label_value_faults), ("forNodes", subdomain_faults)):
        places = hints.get(field) or ()
        if len(places) > _MOST_HINTS:
            yield Cause.too_many(f"{path}.hints.{field}", len(places), _MOST_HINTS)
            return
        yield from _hints([place.get("name", "") for place in places], f"{path}.hints.{field}", faults)


def _slice_address(address: str, kind: str, path: str, index: int) -> Iterator[Cause]:
    here = f"{path}[{index}]"
    if kind == "FQDN":
        yield from _domain(address, here)
    elif kind in ("IPv4", "IPv6"):
        if wrong := (ip_faults if kind == "IPv4" else canonical_ip_faults)(address):
            yield from (Cause.invalid(here, quote(address), why) for why in wrong)
            return
        if family_of(address) != kind:
            yield Cause.invalid(path, quote(address), f"must be an {kind} address")
        yield from format_causes(address, here, endpoint_ip_faults)


def _domain(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield Cause.required(path)
        return
    name = name.removesuffix(".")
    if faults := subdomain_faults(name):
        yield Cause.invalid(path, quote(name), ",".join(faults))
    elif "." not in name:
        yield Cause.invalid(path, quote(name), "should be a domain with at least two segments separated by dots")
    elif long := next((label for label in name.split(".") if label_faults(label)), ""):
        yield Cause.invalid(path, quote(long), ",".join(label_faults(long)))


def _hints(names: Sequence[str], path: str, faults: Callable[[str], Sequence[str]]) -> Iterator[Cause]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield duplicate(name, f"{path}[{index}].name")
        yield from format_causes(name, f"{path}[{index}].name", faults)
