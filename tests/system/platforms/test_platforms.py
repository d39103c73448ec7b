"""What has to work on every system: the import, an informer, and Ctrl-C. Also without what Windows lacks."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.parametrize("options", [(), ("--as-windows",)], ids=["this system", "as Windows"])


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.system.platforms.program", *arguments),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def run(*arguments: str) -> list[str]:
    """Run a program to its end, and return its lines."""
    async with program(*arguments) as process:
        output, log = await process.communicate()
        assert process.returncode == 0, log.decode()
        assert "Traceback" not in log.decode()
    return output.decode().splitlines()


async def test_every_module_can_be_imported(options: tuple[str, ...]) -> None:
    [count] = await run(*options, "import")
    assert int(count) > 200


async def test_informer_follows_an_object(options: tuple[str, ...]) -> None:
    assert await run(*options, "inform") == ["added a", "deleted"]


async def test_manager_stops_in_order_after_ctrl_c(options: tuple[str, ...]) -> None:
    async with ApiServer() as server:
        server.create("configmaps", {"metadata": {"name": "it", "namespace": "default"}})
        async with program(*options, "manage", server.url) as process:
            assert process.stdout is not None
            while (line := await process.stdout.readline()).strip() != b"begins it":
                assert line
            output, log = await process.communicate(b"\n")
    assert process.returncode == 0, log.decode()
    assert "ends it" in output.decode()
    assert "because of signal SIGINT: " in log.decode()


async def test_command_ends_after_ctrl_c(options: tuple[str, ...]) -> None:
    async with ApiServer() as server:
        server.create("configmaps", {"metadata": {"name": "it", "namespace": "default"}})
        async with program(*options, "command", "watch", "configmaps", "--server", server.url) as process:
            assert process.stdout is not None
            while b"it" not in (line := await process.stdout.readline()):
                assert line
            _, log = await process.communicate(b"\n")
    assert process.returncode == 0, log.decode()
    assert "Traceback" not in log.decode()
