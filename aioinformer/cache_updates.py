"""From deltas to cache and notifications: what a change means depends on what is cached, not on what it is called.

The cache and its indices change first, then listeners are told, then those who wait for the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown, Deltas, DeltaType
from aioinformer.notifications import AddNotification, DeleteNotification, UpdateNotification
from aioinformer.objects import Record

if TYPE_CHECKING:
    from aioinformer.object_type import ObjectType
    from aioinformer.processor import SharedProcessor
    from aioinformer.store import Indexer
    from aioinformer.waiters import KeyWaiters

T = TypeVar("T")


class CacheUpdates(Generic[T]):
    """Brings the cache of an informer up to date.

    Args:
        indexer: the cache.
        objects: makes of a record what listeners see.
        processor: tells listeners.
        waiters: those who wait for single objects.
    """

    def __init__(
        self,
        indexer: Indexer[T],
        objects: ObjectType[T],
        processor: SharedProcessor[T],
        waiters: KeyWaiters[T],
    ) -> None:
        self._cells = indexer.cells
        self._present = objects.present
        self._distribute = processor.distribute
        self._waiters = waiters

    def handle_deltas(self, deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        """Takes in the deltas of one object, oldest first.

        Args:
            deltas: all of one key.
            is_in_initial_list: they belong to the first list.
        """
        for delta in deltas:
            obj = delta.object
            if delta.type is DeltaType.DELETED:
                self._deleted(obj.key, obj)
            elif delta.type is DeltaType.SYNC:
                self._repeated(obj.key)
            else:
                assert isinstance(obj, Record)
                self._upserted(obj, is_in_initial_list)

    def _upserted(self, record: Record, is_in_initial_list: bool) -> None:
        key = record.key
        old = self._cells.item(key)
        if old is None:
            self._cells.put(key, record)
            self._distribute(AddNotification(self._present(record), is_in_initial_list))
        elif old is record or (old.same_version(record) and old.same_content(record)):
            return
        else:
            self._cells.put(key, record)
            self._distribute(UpdateNotification(self._present(old), self._present(record)))
        if key in self._waiters:
            self._waiters.changed(key, self._present(record))

    def _deleted(self, key: str, obj: Record | DeletedFinalStateUnknown[Record]) -> None:
        old = self._cells.delete(key)
        if old is None:  # nobody was told of it
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            self._distribute(DeleteNotification(DeletedFinalStateUnknown(key, self._present(obj.obj or old))))
        else:
            self._distribute(DeleteNotification(self._present(obj)))
        if key in self._waiters:
            self._waiters.changed(key, None)

    def _repeated(self, key: str) -> None:
        record = self._cells.item(key)
        if record is not None:
            obj = self._present(record)
            self._distribute(UpdateNotification(obj, obj), sync=True)
