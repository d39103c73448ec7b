"""DeltaFIFO and its consumer beside the truth: whatever happens, and whenever it is popped, they end up the same."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from aioinformer.cache.store import ThreadSafeStore
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.deltas import Deltas, DeltaType
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.core.batches import process_batch

if TYPE_CHECKING:
    from collections.abc import Coroutine

NAMES = st.sampled_from("abcd")


class QueueBesideTruth(RuleBasedStateMachine):
    """The truth is what the server has; the store is what the consumer made of what it popped."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: dict[str, int] = {}
        self.clock = 0
        self.store: ThreadSafeStore[Any] = ThreadSafeStore()
        self.queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=self.store)

    def run(self, operation: Coroutine[Any, Any, Any]) -> None:
        """Nothing in here ever has to wait."""
        try:
            while True:
                operation.send(None)
        except StopIteration:
            return

    def version(self) -> int:
        self.clock += 1
        return self.clock

    def obj(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "version": self.truth[name]}

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        fresh = name not in self.truth
        self.truth[name] = self.version()
        self.run(self.queue.add(self.obj(name)) if fresh else self.queue.update(self.obj(name)))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.truth:
            self.truth[name] = self.version()
            gone = self.obj(name)
            del self.truth[name]
            self.run(self.queue.delete(gone))

    @rule(written=st.lists(NAMES), deleted=st.lists(NAMES), over=st.booleans())
    def miss_and_list(self, written: list[str], deleted: list[str], over: bool) -> None:
        for name in written:
            self.truth[name] = self.version()
        for name in deleted:
            self.truth.pop(name, None)
        objects = {name: self.obj(name) for name in self.truth}
        self.run(self.queue.replace_owned(objects) if over else self.queue.replace(objects.values()))

    @rule()
    def resync(self) -> None:
        self.run(self.queue.resync())

    @rule()
    def pop(self) -> None:
        if len(self.queue):
            self.run(self.queue.pop(self.process))

    @rule()
    def pop_everything(self) -> None:
        if len(self.queue):
            self.run(process_batch(self.queue, self.process))
        assert {key: item["version"] for key, item in self.store.snapshot()} == self.truth

    def process(self, deltas: Deltas[Any], initial: bool) -> None:
        assert deltas
        key = self.queue.key_of(deltas)
        for before, after in itertools.pairwise(deltas):
            assert not before.type is after.type is DeltaType.DELETED
        for delta in deltas:
            if delta.type is DeltaType.DELETED:
                assert isinstance(delta.object, DeletedFinalStateUnknown) or delta.object["metadata"]["name"] == key
                self.store.delete(key)
                continue
            assert not isinstance(delta.object, DeletedFinalStateUnknown)
            old = self.store.item(key)
            if delta.type is not DeltaType.REPLACED and old is not None:
                assert delta.object["version"] >= old["version"], "went back in time"
            self.store.put(key, delta.object)

    @invariant()
    def no_key_waits_twice(self) -> None:
        assert len(self.queue) <= 4


TestQueueBesideTruth = QueueBesideTruth.TestCase
TestQueueBesideTruth.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
