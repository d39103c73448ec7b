"""Many pieces processed by a few workers."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from aioinformer.workqueue.parallelizer import parallelize


@pytest.mark.conformance("WQ-15")
@pytest.mark.parametrize("workers", [1, 3, 10, 100])
async def test_each_piece_is_processed_once(workers: int) -> None:
    done = []

    async def do_piece(piece: int) -> None:
        await asyncio.sleep(piece % 3)
        done.append(piece)

    await parallelize(workers, range(10), do_piece)
    assert sorted(done) == list(range(10))


async def test_at_most_as_many_pieces_run_at_a_time_as_workers() -> None:
    running: list[int] = []
    most = 0

    async def do_piece(piece: int) -> None:
        nonlocal most
        running.append(piece)
        most = max(most, len(running))
        await asyncio.sleep(1)
        running.remove(piece)

    await parallelize(3, range(10), do_piece)
    assert most == 3


async def test_no_pieces() -> None:
    await parallelize(3, [], asyncio.sleep)


@pytest.mark.conformance("WQ-15")
async def test_cancelled_parallelizer_takes_no_further_piece() -> None:
    pieces = count()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await parallelize(2, pieces, lambda piece: asyncio.sleep(1))
    assert next(pieces) == 6


async def test_failed_piece_stops_the_others() -> None:
    pieces = iter([1.0, 3.0, -1.0, 1.0, 5.0])

    async def do_piece(seconds: float) -> None:
        if seconds < 0:
            raise LookupError(seconds)
        await asyncio.sleep(seconds)

    with pytest.raises(ExceptionGroup) as raised:
        await parallelize(2, pieces, do_piece)
    assert [type(error) for error in raised.value.exceptions] == [LookupError]
    assert list(pieces) == [1.0, 5.0]


async def test_zero_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="workers"):
        await parallelize(0, [], asyncio.sleep)
