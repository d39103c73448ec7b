"""The queues that an informer can have, by name.

| `queue=` | is | promises |
|---|---|---|
| `"delta"` | `DeltaFIFO` | the order of each key; what waits of a key is processed together |
| `"in_order"` | `RealFIFO` | the order in which everything arrived; a relist reaches readers in one piece |
"""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.fifo import DeltaFIFO
from aioinformer.real_fifo import RealFIFO

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.fifo import KnownObjects, Queue
    from aioinformer.objects import Record
    from aioinformer.real_fifo import CollectionConsumer

_key_of_record: Callable[[Record], str] = attrgetter("key")


class QueueKind(StrEnum):
    """The names of the queues."""

    DELTA = "delta"
    IN_ORDER = "in_order"


def queue_of(
    kind: str,
    known_objects: KnownObjects,
    consumer: CollectionConsumer[Record],
    slice_seconds: float,
    on_batch: Callable[[int, float], None] = lambda waiting, seconds: None,
) -> Queue[Record]:
    """Makes the queue of a name.

    Raises:
        UsageError: there is none.
    """
    if kind == QueueKind.DELTA:
        return DeltaFIFO(_key_of_record, known_objects, slice_seconds=slice_seconds, on_batch=on_batch)
    if kind == QueueKind.IN_ORDER:
        return RealFIFO(consumer, _key_of_record, slice_seconds=slice_seconds, on_batch=on_batch)
    raise UsageError(f"queue={kind!r} does not exist; choose one of {', '.join(QueueKind)}")
