"""A server on loopback whose responses a test defines, and helpers that read responses."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

import pytest
from aiohttp import web

from aioinformer.transport import Request

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from aioinformer.transport import Response, Transport

    Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

needs_async_hooks = pytest.mark.skipif(
    int(version("kubernetes_asyncio").partition(".")[0]) < 33,
    reason="kubernetes_asyncio awaits refresh_api_key_hook since 33",
)


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

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)


async def ok(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="ok")


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


async def body(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks()])


async def fetch(transport: Transport, path: str = "/", *, stream: bool = False) -> bytes:
    return await body(await transport.request(Request(path, stream=stream)))


def open_files() -> int:
    """Return the number of open files of this process, 0 if the system does not show it."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
