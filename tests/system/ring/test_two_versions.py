"""Replicas of this version and of the one before run together, as during a rolling update and a rollback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.former import extract_former
from tests.system.ring.replicas import OBJECTS, ring_object, until

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer

PROGRAM = Path(__file__).with_name("replica_of_a_version.py")
ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def replica(kind: str, server: ApiServer, member: str, package: Path) -> AsyncIterator[Process]:
    """Run a replica with the package in this folder, and stop it in order at the end."""
    command = [sys.executable, str(PROGRAM), kind, server.url, member]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert (await process.stdout.readline()).decode().startswith(str(package))
        yield process
        if process.returncode is None:
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Tokens:
    """The objects of the server, each with the highest token that it has had."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._highest: dict[str, int] = {}

    def change(self) -> None:
        """Let all objects run."""
        for number in range(OBJECTS):
            self._server.patch("configmaps", f"m{number:02}", {"data": {"by": ""}}, namespace="default")

    def writers(self) -> set[str]:
        """Return who has written the objects last, and check that no token went back."""
        found = set()
        for each in self._server.list("configmaps", namespace="default"):
            data = each.get("data", {})
            if each["metadata"].get("labels", {}).get("app") == "web":
                found.add(data.get("by", ""))
                name, token = each["metadata"]["name"], int(data.get("token", -1))
                assert token >= self._highest.get(name, -1)
                self._highest[name] = token
        return found


def owners(server: ApiServer) -> set[str]:
    try:
        slots = json.loads(ring_object(server)["data"]["ring.json"])["ring"]["slots"]
    except Exception:
        return set()
    return {owner.removeprefix("widgets-") for owner, _, to in slots if not to}


@pytest.mark.parametrize("kind", ["ring", "election"])
@pytest.mark.parametrize("direction", ["update", "rollback"])
async def test_replicas_of_two_versions_work_together(
    server: ApiServer, kind: str, direction: str, tmp_path: Path
) -> None:
    extract_former(tmp_path)
    packages = [tmp_path, ROOT] if direction == "update" else [ROOT, tmp_path]
    tokens = Tokens(server)

    async def shared(*members: str) -> None:
        """Wait until these replicas work, all in a ring, and one of them otherwise."""
        if kind == "ring":
            await until(lambda: owners(server) == set(members))
        tokens.change()
        wanted = [set(members)] if kind == "ring" else [{each} for each in members]
        await until(lambda: tokens.writers() in wanted)

    async with AsyncExitStack() as rest:
        async with AsyncExitStack() as before:
            await before.enter_async_context(replica(kind, server, "a", packages[0]))
            await shared("a")
            await rest.enter_async_context(replica(kind, server, "b", packages[1]))
            await shared("a", "b")
        await shared("b")
        async with replica(kind, server, "c", packages[0]) as killed:
            await shared("b", "c")
            killed.kill()
            await killed.wait()
            await shared("b")
