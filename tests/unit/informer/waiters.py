"""The waiting calls of an informer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer import SharedIndexInformer


def waiters_of(informer: SharedIndexInformer[Any]) -> int:
    return len(informer._keys._waiters) + len(informer._versions._waiters)
