"""Objects in memory: stores, indices, listers, and the forms in which objects are stored (`objects`)."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.cache.expiration_store import ExpirationStore, TTLPolicy, ttl_store
    from aioinformer.cache.indices import Index, Indexers, IndexFunc
    from aioinformer.cache.lister import ClusterLister, Lister, NamespaceLister
    from aioinformer.cache.mutation_cache import MutationCache
    from aioinformer.cache.mutation_detector import MutationDetector
    from aioinformer.cache.objects.changes import evolve
    from aioinformer.cache.objects.codec import to_json
    from aioinformer.cache.objects.fields import parse_path
    from aioinformer.cache.objects.storage import Storage, StorageTier
    from aioinformer.cache.store import NAMESPACE_INDEX, Indexer, Indices, Store, ThreadSafeStore
    from aioinformer.cache.undelta_store import UndeltaStore

__all__ = [
    "NAMESPACE_INDEX",
    "ClusterLister",
    "ExpirationStore",
    "Index",
    "IndexFunc",
    "Indexer",
    "Indexers",
    "Indices",
    "Lister",
    "MutationCache",
    "MutationDetector",
    "NamespaceLister",
    "Storage",
    "StorageTier",
    "Store",
    "TTLPolicy",
    "ThreadSafeStore",
    "UndeltaStore",
    "evolve",
    "parse_path",
    "to_json",
    "ttl_store",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "expiration_store": "ExpirationStore TTLPolicy ttl_store",
            "indices": "Index IndexFunc Indexers",
            "lister": "ClusterLister Lister NamespaceLister",
            "mutation_cache": "MutationCache",
            "mutation_detector": "MutationDetector",
            "objects.changes": "evolve",
            "objects.codec": "to_json",
            "objects.fields": "parse_path",
            "objects.storage": "Storage StorageTier",
            "store": "Indexer Indices NAMESPACE_INDEX Store ThreadSafeStore",
            "undelta_store": "UndeltaStore",
        },
    )
