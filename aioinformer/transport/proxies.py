"""Proxies: which one leads to a server, and connections through SOCKS5 proxies.

`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` mean what they mean to Go programs. aiohttp itself connects through HTTP
proxies; `SocksConnector` connects through SOCKS5 proxies, by the package python-socks. The proxy resolves names, for
`socks5://` and `socks5h://` alike, as in Go. No connection bypasses the proxy: the connector does not resolve names,
and makes no sockets for direct connections.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from aiohttp.abc import AbstractResolver
from yarl import URL

from aioinformer.errors import UsageError
from aioinformer.transport.connections import Connector
from aioinformer.transport.failures import SocksError, os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp
    from aiohttp.abc import ResolveResult

    from aioinformer.transport.auth.secret import Secret

Address: TypeAlias = IPv4Address | IPv6Address

_CIDR = re.compile(r"([0-9A-Fa-f.:]+)/([0-9]{1,9})").fullmatch
_HOST_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*)):([^\[\]:]*)").fullmatch

_HTTP = ("http", "https")
_SOCKS = ("socks5", "socks5h")

_PORT = 1080
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy.

    Attributes:
        url: scheme and host, with user and password if the proxy requires them.
        where: the setting that names the proxy, for messages.
    """

    url: URL = field(repr=False)
    where: str

    @property
    def is_socks(self) -> bool:
        """Whether it is a SOCKS5 proxy, and not an HTTP proxy."""
        return self.url.scheme in _SOCKS


