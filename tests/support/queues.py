"""The queues of an informer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from aioinformer import DeltaFIFO
from aioinformer.queue import RealFIFO

if TYPE_CHECKING:
    from aioinformer.informer import QueueName

QUEUES: tuple[QueueName, ...] = ("delta", "in_order")
#: One of them.
AnyQueue: TypeAlias = DeltaFIFO[Any] | RealFIFO[Any]
