"""Random writes of ConfigMaps, and the writes that the server acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

from tests.support.real_cluster import version_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from tests.support.real_cluster import Operator

_NAMES = 30
_PAUSE = 0.02


class Written(NamedTuple):
    """One acknowledged write.

    Attributes:
        key: `namespace/name`.
        uid: the uid of the object.
        resource_version: the new resourceVersion of the object; "" if it was deleted.
    """

    key: str
    uid: str
    resource_version: str


class Churn:
    """Sends random writes to one namespace."""

    def __init__(self, operator: Operator, namespace: str, random: Random) -> None:
        self._operator = operator
        self.namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._random = random
        self._acknowledged = asyncio.Condition()
        self._count = 0

    async def prepare(self) -> None:
        """Create the namespace."""
        await self._operator.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    async def write(self, count: int) -> list[Written]:
        """Send writes one after another until `count` are acknowledged, and return these."""
        written: list[Written] = []
        while len(written) < count:
            if (done := await self._write_once()) is not None:
                written.append(done)
        return written

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write continuously during the block, while the server accepts writes."""
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._write_for_ever(), name="churn")
            yield
            writer.cancel()

    async def wait_for_acknowledged(self, count: int) -> None:
        """Wait until `count` further writes are acknowledged."""
        async with self._acknowledged:
            wanted = self._count + count
            await self._acknowledged.wait_for(lambda: self._count >= wanted)

    async def _write_for_ever(self) -> None:
        while True:
            with suppress(aiohttp.ClientError):  # the test stops the server
                await self._write_once()
            await asyncio.sleep(_PAUSE)

    async def _write_once(self) -> Written | None:
        """Send one write; return None if the server refused it because the object exists, or does not."""
        name = f"churn-{self._random.randrange(_NAMES)}"
        body = {"metadata": {"name": name}, "data": {"value": str(self._random.random())}}
        method = self._random.choice(("POST", "PUT", "PUT", "DELETE"))
        path = self._path if method == "POST" else f"{self._path}/{name}"
        status, answer = await self._operator.request(method, path, None if method == "DELETE" else body)
        if status not in (200, 201):
            return None
        async with self._acknowledged:
            self._count += 1
            self._acknowledged.notify_all()
        key = f"{self.namespace}/{name}"
        if method == "DELETE":
            return Written(key, answer["details"]["uid"], "")
        return Written(key, *version_of(answer["metadata"]))
