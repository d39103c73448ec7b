"""From deltas to cache and notifications: what a change means depends on what is cached, not on what it is called.

The cache and its indices change first, then listeners are notified, then waits for the object end. Notifications are
queued as a part of the change: if queueing raises, for want of memory, nothing has changed and nothing is delivered.

A collection that is replaced as a whole is compared in steps, while the cache stays as it was; then, in one step, the
cache changes and everything is told: deletions first, then what is new or changed, in the order of the list (CTL-13).
So readers see the old state or the new one, and who joins between two steps finds cache and notifications in step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.objects.record import Record, UndecodablePlaceholder
from aioinformer.errors import USER_ERRORS
from aioinformer.handlers.notifications import AddNotification, DeleteNotification, UpdateNotification
from aioinformer.informer.health import Undecodable
from aioinformer.queue.deltas import Deltas, DeltaType
from aioinformer.resources.keys import DeletedFinalStateUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.cache.store import Indexer
    from aioinformer.cache.waiters import KeyWaiters
    from aioinformer.handlers.notifications import Notification
    from aioinformer.handlers.processor import SharedProcessor
    from aioinformer.queue.delta_fifo import KnownObjects

T = TypeVar("T")

#: Named here, since looking them up in their class costs as much as what they are compared for.
_DELETED, _SYNC = DeltaType.DELETED, DeltaType.SYNC


class CacheUpdates(Generic[T]):
    """Brings the cache of an informer up to date.

    Args:
        indexer: the cache.
        objects: makes of a record what listeners see.
        processor: tells listeners.
        waiters: those who wait for single objects.
        unpresentable: told of an object of which nothing can be made that listeners could see, and why.
        known: the part of the cache that is the whole collection, where that is not all of it. Other parts may change
            while this one is replaced.
        undecodable: knows of objects whose last version was not readable: another one may be.
    """

    def __init__(
        self,
        indexer: Indexer[T],
        objects: ObjectType[T],
        processor: SharedProcessor[T],
        waiters: KeyWaiters[T],
        unpresentable: Callable[[str, BaseException], None] = lambda key, error: None,
        known: KnownObjects | None = None,
        undecodable: Undecodable | None = None,
    ) -> None:
        undecodable = Undecodable(indexer.store) if undecodable is None else undecodable
        self._unread = undecodable.unread.reasons
        self._release = undecodable.release
        self._store = indexer.store
        self._known = known or indexer.store
        self._to_view = objects.to_view
        self._distribute = processor.distribute
        self._distribute_all = processor.distribute_all
        self._waiters = waiters
        self._awaited = waiters.awaited()
        self._versions = waiters.versions
        self._unpresentable = unpresentable

    def handle_deltas(self, deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        """Takes in the deltas of one object, oldest first.

        Args:
            deltas: all of one key.
            is_in_initial_list: they belong to the first list.
        """
        for delta in deltas:
            obj = delta.object
            kind = delta.type
            if kind is _DELETED:
                self._deleted(obj.key, obj)
            elif kind is _SYNC:
                self._repeated(obj.key)
            else:
                assert isinstance(obj, Record)
                self._upserted(obj, is_in_initial_list)

    def replace_all(self, objects: list[Record], is_in_initial_list: bool) -> Iterator[None]:
        """Takes in a whole collection, in steps: what is cached and not in there is gone, and that was missed.

        Nothing else may change this part of the cache until the last step.

        Args:
            objects: all there are; of a key that is in there twice, the last counts.
            is_in_initial_list: it is the first list.
        """
        store = self._store
        keys = self._known.all_keys()
        change = BulkChange(store, fresh=not keys)
        listed: dict[str, Record] = {}
        for record in objects:
            listed[record.key] = record
            yield
        told: list[Notification[T]] = []
        changed: list[str] = []
        for key in keys if "" not in listed else ():  # it may stand for any of those that are not named
            if key not in listed:
                change.delete(key)
                changed.append(key)
                told.append(self._missed(key, store.item(key)))
            yield
        for key, record in listed.items():
            old = store.item(key)
            if type(record) is UndecodablePlaceholder:
                yield
                continue
            if old is None or not _is_same(old, record):
                news = self._upsert(old, record, is_in_initial_list)
                if news is not None:
                    told.append(news)
                    change.put(key, record)
                    changed.append(key)
            elif key in self._awaited:  # as in `_upserted`
                changed.append(key)
            yield
        change.commit(lambda: self._distribute_all(told))
        for key in changed:
            if self._versions.opaque and key in listed:
                self._versions.saw(listed[key].resource_version)
            if self._unread:
                self._release(key)
            if key in self._awaited:
                self._tell_waiters(key)

    def forget(self, keys: Iterable[str]) -> Iterator[None]:
        """Takes objects out that nobody follows any more, in steps, and tells them as gone, unseen.

        Args:
            keys: of objects in the cache.
        """
        for key in keys:
            self._deleted(key, DeletedFinalStateUnknown(key, self._store.item(key)))
            yield

    def sync_all(self) -> Iterator[None]:
        """Tells of everything again, in steps (CTL-14)."""
        for key in self._known.all_keys():
            self._repeated(key)
            yield

    def _upserted(self, record: Record, is_in_initial_list: bool) -> None:
        if type(record) is UndecodablePlaceholder:
            return
        key = record.key
        old = self._store.item(key)
        # Most are of another version: to call a function for that would cost as much as the answer.
        if old is not None and old.resource_version == record.resource_version and _is_same(old, record):
            if key in self._awaited:  # the first time, telling them may have failed
                self._tell_waiters(key)
            return
        notification = self._upsert(old, record, is_in_initial_list)
        if notification is None:
            return
        self._store.put(key, record, self._distribute, notification)
        if self._versions.opaque:
            self._versions.saw(record.resource_version)
        if self._unread:
            self._release(key)
        if key in self._awaited:
            self._waiters.changed(key, self._shown(key, record))

    def _upsert(
        self, old: Record | None, record: Record, is_in_initial_list: bool
    ) -> AddNotification[T] | UpdateNotification[T] | None:
        """What is told of a new state; None if it cannot be shown: then what is cached stays, as if it had not come."""
        try:
            obj = self._to_view(record)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._unread.pop(record.key, None)  # what was said of another version
            self._unpresentable(record.key, error)
            return None
        if old is None:
            return AddNotification(obj, is_in_initial_list)
        try:
            return UpdateNotification(self._to_view(old), obj)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._unpresentable(record.key, error)
            return AddNotification(obj, False)  # which claims nothing of what was before

    def _deleted(self, key: str, obj: Record | DeletedFinalStateUnknown[Record]) -> None:
        old = self._store.item(key)
        if old is None:  # nobody was told of it
            self._saw_deleted(obj)
            self._release(key)
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            # What the queue knew when the tombstone was made may be older than what has been told since.
            notification = self._missed(key, old)
        else:
            last = self._shown(key, obj)
            notification = DeleteNotification(DeletedFinalStateUnknown(key, None) if last is None else last)
        self._store.delete(key, self._distribute, notification)
        self._saw_deleted(obj)
        if self._unread:
            self._release(key)
        if key in self._awaited:
            self._waiters.changed(key, None)

    def _saw_deleted(self, obj: Record | DeletedFinalStateUnknown[Record]) -> None:
        if self._versions.opaque and isinstance(obj, Record):
            self._versions.saw(obj.resource_version)

    def _repeated(self, key: str) -> None:
        record = self._store.item(key)
        if record is not None:
            obj = self._shown(key, record)
            if obj is not None:
                self._distribute(UpdateNotification(obj, obj), sync=True)

    def _tell_waiters(self, key: str) -> None:
        record = self._store.item(key)
        self._waiters.changed(key, self._shown(key, record) if record is not None else None)

    def _missed(self, key: str, last: Record) -> DeleteNotification[T]:
        return DeleteNotification(DeletedFinalStateUnknown(key, self._shown(key, last)))

    def _shown(self, key: str, record: Record) -> T | None:
        try:
            return self._to_view(record)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._unpresentable(key, error)
            return None


def _is_same(old: Record, new: Record) -> bool:
    return old is new or (old.same_version(new) and old.same_content(new))
