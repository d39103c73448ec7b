"""Slots: a transport has a limited number of requests under way, in their order, and loses none of its slots."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import Client, HttpTransport, SharedInformerFactory
from aioinformer.errors import OptionError, TransportError, WriteOutcomeUnknown
from aioinformer.leaderelection import LeaseLock
from aioinformer.leaderelection.lease import GetLease
from aioinformer.transport import HttpRequest, KubernetesTransport
from tests.support.loopback import Server, body
from tests.support.scripted_transport import OBJECT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport import Transport


class Gate:
    """Answers requests when it is opened, and counts those that wait.

    Attributes:
        most: the most requests that waited at once.
        paths: of the requests, in their order.
    """

    def __init__(self, server: Server) -> None:
        self.open, self.changed = asyncio.Event(), asyncio.Event()
        self.waiting = self.most = 0
        self.paths: list[str] = []
        self.held = "/configmaps/"
        server.answer = self

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        if self.held in request.path:
            self.waiting += 1
            self.changed.set()
            self.most = max(self.most, self.waiting)
            try:
                await self.open.wait()
            finally:
                self.waiting -= 1
        return web.json_response(OBJECT)

    async def reached(self, number: int) -> None:
        async with asyncio.timeout(50):
            while self.waiting < number:
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
async def gate(server: Server) -> Gate:
    return Gate(server)


@asynccontextmanager
async def transport_of(kind: str, url: str, limit: int | None = 2) -> AsyncIterator[Transport]:
    if kind == "kubernetes_asyncio":
        async with ApiClient(Configuration(host=url)) as api, KubernetesTransport(api, max_requests=limit) as made:
            yield made
    elif kind == "borrowed session":
        async with aiohttp.ClientSession() as session, HttpTransport(url, session, max_requests=limit) as own:
            yield own
    else:
        async with HttpTransport(url, max_requests=limit) as own:
            yield own


KINDS = ["own session", "borrowed session", "kubernetes_asyncio"]


@pytest.mark.parametrize("kind", KINDS)
async def test_requests_at_once_are_limited_and_keep_their_order(kind: str, server: Server, gate: Gate) -> None:
    async with transport_of(kind, server.url) as transport:
        config_maps = Client(transport).core.v1.configmaps
        gets = [asyncio.create_task(config_maps.get(f"shop/{number}")) for number in range(20)]
        await gate.reached(2)
        gate.open.set()
        await asyncio.gather(*gets)
    assert gate.most == 2
    assert sorted(gate.paths[:2]) == [f"/api/v1/namespaces/shop/configmaps/{number}" for number in range(2)]
    assert [int(path.rpartition("/")[2]) // 2 for path in gate.paths] == [number // 2 for number in range(20)]


@pytest.mark.parametrize(("options", "most"), [({}, 64), ({"max_requests": None}, 100)], ids=["default", "no limit"])
async def test_default_is_64_requests_and_none_is_no_limit(
    options: dict[str, Any], most: int, server: Server, gate: Gate
) -> None:
    async with HttpTransport(server.url, **options) as transport:
        gets = [asyncio.create_task(Client(transport).core.v1.configmaps.get(f"shop/{n}")) for n in range(100)]
        await gate.reached(most)
        gate.open.set()
        await asyncio.gather(*gets)
    assert gate.most == most


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "64"])
def test_wrong_limit_is_refused(limit: Any) -> None:
    with pytest.raises(OptionError, match="max_requests must be a whole number, at least 1"):
        HttpTransport("http://127.0.0.1", max_requests=limit)


@pytest.mark.parametrize("kind", KINDS)
async def test_timeout_includes_the_wait_and_says_so(kind: str, server: Server, gate: Gate) -> None:
    async with transport_of(kind, server.url) as transport:
        config_maps = Client(transport).core.v1.configmaps
        held = [asyncio.create_task(config_maps.get(f"shop/{number}")) for number in range(2)]
        await gate.reached(2)
        # The write never left, so its outcome is known.
        with pytest.raises(
            TransportError, match=r"within 0\.2 s, of them \d+\.\d s waiting for one of 2 slots"
        ) as caught:
            await config_maps.create(OBJECT, timeout=0.2)
        assert not isinstance(caught.value, WriteOutcomeUnknown)
        assert caught.value.unsent
        with pytest.raises(TransportError, match=r"within 0\.1 s, of them \d+\.\d s waiting for one of 2 slots"):
            await transport.request(HttpRequest("/", total_timeout=0.1))
        gate.open.set()
        await asyncio.gather(*held)
    assert len(gate.paths) == 2


async def test_wait_leaves_the_request_the_rest_of_its_timeout(
    server: Server, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[aiohttp.ClientTimeout] = []
    request = aiohttp.ClientSession.request

    def noting(session: aiohttp.ClientSession, *arguments: Any, **options: Any) -> Any:
        limits.append(options["timeout"])
        if options["timeout"].total:
            options["timeout"] = aiohttp.ClientTimeout(total=0.05)
        return request(session, *arguments, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "request", noting)
    clock = asyncio.get_running_loop().time
    async with HttpTransport(server.url, max_requests=1) as transport:
        first = await transport.request(HttpRequest("/first"))
        second = asyncio.create_task(transport.request(HttpRequest("/configmaps/second", total_timeout=60.0)))
        await asyncio.sleep(0)
        waits_from = clock()
        await asyncio.sleep(0.6)
        waited = clock() - waits_from
        await first.close()
        with pytest.raises(TransportError, match=r"timed out; of them \d+\.\d s waiting for one of 1 slots"):
            await second
        total = limits[-1].total
        assert total is not None
        assert total <= 60.0 - waited


async def test_cancelled_and_failed_requests_release_their_slots(server: Server, gate: Gate) -> None:
    async with HttpTransport(server.url, max_requests=2) as transport:
        config_maps = Client(transport, retry=False).core.v1.configmaps
        for _ in range(3):
            gets = [asyncio.create_task(config_maps.get("shop/a")) for _ in range(8)]
            await gate.reached(2)
            for get in (*gets[3:6], *gets[:2]):  # those that wait, and both that are under way
                get.cancel()
            await asyncio.gather(*gets[:2], *gets[3:6], return_exceptions=True)
            gate.open.set()
            await asyncio.gather(gets[2], *gets[6:])
            gate.open.clear()
        for path in ("/a", "/b", "/c"):
            await transport.request(HttpRequest(path, paced=True))  # dropped without being closed
        response = await transport.request(HttpRequest("/read"))
        assert b"ConfigMap" in await body(response)  # read to its end, and not closed
        unread = await transport.request(HttpRequest("/unread"))
        del unread
        gc.collect()
        async with asyncio.timeout(50):
            closed = [await transport.request(HttpRequest("/x")) for _ in range(2)]
            for each in closed:
                await each.close()
                await each.close()
            assert transport._slots._lanes[""].free == 2


async def test_slot_that_is_handed_to_a_cancelled_request_goes_to_the_next() -> None:
    from aioinformer.transport import Sending
    from aioinformer.transport.slots import Slots

    slots = Slots(1)
    held = await slots.acquire(HttpRequest("/"), Sending(), 5)
    waits = [asyncio.create_task(slots.acquire(HttpRequest("/"), Sending(), 5)) for _ in range(4)]
    await asyncio.sleep(0)
    waits[0].cancel()  # first cancelled, then the slot is released
    held.release()
    waits[1].cancel()  # first handed over, then cancelled
    second = await waits[2]
    second.release()
    (await waits[3]).release()
    assert slots._lanes[""].free == 1
    assert not slots._lanes[""].waiting


async def test_leases_and_tokens_do_not_wait_for_other_requests(server: Server, gate: Gate) -> None:
    async with HttpTransport(server.url, max_requests=2) as transport:
        config_maps = Client(transport).core.v1.configmaps
        gets = [asyncio.create_task(config_maps.get(f"shop/{number}")) for number in range(3000)]
        await gate.reached(2)
        lease = await LeaseLock(transport, "a", "shop").send(GetLease(), 5.0)
        assert lease == OBJECT
        await Client(transport).core.v1.serviceaccounts.create_token("shop/a", timeout=5)
        gate.open.set()
        await asyncio.gather(*gets)
    assert gate.most == 2


async def test_watches_and_followed_logs_hold_no_slot(server: Server, gate: Gate) -> None:
    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        if "/pods" not in request.path:
            return await gate(request)
        response = web.StreamResponse()
        await response.prepare(request)
        event = (
            b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}}'
        )
        await response.write(event + b"\n")
        await asyncio.Event().wait()
        return response

    server.answer = endless
    gate.open.set()
    async with HttpTransport(server.url, max_requests=1) as transport:
        client = Client(transport, namespace="shop", timeout=5)
        watches = [client.core.v1.pods.watch() for _ in range(3)]
        logs = [client.core.v1.pods.logs("a", follow=True) for _ in range(3)]
        for stream in (*watches, *logs):
            await anext(stream)
        await client.core.v1.configmaps.get("a")
        for stream in (*watches, *logs):
            await stream.aclose()


async def test_reader_of_a_log_can_send_requests(server: Server, gate: Gate) -> None:
    async def lines(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="a\nb\n") if request.path.endswith("/log") else await gate(request)

    server.answer = lines
    gate.open.set()
    async with HttpTransport(server.url, max_requests=1) as transport:
        client = Client(transport, namespace="shop", timeout=5)
        async with aclosing(client.core.v1.pods.logs("web")) as log:
            async for line in log:
                await client.core.v1.configmaps.get(line)
    assert [path[-1] for path in gate.paths] == ["a", "b"]


async def test_informers_start_with_fewer_slots_than_kinds() -> None:
    from aioinformer.testing import ApiServer

    async with ApiServer() as server, HttpTransport(server.url, max_requests=2) as transport:
        factory = SharedInformerFactory(transport)
        client = Client(transport, namespace="default")
        for number in range(3):
            await client.core.v1.configmaps.create({"metadata": {"name": f"a{number}"}})
        informers: list[Any] = [
            factory.core.v1.pods.informer(),
            factory.core.v1.configmaps.informer(),
            factory.core.v1.secrets.informer(),
            factory.core.v1.services.informer(),
            factory.apps.v1.deployments.informer(),
            factory.batch.v1.jobs.informer(),
        ]
        async with asyncio.timeout(50), factory:
            await factory.wait_for_cache_sync()
            assert len(informers[1].get_indexer().list()) == 3
            await client.core.v1.configmaps.delete("a0")


async def test_close_ends_requests_that_wait(server: Server, gate: Gate) -> None:
    async with HttpTransport(server.url, max_requests=1) as transport:
        held = await transport.request(HttpRequest("/"))
        waits = [asyncio.create_task(transport.request(HttpRequest("/"))) for _ in range(3)]
        await asyncio.sleep(0)
        await transport.aclose()
        async with asyncio.timeout(50):
            results = await asyncio.gather(*waits, return_exceptions=True)
    assert {type(each).__name__ for each in results} == {"UsageError"}
    await held.close()
