"""The objects of the benchmark: ConfigMaps in a temporary namespace, and what an informer receives of them."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio

from aioinformer.client.client import Client
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import AioinformerError, ApiError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from aioinformer.transport import HttpRequest, Response, Transport

logger = get_logger("aioinformer.cli")

TIMEOUT = 60.0
"""Seconds that a write, a list, or the last notification may take."""

LABEL = "aioinformer-bench"
"""The label of the written objects: controllers put other ConfigMaps into each namespace."""

_WRITERS = 16
_STAMP = "stamp"


class ConfigMaps:
    """Writes ConfigMaps into a namespace."""

    def __init__(self, transport: Transport, namespace: str, size: int) -> None:
        self._config_maps = Client(transport, namespace=namespace, timeout=TIMEOUT, retry=False).core.v1.configmaps
        self._filling = "x" * size

    async def create(self, number: int) -> None:
        """Create a ConfigMap."""
        await self._config_maps.create(self._document(number, "0"))

    async def stamp(self, number: int, stamp: str) -> None:
        """Replace a ConfigMap by one with another stamp."""
        await self._config_maps.replace(self._document(number, stamp))

    def _document(self, number: int, stamp: str) -> dict[str, Any]:
        metadata = {"name": f"object-{number}", "labels": {LABEL: "true"}}
        data = {_STAMP: stamp, "filling": self._filling}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Deliveries:
    """A handler that records when each stamp was delivered."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._awaited: set[str] = set()
        self._complete = asyncio.Event()

    def on_update(self, old: Any, new: Any) -> None:
        now = perf_counter()
        stamp = new.data[_STAMP]
        self.times[stamp] = now
        self._awaited.discard(stamp)
        if not self._awaited:
            self._complete.set()

    async def wait_for(self, stamps: set[str]) -> None:
        """Wait until all of these stamps have been delivered.

        Raises:
            TimeoutError: they were not delivered in time.
        """
        self._awaited = stamps - self.times.keys()
        self._complete.clear()
        if self._awaited:
            async with asyncio.timeout(TIMEOUT):
                await self._complete.wait()


class BlockedWatches:
    """A transport that delays watch requests until `unblock`, so that an informer falls behind after its list."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._unblocked = asyncio.Event()

    def unblock(self) -> None:
        """Send the delayed watch requests, and further ones at once."""
        self._unblocked.set()

    async def request(self, request: HttpRequest) -> Response:
        """Send the request; see `aioinformer.transport.Transport`."""
        if ("watch", "true") in request.query:
            await self._unblocked.wait()
        return await self._transport.request(request)


async def run_concurrently(writes: Iterable[Awaitable[None]]) -> None:
    """Run coroutines, 16 at a time."""
    waiting = iter(writes)

    async def work() -> None:
        for write in waiting:
            await write

    async with TaskGroup() as tasks:
        for number in range(_WRITERS):
            tasks.create_task(work(), name=f"bench: writer {number}")


@asynccontextmanager
async def temporary_namespace(transport: Transport) -> AsyncIterator[str]:
    """Create a namespace and delete it at the end, even if the answer to its creation was lost.

    Raises:
        ApiError: the server refuses it.
        TransportError: the server was not reached.
    """
    name = f"aioinformer-bench-{secrets.token_hex(4)}"
    namespaces = Client(transport, timeout=TIMEOUT, retry=False).core.v1.namespaces
    created = False
    refused = False
    try:
        await namespaces.create({"metadata": {"name": name}})
        created = True
        logger.info("created namespace %s, which is deleted at the end", name)
        yield name
    except ApiError:
        refused = not created
        raise
    finally:
        # If there was no answer, the server may still have created the namespace.
        if not refused:
            with anyio.CancelScope(shield=True):
                try:
                    await namespaces.delete(name)
                except AioinformerError as error:
                    if created:
                        logger.error("namespace %s was not deleted, delete it with kubectl: %s", name, error)
