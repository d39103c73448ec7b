"""Which servers receive a token, and the effect of changed credentials on open streams."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from aiohttp import web

from aioinformer import HttpTransport
from aioinformer.errors import TransportError
from aioinformer.transport import TLS, HttpRequest
from tests.support.loopback import Server, Stalled, body, fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOKEN = "hunter2"


@pytest.fixture
async def servers() -> AsyncIterator[tuple[Server, Server]]:
    first, second = Server(), Server()
    await first.start()
    await second.start()
    yield first, second
    await first.stop()
    await second.stop()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_token_does_not_follow_a_redirect(servers: tuple[Server, Server], status: int) -> None:
    first, second = servers

    async def away(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": second.url})

    first.answer = away
    async with HttpTransport(first.url, token=TOKEN) as transport:
        response = await transport.request(HttpRequest("/"))
        assert response.status == status
        await response.close()
    assert second.requests == []


@pytest.mark.parametrize("authorities", ["another one", "the system's"])
async def test_token_is_sent_to_authenticated_servers_only(authorities: str, tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    settings = TLS(certificate_authority=tmp_path / "ca.crt") if authorities == "another one" else None
    server = Server()
    await server.start(context)
    try:
        async with HttpTransport(server.url, token=TOKEN, ssl=settings) as transport:
            with pytest.raises(TransportError, match="certificate"):
                await transport.request(HttpRequest("/"))
        assert server.requests == []
    finally:
        await server.stop()


async def test_rotated_token_is_used_by_new_requests_only(servers: tuple[Server, Server], tmp_path: Path) -> None:
    server, _ = servers
    file = tmp_path / "token"
    file.write_text("first")
    async with HttpTransport(server.url, token_file=file) as transport:
        server.answer = stalled = Stalled()
        watch = await transport.request(HttpRequest("/"))

        async def who(request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(text=request.headers["Authorization"])

        server.answer = who
        (tmp_path / "next").write_text("second")
        os.replace(tmp_path / "next", file)
        assert await fetch(transport) == b"Bearer second"
        assert not stalled.gone.is_set()
        stalled.go_on.set()
        assert await body(watch) == b"first"
