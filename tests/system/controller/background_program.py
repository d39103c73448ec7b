"""A replica whose event loop is blocked while a write of its elected background task is about to leave.

Tests run it as a process: `python -m tests.system.controller.background_program URL FOLDER`.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer import HttpTransport
from aioinformer.controller import BackgroundRun, LeaderElection, Manager
from tests.support.stopped_election import TIMES, Block, stop_at_connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def lifespan(manager: Manager) -> AsyncGenerator[str]:
    print("enters", flush=True)
    yield "resource"
    print("leaves", flush=True)


async def main(url: str, folder: Path) -> None:
    async with HttpTransport(url) as transport:
        election = LeaderElection("it", options=TIMES, identity="first")
        manager = Manager("shop", client=transport, leader_election=election, lifespan=lifespan)

        @manager.background(elected=True)
        async def sweep(run: BackgroundRun[str]) -> None:
            maps = run.client.core.v1.configmaps
            if (folder / "taken").exists():
                print("runs again", flush=True)
                await asyncio.Event().wait()
            await maps.create({"metadata": {"name": "first", "namespace": "default"}})
            print("leads with", run.state, flush=True)
            session: Any = transport._session
            stop_at_connection(session, Block(1, folder / "taken"))
            try:
                await maps.create({"metadata": {"name": "late", "namespace": "default"}})
            except Exception as error:
                print(type(error).__name__, flush=True)
            try:
                await asyncio.Event().wait()
            finally:
                print("cancelled", flush=True)

        await manager.run(signals=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
