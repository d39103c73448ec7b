"""What `aioinformer bench` writes, and what it is told: objects in a namespace of its own, removed in the end."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio

from aioinformer.errors import AioinformerError, ApiError
from aioinformer.logs import get_logger
from aioinformer.transport import Request
from aioinformer.transport.list_parser import status_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from aioinformer.transport import Response, Transport

logger = get_logger("aioinformer.cli")

TIMEOUT = 60.0
"""Seconds that a write, a list, or the last notification may take."""

LABEL = "aioinformer-bench"
"""Of every object that is written: a namespace has others, that controllers put there."""

_WRITERS = 16
_STAMP = "stamp"


class ConfigMaps:
    """Writes ConfigMaps into a namespace.

    Args:
        transport: reaches the server.
        namespace: exists already.
        size: bytes of data in each.
    """

    def __init__(self, transport: Transport, namespace: str, size: int) -> None:
        self._transport = transport
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._filling = "x" * size

    async def create(self, number: int) -> None:
        """Makes one."""
        await send(self._transport, "POST", self._path, self._document(number, "0"))

    async def stamp(self, number: int, stamp: str) -> None:
        """Writes another stamp into one."""
        await send(self._transport, "PUT", f"{self._path}/object-{number}", self._document(number, stamp))

    def _document(self, number: int, stamp: str) -> dict[str, Any]:
        metadata = {"name": f"object-{number}", "labels": {LABEL: "true"}}
        data = {_STAMP: stamp, "filling": self._filling}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Told:
    """When the handler was told of which stamp."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._done = asyncio.Event()

    def on_update(self, old: Any, new: Any) -> None:
        now, stamp = perf_counter(), new.data[_STAMP]
        self.times[stamp] = now
        self._wanted.discard(stamp)
        if not self._wanted:
            self._done.set()

    async def all_of(self, stamps: set[str]) -> None:
        """Waits until the handler has been told of all of these."""
        self._wanted = stamps - self.times.keys()
        self._done.clear()
        if self._wanted:
            async with asyncio.timeout(TIMEOUT):
                await self._done.wait()


class HeldWatch:
    """A transport whose watches wait until they are let go: who lists through it falls behind.

    Args:
        transport: does the work.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._free = asyncio.Event()

    def let_go(self) -> None:
        """Sends the watches, from now on at once."""
        self._free.set()

    async def request(self, request: Request) -> Response:
        """Sends the request; see `aioinformer.transport.Transport`."""
        if ("watch", "true") in request.query:
            await self._free.wait()
        return await self._transport.request(request)


async def at_once(writes: Iterable[Awaitable[None]]) -> None:
    """Runs coroutines, some at a time."""
    waiting = iter(writes)

    async def work() -> None:
        for write in waiting:
            await write

    async with asyncio.TaskGroup() as tasks:
        for number in range(_WRITERS):
            tasks.create_task(work(), name=f"bench: writer {number}")


async def send(transport: Transport, method: str, path: str, document: Any = None) -> None:
    """Sends one write.

    Raises:
        ApiError: the server refuses it.
        TransportError: the server was not reached.
    """
    body = None if document is None else json.dumps(document).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    response = await transport.request(Request(path, method=method, headers=headers, body=body, total_timeout=TIMEOUT))
    try:
        answer = b"".join([chunk async for chunk in response.chunks()])
    finally:
        await response.close()
    if response.status >= 300:
        raise status_error(response.status, answer)


@asynccontextmanager
async def own_namespace(transport: Transport) -> AsyncIterator[str]:
    """A new namespace, which is removed in the end, also if it is not known to have been made.

    Raises:
        ApiError: the server refuses it.
        TransportError: the server was not reached.
    """
    name = f"aioinformer-bench-{secrets.token_hex(4)}"
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    made = refused = False
    try:
        await send(transport, "POST", "/api/v1/namespaces", document)
        made = True
        logger.info("namespace %s was made, and is removed in the end", name)
        yield name
    except ApiError:
        refused = not made
        raise
    finally:
        # A request that was cut off may have arrived.
        if not refused:
            with anyio.CancelScope(shield=True):
                try:
                    await send(transport, "DELETE", f"/api/v1/namespaces/{name}")
                except AioinformerError as error:
                    if made:
                        logger.error("namespace %s was not removed: %s", name, error)
