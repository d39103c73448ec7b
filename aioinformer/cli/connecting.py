"""Connect to the server that the options name, with a transport that records when requests are sent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.transport.session import TLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cli.options import ServerOptions
    from aioinformer.transport import HttpRequest, Response, Transport


class TimedTransport:
    """A transport that records the time of the first request to each path, on the clock of the event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._first: dict[str, float] = {}

    async def request(self, request: HttpRequest) -> Response:
        """Send the request; see `aioinformer.transport.Transport`."""
        if request.path not in self._first:
            self._first[request.path] = asyncio.get_running_loop().time()
        return await self._transport.request(request)

    def first_request(self, path: str) -> float | None:
        """Return the time of the first request to this path; None if there was none."""
        return self._first.get(path)


@asynccontextmanager
async def connected(options: ServerOptions) -> AsyncIterator[tuple[TimedTransport, str]]:
    """Provide a transport to the server of the options, and the default namespace, without sending a request.

    Raises:
        UsageError: no server is configured, or a file of the configuration cannot be used.
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
    except UsageError as error:
        raise UsageError(str(error).replace("base_url", "--server")) from error  # name the option of the command
    async with transport:
        yield TimedTransport(transport), "default"
