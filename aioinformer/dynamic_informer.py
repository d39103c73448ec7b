"""An informer of something that may not be there.

It can be told whether its resource is served. While it is not, nothing is asked and the cache is empty: everything that
was in it was told as gone. When it is served again, the same informer goes on, with the same handlers.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.listwatch import ListWatch
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.state import InformerState, Phase
from aioinformer.storage import Storage

if TYPE_CHECKING:
    from aioinformer.listwatch import ListerWatcher


class DynamicInformer(SharedIndexInformer[Any]):
    """A `SharedIndexInformer` that can be told whether its resource is served. To begin with, it is."""

    _served = True  # metrics may ask while this is being made

    def __init__(self, lister_watcher: ListerWatcher[Any], resync_period: float = 0.0, **options: Any) -> None:
        super().__init__(lister_watcher, resync_period, **options)
        self._only_metadata = options.get("storage") == Storage.METADATA
        self._change = asyncio.Event()

    @property
    def served(self) -> bool:
        """Whether the resource is known to be served, and therefore followed."""
        return self._served

    def serve(self, served: bool) -> None:
        """The resource is served from now on, or not: then everything in the cache is told as gone."""
        if served is not self._served:
            self._served = served
            self._change.set()

    def move(self, lister_watcher: ListerWatcher[Any]) -> None:
        """The resource is listed and watched by this from now on: it came back with another scope.

        Args:
            lister_watcher: of the same resource.
        """
        if self._only_metadata and isinstance(lister_watcher, ListWatch):
            lister_watcher = lister_watcher.only_metadata()
        self._lister_watcher = lister_watcher
        self.resource = lister_watcher.resource
        self._change.set()

    def _reflector_state(self) -> InformerState:
        state = super()._reflector_state()
        if self._served or self._stopped or not self._started:
            return state
        return replace(state, phase=Phase.NOT_FOUND, reason="its definition is not there, or does not serve it")

    async def _follow(self) -> None:
        while True:
            self._change.clear()
            if self._served:
                async with asyncio.TaskGroup() as tasks:
                    following = tasks.create_task(super()._follow(), name=f"{self.name}: while it is served")
                    await self._change.wait()
                    following.cancel()
                # What was queued then is of before.
                self._queue = self._pipeline.queue()
            else:
                self._quarantine.clear()
                await self._pipeline.forget(self._indexer.cells.all_keys())
                await self._change.wait()
