"""DeltaFIFO: what became known of objects, by key, until the one consumer takes it.

What it holds, and by which rules, is in `keyed_deltas`; how it waits, in `guarded_queue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.delta_state import PopProcessFunc
from aioinformer.deltas import Deltas
from aioinformer.guarded_queue import GuardedQueue, Queue
from aioinformer.keyed_deltas import KeyedDeltas, KnownObjects
from aioinformer.keys import meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeltaFIFO", "KnownObjects", "PopProcessFunc", "Queue"]

T = TypeVar("T")


class DeltaFIFO(GuardedQueue[T, Deltas[T]]):
    """The queue by key. What waits of an object is popped together; a replacement queues what it lacks as deleted.

    It has one consumer.

    Args:
        key_func: object -> key.
        known_objects: what the consumer has; without it, only what is queued is known.
        transformer: applied to every object on its way in, but for tombstones and repetitions (DF-07).
        slice_seconds: how long work may hold the event loop at a time.
        on_batch: called after each batch: how much waited, and how many seconds it took.
    """

    def __init__(
        self,
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        known_objects: KnownObjects | None = None,
        *,
        transformer: Callable[[T], T] | None = None,
        slice_seconds: float = 0.0005,
        on_batch: Callable[[int, float], None] = lambda waiting, seconds: None,
    ) -> None:
        super().__init__(KeyedDeltas(key_func, known_objects, transformer), key_func, slice_seconds, on_batch)
