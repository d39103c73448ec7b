"""An informer whose selection may change while it runs: other labels, other fields, another shard.

The cache, its handlers and its readers stay. The new selection is listed, and what differs is told: what is new in it
is added, as a part of an initial list; what is not in it is gone, as a `DeletedFinalStateUnknown` (on the server it may
well be there); and what is in both is told only if it changed. Until that list has come, the cache shows the old
selection, and does not follow it any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.cache.objects.storage import Storage
from aioinformer.concurrency import Latch
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.listwatch import ListWatch

if TYPE_CHECKING:
    from aioinformer.reflector.listwatch import ListerWatcher

T = TypeVar("T")


class ReselectingInformer(SharedIndexInformer[T]):
    """A `SharedIndexInformer` with `select`.

    Args:
        lister_watcher: the selection to begin with.
        resync_period: as for `SharedIndexInformer`, as are all options.
    """

    def __init__(self, lister_watcher: ListerWatcher[T], resync_period: float = 0.0, **options: Any) -> None:
        super().__init__(lister_watcher, resync_period, **options)
        self._only_metadata = options.get("storage") == Storage.METADATA
        self._shown = Latch()

    async def select(self, lister_watcher: ListerWatcher[T]) -> None:
        """Follows another selection of the same resource from now on; returns once the cache shows it.

        Before the start, it returns at once. A wait that is cancelled leaves the new selection in place. Of several
        calls the last one counts, and all of them wait for it.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: this is another resource.
        """
        if self._stopped:
            raise InformerStopped(f"the selection was not changed because {self.name} has stopped already")
        if lister_watcher.resource.gvr != self.resource.gvr:
            raise UsageError(f"{self.name} cannot select {lister_watcher.resource.gvr}; make another informer for it")
        if self._only_metadata and isinstance(lister_watcher, ListWatch):
            lister_watcher = lister_watcher.only_metadata()
        if self._shown:
            self._shown = Latch()
        self._replace_source(lister_watcher)
        if self._started:
            await self._shown.wait()

    def _processed(self, version: str) -> None:
        super()._processed(version)
        source = self._source
        if source is not None and source.lister_watcher is self._lister_watcher and source.queue.has_synced():
            self._shown.set()

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        self._shown.fail(failure)
