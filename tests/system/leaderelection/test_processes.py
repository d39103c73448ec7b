"""Two replicas, each a process of its own, and what the server receives from them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def replica(mode: str, server: ApiServer, identity: str, folder: Path) -> AsyncIterator[Process]:
    (folder / "ca.pem").write_bytes(server.certificate_authority)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.system.leaderelection.replica", mode, server.url, identity, str(folder),
        stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def writers(server: ApiServer) -> list[tuple[str, int]]:
    """Return by whom and in which term the ConfigMaps were written, in the order of the writes, without repetitions."""
    maps = sorted(server.list("configmaps", "default"), key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [writer for writer, _ in groupby((each["data"]["by"], int(each["data"]["term"])) for each in maps)]


async def printed(process: Process, line: str) -> None:
    """Read what a process prints, up to a line."""
    assert process.stdout is not None
    async for each in process.stdout:
        if each.decode().strip() == line:
            return
    raise AssertionError(f"it has ended without {line!r}")


async def deleted_by_hand(server: ApiServer, times: int) -> None:
    for number in range(times):
        server.delete("leases", "it", "default")
        await asyncio.sleep(0.4 + 0.1 * number)  # at each moment between two renewals, and two tries of the standby


@pytest.mark.behaviour("C-75", "C-110")
async def test_one_replica_writes_while_its_lease_is_deleted(tmp_path: Path) -> None:
    async with ApiServer() as server, replica("work", server, "first", tmp_path) as first:
        await printed(first, "leads 0")
        async with replica("work", server, "second", tmp_path) as second:
            await printed(second, "follows first")
            await deleted_by_hand(server, 8)
            assert writers(server) == [("first", 0)]
            os.kill(first.pid, signal.SIGSTOP)
            server.delete("leases", "it", "default")
            gone = asyncio.get_running_loop().time()
            await printed(second, "leads 1")
            assert asyncio.get_running_loop().time() - gone > 2  # the last renewal is at most 0.5 s old
            os.kill(first.pid, signal.SIGCONT)
            await printed(first, "lost")
            await asyncio.sleep(1)
            assert writers(server) == [("first", 0), ("second", 1)]


@pytest.mark.behaviour("C-46", "C-95", "C-111")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_write_that_was_held_up_is_not_sent_after_the_term(tls: bool, tmp_path: Path) -> None:
    async with ApiServer(tls=tls) as server, replica("late", server, "first", tmp_path) as first:
        await printed(first, "leads 0")
        async with replica("lead", server, "second", tmp_path):
            assert first.stdout is not None
            results = (await first.stdout.readline()).decode().strip()
            assert {each["metadata"]["name"] for each in server.list("configmaps", "default")} == {"victim", "taken"}
            assert "late" not in server.get("configmaps", "victim", "default")["data"]
            assert writers(server) == [("first", 0), ("second", 1)]
            assert results == f"{['LeadershipLost'] * 6} 0 3"
