"""Apply deltas to the cache, and make the notifications. The kind of a notification depends on the cached object.

The cache and its indices change first, then listeners are notified, then waits for the object end. Notifications are
queued as a part of the change: if queueing raises for want of memory, nothing has changed and nothing is delivered.

A collection that is replaced as a whole is compared in steps, while the cache is unchanged. Then, in one step, the
cache changes and all notifications are queued: deletions first, then new and changed objects, in the order of the list.
Readers see the old state or the new one, and a handler that is added between two steps misses no notification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

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

#: Constants, because looking a member up in its class for each delta would cost as much as the comparison.
_DELETED: Final = DeltaType.DELETED
_SYNC: Final = DeltaType.SYNC


class CacheUpdates(Generic[T]):
    """Applies changes to the cache of an informer.

    Args:
        indexer: the cache.
        objects: makes views of records.
        processor: delivers notifications to the listeners.
        waiters: the waits for single objects.
        on_view_failure: is called with the key of an object without a view, and the error.
        known: the part of the cache that belongs to the collection; by default, all of it. Other parts may change while
            this one is replaced.
        undecodable: the objects whose last version cannot be decoded. Another version releases them.

    Attributes:
        flush: passes the notifications to the listeners, before the event loop gets a turn.
    """

    __slots__ = (
        "_awaited",
        "_distribute",
        "_distribute_all",
        "_item",
        "_known",
        "_on_view_failure",
        "_release",
        "_store",
        "_to_view",
        "_unread",
        "_versions",
        "_waiters",
        "flush",
    )

    def __init__(
        self,
        indexer: Indexer[T],
        objects: ObjectType[T],
        processor: SharedProcessor[T],
        waiters: KeyWaiters[T],
        on_view_failure: Callable[[str, BaseException], None] = lambda key, error: None,
        known: KnownObjects | None = None,
        undecodable: Undecodable | None = None,
    ) -> None:
        undecodable = Undecodable(indexer.store) if undecodable is None else undecodable
        self._unread = undecodable.unread.reasons
        self._release = undecodable.release
        self._store = indexer.store
        self._item = indexer.store.item
        self._known = known or indexer.store
        self._to_view = objects.to_view
        self._distribute = processor.distribute
        self._distribute_all = processor.distribute_all
        self.flush = processor.flush
        self._waiters = waiters
        self._awaited = waiters.awaited()
        self._versions = waiters.versions
        self._on_view_failure = on_view_failure

    def handle_deltas(self, deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        """Apply the deltas of one object, oldest first. `flush` passes the notifications to the listeners.

        Args:
            deltas: of one key.
            is_in_initial_list: they belong to the first list.
        """
        for delta in deltas:
            obj = delta.object
            kind = delta.type
            if kind is _DELETED:
                self._delete(obj.key, obj)
            elif kind is _SYNC:
                self._resync(obj.key)
            else:
                assert isinstance(obj, Record)
                self._upsert(obj, is_in_initial_list)

    def replace_all(self, objects: list[Record], is_in_initial_list: bool) -> Iterator[None]:
        """Replace the collection, in steps. Cached objects that are missing in it are deleted, with a tombstone.

        Nothing else may change this part of the cache until the last step.

        Args:
            objects: the whole collection; of several objects with the same key, the last one is used.
            is_in_initial_list: it is the first list.
        """
        store = self._store
        keys = self._known.all_keys()
        change = BulkChange(store)
        listed: dict[str, Record] = {}
        for record in objects:
            listed[record.key] = record
            yield
        notifications: list[Notification[T]] = []
        initial = 0
        for key in keys if "" not in listed else ():  # an object without a name may be any of the missing ones
            if key not in listed:
                change.delete(key)
                notifications.append(self._missed_delete(key, store.item(key)))
            yield
        for key, record in listed.items():
            old = store.item(key)
            if type(record) is UndecodablePlaceholder:
                yield
                continue
            if old is None or not _is_same(old, record):
                notification = self._upsert_notification(old, record, is_in_initial_list)
                if notification is not None:
                    notifications.append(notification)
                    initial += type(notification) is AddNotification and notification.is_in_initial_list
                    (change.add if old is None else change.update)(key, record)
            yield
        change.commit(lambda: self._distribute_all(notifications, initial))
        # All of this is one step, so there is no loop over all objects, unless versions have no order.
        if self._versions.opaque:
            for key, record in listed.items():
                if key in change:
                    self._versions.saw(record.resource_version)
        for key in list(self._unread):  # to which any thread may add
            if key in change:
                self._release(key)
        for key in [each for each in self._awaited if each in change]:
            self._wake_waiters(key)

    def forget(self, keys: Iterable[str]) -> Iterator[None]:
        """Delete objects that the informer no longer follows, in steps, and deliver tombstones.

        Args:
            keys: of objects in the cache.
        """
        for key in keys:
            self._delete(key, DeletedFinalStateUnknown(key, self._store.item(key)))
            yield

    def sync_all(self) -> Iterator[None]:
        """Resync: deliver an update of each cached object, in steps."""
        for key in self._known.all_keys():
            self._resync(key)
            yield

    def check_waits(self) -> None:
        """Check all waits. A first list may have shown that an object does not exist.

        And waking them may have failed, after a change that is not repeated.
        """
        for key in list(self._awaited):
            self._wake_waiters(key)
        self._versions.check_waits()

    def _upsert(self, record: Record, is_in_initial_list: bool) -> None:
        if type(record) is UndecodablePlaceholder:
            return
        key = record.key
        old = self._store.item(key)
        # Most records have another version: this is compared first, without the cost of a call.
        if old is not None and old.resource_version == record.resource_version and _is_same(old, record):
            return
        notification = self._upsert_notification(old, record, is_in_initial_list)
        if notification is None:
            return
        self._store.put(key, record, self._distribute, notification)
        if self._versions.opaque:
            self._versions.saw(record.resource_version)
        if self._unread:
            self._release(key)
        if key in self._awaited:
            self._waiters.changed(key, self._view_of(key, record))

    def _upsert_notification(
        self, old: Record | None, record: Record, is_in_initial_list: bool
    ) -> AddNotification[T] | UpdateNotification[T] | None:
        """Return the notification of a new state; None if the state has no view, so the cached object stays."""
        try:
            obj = self._to_view(record)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._unread.pop(record.key, None)  # the reason of another version
            self._on_view_failure(record.key, error)
            return None
        if old is None:
            return AddNotification(obj, is_in_initial_list)
        try:
            return UpdateNotification(self._to_view(old), obj)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._on_view_failure(record.key, error)
            return AddNotification(obj, False)  # contains no old state

    def _delete(self, key: str, obj: Record | DeletedFinalStateUnknown[Record]) -> None:
        old = self._store.item(key)
        if old is None:  # no handler has received the object
            self._saw_deleted(obj)
            self._release(key)
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            # The cached object may be later than the object in the tombstone.
            notification = self._missed_delete(key, old)
        else:
            last = self._view_of(key, obj)
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

    def _resync(self, key: str) -> None:
        record = self._store.item(key)
        if record is not None:
            obj = self._view_of(key, record)
            if obj is not None:
                self._distribute(UpdateNotification(obj, obj), sync=True)

    def _wake_waiters(self, key: str) -> None:
        record = self._store.item(key)
        self._waiters.changed(key, self._view_of(key, record) if record is not None else None)

    def _missed_delete(self, key: str, last: Record) -> DeleteNotification[T]:
        return DeleteNotification(DeletedFinalStateUnknown(key, self._view_of(key, last)))

    def _view_of(self, key: str, record: Record) -> T | None:
        try:
            return self._to_view(record)
        except MemoryError:
            raise
        except USER_ERRORS as error:
            self._on_view_failure(key, error)
            return None


def _is_same(old: Record, new: Record) -> bool:
    return old is new or (old.same_version(new) and old.same_content(new))
