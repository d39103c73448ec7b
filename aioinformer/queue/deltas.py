"""Deltas: the changes of objects that a queue contains, in the order in which they became known."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from aioinformer.errors import KeyFuncError
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")


class DeltaType(StrEnum):
    """The kind of a change. The values are client-go's."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


class Delta(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of an object.

    The garbage collector does not track deltas, because a relist makes one for every object at once.

    Attributes:
        type: the kind of the change.
        object: the object after the change; of a deletion, its last state, or a tombstone.
    """

    type: DeltaType
    object: T | DeletedFinalStateUnknown[T]


class Deltas(list[Delta[T]]):
    """The queued changes of one key, oldest first."""

    __slots__ = ()

    def oldest(self) -> Delta[T] | None:
        """Return the first delta, None if there is none."""
        return self[0] if self else None

    def newest(self) -> Delta[T] | None:
        """Return the last delta, None if there is none."""
        return self[-1] if self else None


def delta_key(obj: Any, key_func: Any) -> str:
    """Return the key of an object, of a tombstone, or of the newest of several deltas.

    Args:
        obj: an object, a tombstone or `Deltas`.
        key_func: returns the key of an object.

    Raises:
        KeyFuncError: the deltas are empty, or the object has no key.
    """
    if isinstance(obj, Deltas):
        newest = obj.newest()
        if newest is None:
            raise KeyFuncError("empty deltas have no key")
        obj = newest.object
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    return str(key_func(obj))
