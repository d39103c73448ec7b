"""Connections through a SOCKS5 proxy, by the package python-socks.

Names are resolved by the proxy, for `socks5://` and `socks5h://` alike, as in Go. No connection is ever made past the
proxy: the connector resolves no names, and it has no sockets for direct connections.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, NoReturn

import aiohttp
from aiohttp.abc import AbstractResolver

from aioinformer.transport.failures import SocksError, os_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.abc import ResolveResult

    from aioinformer.transport.proxies import Proxy

_PORT = 1080
_TIMEOUT = 60.0


class _Unresolved(AbstractResolver):
    """Leaves names to the proxy."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [{"hostname": host, "host": host, "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        """Nothing is open."""


def _no_direct_socket(address: tuple[Any, ...]) -> NoReturn:
    raise OSError("no direct connection is made beside a SOCKS proxy")


class SocksConnector(aiohttp.TCPConnector):
    """Connects through a SOCKS5 proxy.

    Args:
        proxy: the proxy.
        prepare: called with each socket that the proxy has connected, to set options.
        arguments: of `aiohttp.TCPConnector`; sockets and names are not theirs to choose.
    """

    def __init__(self, proxy: Proxy, prepare: Callable[[socket.socket], None], **arguments: Any) -> None:
        super().__init__(
            **{**arguments, "resolver": _Unresolved(), "socket_factory": _no_direct_socket, "use_dns_cache": False}
        )
        self._proxy = proxy
        self._prepare = prepare

    async def _wrap_create_connection(  # aiohttp's way to a new connection, with TLS if that is wanted
        self,
        *args: Any,
        addr_infos: Any,
        req: aiohttp.ClientRequest,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's name
        **options: Any,
    ) -> Any:
        host, port = addr_infos[0][4][:2]
        opened = await self._connect(host, port, timeout.connect or _TIMEOUT)
        self._prepare(opened)
        return await self._wrap_existing_connection(*args, req=req, timeout=timeout, sock=opened, **options)

    async def _connect(self, host: str, port: int, seconds: float) -> socket.socket:
        import python_socks
        from python_socks.async_.asyncio import Proxy as Socks

        # The URL is no local variable here, for it may hold a password.
        proxy = self._proxy
        proxy_host, proxy_port = proxy.url.host or "", proxy.url.explicit_port or _PORT
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
        except Exception as error:  # of names or passwords that SOCKS cannot hold
            reason = f"cannot be asked: {type(error).__name__}"
        # Not in the handler: frames of python-socks hold the password, and would be the context of this error.
        raise SocksError(f"the SOCKS proxy {proxy_host}:{proxy_port} ({proxy.where}) {reason}")
