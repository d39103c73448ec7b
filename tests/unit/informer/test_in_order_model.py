"""A stateful test of RealFIFO: after any changes and pops, cache, index and notifications equal the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from hypothesis import settings
from hypothesis.stateful import invariant, rule

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.store import Indexer
from aioinformer.cache.waiters import KeyWaiters
from aioinformer.handlers.notifications import AddNotification, DeleteNotification, Notification
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.queue.real_fifo import RealFIFO
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.support.batches import process_batch
from tests.support.collection import PODS
from tests.support.queue_model import QueueModel

if TYPE_CHECKING:
    from aioinformer.handlers.processor import SharedProcessor


class Listener:
    """Asserts that notifications are valid: add, updates, delete, each from the version that was delivered before."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def distribute_all(self, notifications: list[Notification[Any]]) -> None:
        for notification in notifications:
            self.distribute(notification)

    def distribute(self, notification: Notification[Any], *, sync: bool = False) -> None:
        if isinstance(notification, AddNotification):
            name, version = self.identity(notification.obj)
            assert name not in self.known
            self.known[name] = version
        elif isinstance(notification, DeleteNotification):
            deleted = notification.obj
            name = deleted.key if isinstance(deleted, DeletedFinalStateUnknown) else self.identity(deleted)[0]
            last = self.known.pop(name)
            if isinstance(deleted, DeletedFinalStateUnknown):
                assert self.identity(deleted.obj)[1] == last
        else:
            (name, old), (_, new) = self.identity(notification.old), self.identity(notification.new)
            assert self.known[name] == old
            assert new == old if sync else new > old
            self.known[name] = new

    @staticmethod
    def identity(obj: Any) -> tuple[str, int]:
        return obj.metadata.name, int(obj.metadata.resource_version)


class InOrderModel(QueueModel):
    """Processes a RealFIFO into a cache with an index, and delivers notifications."""

    def __init__(self) -> None:
        super().__init__()
        objects: ObjectType[Any] = ObjectType(PODS)
        self.indexer: Indexer[Any] = Indexer(to_view=objects.to_view)
        self.indexer.add_indexers({"parity": lambda pod: [str(int(pod.metadata.resource_version) % 2)]})
        self.listener = Listener()
        self.updates: CacheUpdates[Any] = CacheUpdates(
            self.indexer, objects, cast("SharedProcessor[Any]", self.listener), KeyWaiters()
        )
        self.queue: RealFIFO[Record] = RealFIFO(self.updates, batch_size=3)

    def queued(self, name: str) -> Record:
        metadata = {"name": name, "uid": "u", "resourceVersion": str(self.server[name])}
        return decode_record(json.dumps({"metadata": metadata}).encode())

    @rule()
    def pop(self) -> None:
        if len(self.queue):
            self.run(self.queue.pop(self.updates.handle_deltas))

    @rule()
    def pop_everything(self) -> None:
        self.run(self.queue.bookmark(str(self.clock)))
        while len(self.queue):
            version = self.run(process_batch(self.queue, self.updates.handle_deltas))
        assert version == str(self.clock)
        assert self.listener.known == self.server

    @invariant()
    def cache_index_and_listener_agree(self) -> None:
        cached = {pod.metadata.name: int(pod.metadata.resource_version) for pod in self.indexer.list()}
        assert cached == self.listener.known
        for parity in "01":
            keys = self.indexer.index_keys("parity", parity)
            assert keys == sorted(name for name, version in cached.items() if version % 2 == int(parity))


TestInOrderModel = InOrderModel.TestCase
TestInOrderModel.settings = settings(max_examples=50, stateful_step_count=30)
