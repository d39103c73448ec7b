"""Background tasks of several replicas over HTTP: one leader runs the elected ones, and writes nothing afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aioinformer.controller import BackgroundRun, LeaderElection, Manager
from tests.support.stopped_election import TIMES

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from aioinformer.testing import ApiServer


def replica(server: ApiServer, identity: str, began: asyncio.Queue[str], pause: float = 0.01) -> Manager:
    """Return a manager with an elected task that writes again and again, and one that every replica runs."""
    election = LeaderElection("it", options=TIMES, identity=identity)
    manager = Manager("shop", client=server.url, leader_election=election)

    @manager.background(elected=True)
    async def sweep(run: BackgroundRun) -> None:
        while True:
            metadata = {"generateName": "write-", "namespace": "default"}
            await run.client.core.v1.configmaps.create({"metadata": metadata, "data": {"by": identity}})
            began.put_nowait(f"{identity} writes")
            await asyncio.sleep(pause)

    @manager.background
    async def refresh(run: BackgroundRun) -> None:
        assert run.term is None
        began.put_nowait(f"{identity} refreshes")
        await asyncio.Event().wait()

    return manager


def writers(server: ApiServer) -> list[str]:
    """Return who has written, in the order of the writes, each replica once for its writes in a row."""
    found: list[str] = []
    maps = [each for each in server.list("configmaps", "default") if each.get("data")]
    for each in sorted(maps, key=lambda each: int(each["metadata"]["resourceVersion"])):
        if found[-1:] != [each["data"]["by"]]:
            found.append(each["data"]["by"])
    return found


@pytest.mark.behaviour("C-156")
async def test_elected_task_moves_with_the_leadership(api_server: ApiServer) -> None:
    began: asyncio.Queue[str] = asyncio.Queue()
    async with replica(api_server, "first", began) as first:
        assert {await began.get(), await began.get()} == {"first writes", "first refreshes"}
        async with replica(api_server, "second", began) as second:
            while await began.get() != "second refreshes":
                pass
            assert second.snapshot()["background"]["sweep"]["phase"] == "standby"
            assert second.ready()
            first.stop()
            while await began.get() != "second writes":
                pass
    assert writers(api_server) == ["first", "second"]
    (entry,) = api_server.list("configmaps", "default")[0]["metadata"]["managedFields"]
    assert entry["manager"] == "sweep"


@pytest.mark.behaviour("C-156")
async def test_write_that_was_held_up_is_not_sent_after_the_term(api_server: ApiServer, tmp_path: Path) -> None:
    process = await started(api_server.url, tmp_path)
    try:
        assert [await line(process), await line(process)] == ["enters", "leads with resource"]
        began: asyncio.Queue[str] = asyncio.Queue()
        async with replica(api_server, "second", began, pause=3600):
            assert {await began.get(), await began.get()} == {"second writes", "second refreshes"}
            (tmp_path / "taken").touch()
            assert [await line(process), await line(process)] == ["LeadershipLost", "cancelled"]
        assert await line(process) == "runs again"
        process.send_signal(signal.SIGTERM)
        output, log = await process.communicate()
        assert (output.decode().split(), process.returncode) == (["leaves"], 0), log.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert "late" not in {each["metadata"]["name"] for each in api_server.list("configmaps", "default")}


async def started(url: str, folder: Path) -> Process:
    root = Path(__file__).parents[3]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.system.controller.background_program", url, str(folder)),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()
