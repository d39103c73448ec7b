"""Programs of controllers as processes."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator


@asynccontextmanager
async def program(mode: str, *arguments: str) -> AsyncIterator[Process]:
    root = Path(__file__).parents[3]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.system.controller.program", *arguments, mode),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()
