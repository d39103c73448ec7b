"""What the queue holds: what became known of an object, in the order in which it became known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DeltaType(StrEnum):
    """Why a delta is there; the values are client-go's."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown(Generic[T_co]):
    """A tombstone: the object is gone, and its last state before that was missed.

    Attributes:
        key: `namespace/name`, or `name`.
        obj: the last state that was known, which may be old; None if none was.
    """

    key: str
    obj: T_co | None


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
