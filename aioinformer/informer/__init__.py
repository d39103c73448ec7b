"""One shared informer: its controller loop, its cache, its handlers, and its state."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.informer.controller import CacheController as CacheController
    from aioinformer.informer.controller import CacheControllerConfig as CacheControllerConfig
    from aioinformer.informer.options import InformerOptions as InformerOptions
    from aioinformer.informer.pipeline import QueueName as QueueName
    from aioinformer.informer.shared_informer import SharedIndexInformer as SharedIndexInformer
    from aioinformer.informer.snapshots import FactorySnapshot as FactorySnapshot
    from aioinformer.informer.snapshots import HandlerCallSnapshot as HandlerCallSnapshot
    from aioinformer.informer.snapshots import HandlerErrorSnapshot as HandlerErrorSnapshot
    from aioinformer.informer.snapshots import HandlerSnapshot as HandlerSnapshot
    from aioinformer.informer.snapshots import InformerSnapshot as InformerSnapshot
    from aioinformer.informer.snapshots import ScopeSnapshot as ScopeSnapshot
    from aioinformer.informer.snapshots import SourceSnapshot as SourceSnapshot
    from aioinformer.informer.sync import Syncing as Syncing
    from aioinformer.informer.sync import SyncResult as SyncResult
    from aioinformer.informer.sync import all_synced as all_synced
    from aioinformer.informer.sync import wait_for_cache_sync as wait_for_cache_sync
    from aioinformer.informer.watch import Event as Event
    from aioinformer.informer.watch import InformerWatch as InformerWatch
    from aioinformer.informer.watch import RetryWatcher as RetryWatcher
    from aioinformer.informer.watch import WatchClosed as WatchClosed
    from aioinformer.informer.watch import until as until
else:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "controller": "CacheController CacheControllerConfig",
            "options": "InformerOptions",
            "pipeline": "QueueName",
            "shared_informer": "SharedIndexInformer",
            "snapshots": (
                "FactorySnapshot HandlerCallSnapshot HandlerErrorSnapshot HandlerSnapshot InformerSnapshot "
                "ScopeSnapshot SourceSnapshot"
            ),
            "sync": "SyncResult Syncing all_synced wait_for_cache_sync",
            "watch": "Event InformerWatch RetryWatcher WatchClosed until",
        },
    )
