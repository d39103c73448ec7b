"""Process batches of a queue like the process loop, and check when they are flushed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.concurrency import Slicer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.queues import AnyQueue


async def process_batch(
    queue: AnyQueue,
    process: Callable[[Any, bool], Any],
    flush: Callable[[], None] = lambda: None,
) -> str:
    """Process everything that waits, in slices, and return the version that is reached."""
    slicer = Slicer()
    async with queue.batch() as batch:
        slicer.start()
        try:
            for step in batch:
                if step is not None:
                    process(*step)
                if slicer.count_step():
                    flush()
                    await slicer.yield_to_loop()
        finally:
            flush()
        return batch.version


async def check_flushes(queue: AnyQueue) -> None:
    """Assert that a queue with 100 objects is flushed before the loop gets a turn, and at the end of the batch."""
    log: list[str] = []

    async def other_task() -> None:
        while True:
            log.append("turn")
            await asyncio.sleep(0)

    other = asyncio.create_task(other_task())
    await process_batch(queue, lambda deltas, initial: log.append("object"), lambda: log.append("flush"))
    other.cancel()
    assert log.count("object") == 100
    assert log[-1] == "flush"
    assert log.count("turn") > 1
    assert all(log[at - 1] in ("flush", "turn") for at, entry in enumerate(log) if entry == "turn" and at)
