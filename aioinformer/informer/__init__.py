"""One shared informer: its controller loop, its cache, its handlers, and its state."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.informer.controller import CacheController, CacheControllerConfig
    from aioinformer.informer.options import InformerOptions
    from aioinformer.informer.pipeline import QueueName
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.informer.snapshots import (
        FactorySnapshot,
        HandlerCallSnapshot,
        HandlerErrorSnapshot,
        HandlerSnapshot,
        InformerSnapshot,
        ScopeSnapshot,
        SourceSnapshot,
    )
    from aioinformer.informer.sync import Syncing, SyncResult, all_synced, wait_for_cache_sync
    from aioinformer.informer.watch import Event, InformerWatch, RetryWatcher, WatchClosed, until

__all__ = [
    "CacheController",
    "CacheControllerConfig",
    "Event",
    "FactorySnapshot",
    "HandlerCallSnapshot",
    "HandlerErrorSnapshot",
    "HandlerSnapshot",
    "InformerOptions",
    "InformerSnapshot",
    "InformerWatch",
    "QueueName",
    "RetryWatcher",
    "ScopeSnapshot",
    "SharedIndexInformer",
    "SourceSnapshot",
    "SyncResult",
    "Syncing",
    "WatchClosed",
    "all_synced",
    "until",
    "wait_for_cache_sync",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
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
