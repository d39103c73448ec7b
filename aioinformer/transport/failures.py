"""Errors of aiohttp as `TransportError`: the message names the server and the reason.

No part of a request gets into a message or into the chain of causes. aiohttp's response errors show the request and its
headers in their `repr`, which log formatters and error trackers print.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import TYPE_CHECKING

import aiohttp

from aioinformer.errors import TransportError

if TYPE_CHECKING:
    from yarl import URL


def transport_error(server: str, error: BaseException, hint: str = "") -> TransportError:
    """Return the error to raise in place of one of aiohttp's.

    Its cause is that error without traceback, or a substitute if that error contains the request. Raise it outside the
    `except` block, because otherwise the caught error becomes its context.

    Args:
        server: "host:port".
        error: what aiohttp, asyncio or the socket raised.
        hint: the end of the message: what to do about it.
    """
    reason = _reason(error)
    failure = TransportError(f"{server}: {reason}{f'; {hint}' if hint else ''}")
    failure.sent = isinstance(
        error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | aiohttp.ClientOSError | ConnectionError
    ) and not isinstance(error, aiohttp.ClientConnectorError)
    failure.unsent = isinstance(error, _UNSENT)
    failure.transient = not isinstance(error, _LASTING) and not _is_unknown_host(error)
    if isinstance(error, aiohttp.ClientResponseError):
        failure.__cause__ = ConnectionError(reason)
    else:
        failure.__cause__ = bare(error)
    return failure


class SocksError(aiohttp.ClientConnectionError):
    """A SOCKS proxy did not connect to the server; the message names the proxy and the reason."""


#: Failures before a connection was there.
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError, SocksError)
#: Failures that a repetition does not change.
_LASTING = (aiohttp.ClientSSLError, aiohttp.ClientHttpProxyError, aiohttp.InvalidURL)


def _is_unknown_host(error: BaseException) -> bool:
    return isinstance(error, aiohttp.ClientConnectorDNSError) and error.os_error.errno != socket.EAI_AGAIN


def authority(url: URL) -> str:
    """Return "host:port" of a URL, with brackets around an IPv6 address."""
    host = url.host or ""
    return f"[{host}]:{url.port}" if ":" in host else f"{host}:{url.port}"


def bare(error: BaseException) -> BaseException:
    """Remove the tracebacks of an error and of its causes, whose frames hold requests; return the error."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        each = rest.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            if isinstance(each.__context__, aiohttp.ClientResponseError):
                each.__context__ = None
            rest += [each.__cause__, each.__context__]
    return error


def os_reason(error: OSError) -> str:
    """Return the system's text for an error."""
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", "") or "the handshake failed"  # one that Python raises has no reason
    if error.errno is not None and error.errno > 0 and not isinstance(error, socket.gaierror):
        # asyncio replaces the system's text by the address.
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _reason(error: BaseException) -> str:
    match error:
        case SocksError():
            return str(error)
        case aiohttp.ConnectionTimeoutError():
            return "the connection timed out"
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {_certificate_reason(error.certificate_error)}"
        case aiohttp.ClientConnectorDNSError():
            return f"the name cannot be resolved: {os_reason(error.os_error)}"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy {error.host}:{error.port} cannot be reached: {os_reason(error.os_error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS failed: {os_reason(error.os_error)}"
        case aiohttp.ClientConnectorError():
            return f"cannot connect: {os_reason(error.os_error)}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refuses: {error.status} {error.message}"
        case aiohttp.ClientResponseError():
            return f"the response is not HTTP: {error.message.splitlines()[0][:200] if error.message else error.status}"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection before it answered"
        case aiohttp.ClientPayloadError():
            return "the response ended before it was complete, or cannot be decoded"
        case aiohttp.InvalidURL():
            return "the URL is not valid"
        case asyncio.TimeoutError():
            return "the response timed out"
        case OSError():
            return f"the connection broke: {os_reason(error)}"
        case _:
            return f"the connection broke: {type(error).__name__}"


def _certificate_reason(error: Exception) -> str:
    return getattr(error, "verify_message", "") or str(error) or type(error).__name__
