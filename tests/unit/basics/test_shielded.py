"""`shielded`: cleanup in a cancelled scope of anyio, which cancels every further wait."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import anyio

from aioinformer.concurrency import shielded


async def test_cleanup_completes_in_a_cancelled_scope() -> None:
    cleaned_up = False
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await asyncio.sleep(60)
        finally:
            with shielded():
                await asyncio.sleep(0.001)
                await asyncio.sleep(0.001)
                cleaned_up = True
    assert cleaned_up


async def test_the_task_itself_can_still_be_cancelled() -> None:
    async def clean_up() -> None:
        with shielded():
            await asyncio.sleep(60)

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


def test_nothing_is_imported_without_a_scope() -> None:
    program = "import sys; from aioinformer.concurrency import shielded; shielded(); sys.exit('anyio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
