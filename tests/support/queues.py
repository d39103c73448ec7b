"""The queues of an informer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.informer import QueueName

QUEUES: tuple[QueueName, ...] = ("delta", "in_order")
