"""Writes whose bytes are in the socket when the network breaks: none that has ended is stored when it heals."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from aiohttp import web

from tests.support.loopback import certified
from tests.support.network import broken_link
from tests.system.controller.late_writer import WRITES

if TYPE_CHECKING:
    import ssl
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

    from tests.support.network import BrokenLink

ROOT = Path(__file__).parents[3]
#: The transports and how their writes end. The last ones have no check, and show that writes do arrive late.
WRITERS = [
    ("own session", "a cancellation"),
    ("own session", "an abort"),
    ("own session", "a kill"),
    ("kubernetes_asyncio", "a cancellation"),
    ("own session", "nothing"),
]


class Store:
    """A server that keeps the paths of the writes that have arrived as a whole."""

    def __init__(self) -> None:
        self.stored: Counter[str] = Counter()
        self._released = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        if request.path == "/release":
            self._released.set()
        elif request.path == "/held":  # it keeps its connection, so the next one opens another
            response = web.StreamResponse()
            await response.prepare(request)
            await self._released.wait()
            return response
        else:
            self.stored[request.path.rpartition("/")[0]] += 1
        return web.Response(text="{}")

    @asynccontextmanager
    async def served(self, address: str, tls: ssl.SSLContext | None) -> AsyncIterator[str]:
        runner = web.ServerRunner(web.Server(self.answer), shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, address, 0, ssl_context=tls)
        await site.start()
        try:
            yield f"{'https' if tls else 'http'}://{address}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


@asynccontextmanager
async def writer(link: BrokenLink, *arguments: str) -> AsyncIterator[Process]:
    command = [*link.inside, sys.executable, "-m", "tests.system.controller.late_writer", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=ROOT)
    try:
        yield process
        process.stdin.close()  # type: ignore[union-attr]
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def said(process: Process, text: str) -> None:
    """Wait for a line of a writer."""
    assert process.stdout is not None
    assert (await process.stdout.readline()).decode().strip() == text


def proceed(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


@pytest.mark.behaviour("C-46")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_write_that_ended_is_stored_when_the_network_heals(scheme: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    with broken_link() as link:
        async with AsyncExitStack() as stack:
            tls = certified(authority, link.address) if scheme == "https" else None
            stores = [Store() for _ in WRITERS]
            writers: list[Process] = []
            for store, (kind, end) in zip(stores, WRITERS, strict=True):
                url = await stack.enter_async_context(store.served(link.address, tls))
                started = writer(link, kind, url, str(tmp_path / "ca.crt"), end)
                writers.append(await stack.enter_async_context(started))
            for each in writers:
                await said(each, "ready")
            link.down()
            for each in writers:
                proceed(each)
            for each in writers:
                await said(each, "sent")
            for each in writers:
                proceed(each)
            for each, (_, end) in zip(writers, WRITERS, strict=True):
                await (each.wait() if end == "a kill" else said(each, "ended"))
            link.up()
            async with asyncio.timeout(60):
                while stores[-1].stored.total() < WRITES:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            await asyncio.sleep(2.0)
    assert [each.stored for each in stores[:-1]] == [Counter()] * (len(stores) - 1)
