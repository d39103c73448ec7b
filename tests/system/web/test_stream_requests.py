"""Streams over HTTP by each framework: who gets what, what bad requests get, and readers that go or never read."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
import tracemalloc
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
from aiohttp import web
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Route

from aioinformer import Client, HttpTransport
from aioinformer.authorization import EVERYBODY, Rbac
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from aioinformer.web import Informers
from aioinformer.web import aiohttp as for_aiohttp
from aioinformer.web import fastapi as for_fastapi
from aioinformer.web import starlette as for_starlette
from tests.support.limits import cut_readers_after
from tests.support.rights import grant, revoke
from tests.support.web_servers import on_aiohttp, on_uvicorn, reading, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKENS = {"t-admin": "admin,system:masters", "t-jane": "jane", "t-joe": "joe", "t-nobody": "nobody"}


class Row(msgspec.Struct):
    node: Annotated[str | None, "spec.nodeName"] = None


def pod(name: str, namespace: str = "shop", node: str = "node-1") -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/web"}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"nodeName": node, "containers": [container]}}


@asynccontextmanager
async def live(framework: str, client: Any, **options: Any) -> AsyncIterator[str]:
    informers = Informers(core_v1.PODS, client=client, metrics=False)
    views: Any = {core_v1.PODS: options.pop("view", Row)}
    app: Any
    match framework:
        case "fastapi":
            app = FastAPI(lifespan=informers.lifespan)
            app.get("/live")(for_fastapi.stream(informers, views, **options))
        case "starlette":
            route = Route("/live", for_starlette.stream(informers, views, **options))
            app = Starlette(routes=[route], lifespan=informers.lifespan)
        case _:
            app = web.Application()
            for_aiohttp.setup(app, informers)
            app.router.add_get("/live", for_aiohttp.stream(informers, views, **options))
    async with (on_aiohttp if framework == "aiohttp" else on_uvicorn)(app) as url:
        await informers.informer(core_v1.PODS).wait_for_sync()
        yield f"{url}/live"


each_framework = pytest.mark.parametrize("framework", ["fastapi", "starlette", "aiohttp"])


@pytest.fixture
async def rbac_server() -> AsyncIterator[ApiServer]:
    """Provide a server where jane may see all pods, joe those of one namespace, and nobody none."""
    async with ApiServer(tokens=TOKENS, authorization_mode="RBAC") as server:
        for namespace in ("shop", "bank"):
            server.create("namespaces", {"metadata": {"name": namespace}})
            server.create("pods", pod("web-0", namespace))
        grant(server, "jane", "pods")
        grant(server, "joe", "pods", namespace="shop")
        yield server


@each_framework
async def test_users_see_what_they_may_see(framework: str, rbac_server: ApiServer) -> None:
    who = Rbac(audiences=["shop"], ttl=1.0)
    async with (
        HttpTransport(rbac_server.url, token="t-admin") as transport,
        live(framework, transport, who=who) as url,
        reading(url, Authorization="Bearer t-jane") as jane,
        reading(url, "?namespace=shop", Authorization="Bearer t-joe") as joe,
    ):
        await jane.until("synced", keys={"shop/web-0", "bank/web-0"})
        await joe.until("synced", keys={"shop/web-0"})
        assert joe.objects == {"shop/web-0": {"node": "node-1"}}
        assert jane.response.headers["Cache-Control"] == "no-cache, no-transform"
        assert jane.response.headers["X-Accel-Buffering"] == "no"
        for token in ("t-joe", "t-nobody"):
            text = await refusal(url, 403, Authorization=f"Bearer {token}")
            assert "may not list pods in all namespaces: name those to see" in text
        assert "in namespace 'bank'" in await refusal(
            url, 403, "?namespace=shop&namespace=bank", Authorization="Bearer t-joe"
        )
        rbac_server.create("pods", pod("web-1"))
        await joe.until("put", keys={"shop/web-0", "shop/web-1"})
        # What was taken away is deleted, and its changes are not seen any more.
        revoke(rbac_server, "joe", "shop")
        await joe.until("delete", "delete", keys=set())
        await jane.until("put", keys={"shop/web-0", "shop/web-1", "bank/web-0"})
        # A cursor does not bring it back.
        assert "may not list" in await refusal(
            url, 403, f"?namespace=shop&after={joe.cursor}", Authorization="Bearer t-joe"
        )


@each_framework
async def test_bad_requests_say_what_is_wrong(framework: str, rbac_server: ApiServer) -> None:
    async with (
        HttpTransport(rbac_server.url, token="t-admin") as transport,
        live(framework, transport, who=Rbac(audiences=["shop"]), per_user=2) as url,
    ):
        jane = {"Authorization": "Bearer t-jane"}
        assert "audience 'shop' is required" in await refusal(url, 401)
        assert "may have expired" in await refusal(url, 401, Authorization="Bearer t-old")
        assert "'nodes' is not in this stream" in await refusal(url, 400, "?resource=nodes", **jane)
        assert "a in (b" in await refusal(url, 400, "?selector=a+in+(b", **jane)
        assert "'token' does not exist" in await refusal(url, 400, "?token=t-jane", **jane)
        assert "21 are named" in await refusal(url, 400, "?" + "&".join(f"namespace=n-{n}" for n in range(21)), **jane)
        cookie = {"Cookie": "a=b", "Sec-Fetch-Site": "cross-site"}
        assert "another origin" in await refusal(url, 403, **cookie)
        async with reading(url, **jane), reading(url, **jane):
            assert "this user has 2 streams" in await refusal(url, 429, **jane)


@each_framework
async def test_cursor_goes_on_and_a_foreign_one_is_a_reset(framework: str, api_server: ApiServer) -> None:
    api_server.create("pods", pod("web-0", "default"))
    async with live(framework, api_server.url, who=EVERYBODY) as url:
        async with reading(url) as first:
            await first.until("synced", keys={"default/web-0"})
            cursor = first.cursor
        api_server.create("pods", pod("web-1", "default"))
        async with reading(url, **{"Last-Event-ID": cursor}) as again:
            await again.until("put", keys={"default/web-1"})
            assert "reset" not in again.events
        for foreign in (cursor[:-4] + "AAAA", "x", "9" * 5000):
            async with reading(url, f"?after={foreign}") as anew:
                await anew.until("reset", "synced", keys={"default/web-0", "default/web-1"})


@each_framework
async def test_cursor_of_another_cluster_is_a_reset(framework: str, api_server: ApiServer) -> None:
    api_server.create("pods", pod("web-0", "default"))
    async with ApiServer() as other:
        for number in range(3):
            other.create("pods", pod(f"else-{number}", "default"))
        async with (
            live(framework, api_server.url, who=EVERYBODY) as url,
            live(framework, other.url, who=EVERYBODY) as elsewhere,
        ):
            async with reading(elsewhere) as first:
                await first.until("synced", keys={"default/else-0", "default/else-1", "default/else-2"})
            async with reading(url, **{"Last-Event-ID": first.cursor}) as anew:
                await anew.until("synced", keys={"default/web-0"})
                assert anew.events == ["", "reset", "put", "synced"]


@each_framework
async def test_token_that_expires_opens_no_further_stream(framework: str) -> None:
    now = time.time()
    async with ApiServer(tokens=TOKENS, authorization_mode="RBAC", clock=lambda: now) as server:
        server.create("pods", pod("web-0", "default"))
        server.create("serviceaccounts", {"metadata": {"name": "page"}})
        grant(server, "system:serviceaccount:default:page", "pods")
        async with HttpTransport(server.url, token="t-admin") as transport:
            accounts = Client(transport).core.v1.serviceaccounts
            made = await accounts.create_token("default/page", audiences=["shop"], seconds=600)
            assert made.status is not None
            headers = {"Authorization": f"Bearer {made.status.token}"}
            async with live(framework, transport, who=Rbac(audiences=["shop"], ttl=1.0)) as url:
                async with reading(url, **headers) as reader:
                    await reader.until("synced", keys={"default/web-0"})
                now += 700  # servers accept a token for a minute longer
                async with asyncio.timeout(10):
                    while True:
                        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                            if response.status == 401:
                                break
                        await asyncio.sleep(0.05)
                assert "may have expired" in await refusal(url, 401, **headers)


@each_framework
async def test_flood_of_one_user_is_refused_and_the_others_go_on(framework: str, rbac_server: ApiServer) -> None:
    """As many connections as this process may open are open at the same time; both of their ends are in it."""
    flood = min(1_000, (file_limit() - 200) // 2)
    async with (
        HttpTransport(rbac_server.url, token="t-admin") as transport,
        live(framework, transport, who=Rbac(audiences=["shop"]), per_user=20) as url,
        reading(url, "?namespace=shop", Authorization="Bearer t-joe") as joe,
    ):
        await joe.until("synced", keys={"shop/web-0"})
        host = urlsplit(url)
        request = b"GET /live HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t-jane\r\n\r\n"

        async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            opened = await asyncio.open_connection(host.hostname, host.port)
            opened[1].write(request)
            return opened

        async def head(reader: asyncio.StreamReader) -> str:
            return (await reader.readuntil(b"\r\n\r\n")).decode().lower()

        connections = [await connect() for _ in range(flood)]
        try:
            async with asyncio.timeout(30):
                heads = [await head(reader) for reader, _ in connections]
            statuses = Counter(each.split()[1] for each in heads)
            assert statuses == {"200": 20, "429": flood - 20}
            assert all("\r\nretry-after: 5\r\n" in each for each in heads if " 429 " in each)
            if framework == "aiohttp":  # uvicorn closes connections without a request after 5 s
                async with asyncio.timeout(30):
                    for (reader, _), answer in zip(connections, heads, strict=True):
                        if " 429 " in answer:
                            await reader.read()  # up to the end of the connection
            rbac_server.create("pods", pod("web-1", "shop"))
            await joe.until("put", keys={"shop/web-0", "shop/web-1"})
        finally:
            for _, writer in connections:
                writer.transport.abort()
        async with asyncio.timeout(10):
            while True:  # once they have gone, the user is served again
                headers = {"Authorization": "Bearer t-jane"}
                async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                    if response.status == 200:
                        break
                await asyncio.sleep(0.05)


@each_framework
async def test_idle_streams_keep_nothing_of_what_they_have_sent(framework: str, api_server: ApiServer) -> None:
    for number in range(50):
        api_server.create("pods", pod(f"web-{number}", "default"))
    tracemalloc.start()
    try:
        async with (
            live(framework, api_server.url, who=EVERYBODY, view=lambda pod: "x" * 20_000) as url,
            AsyncExitStack() as stack,
        ):
            for _ in range(20):
                reader = await stack.enter_async_context(reading(url))
                await reader.until("synced")
                reader.objects.clear()
            await asyncio.sleep(0.2)
            made = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/aioinformer/web/frames.py")])
            # The log has a megabyte of events, and what follows a position once more; the last part has 40 KB.
            assert sum(each.size for each in made.traces) < 2.4e6
    finally:
        tracemalloc.stop()


def file_limit() -> int:
    """Return how many files this process may open, after raising the limit as far as it needs and may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2_500:
        soft = min(2_500, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


@each_framework
async def test_reader_that_has_gone_frees_its_place(framework: str, api_server: ApiServer) -> None:
    async with live(framework, api_server.url, who=EVERYBODY, per_user=1) as url:
        for _ in range(3):
            async with reading(url) as reader:
                await reader.until("synced")
                assert "1 streams" in await refusal(url, 429)
            async with asyncio.timeout(50), aiohttp.ClientSession() as session:
                while True:
                    async with session.get(url) as response:
                        if response.status == 200:
                            break
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)


@each_framework
async def test_reader_that_never_reads_is_cut(
    framework: str, api_server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are not delayed, and the end of the server does not wait for it."""
    cut_readers_after(monkeypatch, 1.0)
    for number in range(400):
        api_server.create("pods", pod(f"web-{number}", "default"))
    async with live(framework, api_server.url, who=EVERYBODY, view=lambda pod: "x" * 20_000) as url:
        host = urlsplit(url)
        silent = socket.socket()
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect((host.hostname, host.port))
        with silent:
            silent.sendall(b"GET /live HTTP/1.1\r\nHost: a\r\n\r\n")
            async with reading(url) as other:
                await other.until("synced")
            async with asyncio.timeout(50):
                while "has taken nothing for 1 s" not in caplog.text:
                    caplog.set_level("INFO", "aioinformer.web")
                    await asyncio.sleep(0.1)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
