"""Informers on uvloop: over plain HTTP and over TLS, with the transport's own reader and with aiohttp's."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.testing import ApiServer
from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Coroutine

uvloop = pytest.importorskip("uvloop", reason="uvloop does not support this system")


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def follow(server: ApiServer, transport: HttpTransport) -> None:
    """Follow objects through creation, many fast changes, an outage and deletion."""
    seen: list[str] = []
    gone = asyncio.Event()

    async def on_update(old: Any, new: Any) -> None:
        seen.append(new.data["turn"])

    server.create("configmaps", {"metadata": {"name": "a"}, "data": {"turn": "0"}}, "default")
    async with SharedInformerFactory(transport) as factory:
        informer = factory.core.v1.configmaps.informer()
        informer.add_event_handler(on_update=on_update, on_delete=lambda obj: gone.set())
        await factory.wait_for_cache_sync()
        for turn in range(1, 201):
            server.patch("configmaps", "a", {"data": {"turn": str(turn)}}, "default")
            if turn % 20 == 0:
                await asyncio.sleep(0)
        async with server.fault("outage"):
            await asyncio.sleep(0)
        server.delete("configmaps", "a", "default")
        async with asyncio.timeout(30):
            await gone.wait()
        assert informer.lister().list() == []
    assert seen == sorted(seen, key=int)


def test_informer_follows_changes() -> None:
    async def main() -> None:
        async with ApiServer() as server, HttpTransport(server.url) as transport:
            await follow(server, transport)

    run(main())


def test_informer_follows_changes_over_tls() -> None:
    async def main() -> None:
        async with ApiServer(tls=True) as server:
            trusting = ssl.create_default_context(cadata=server.certificate_authority.decode())
            async with HttpTransport(server.url, ssl=trusting) as transport:
                await follow(server, transport)

    run(main())


def test_uvloop_is_in_use() -> None:
    async def main() -> None:
        assert isinstance(asyncio.get_running_loop(), uvloop.Loop)

    run(main())
