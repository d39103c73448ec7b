"""Process the batches of a queue as the process loop does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.concurrency import Slicer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.queue.fifo import FIFO


async def process_batch(
    queue: FIFO[Any, Any],
    process: Callable[[Any, bool], Any],
    flush: Callable[[], None] = lambda: None,
) -> str:
    """Process everything that waits, in slices, and return the version that is reached."""
    slicer = Slicer(queue._slicer.seconds)
    async with queue.batch() as batch:
        slicer.start()
        try:
            for step in batch:
                if step is not None:
                    process(*step)
                if slicer.due():
                    flush()
                    await slicer.let_go()
        finally:
            flush()
        return batch.version
