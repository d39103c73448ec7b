"""Which proxy of the environment, if any, leads to a server."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from yarl import URL


def environment_proxy(url: URL) -> str | None:
    """The proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, None for none.

    Loopback is never proxied, as in client-go: a proxy's own loopback is not the one that was meant.

    Raises:
        UsageError: as `proxy_url`.
    """
    host = url.host or ""
    if is_loopback(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{host}:{url.port}"):
        return None
    return proxy_url(proxy)


def proxy_url(proxy: str | None) -> str | None:
    """A proxy as aiohttp takes it: with a scheme, which is often left out; None for none.

    Raises:
        UsageError: a kind that aiohttp cannot talk to. The message leaves the URL out, for it may hold a password.
    """
    if not proxy:
        return None
    scheme, separator, _ = proxy.partition("://")
    if not separator:
        return f"http://{proxy}"
    if scheme.lower() not in ("http", "https"):
        raise UsageError(
            f"a proxy of kind {scheme} is not supported; name one with http:// (or https://) in proxy, proxy-url or "
            "HTTPS_PROXY, or the server in NO_PROXY"
        )
    return proxy


def is_loopback(host: str | None) -> bool:
    """Whether a host, by name or address, is this machine whatever the network says."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
