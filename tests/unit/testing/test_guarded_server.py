"""Which requests a guarded server accepts, and which an unguarded one does."""

from __future__ import annotations

import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer import connect
from aioinformer.testing import ApiServer
from aioinformer.testing.http.listener import is_loopback
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

NAMESPACES = "/api/v1/namespaces"
TOKENS = {"right": "admin,system:masters"}
RIGHT = {"Authorization": "Bearer right"}


@asynccontextmanager
async def client(**options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    async with ApiServer(**options) as server, aiohttp.ClientSession(server.url) as session:
        yield session


async def status(
    session: aiohttp.ClientSession, method: str, path: str, headers: Mapping[str, str], **more: Any
) -> int:
    async with session.request(method, path, headers=headers, **more) as response:
        return response.status


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8001", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:8001"])
async def test_loopback_hosts_are_accepted(host: str) -> None:
    async with client(guarded=True) as session:
        assert await status(session, "GET", NAMESPACES, {"Host": host}) == 200
        assert await status(session, "GET", NAMESPACES, {"Origin": f"http://{host}"}) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8001",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "127.1",
        "0.0.0.0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "user@localhost",
        "localhost:port",
        "localhost, evil.example",
        "",
    ],
)
async def test_foreign_hosts_and_origins_are_refused(host: str) -> None:
    async with client(guarded=True, faults_over_http=True) as session:
        for path in (NAMESPACES, "/_faults", "/version", "/nonsense"):
            assert await status(session, "GET", path, {"Host": host}) == 403
            assert await status(session, "GET", path, {"Origin": f"http://{host}"}) == 403
            assert await status(session, "POST", path, {"Origin": f"https://{host}"}, data="a=b") == 403


@pytest.mark.parametrize("origin", ["null", "file://", "http://", "localhost", "moz-extension://localhost"])
async def test_non_local_origins_are_refused(origin: str) -> None:
    async with client(guarded=True) as session:
        assert await status(session, "GET", NAMESPACES, {"Origin": origin}) == 403


async def test_faults_need_json_not_a_form() -> None:
    async with client(guarded=True, faults_over_http=True) as session:
        path, body = "/_faults/forbidden", json.dumps({"times": 1})
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=a", ""):
            assert await status(session, "POST", path, {"Content-Type": kind}, data=body) == 415
        assert await status(session, "GET", NAMESPACES, {}) == 200
        assert (
            await status(session, "POST", path, {"Content-Type": "application/json; charset=utf-8"}, data=body) == 201
        )
        assert await status(session, "GET", NAMESPACES, {}) == 403
        assert await status(session, "POST", path, {}) == 201
        assert await status(session, "DELETE", path, {}) == 200


async def test_token_is_required_except_for_health_and_version() -> None:
    async with client(guarded=True, faults_over_http=True, tokens=TOKENS) as session:
        for headers, code in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), (RIGHT, 200)):
            for path in (NAMESPACES, "/_faults", "/apis", "/openapi/v3"):
                assert await status(session, "GET", path, headers) == code
            for path in ("/readyz", "/livez/ping", "/healthz", "/version"):
                assert await status(session, "GET", path, headers) == 200
        for path in ("/readyz", "/version", "/_faults/forbidden"):
            assert await status(session, "POST", path, {}) == 401
        assert await status(session, "GET", "/versions", {}) == 401


async def test_beyond_loopback_the_token_is_required() -> None:
    server = ApiServer(host="0.0.0.0", guarded=True, tokens=TOKENS)
    async with server, aiohttp.ClientSession(server.url.replace("0.0.0.0", "127.0.0.1")) as session:
        assert await status(session, "GET", NAMESPACES, RIGHT | {"Host": "machine.example"}) == 200
        assert await status(session, "GET", NAMESPACES, {"Host": "localhost"}) == 401


async def test_client_certificate_counts_as_a_token(tmp_path: Path) -> None:
    async with ApiServer(tls=True, guarded=True, tokens=TOKENS) as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", user="admin,system:masters", certificate=True)
        assert "token" not in kubeconfig.read_text()
        async with await connect(kubeconfig=str(kubeconfig)) as connection:
            response = await connection.transport.request(HttpRequest(NAMESPACES))
            await response.close()
            assert response.status == 200
        trusting = ssl.create_default_context(cadata=server.certificate_authority.decode())
        async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(ssl=trusting)) as session:
            assert await status(session, "GET", NAMESPACES, {}) == 401


async def test_python_server_is_not_guarded() -> None:
    async with client(faults_over_http=True) as session:
        assert (
            await status(session, "GET", NAMESPACES, {"Host": "evil.example", "Origin": "http://evil.example"}) == 200
        )
        assert await status(session, "POST", "/_faults/forbidden", {"Content-Type": "text/plain"}, data="{}") == 201


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "::1%lo", "machine.example", "10.0.0.1", "0:0:0:0:0:0:0:1"])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)
