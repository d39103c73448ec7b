"""Checks for a server that web pages in a browser and other machines can reach.

A page of any site can send forms to a server on loopback. With a DNS name that it rebinds to 127.0.0.1 it can also read
the responses. Its requests name the site, in `Host` or in `Origin`. Other machines need a token.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aioinformer.testing.api import statuses
from aioinformer.testing.api.negotiation import media_type

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.access.authz import Access

_OPEN = frozenset({"healthz", "livez", "readyz", "version"})
_SAFE = frozenset({"GET", "HEAD"})


class OriginChecks:
    """Check each request before anything else.

    Args:
        host: address that the server listens on. On loopback, requests must name a host on loopback.
        access: identifies the sender of a request.
    """

    def __init__(self, host: str, access: Access) -> None:
        self._on_loopback = is_loopback(host)
        self._access = access

    def check(self, request: web.BaseRequest, path: str) -> None:
        """Check `Host`, `Origin` and credentials.

        Raises:
            StatusError: 403 for a foreign host or origin, 401 without a credential that is accepted.
        """
        if self._on_loopback:
            hosts = request.headers.getall("Host", [])
            if not hosts or not all(map(_names_loopback, hosts)):
                raise _foreign("Host", hosts)
            origins = request.headers.getall("Origin", [])
            if not all(map(_is_local_origin, origins)):
                raise _foreign("Origin", origins)
        if not self.is_open(request.method, path):
            self._access.authn.authenticated(request)

    @staticmethod
    def is_open(method: str, path: str) -> bool:
        """Return whether a request needs no credentials: health checks and the version."""
        return method in _SAFE and path.removeprefix("/").partition("/")[0] in _OPEN

    def check_json(self, request: web.BaseRequest) -> None:
        """Check that a body, if there is one, is declared as JSON: a form of a web page cannot do that.

        Raises:
            StatusError: 415.
        """
        if request.body_exists and media_type(request.headers.get("Content-Type", "")) != "application/json":
            raise statuses.unsupported_media_type(("application/json",))


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is on loopback: localhost, 127.0.0.0/8 or ::1."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and (address.version == 4 or host == "::1")


def _names_loopback(authority: str) -> bool:
    try:
        parts = urlsplit(f"//{authority}")
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return is_loopback(host) and authority.lower() in (shown, f"{shown}:", f"{shown}:{port}")


def _is_local_origin(origin: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and _names_loopback(authority)


def _foreign(header: str, values: list[str]) -> statuses.StatusError:
    subject = f"{header} {', '.join(values)!r} is" if values else f"without {header} a request is"
    message = f"{subject} refused: this server answers requests to localhost, 127.0.0.0/8 and [::1] only"
    return statuses.StatusError(403, "Forbidden", message)
