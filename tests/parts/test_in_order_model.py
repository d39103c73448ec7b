"""The in-order queue and the cache behind it beside the truth: whatever happens, and whenever it is popped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.store import Indexer
from aioinformer.cache.waiters import KeyWaiters
from aioinformer.handlers.notifications import AddNotification, DeleteNotification, Notification
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.queue.real_fifo import RealFIFO
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.core.batches import process_batch
from tests.shell.collection import PODS

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from aioinformer.handlers.processor import SharedProcessor

NAMES = st.sampled_from("abcd")


class Listener:
    """Holds what it is told against the law: add, updates, delete, each from the version that was told before."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def distribute_all(self, notifications: list[Notification[Any]]) -> None:
        for notification in notifications:
            self.distribute(notification)

    def distribute(self, notification: Notification[Any], *, sync: bool = False) -> None:
        if isinstance(notification, AddNotification):
            name, version = self.facts(notification.obj)
            assert name not in self.known
            self.known[name] = version
        elif isinstance(notification, DeleteNotification):
            gone = notification.obj
            name = gone.key if isinstance(gone, DeletedFinalStateUnknown) else self.facts(gone)[0]
            last = self.known.pop(name)
            if isinstance(gone, DeletedFinalStateUnknown):
                assert self.facts(gone.obj)[1] == last
        else:
            (name, old), (_, new) = self.facts(notification.old), self.facts(notification.new)
            assert self.known[name] == old
            assert new == old if sync else new > old
            self.known[name] = new

    @staticmethod
    def facts(obj: Any) -> tuple[str, int]:
        return obj.metadata.name, int(obj.metadata.resource_version)


class InOrderBesideTruth(RuleBasedStateMachine):
    """The truth is what the server has."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: dict[str, int] = {}
        self.clock = 0
        objects: ObjectType[Any] = ObjectType(PODS)
        self.indexer: Indexer[Any] = Indexer(to_view=objects.to_view)
        self.indexer.add_indexers({"parity": lambda pod: [str(int(pod.metadata.resource_version) % 2)]})
        self.listener = Listener()
        self.updates: CacheUpdates[Any] = CacheUpdates(
            self.indexer, objects, cast("SharedProcessor[Any]", self.listener), KeyWaiters()
        )
        self.queue: RealFIFO[Record] = RealFIFO(self.updates, batch_size=3)

    def run(self, operation: Coroutine[Any, Any, Any]) -> Any:
        """Nothing in here ever has to wait."""
        try:
            while True:
                operation.send(None)
        except StopIteration as done:
            return done.value

    def version(self) -> int:
        self.clock += 1
        return self.clock

    def record(self, name: str) -> Record:
        metadata = {"name": name, "uid": "u", "resourceVersion": str(self.truth[name])}
        return decode_record(json.dumps({"metadata": metadata}).encode())

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        fresh = name not in self.truth
        self.truth[name] = self.version()
        self.run(self.queue.add(self.record(name)) if fresh else self.queue.update(self.record(name)))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.truth:
            self.truth[name] = self.version()
            gone = self.record(name)
            del self.truth[name]
            self.run(self.queue.delete(gone))

    @rule(written=st.lists(NAMES), deleted=st.lists(NAMES), over=st.booleans())
    def miss_and_list(self, written: list[str], deleted: list[str], over: bool) -> None:
        for name in written:
            self.truth[name] = self.version()
        for name in deleted:
            self.truth.pop(name, None)
        objects = {name: self.record(name) for name in self.truth}
        version = str(self.version())
        self.run(self.queue.replace_owned(objects, version) if over else self.queue.replace(objects.values(), version))

    @rule()
    def resync(self) -> None:
        self.run(self.queue.resync())

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
        assert self.listener.known == self.truth

    @invariant()
    def cache_index_and_listener_agree(self) -> None:
        cached = {pod.metadata.name: int(pod.metadata.resource_version) for pod in self.indexer.list()}
        assert cached == self.listener.known
        for parity in "01":
            keys = self.indexer.index_keys("parity", parity)
            assert keys == sorted(name for name, version in cached.items() if version % 2 == int(parity))


TestInOrderBesideTruth = InOrderBesideTruth.TestCase
TestInOrderBesideTruth.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
