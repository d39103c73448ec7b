"""What the queue holds: what became known of an object, in the order in which it became known."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from aioinformer.errors import KeyFuncError
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")


class DeltaType(StrEnum):
    """Why a delta is there; the values are client-go's."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


class Delta(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One thing that became known of an object.

    A relist makes one for every object at once: the garbage collector is not to walk them.
    """

    type: DeltaType
    object: T | DeletedFinalStateUnknown[T]


class Deltas(list[Delta[T]]):
    """Everything that waits to be processed for one key, oldest first."""

    __slots__ = ()

    def oldest(self) -> Delta[T] | None:
        """The delta that has waited longest, None if there is none."""
        return self[0] if self else None

    def newest(self) -> Delta[T] | None:
        """The delta that came last, None if there is none."""
        return self[-1] if self else None


def delta_key(obj: Any, key_func: Any) -> str:
    """The key of an object, a tombstone or a list of deltas, whose newest counts (DF-10).

    Raises:
        KeyFuncError: a list without deltas, or an object without key.
    """
    if isinstance(obj, Deltas):
        newest = obj.newest()
        if newest is None:
            raise KeyFuncError("a list of deltas without deltas has no key")
        obj = newest.object
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    return str(key_func(obj))
