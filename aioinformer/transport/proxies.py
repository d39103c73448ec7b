"""Which proxy of the environment, if any, leads to a server."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from yarl import URL


def environment_proxy(url: URL) -> str | None:
    """The proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, None for none.

    Loopback is never proxied, as in client-go: a proxy's own loopback is not the one that was meant.
    """
    host = url.host or ""
    if is_loopback(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{host}:{url.port}"):
        return None
    return proxy


def is_loopback(host: str | None) -> bool:
    """Whether a host, by name or address, is this machine whatever the network says."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
