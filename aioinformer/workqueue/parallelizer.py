"""Process many pieces with a fixed number of workers, as client-go's ParallelizeUntil does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from aioinformer.concurrency import TaskGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


async def parallelize(workers: int, pieces: Iterable[T], do_piece: Callable[[T], Awaitable[object]]) -> None:
    """Call `do_piece` once for each piece, with at most `workers` calls at a time, and return when all have returned.

    When the caller is cancelled or a piece fails, no further piece is taken; running calls are cancelled and awaited.
    A piece is taken from the iterable only when a worker is free, so the iterable may be endless or costly.

    Args:
        workers: how many calls run at a time, at most.
        pieces: the pieces to process.
        do_piece: an async function that processes one piece.

    Raises:
        ExceptionGroup: the errors of the pieces that failed.
        ValueError: `workers` is less than 1.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers!r}")
    remaining = iter(pieces)
    async with TaskGroup() as tasks:
        for number, piece in enumerate(islice(remaining, workers), 1):
            tasks.create_task(_work(piece, remaining, do_piece), name=f"worker {number} of {workers}")


async def _work(piece: T, remaining: Iterator[T], do_piece: Callable[[T], Awaitable[object]]) -> None:
    await do_piece(piece)
    for another in remaining:
        await do_piece(another)
