"""A server on loopback whose responses a test defines, and helpers that read responses."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol, Self

import aiohttp
import pytest
from aiohttp import web

from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import trustme

    from aioinformer.transport import Response, Transport

    Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

needs_async_hooks = pytest.mark.skipif(
    int(version("kubernetes_asyncio").partition(".")[0]) < 33,
    reason="kubernetes_asyncio awaits refresh_api_key_hook since 33",
)


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """Answers every request with `answer`, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.answer: Answer = ok
        self.url = ""
        self._stack = AsyncExitStack()

    @property
    def authority(self) -> str:
        return self.url.partition("//")[2]

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        # Not 0, which means no limit to aiohttp.
        runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.01)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls, backlog=512).start()
        host, port = runner.addresses[0][:2]
        self.url = f"{'https' if tls else 'http'}://{host}:{port}"

    async def stop(self) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def started(self, answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Self]:
        """Answer requests until the block ends."""
        self.answer = answer
        await self.start(tls)
        yield self
        await self.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)


def respond(**response: Any) -> Answer:
    """Answer each request with the same `web.Response`."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(**response)

    return answer


ok = respond(text="ok")


async def silent(request: web.BaseRequest) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve each connection with a function, and close it at the end, or when the client is gone; return the URL."""
    serving = set[asyncio.Task[Any] | None]()

    async def serve_until_gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve_until_gone, "127.0.0.1", 0, ssl=tls) as server:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*filter(None, serving))


async def forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on all bytes until either side ends, and close the target."""
    with suppress(ConnectionError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    target.close()


def certified(authority: trustme.CA, *names: str, asks_clients: bool = False) -> ssl.SSLContext:
    """Return the TLS settings of a server with a certificate for these names, 127.0.0.1 by default."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    if asks_clients:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


class Stalled:
    """A response that sends its head and one piece of its body, and then nothing until it is released."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        try:
            await self.go_on.wait()
        finally:
            self.gone.set()
        return response


async def cut(request: web.BaseRequest) -> web.StreamResponse:
    """A response whose connection breaks in the middle of a chunk."""
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    assert request.transport is not None
    request.transport.write(b"20\r\nhalf")
    request.transport.close()
    return response


async def bearer_only(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the token of the request; without a token, with 401."""
    token = request.headers.get("Authorization", "")
    return web.Response(text=token) if token else web.Response(status=401)


class MakeTransport(Protocol):
    def __call__(
        self, url: str, *, token: str = "", compression: bool = False, header_timeout: float = 60.0
    ) -> Transport: ...


def socket_of(response: Response) -> Any:
    """Return the socket of a response that is still open."""
    connection = response._response.connection  # type: ignore[attr-defined] # of each response over HTTP
    return connection.transport.get_extra_info("socket")


async def body(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks()])


async def fetch(transport: Transport, path: str = "/", *, stream: bool = False) -> bytes:
    return await body(await transport.request(HttpRequest(path, stream=stream)))


def open_files() -> int:
    """Return the number of open files of this process, 0 if the system does not show it."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


async def get(port: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer of a server on loopback."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()
