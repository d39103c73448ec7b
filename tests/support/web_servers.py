"""Servers that run applications of web frameworks, and readers of their streams."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import uvicorn
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def on_uvicorn(app: Any) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    config = server.config
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        await server.shutdown()


@asynccontextmanager
async def on_aiohttp(app: Any) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Reader:
    """Reads events of a stream, and keeps what a page would keep."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.objects: dict[str, Any] = {}
        self.cursor = ""
        self.events: list[str] = []

    async def until(self, *events: str, keys: set[str] | None = None) -> None:
        """Read until these events have come, and the keys are these."""
        wanted = list(events)
        async with asyncio.timeout(50):
            while wanted or (keys is not None and set(self.objects) != keys):
                event = await self._event()
                if event in wanted:
                    wanted.remove(event)

    async def _event(self) -> str:
        fields: dict[str, str] = {}
        while (line := await self.response.content.readline()) not in (b"\n", b""):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            fields[name] = value
        assert fields or line, "the stream has ended"
        data = json.loads(fields.get("data", "{}"))
        event = fields.get("event", "")
        if event == "put":
            self.objects[data["key"]] = data["object"]
        elif event == "delete":
            self.objects.pop(data["key"], None)
        elif event == "reset":
            self.objects.clear()
        self.cursor = fields.get("id", self.cursor)
        self.events.append(event)
        return event


@asynccontextmanager
async def reading(url: str, query: str = "", **headers: str) -> AsyncIterator[Reader]:
    async with aiohttp.ClientSession() as session, session.get(url + query, headers=headers) as response:
        assert response.status == 200, await response.text()
        yield Reader(response)


async def refusal(url: str, status: int, query: str = "", **headers: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url + query, headers=headers) as response:
        assert response.status == status  # the text of a stream has no end
        assert response.content_type == "application/problem+json"
        found = await response.json()
        assert found["status"] == status
        return str(found["detail"])
