"""A network link between an informer and its API server that can be cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.support.loopback import forward

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.support.real_cluster import RealCluster


class Link:
    """Forwards connections to the API server of a cluster. An async context manager.

    Attributes:
        kubeconfig: a kubeconfig of the administrator that uses this link.
    """

    def __init__(self, cluster: RealCluster, directory: Path) -> None:
        self._cluster = cluster
        self.kubeconfig = directory / "link.kubeconfig"
        self._connections: set[asyncio.Task[None]] = set()
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.restore()
        server = self._cluster.address("server")
        text = self._cluster.kubeconfig.read_text()
        self.kubeconfig.write_text(text.replace(server, f"https://127.0.0.1:{self._port}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    async def restore(self) -> None:
        """Accept connections, on the same port as before."""
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse new connections and break open ones."""
        self._listener.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._forward(reader, writer)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = urlsplit(self._cluster.address("server"))
        there, back = await asyncio.open_connection(server.hostname, server.port)
        try:
            async with asyncio.TaskGroup() as tasks:
                outward = tasks.create_task(forward(reader, back), name="link: outward")
                await forward(there, writer)
                outward.cancel()
        finally:
            back.transport.abort()
