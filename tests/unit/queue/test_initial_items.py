"""When each queue has synced: DeltaFIFO before the last initial item is processed, RealFIFO after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.real_fifo import RealFIFO

if TYPE_CHECKING:
    from collections.abc import Iterator


def obj(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@pytest.mark.conformance("RF-10", "RF-11")
async def test_real_fifo_has_not_synced_during_the_first_list() -> None:
    seen: list[bool] = []

    class Consumer:
        def replace_all(self, objects: list[Any], is_in_initial_list: bool) -> Iterator[None]:
            for _ in objects:
                seen.append(queue.has_synced())
                yield

        def sync_all(self) -> Iterator[None]:
            yield

    queue: RealFIFO[Any] = RealFIFO(Consumer())
    await queue.replace([obj("a"), obj("b")])
    await queue.pop(lambda deltas, is_in_initial_list: None)
    assert (seen, queue.has_synced()) == ([False, False], True)


@pytest.mark.conformance("DF-08", "DF-09")
async def test_delta_fifo_has_synced_at_the_last_initial_key() -> None:
    seen: list[tuple[bool, bool]] = []
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj("a"), obj("b")])
    for _ in range(2):
        await queue.pop(lambda deltas, is_in_initial_list: seen.append((is_in_initial_list, queue.has_synced())))
    assert seen == [(True, False), (True, True)]
