"""One thing done for many pieces by a few workers: client-go's ParallelizeUntil (WQ-15)."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

T = TypeVar("T")


async def parallelize(workers: int, pieces: Iterable[T], do_piece: Callable[[T], Awaitable[object]]) -> None:
    """Calls a coroutine function once for each piece, so many at a time; returns when all are done.

    Cancelled, or when a piece fails, it takes no further piece, cancels those that are being done, and waits for
    them. Pieces are taken one at a time, when a worker is free: they may be endless, or costly to make.

    Args:
        workers: how many pieces are done at a time, at most.
        pieces: what there is to do.
        do_piece: does one.

    Raises:
        ExceptionGroup: of what pieces failed with.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers!r}")
    remaining = iter(pieces)
    async with asyncio.TaskGroup() as tasks:
        for number, piece in enumerate(islice(remaining, workers), 1):
            tasks.create_task(_work(piece, remaining, do_piece), name=f"worker {number} of {workers}")


async def _work(piece: T, remaining: Iterator[T], do_piece: Callable[[T], Awaitable[object]]) -> None:
    await do_piece(piece)
    for another in remaining:
        await do_piece(another)