def environment_proxy(server: URL, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """Return the proxy for a server by `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, None for none.

    Loopback addresses and `localhost` are never proxied, as in Go: on the proxy they mean another machine.

    Raises:
        UsageError: as `proxy_of`; or `HTTP_PROXY` is set in a CGI program, where an HTTP client may have set it.
    """
    name = "HTTPS_PROXY" if server.scheme == "https" else "HTTP_PROXY"
    where = name if environment.get(name) else name.lower()
    host = server.host or ""
    port = server.port or 0
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
    """Return the proxy that a setting names, None for none. A URL without a scheme means http.

    Args:
        proxy: the URL. Messages never quote it, because it may contain a password.
        where: the setting, for messages.

    Raises:
        UsageError: it is not a URL, its scheme is not supported, or the package for it is missing.
    """
    return _checked(_parsed(proxy.text, where), where) if proxy else None


def is_loopback(host: str | None) -> bool:
    """Return whether a host is `localhost` or a loopback address."""
    address = address_of(host or "")
    return host == "localhost" or (address is not None and address.is_loopback)


def stays_here(host: str | None) -> bool:
    """Return whether connections to a host stay on this machine: to a loopback address, or to 0.0.0.0 or ::."""
    address = address_of(host or "")
    return is_loopback(host) or (address is not None and address.is_unspecified)


def address_of(host: str) -> Address | None:
    """Return the IP address in `host`, None for a name. An IPv4-mapped IPv6 address gives the IPv4 address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_excluded(no_proxy: str, host: str, port: int) -> bool:
    """Return whether a value of `NO_PROXY` excludes a server from proxying.

    Args:
        host: the name or address in the server's URL, an IPv6 address without brackets.
    """
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    if "*" in entries:
        return True
    host = _ascii(host.strip().lower())
    address = address_of(host)
    return any(_matches(entry, host, address, str(port)) for entry in entries if entry)


class SocksConnector(Connector):
    """Connects through a SOCKS5 proxy.

    Args:
        prepare: called with each connected socket, to set options.
        arguments: of `Connector`; arguments for sockets and name resolution have no effect.
    """

    def __init__(self, proxy: Proxy, prepare: Callable[[socket.socket], None], **arguments: Any) -> None:
        super().__init__(
            **{**arguments, "resolver": _Unresolved(), "socket_factory": _no_direct_socket, "use_dns_cache": False}
        )
        self._proxy = proxy
        self._prepare = prepare

    async def _wrap_create_connection(  # aiohttp calls this for each new connection, with or without TLS
        self,
        *args: Any,
        addr_infos: Any,
        req: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's name
        **options: Any,
    ) -> Any:
        host, port = addr_infos[0][4][:2]
        opened = await self._connect(host, port, timeout.sock_connect or timeout.connect or _TIMEOUT)
        self._prepare(opened)
        return await self._wrap_existing_connection(*args, req=req, timeout=timeout, sock=opened, **options)

    async def _connect(self, host: str, port: int, seconds: float) -> socket.socket:
        import python_socks
        from python_socks.async_.asyncio import Proxy as Socks

        # No local variable holds the URL, which may contain a password.
        proxy = self._proxy
        proxy_host = proxy.url.host or ""
        proxy_port = proxy.url.explicit_port or _PORT
        try:
            opened: socket.socket = await Socks(
                proxy_type=python_socks.ProxyType.SOCKS5,
                host=proxy_host,
                port=proxy_port,
                username=proxy.url.user or "",
                password=proxy.url.password or "",
                rdns=True,
                loop=asyncio.get_running_loop(),
            ).connect(host, port, timeout=seconds)
            return opened
        except python_socks.ProxyConnectionError as error:
            reason = f"cannot be reached: {os_reason(error)}"
        except python_socks.ProxyTimeoutError:
            reason = "does not answer in time"
        except python_socks.ProxyError as error:
            reason = f"refuses: {str(error)[:200]}"
        except OSError as error:
            reason = f"broke the connection: {os_reason(error)}"
        except Exception as error:  # a name or password is too long for SOCKS
            reason = f"cannot be used: {type(error).__name__}"
        # Not in the `except` block: the caught error would become the context, and its frames hold the password.
        raise SocksError(f"the SOCKS proxy {proxy_host}:{proxy_port} ({proxy.where}) {reason}")


def _matches(entry: str, host: str, address: Address | None, port: str) -> bool:
    if (network := _network(entry)) is not None:
        return address is not None and address in network
    name = entry
    wanted_port = ""
    if split := _HOST_PORT(entry):
        name = split[1] or split[2] or ""
        wanted_port = split[3]
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
    if isinstance(network, IPv6Network):
        mapped = network.network_address.ipv4_mapped
    else:
        mapped = None
    if mapped is not None and network.prefixlen >= 96:
        return IPv4Network((mapped, network.prefixlen - 96))
    return network


def _ascii(name: str) -> str:
    """Return the name in the form of DNS (IDNA), or unchanged if it has none."""
    if name.isascii():
        return name
    bare = name.removeprefix(".")
    try:
        return name[: len(name) - len(bare)] + (URL.build(scheme="http", host=bare).raw_host or bare)
    except ValueError:
        return name


def _parsed(text: str, where: str) -> Proxy | None:
    try:
        url = URL(text if "://" in text else f"http://{text}")
    except ValueError:
        return None
    return Proxy(url, where) if url.host else None


def _checked(proxy: Proxy | None, where: str) -> Proxy:
    # No local variable holds the URL: it may contain a password, and tracebacks may show local variables.
    if proxy is None:
        raise UsageError(f"{where} is not the URL of a proxy; write it as http://host:port or socks5://host:port")
    if proxy.url.scheme not in (*_HTTP, *_SOCKS):
        raise UsageError(
            f"{where} names a proxy with the scheme {proxy.url.scheme[:20]}, which is not supported; use http://, "
            "https:// or socks5://, or exclude the server with NO_PROXY"
        )
    if proxy.is_socks and find_spec("python_socks") is None:
        raise UsageError(
            f"{where} names a SOCKS proxy, which needs the package python-socks; "
            "install it with: pip install 'aioinformer[socks]'"
        )
    return proxy


class _Unresolved(AbstractResolver):
    """Resolves no names: the proxy does."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [{"hostname": host, "host": host, "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        """Do nothing."""


def _no_direct_socket(address: tuple[Any, ...]) -> NoReturn:
    raise OSError("a direct connection was attempted in spite of a SOCKS proxy")
