"""Credentials that expire: a clock, a server that accepts one token, and a hook of kubernetes_asyncio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.transport import KubernetesTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.loopback import Server


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class Gate:
    """Accepts requests with the right token."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        granted = request.headers.get("Authorization") == f"Bearer {self.token}"
        return web.Response(text=request.headers.get("Authorization", ""), status=200 if granted else 401)


@asynccontextmanager
async def hooked(server: Server, hook: Any) -> AsyncIterator[KubernetesTransport]:
    """A transport of an ApiClient with a `refresh_api_key_hook`."""
    configuration = Configuration(host=server.url, api_key={"BearerToken": "unset"})
    configuration.refresh_api_key_hook = hook
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        yield transport
