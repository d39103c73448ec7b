"""From options to a transport, which notes when requests are first sent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.transport.session import TLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cli.options import ServerOptions
    from aioinformer.transport import Request, Response, Transport


class TimedTransport:
    """A transport that remembers when a path was first asked for, in the time of the loop.

    Args:
        transport: does the work.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._first: dict[str, float] = {}

    async def request(self, request: Request) -> Response:
        """Sends the request; see `aioinformer.transport.Transport`."""
        if request.path not in self._first:
            self._first[request.path] = asyncio.get_running_loop().time()
        return await self._transport.request(request)

    def first_request(self, path: str) -> float | None:
        """When the path was first asked for, None if never."""
        return self._first.get(path)


@asynccontextmanager
async def connected(options: ServerOptions) -> AsyncIterator[tuple[TimedTransport, str]]:
    """A transport to the server meant, and the default namespace there. The server is not asked anything yet.

    Raises:
        UsageError: there is no way to a server, or files that describe it cannot be used.
    """
    if options.server is None:
        from aioinformer.transport.auth.credentials import connect

        async with await connect(kubeconfig=options.kubeconfig, context=options.context) as connection:
            yield TimedTransport(connection.transport), connection.namespace
        return
    from aioinformer.transport.http import HttpTransport

    tls = TLS(options.certificate_authority, verify=not options.insecure_skip_tls_verify)
    try:
        transport = HttpTransport(options.server, token_file=options.token_file, ssl=tls)
    except UsageError as error:  # in the words of who asked for it
        raise UsageError(str(error).replace("base_url", "--server")) from error
    async with transport:
        yield TimedTransport(transport), "default"
