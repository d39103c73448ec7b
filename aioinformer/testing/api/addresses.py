"""IP addresses, networks and ports, with the messages of the API.

Earlier versions of the API accepted more: leading zeros, IPv4-mapped IPv6 addresses, networks with bits beyond their
prefix. These are refused now, each with its own message. Older fields accept addresses that are not in canonical form,
with a warning; newer fields refuse them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HIGHEST_PORT = 65535
_LONGEST_PORT_NAME = 15
_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_OCTETS = re.compile(r"\d+(?:\.\d+){3}")


def address_of(text: str) -> Address | None:
    """Return an address in any form, None if it is none; IPv4-mapped IPv6 becomes IPv4."""
    if _OCTETS.fullmatch(text):
        text = ".".join(str(int(octet)) for octet in text.split("."))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return None if address.scope_id else address.ipv4_mapped or address
    return address


def network_of(text: str) -> Network | None:
    """Return a network in any form, without bits beyond its prefix; None if it is none."""
    head, slash, tail = text.partition("/")
    address = address_of(head)
    if address is None or not slash or not tail.isdecimal() or not tail.isascii():
        return None
    length = int(tail) - (96 if ":" in head and address.version == 4 else 0)
    if not 0 <= length <= address.max_prefixlen:
        return None
    return ipaddress.ip_network((address, length), strict=False)


def family_of(text: str) -> str:
    """Return "IPv4" or "IPv6"; "" if it is no address."""
    address = address_of(text)
    return "" if address is None else f"IPv{address.version}"


def ip_faults(text: str) -> list[str]:
    """Yield what is wrong with an address in a field that accepts any form."""
    if (address := address_of(text)) is None:
        return [_NO_ADDRESS]
    if ":" not in text:
        return [] if text == str(address) else ["must not have leading 0s"]
    return ["must not be an IPv4-mapped IPv6 address"] if address.version == 4 else []


def canonical_ip_faults(text: str) -> list[str]:
    """Yield what is wrong with an address in a field that accepts the canonical form only."""
    return ip_faults(text) or _not_canonical(text, str(address_of(text)))


def cidr_faults(text: str) -> list[str]:
    """Yield what is wrong with a network in a field that accepts any form."""
    network = network_of(text)
    if network is None:
        return [_NO_NETWORK]
    head, _, tail = text.partition("/")
    if ":" in head and network.version == 4:
        return ["must not have an IPv4-mapped IPv6 address"]
    address = address_of(head)
    if tail != str(int(tail)) or (":" not in head and head != str(address)):
        return ["must not have leading 0s in IP or prefix length"]
    return [] if address == network.network_address else ["must not have bits set beyond the prefix length"]


def canonical_cidr_faults(text: str) -> list[str]:
    """Yield what is wrong with a network in a field that accepts the canonical form only."""
    return cidr_faults(text) or _not_canonical(text, str(network_of(text)))


def endpoint_ip_faults(text: str) -> list[str]:
    """Yield what is wrong with an address as the destination of traffic."""
    address = address_of(text)
    if address is None:
        return ["must be a valid IP address"]
    found = [f"may not be unspecified ({text})"] if address.is_unspecified else []
    if address.is_loopback:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address in _LOCAL_GROUPS[address.version]:
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return found


def ip_warnings(path: str, text: str) -> Iterator[str]:
    """Yield warnings for an address that is not in canonical form."""
    address = address_of(text)
    if address is not None and ":" in text and text != str(address):
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{address}")'


def cidr_warnings(path: str, text: str) -> Iterator[str]:
    """Yield warnings for a network that is not in canonical form."""
    network = network_of(text)
    if network is not None and ":" in text and text != str(network):
        yield f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")'


def port_faults(number: int) -> list[str]:
    """Yield what is wrong with a port number."""
    return [] if 1 <= number <= _HIGHEST_PORT else [f"must be between 1 and {_HIGHEST_PORT}, inclusive"]


def port_name_faults(name: str) -> list[str]:
    """Yield what is wrong with the name of a container port."""
    faults = {
        f"must be no more than {_LONGEST_PORT_NAME} characters": len(name) > _LONGEST_PORT_NAME,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": not re.fullmatch("[-a-z0-9]+", name),
        "must contain at least one letter (a-z)": not re.search("[a-z]", name),
        "must not contain consecutive hyphens": "--" in name,
        "must not begin or end with a hyphen": name.startswith("-") or name.endswith("-"),
    }
    return [why for why, wrong in faults.items() if wrong]


def target_port_faults(port: int | str) -> list[str]:
    """Yield what is wrong with a port that is given by number or by name."""
    return port_name_faults(port) if isinstance(port, str) else port_faults(port)


def _not_canonical(text: str, canonical: str) -> list[str]:
    return [] if text == canonical else [f'must be in canonical form ("{canonical}")']


_LOCAL_GROUPS = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
