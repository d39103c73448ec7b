"""Which servers `NO_PROXY` excludes from proxies, read as Go's `golang.org/x/net/http/httpproxy` reads it.

The variable is a list with commas; white space around entries, case, and entries that make no sense are ignored:

* `*` alone excludes everything.
* `10.0.0.0/8` and `fd00::/8` exclude the addresses of a network, `10.0.0.1` and `fd00::1` one address.
* `example.com` excludes this name and all names below it, `.example.com` and `*.example.com` those below it alone.
* An address or a name may have a port, `10.0.0.1:6443`, `[fd00::1]:6443`, `example.com:6443`: then that port alone.

Names are compared with the name in the URL, addresses with an address in the URL: nothing is resolved.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from yarl import URL

Address: TypeAlias = "IPv4Address | IPv6Address"

_CIDR = re.compile(r"([0-9A-Fa-f.:]+)/([0-9]{1,9})").fullmatch
_HOST_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*)):([^\[\]:]*)").fullmatch


def is_excluded(no_proxy: str, host: str, port: int) -> bool:
    """Return whether a server is reached without a proxy by this value of `NO_PROXY`.

    Args:
        no_proxy: the value of the variable.
        host: the name or address in the server's URL, an IPv6 address without brackets.
        port: the server's port.
    """
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    if "*" in entries:
        return True
    host = _ascii(host.strip().lower())
    address = address_of(host)
    return any(_matches(entry, host, address, str(port)) for entry in entries if entry)


def address_of(host: str) -> Address | None:
    """Return the IP address that `host` is, None for a name. An IPv4 address within IPv6 is the IPv4 address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _matches(entry: str, host: str, address: Address | None, port: str) -> bool:
    if (network := _network(entry)) is not None:
        return address is not None and address in network
    name, wanted_port = entry, ""
    if split := _HOST_PORT(entry):
        name, wanted_port = split[1] or split[2] or "", split[3]
    if not name or (wanted_port and wanted_port != port):
        return False
    if "%" not in name and (excluded := address_of(name)) is not None:
        return excluded == address
    if address is not None:
        return False
    name = _ascii(name.removeprefix("*") if name.startswith("*.") else name)
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    cidr = _CIDR(entry)
    if cidr is None:
        return None
    try:
        network = ip_network(f"{cidr[1]}/{int(cidr[2])}", strict=False)
    except ValueError:
        return None
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None and network.prefixlen >= 96:
        return IPv4Network((mapped, network.prefixlen - 96))
    return network


def _ascii(name: str) -> str:
    """The name as DNS has it (IDNA), or as it is if it has no such form."""
    if name.isascii():
        return name
    bare = name.removeprefix(".")
    try:
        return name[: len(name) - len(bare)] + (URL.build(scheme="http", host=bare).raw_host or bare)
    except ValueError:
        return name
