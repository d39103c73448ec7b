"""Trains dictionaries for the compressed tier beside the loop, and packs what was cached before there was one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from aioinformer.cache.objects.compression import Codec, Compression
from aioinformer.cache.objects.record import Record
from aioinformer.concurrency import Slicer
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.cache.store import ThreadSafeStore

_log = get_logger("aioinformer.cache")


class Compressor:
    """The tier, and the task that serves it.

    Attributes:
        tier: packs records.
    """

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self.tier = Compression(self._want)

    async def settle(self) -> None:
        """Waits while the first dictionary is made: what arrives meanwhile would have to be kept as it is."""
        await self._settled.wait()

    def _want(self) -> None:
        if not self.tier.ready:
            self._settled.clear()
        self._wanted.set()

    async def run(self, store: ThreadSafeStore[Any], synced: Callable[[], Awaitable[None]]) -> None:
        """Trains whenever the tier asks for it, until cancelled.

        Args:
            store: where records are packed that came before there was a dictionary.
            synced: returns when the first list is in there.
        """
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                codec = await anyio.to_thread.run_sync(Codec, self.tier.samples, abandon_on_cancel=True)
            except Exception:
                # Objects that have nothing in common make no dictionary; they are kept as they are.
                _log.warning("no dictionary could be made: objects are kept as they are", exc_info=True)
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
            if type(record) is Record:
                try:
                    store.exchange(key, record, self.tier.packed(record))
                except Exception:  # for want of memory, say
                    _log.warning("%s is kept as it is, uncompressed", key, exc_info=True)
            await slicer.pause()
