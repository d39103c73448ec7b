"""Options of an election, and a fault that blocks the event loop before requests are sent."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from aioinformer import LeaderElectionOptions

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp


TIMES = LeaderElectionOptions(lease_duration=3, renew_deadline=2.0, retry_period=0.5)


class Block:
    """Collects tasks, and blocks the event loop when all have arrived, until a file is there."""

    def __init__(self, tasks: int, file: Path) -> None:
        self._missing = tasks
        self._file = file
        self._all = asyncio.Event()

    async def arrive(self) -> None:
        self._missing -= 1
        if self._missing > 0:
            await self._all.wait()
        elif not self._missing:
            self._all.set()
            while not self._file.exists():
                time.sleep(0.05)  # noqa: ASYNC251 - the fault under test


def stop_at_connection(session: aiohttp.ClientSession, block: Block) -> None:
    """Let each further request of a session that has a connection wait for the others."""
    connector = session.connector
    assert connector is not None
    connect = connector.connect

    async def connect_and_wait(*arguments: Any, **options: Any) -> Any:
        connection = await connect(*arguments, **options)
        await block.arrive()
        return connection

    connector.connect = connect_and_wait  # type: ignore[method-assign]
