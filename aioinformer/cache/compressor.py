"""The background task of the compressed storage tier: trains dictionaries in a thread, and packs earlier records."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio._backends._asyncio  # otherwise, the import on first use blocks the event loop
import anyio.to_thread

from aioinformer.cache.objects.compression import Codec, Compression, PackedRecord
from aioinformer.concurrency import Slicer
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.cache.store import ThreadSafeStore

_log = get_logger("aioinformer.cache")


class Compressor:
    """Owns the tier, and the task that trains its dictionaries."""

    def __init__(self) -> None:
        self._samples_ready = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self.tier = Compression(self._on_samples)

    async def settle(self) -> None:
        """Wait while the first dictionary is being trained: records that arrive meanwhile stay uncompressed."""
        await self._settled.wait()

    def _on_samples(self) -> None:
        if not self.tier.ready:
            self._settled.clear()
        self._samples_ready.set()

    async def run(self, store: ThreadSafeStore[Any], synced: Callable[[], Awaitable[None]]) -> None:
        """Train a dictionary whenever the tier has samples, until cancelled.

        Args:
            store: its records that arrived before the dictionary are packed.
            synced: returns when the initial list is in the store.
        """
        while True:
            await self._samples_ready.wait()
            self._samples_ready.clear()
            try:
                codec = await anyio.to_thread.run_sync(Codec, self.tier.samples, abandon_on_cancel=True)
            except Exception:
                # Training fails for objects that have nothing in common.
                _log.warning("no compression dictionary could be trained: objects stay uncompressed", exc_info=True)
                self.tier.samples = []
            else:
                self.tier.adopt(codec)
            self._settled.set()
            if self.tier.ready:
                await synced()
                await self._pack(store)

    async def _pack(self, store: ThreadSafeStore[Any]) -> None:
        slicer = Slicer()
        for key, record in store.snapshot():
            if not isinstance(record, PackedRecord):
                try:
                    store.exchange(key, record, self.tier.packed(record))
                except Exception:  # MemoryError, for example
                    _log.warning("%s could not be compressed and stays uncompressed", key, exc_info=True)
            await slicer.pause()
