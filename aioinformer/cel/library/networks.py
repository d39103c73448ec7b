"""CEL extensions for IP addresses, CIDRs and URLs."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit

from aioinformer.cel.functions import is_valid
from aioinformer.cel.values import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCAL_GROUPS = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}
_LINK_LOCAL = {4: ipaddress.ip_network("169.254.0.0/16"), 6: ipaddress.ip_network("fe80::/10")}
_BROADCAST = ipaddress.ip_address("255.255.255.255")
_UNESCAPED = "/%$&+,:;=@!*'()[]"


@dataclass(frozen=True, slots=True)
class Ip:
    """An IP address."""

    type_name: ClassVar[str] = "net.IP"
    address: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """An IP address with a prefix length."""

    type_name: ClassVar[str] = "net.CIDR"
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    length: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)


@dataclass(frozen=True, slots=True)
class Url:
    """A URL."""

    type_name: ClassVar[str] = "kubernetes.URL"
    text: str


def _ip(text: str) -> Ip:
    shown = json.dumps(text, ensure_ascii=False)
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        why = "unable to parse IP"
        raise EvaluationError(
            f"IP Address {shown} parse error during conversion from string: ParseAddr({shown}): {why}"
        ) from None
    if "%" in text:
        raise EvaluationError(f"IP address {shown} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {shown} is not allowed")
    return Ip(address)


def _cidr(text: str) -> Cidr:
    shown = json.dumps(text, ensure_ascii=False)
    failed = "network address parse error during conversion from string: "
    address, slash, length = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"{failed}{failed}netip.ParsePrefix({shown}): no '/'")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        why = f"netip.ParsePrefix({shown}): ParseAddr({json.dumps(address)}): unable to parse IP"
        raise EvaluationError(f"{failed}{failed}{why}") from None
    if not re.fullmatch(r"0|[1-9]\d{0,2}", length, re.ASCII):
        raise EvaluationError(f"{failed}{failed}netip.ParsePrefix({shown}): bad bits after slash: {json.dumps(length)}")
    if int(length) > parsed.max_prefixlen:
        raise EvaluationError(f"{failed}{failed}netip.ParsePrefix({shown}): prefix length out of range")
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        raise EvaluationError(f"{failed}IPv4-mapped IPv6 address {shown} is not allowed")
    return Cidr(parsed, int(length))


def parse_url(text: str) -> Url:
    """Parse a URL.

    Raises:
        EvaluationError: the text is not a URL.
    """
    shown = json.dumps(text, ensure_ascii=False)
    failed = f"URL parse error during conversion from string: parse {shown}: "
    if not text:
        raise EvaluationError(f"{failed}empty url")
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise EvaluationError(f"{failed}net/url: invalid control character in URL")
    if not text.startswith("/") and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        raise EvaluationError(f"{failed}invalid URI for request")
    if bad := re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", text):
        raise EvaluationError(f"{failed}invalid URL escape {json.dumps(bad[0])}")
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise EvaluationError(f"{failed}invalid URI for request") from None
    if " " in parts.netloc:
        raise EvaluationError(f'{failed}invalid character " " in host name')
    return Url(text)


def _host(url: Url) -> str:
    return urlsplit(url.text).netloc.rpartition("@")[2]


def _hostname(url: Url) -> str:
    host = _host(url)
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _port(url: Url) -> str:
    return _host(url).rpartition("]")[2].partition(":")[2]


def _path(url: Url) -> str:
    return quote(urlsplit(url.text).path, safe=_UNESCAPED)


def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url.text).query, keep_blank_values=True)


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    is_local = address in _LINK_LOCAL[address.version]
    return not (
        address == _BROADCAST or address.is_unspecified or address.is_loopback or address.is_multicast or is_local
    )


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address in cidr.network


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    return (
        cidr.address.version == other.address.version
        and cidr.length <= other.length
        and (other.network.network_address in cidr.network)
    )


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network.network_address, cidr.length)


NETWORKS: dict[str, dict[str, Callable[..., Any]]] = {
    "ip": {"(string) -> net.IP": _ip, "net.CIDR.() -> net.IP": lambda cidr: Ip(cidr.address)},
    "isIP": {"(string) -> bool": is_valid(_ip)},
    "ip.isCanonical": {"(string) -> bool": lambda text: str(_ip(text).address) == text},
    "family": {"net.IP.() -> int": lambda ip: ip.address.version},
    "isUnspecified": {"net.IP.() -> bool": lambda ip: ip.address.is_unspecified},
    "isLoopback": {"net.IP.() -> bool": lambda ip: ip.address.is_loopback},
    "isLinkLocalMulticast": {"net.IP.() -> bool": lambda ip: ip.address in _LOCAL_GROUPS[ip.address.version]},
    "isLinkLocalUnicast": {"net.IP.() -> bool": lambda ip: ip.address in _LINK_LOCAL[ip.address.version]},
    "isGlobalUnicast": {"net.IP.() -> bool": _is_global_unicast},
    "cidr": {"(string) -> net.CIDR": _cidr},
    "isCIDR": {"(string) -> bool": is_valid(_cidr)},
    "containsIP": {
        "net.CIDR.(string) -> bool": lambda cidr, text: _contains_ip(cidr, _ip(text)),
        "net.CIDR.(net.IP) -> bool": _contains_ip,
    },
    "containsCIDR": {
        "net.CIDR.(string) -> bool": lambda cidr, text: _contains_cidr(cidr, _cidr(text)),
        "net.CIDR.(net.CIDR) -> bool": _contains_cidr,
    },
    "prefixLength": {"net.CIDR.() -> int": lambda cidr: cidr.length},
    "masked": {"net.CIDR.() -> net.CIDR": _masked},
    "string": {
        "(net.IP) -> string": lambda ip: str(ip.address),
        "(net.CIDR) -> string": lambda cidr: f"{cidr.address}/{cidr.length}",
    },
    "url": {"(string) -> kubernetes.URL": parse_url},
    "isURL": {"(string) -> bool": is_valid(parse_url)},
    "getScheme": {"kubernetes.URL.() -> string": lambda url: urlsplit(url.text).scheme},
    "getHost": {"kubernetes.URL.() -> string": _host},
    "getHostname": {"kubernetes.URL.() -> string": _hostname},
    "getPort": {"kubernetes.URL.() -> string": _port},
    "getEscapedPath": {"kubernetes.URL.() -> string": _path},
    "getQuery": {"kubernetes.URL.() -> map(string, list(string))": _query},
}
