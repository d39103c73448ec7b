"""`RingInformers`: the informers of a manager that shares a ring. They cache the objects of some slots, or all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from aioinformer.factory.pool import InformerPool
from aioinformer.factory.reselecting import ReselectingInformer
from aioinformer.reflector.sharding import ShardedListWatch
from aioinformer.resources.shards import HASHES, NAMESPACE, UID, ShardRange, ShardSelector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from aioinformer.factory.memory import InformerMemory
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.informer.snapshots import FactorySnapshot
    from aioinformer.metrics.provider import MetricsProvider
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.scopes import InformerKey
    from aioinformer.ring.declaration import ControllerRing
    from aioinformer.transport import Transport


def shard_of(slots: Collection[int], ring: ControllerRing) -> ShardSelector:
    """Return the selector of slots; of none, a selector that no object matches."""
    field = UID if ring.by == "uid" else NAMESPACE
    size = HASHES // ring.slots
    bounds: list[tuple[int, int]] = []
    for slot in sorted(slots):
        joined = bounds.pop()[0] if bounds and bounds[-1][1] == slot * size else slot * size
        bounds.append((joined, (slot + 1) * size))
    return ShardSelector(tuple(ShardRange(start, end, field) for start, end in bounds or [(0, 1)]))


class _SlotPool(InformerPool):
    """Informers whose caches have the objects of the selected slots. Those of several namespaces have all objects."""

    def __init__(self, ring: ControllerRing, of_owner: bool, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._shard = shard_of((), ring)
        self._of_owner = of_owner and ring.by == "uid"
        self._keys: WeakKeyDictionary[ReselectingInformer[Any], InformerKey] = WeakKeyDictionary()

    async def select(self, shard: ShardSelector) -> None:
        self._shard = shard
        selecting = (informer.select(self._source(key)) for informer, key in list(self._keys.items()))
        await asyncio.gather(*selecting, return_exceptions=True)  # some may have stopped

    def _one(self, key: InformerKey, options: Mapping[str, Any], making: Any) -> SharedIndexInformer[Any]:
        informer = self._builder.build(ReselectingInformer, key, options, making, self._source(key))
        self._keys[informer] = key
        return informer

    def _source(self, key: InformerKey) -> ShardedListWatch[Any]:
        scope = key.scope
        transport = self._builder.client.transport
        selectors = scope.namespace, scope.label_selector, scope.field_selector
        return ShardedListWatch(transport, key.resource, self._shard, *selectors, of_owner=self._of_owner)


class RingInformers:
    """The `Informers` of a manager that shares a ring. The arguments are those of `InformerPool`."""

    def __init__(
        self,
        ring: ControllerRing,
        transport: Transport,
        namespaces: Iterable[str] = (),
        *,
        name: str,
        metrics: MetricsProvider | None = None,
    ) -> None:
        self._ring = ring
        self._slots = _SlotPool(ring, False, transport, namespaces, name=f"{name}-slots", metrics=metrics)
        self._owned = _SlotPool(ring, True, transport, namespaces, name=f"{name}-owned", metrics=metrics)
        self._whole = InformerPool(transport, namespaces, name=name, metrics=metrics)
        self._pools: dict[SharedIndexInformer[Any], InformerPool] = {}
        self._selected: frozenset[int] = frozenset()
        self._selecting: asyncio.Future[Any] | None = None

    def acquire(
        self, resource: Resource[Any], options: Mapping[str, Any], part: Literal["", "slots", "owned"] = ""
    ) -> SharedIndexInformer[Any]:
        """Return the informer of a resource: of all objects, of those in the slots, or of those with owners there."""
        pool = {"": self._whole, "slots": self._slots, "owned": self._owned}[part]
        informer = pool.acquire(resource, options)
        self._pools[informer] = pool
        return informer

    async def select(self, slots: frozenset[int]) -> None:
        """Change the slots, and wait until the caches show them."""
        if slots != self._selected or self._selecting is None:
            shard = shard_of(slots, self._ring)
            self._selected = slots
            self._selecting = asyncio.gather(self._slots.select(shard), self._owned.select(shard))
        await asyncio.shield(self._selecting)

    async def release(self, informer: SharedIndexInformer[Any]) -> None:
        """End a use."""
        await self._pools[informer].release(informer)

    def start(self) -> None:
        """Start the informers that do not run yet."""
        for pool in (self._slots, self._owned, self._whole):
            pool.start()

    async def stop(self) -> None:
        """Stop all informers, and wait for them."""
        await asyncio.gather(*(pool.stop() for pool in (self._slots, self._owned, self._whole)))
        if self._selecting is not None:
            await asyncio.wait({self._selecting})

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers and their handlers, as plain data for `json.dumps`."""
        whole = self._whole.snapshot()
        for name, pool in (("slots", self._slots), ("owned", self._owned)):
            whole["informers"].update({f"{key} ({name})": each for key, each in pool.snapshot()["informers"].items()})
        return whole

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes."""
        found = await self._whole.memory()
        for name, pool in (("slots", self._slots), ("owned", self._owned)):
            found.update({f"{key} ({name})": each for key, each in (await pool.memory()).items()})
        return found
