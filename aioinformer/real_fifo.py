"""RealFIFO: what became known, in the order in which it became known, whatever it is about.

What it holds, and by which rules, is in `ordered_deltas`; how it waits, in `guarded_queue`.

Against `DeltaFIFO`, a key may wait in many places, so that a slow consumer costs memory; in exchange there is an order
between keys, and a relist reaches readers in one piece. The consumer is handed one delta after the other, so that a
batch needs no distinct keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.guarded_queue import GuardedQueue
from aioinformer.keys import meta_namespace_key_func
from aioinformer.ordered_deltas import Bookmark, CollectionConsumer, OrderedDelta, OrderedDeltas, ReplacedAll, SyncAll

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Bookmark", "CollectionConsumer", "OrderedDelta", "RealFIFO", "ReplacedAll", "SyncAll"]

T = TypeVar("T")


class RealFIFO(GuardedQueue[T, OrderedDelta[T]]):
    """The queue in order of arrival. It has one consumer.

    Args:
        consumer: processes lists and repetitions; single objects go to the function that `pop` is given.
        key_func: object -> key, for `key_of` alone.

        transformer: applied to every object on its way in, but for tombstones (RF-09). If it refuses one object of a
            list, the list is not queued.
        batch_size: the most deltas of a batch.
        slice_seconds: how long work may hold the event loop at a time.
        on_batch: called after each batch: how much waited, and how many seconds it took.
    """

    def __init__(
        self,
        consumer: CollectionConsumer[T],
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        *,
        transformer: Callable[[T], T] | None = None,
        batch_size: int = 1000,
        slice_seconds: float = 0.0005,
        on_batch: Callable[[int, float], None] = lambda waiting, seconds: None,
    ) -> None:
        super().__init__(OrderedDeltas(consumer, transformer, batch_size), key_func, slice_seconds, on_batch)

    async def bookmark(self, version: str) -> None:
        """Everything up to this version has been queued (RF-08)."""
        await self.apply([], version)
