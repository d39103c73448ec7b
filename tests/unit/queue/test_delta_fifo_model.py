"""A stateful test of DeltaFIFO: after any sequence of changes and pops, the store equals the server."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis.stateful import invariant, rule

from aioinformer.cache.store import ThreadSafeStore
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.deltas import DeltaType
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.support.batches import process_batch
from tests.support.queue_model import QueueModel

if TYPE_CHECKING:
    from aioinformer.queue.deltas import Deltas


class DeltaFIFOModel(QueueModel):
    """Processes a DeltaFIFO into a store."""

    def __init__(self) -> None:
        super().__init__()
        self.store: ThreadSafeStore[Any] = ThreadSafeStore()
        self.queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=self.store)

    def queued(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "version": self.server[name]}

    @rule()
    def pop(self) -> None:
        if len(self.queue):
            self.run(self.queue.pop(self.process))

    @rule()
    def pop_everything(self) -> None:
        if len(self.queue):
            self.run(process_batch(self.queue, self.process))
        assert {key: item["version"] for key, item in self.store.snapshot()} == self.server

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
    def no_key_is_queued_twice(self) -> None:
        assert len(self.queue) <= 4


TestDeltaFIFOModel = DeltaFIFOModel.TestCase
TestDeltaFIFOModel.settings = settings(max_examples=50, stateful_step_count=30)
