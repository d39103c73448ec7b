"""What the headers of a request prove: a bearer token, a user whom a proxy names, or that a page of this site sent it.

A browser adds cookies, passwords and client certificates to requests of any page, also to those of other sites. Only
a program adds a bearer token. So a request without one must come from a page of the same origin, or from a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from aioinformer.authorization.users import AUTHENTICATED, AccessDenied, Unauthenticated, User
from aioinformer.errors import OptionError
from aioinformer.transport.auth.secret import PrivateDict, Secret

Network: TypeAlias = IPv4Network | IPv6Network

#: Characters of a token, at most: one with many groups has about 10,000.
_TOKEN_AT_MOST: Final = 64 * 1024


def bearer_token(headers: Mapping[str, str]) -> Secret:
    """Return the bearer token of a request; an empty one if it has none.

    Raises:
        Unauthenticated: there are several, or it is too long.
    """
    header = Secret(headers.get("authorization", "").strip())
    if header.text[:7].lower() != "bearer ":
        return Secret("")
    token = Secret(header.text[7:].strip())
    if len(token.text) > _TOKEN_AT_MOST:
        raise Unauthenticated(f"the bearer token has more than {_TOKEN_AT_MOST} characters")
    if len(token.text.split()) > 1:
        raise Unauthenticated("the header Authorization must have one bearer token")
    return token


def without(headers: Mapping[str, str], *names: str) -> Mapping[str, str]:
    """Return headers without those of some names."""
    return PrivateDict({name: value for name, value in headers.items() if name not in names})


def check_same_origin(headers: Mapping[str, str]) -> None:
    """Refuse a request that a page of another site sent.

    `Sec-Fetch-Site` decides, which all browsers send to hosts with TLS and to this machine. Without it, the host of
    `Origin` must be that of the request. A request without both is no request of a script of another site.

    Upstream: net/http.CrossOriginProtection, without its exception for methods that change nothing.

    Raises:
        AccessDenied: another site sent it.
    """
    site = headers.get("sec-fetch-site", "")
    if site:
        if site not in ("same-origin", "none"):
            raise AccessDenied(f"a page of another origin sent this request (Sec-Fetch-Site: {site[:20]})")
        return
    origin = headers.get("origin", "")
    if origin and _host_of(origin) != headers.get("host", "").lower():
        raise AccessDenied("a page of another origin sent this request (Origin and Host differ)")


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower() or "null"
    except ValueError:
        return "null"


class NamedPeers:
    """The addresses of the proxies whose headers are believed.

    Args:
        peers: addresses or networks, "10.0.0.7" or "10.0.0.0/24".

    Raises:
        OptionError: one of them is neither, or contains all addresses.
    """

    def __init__(self, peers: Iterable[str]) -> None:
        self._networks = [_network(each) for each in peers]

    def __contains__(self, peer: Any) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        found = _plain(address)
        return any(found.version == each.version and found in each for each in self._networks)


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address of one that a socket for both families shows as IPv6."""
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def _network(text: str) -> Network:
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        raise OptionError(
            f"from_peers: {text!r} is no address or network: name one as 10.0.0.7 or 10.0.0.0/24"
        ) from None
    if found.prefixlen == 0:
        raise OptionError(f"from_peers: {text!r} has all addresses: name those of your proxies")
    return found


def forwarded_user(headers: Mapping[str, str], user_header: str, groups_header: str) -> User | None:
    """Return the user whom a proxy names in its headers; None if it names none.

    The user is in the group "system:authenticated", as the API server puts all users of its own proxies in there.

    Args:
        user_header: the name of the header, in lower case.
        groups_header: that of the groups, separated by commas or in several headers; "" for no groups.

    Raises:
        Unauthenticated: there are several users: a proxy that adds its header leaves that of the sender in place.
    """
    name = headers.get(user_header, "").strip()
    if not name:
        return None
    if "\n" in name:
        raise Unauthenticated(f"the header {user_header} was sent more than once: the proxy must replace it")
    named = headers.get(groups_header, "") if groups_header else ""
    groups = [each.strip() for each in named.replace("\n", ",").split(",")]
    return User(name, groups=tuple(dict.fromkeys([*filter(None, groups), AUTHENTICATED])))
