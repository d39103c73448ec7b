"""One shared informer: its controller loop, its cache, its handlers, and its state."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(
    __name__,
    {
        "options": "InformerOptions QueueName",
        "snapshots": (
            "FactorySnapshot HandlerCallSnapshot HandlerErrorSnapshot HandlerSnapshot InformerSnapshot "
            "ScopeSnapshot SourceSnapshot"
        ),
        "sync": "Syncing all_synced",
        "watch": "Event WatchClosed",
    },
)
