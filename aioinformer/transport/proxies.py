"""Which proxy leads to a server: the one that the settings name, or that of the environment, as Go finds it.

`HTTPS_PROXY` is for servers with https, `HTTP_PROXY` for those with http, and the names in capital letters come first.
`ALL_PROXY` is not read. `NO_PROXY` is described in `aioinformer.transport.no_proxy`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from yarl import URL

from aioinformer.errors import UsageError
from aioinformer.transport.no_proxy import address_of, is_excluded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.transport.secret import Secret

_HTTP = ("http", "https")
_SOCKS = ("socks5", "socks5h")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy.

    Attributes:
        url: with scheme and host, and with user and password if it wants them.
        where: the setting that names it, for messages.
    """

    url: URL = field(repr=False)
    where: str

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS5, and not HTTP."""
        return self.url.scheme in _SOCKS


def environment_proxy(server: URL, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """Return the proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, None for none.

    Loopback addresses and `localhost` are never proxied, as in Go: a proxy's own loopback is another one.

    Raises:
        UsageError: as `proxy_of`; or `HTTP_PROXY` is set in a CGI program, where a client of it may have set it.
    """
    name = "HTTPS_PROXY" if server.scheme == "https" else "HTTP_PROXY"
    where = name if environment.get(name) else name.lower()
    host, port = server.host or "", server.port or 0
    if not environment.get(where) or is_loopback(host):
        return None
    if name == "HTTP_PROXY" and environment.get("REQUEST_METHOD"):
        raise UsageError(
            f"{where} is not used in a CGI program (REQUEST_METHOD is set), for a client could have set it; "
            "name the proxy in proxy or proxy-url, or unset the variable"
        )
    if is_excluded(environment.get("NO_PROXY") or environment.get("no_proxy") or "", host, port):
        return None
    return _checked(_parsed(environment[where], where), where)


def proxy_of(proxy: Secret | None, where: str) -> Proxy | None:
    """Return the proxy that a setting names, None for none. A URL without a scheme is one with http.

    Args:
        proxy: the URL. It is never quoted, for it may hold a password.
        where: the setting, for messages.

    Raises:
        UsageError: it is not a URL, the proxy is of an unknown kind, or a package for it is missing.
    """
    return _checked(_parsed(proxy.text, where), where) if proxy else None


def is_loopback(host: str | None) -> bool:
    """Return whether a host, by name or address, is this machine whatever the network says."""
    address = address_of(host or "")
    return host == "localhost" or (address is not None and address.is_loopback)


def _parsed(text: str, where: str) -> Proxy | None:
    try:
        url = URL(text if "://" in text else f"http://{text}")
    except ValueError:
        return None
    return Proxy(url, where) if url.host else None


def _checked(proxy: Proxy | None, where: str) -> Proxy:
    # The URL is no local variable here: it may hold a password, and tracebacks may show local variables.
    if proxy is None:
        raise UsageError(f"{where} is not the URL of a proxy; write it as http://host:port or socks5://host:port")
    if proxy.url.scheme not in (*_HTTP, *_SOCKS):
        raise UsageError(
            f"{where} names a proxy of kind {proxy.url.scheme[:20]}, which is not supported; name one with http://, "
            "https:// or socks5://, or exclude the server with NO_PROXY"
        )
    if proxy.is_socks and find_spec("python_socks") is None:
        raise UsageError(
            f"{where} names a SOCKS proxy, which needs the package python-socks; "
            "install it with: pip install 'aioinformer[socks]'"
        )
    return proxy
