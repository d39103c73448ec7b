"""`ReselectingInformer`: an informer whose selection may change while it runs: labels, fields, or shard.

The cache, handlers and readers stay. The informer lists the new selection and delivers the differences: objects that
are only in the new selection as adds of an initial list, objects that are only in the old one as deletes with a
`DeletedFinalStateUnknown` (they may still exist on the server), and objects in both if they have changed. Until this
list arrives, the cache shows the old selection without further changes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sources import OneCollection
from aioinformer.reflector.listwatch import ListerWatcher

T = TypeVar("T")


class ReselectingInformer(SharedIndexInformer[T]):
    """A `SharedIndexInformer` with the method `select`.

    Args:
        lister_watcher: the initial selection.
        resync_period: as for `SharedIndexInformer`.
        options: as for `SharedIndexInformer`.
    """

    def __init__(self, lister_watcher: ListerWatcher[T], resync_period: float = 0.0, **options: Any) -> None:
        self._collection = OneCollection(lister_watcher)
        super().__init__(self._collection, resync_period, **options)

    async def select(self, lister_watcher: ListerWatcher[T]) -> None:
        """Change the selection, and wait until the cache shows it.

        Before the start, it returns at once. Cancelling the wait keeps the new selection. Of concurrent calls, the last
        one wins, and all of them wait for it.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: the selection is of another resource.
        """
        if self._stopped:
            raise InformerStopped(f"the selection was not changed because {self.name} has stopped already")
        if lister_watcher.resource.gvr != self.resource.gvr:
            raise UsageError(f"{self.name} cannot select {lister_watcher.resource.gvr}; create another informer for it")
        shown = self._collection.select(lister_watcher)
        if self._started:
            await shown.wait()
