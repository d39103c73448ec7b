"""Objects in memory: stores, indices, listers, and the forms in which objects are stored (`objects`)."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.cache.expiration_store import ExpirationStore as ExpirationStore
    from aioinformer.cache.expiration_store import TTLPolicy as TTLPolicy
    from aioinformer.cache.expiration_store import ttl_store as ttl_store
    from aioinformer.cache.indices import Index as Index
    from aioinformer.cache.indices import Indexers as Indexers
    from aioinformer.cache.indices import IndexFunc as IndexFunc
    from aioinformer.cache.lister import ClusterLister as ClusterLister
    from aioinformer.cache.lister import Lister as Lister
    from aioinformer.cache.lister import NamespaceLister as NamespaceLister
    from aioinformer.cache.mutation_cache import MutationCache as MutationCache
    from aioinformer.cache.mutation_detector import MutationDetector as MutationDetector
    from aioinformer.cache.objects.changes import evolve as evolve
    from aioinformer.cache.objects.codec import to_json as to_json
    from aioinformer.cache.objects.fields import parse_path as parse_path
    from aioinformer.cache.objects.storage import Storage as Storage
    from aioinformer.cache.objects.storage import StorageTier as StorageTier
    from aioinformer.cache.store import NAMESPACE_INDEX as NAMESPACE_INDEX
    from aioinformer.cache.store import Indexer as Indexer
    from aioinformer.cache.store import Indices as Indices
    from aioinformer.cache.store import Store as Store
    from aioinformer.cache.store import ThreadSafeStore as ThreadSafeStore
    from aioinformer.cache.undelta_store import UndeltaStore as UndeltaStore
else:  # a type checker must not accept misspelt names
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
