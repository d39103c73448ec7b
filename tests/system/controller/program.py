"""A program with one controller, which tests run as a process: `python -m tests.system.controller.program URL MODE`."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from aioinformer.controller import Manager, Request
from aioinformer.controller.running import Restart, active
from aioinformer.models import core_v1


async def maps(request: Request[Any]) -> None:
    print("begins", request.name, flush=True)
    mode = sys.argv[2]
    if mode == "fails":
        assert manager._session is not None
        manager._session.controllers["maps"].active._fail(RuntimeError("a bug"))
    elif mode == "blocked":
        time.sleep(3600)  # noqa: ASYNC251 - as a program with this mistake does
    elif mode == "thread":
        await request.to_thread(time.sleep, 3600)
    elif mode != "quick":
        try:
            await asyncio.sleep(0.5 if mode == "slow" else 3600)
        except asyncio.CancelledError:
            print("cancelled", request.name, flush=True)
            while mode == "stubborn":
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    continue
            raise
    print("ends", request.name, flush=True)


url = sys.argv[1] if len(sys.argv) == 3 else ""
in_thread = sys.argv[-1] == "thread"
manager = Manager("program", client=url or None, grace=0 if in_thread else 3600, restart=Restart(limit=0))
manager.controller(core_v1.CONFIG_MAPS)(maps)

if __name__ == "__main__":
    if in_thread:  # the process ends as that of any program
        active.CLEANING_UP = 0.2  # type: ignore[attr-defined]
        asyncio.run(manager.run(signals=True))
    else:
        manager.main()
