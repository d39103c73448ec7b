"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.

A name is imported when it is first asked for: who uses one part does not wait for the others.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what type checkers take for true by its name; `typing` is as slow to import as all of the rest

if TYPE_CHECKING:
    from aioinformer.backoff import BackoffOptions
    from aioinformer.cache_controller import CacheController, CacheControllerConfig
    from aioinformer.catalog import BUILTIN_RESOURCES
    from aioinformer.coalescing_handler import CoalescingHandler
    from aioinformer.delaying_queue import DelayingQueue
    from aioinformer.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType
    from aioinformer.discovery import Discovery
    from aioinformer.dynamic import DynamicInformers
    from aioinformer.dynamic_informer import DynamicInformer
    from aioinformer.errors import (
        AioinformerError,
        ApiError,
        DecodeError,
        Expired,
        FIFOClosed,
        FrameTooLarge,
        IndexNotFound,
        InformerStopped,
        KeyFuncError,
        NotFound,
        OptionError,
        ProcessingError,
        ResourceVersionTooLarge,
        SelectorError,
        TransportError,
        UnknownOption,
        UsageError,
    )
    from aioinformer.event_broadcaster import EventBroadcaster
    from aioinformer.event_recorder import EventRecorder, FakeRecorder
    from aioinformer.event_sink import discover_event_sink
    from aioinformer.expiration_store import ExpirationStore, TTLPolicy, ttl_store
    from aioinformer.factory import SharedInformerFactory
    from aioinformer.fifo import DeltaFIFO, Queue
    from aioinformer.identity import InformerName
    from aioinformer.indices import Index, Indexers, IndexFunc
    from aioinformer.informer_watch import InformerWatch
    from aioinformer.keys import (
        ExplicitKey,
        ObjectName,
        deletion_handling_meta_namespace_key_func,
        deletion_handling_object_name,
        meta_namespace_index_func,
        meta_namespace_key_func,
        object_name,
        split_meta_namespace_key,
    )
    from aioinformer.leaderelection import LeaderElector, LeadershipLost, Term
    from aioinformer.lease import LeaderElectionOptions
    from aioinformer.lease_candidate import LeaseCandidate
    from aioinformer.lease_lock import LeaseLock
    from aioinformer.list_pager import ListPager
    from aioinformer.lister import ClusterLister, Lister, NamespaceLister
    from aioinformer.listwatch import ListerWatcher, ListWatch
    from aioinformer.multi_namespace import MultiNamespaceInformer
    from aioinformer.mutation_cache import MutationCache
    from aioinformer.mutation_detector import MutationDetector
    from aioinformer.notifications import (
        FilteringResourceEventHandler,
        ResourceEventHandler,
        ResourceEventHandlerDetailedFuncs,
        ResourceEventHandlerFuncs,
    )
    from aioinformer.options import ListOptions, ReflectorOptions
    from aioinformer.parallel import parallelize
    from aioinformer.rate_limiting_queue import RateLimitingQueue
    from aioinformer.ratelimiters import (
        BucketRateLimiter,
        ItemExponentialFailureRateLimiter,
        ItemFastSlowRateLimiter,
        MaxOfRateLimiter,
        RateLimiter,
        WithMaxWaitRateLimiter,
        default_controller_rate_limiter,
    )
    from aioinformer.real_fifo import RealFIFO
    from aioinformer.reflector import Reflector
    from aioinformer.registration import HandlerRegistration
    from aioinformer.reselecting_informer import ReselectingInformer
    from aioinformer.resources import Resource
    from aioinformer.retry import DEFAULT_BACKOFF, DEFAULT_RETRY, on_error, retry_on_conflict
    from aioinformer.retry_watcher import RetryWatcher, until
    from aioinformer.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
    from aioinformer.served import DiscoveryIncomplete, UnknownResource
    from aioinformer.sharded_list_watch import ShardedListWatch
    from aioinformer.sharding import shard_selectors
    from aioinformer.shared_informer import SharedIndexInformer
    from aioinformer.state import InformerState, Phase
    from aioinformer.store import NAMESPACE_INDEX, Indexer, Indices, Store, ThreadSafeStore
    from aioinformer.threaded_handler import ThreadedHandler
    from aioinformer.tracking import AsyncTracker, SingleFileTracker
    from aioinformer.undelta_store import UndeltaStore
    from aioinformer.waiting import SyncResult, wait_for_cache_sync
    from aioinformer.workqueue import QueueShutDown, WorkQueue

__version__ = "0.1.0"

__all__ = [
    "BUILTIN_RESOURCES",
    "DEFAULT_BACKOFF",
    "DEFAULT_RETRY",
    "NAMESPACE_INDEX",
    "AioinformerError",
    "ApiError",
    "AsyncTracker",
    "BackoffOptions",
    "BucketRateLimiter",
    "CacheController",
    "CacheControllerConfig",
    "ClusterLister",
    "CoalescingHandler",
    "DecodeError",
    "DelayingQueue",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "Discovery",
    "DiscoveryIncomplete",
    "DynamicInformer",
    "DynamicInformers",
    "EventBroadcaster",
    "EventRecorder",
    "ExpirationStore",
    "Expired",
    "ExplicitKey",
    "FIFOClosed",
    "FakeRecorder",
    "FieldSelector",
    "FilteringResourceEventHandler",
    "FrameTooLarge",
    "HandlerRegistration",
    "Index",
    "IndexFunc",
    "IndexNotFound",
    "Indexer",
    "Indexers",
    "Indices",
    "InformerName",
    "InformerState",
    "InformerStopped",
    "InformerWatch",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "KeyFuncError",
    "LabelSelector",
    "LeaderElectionOptions",
    "LeaderElector",
    "LeadershipLost",
    "LeaseCandidate",
    "LeaseLock",
    "ListOptions",
    "ListPager",
    "ListWatch",
    "Lister",
    "ListerWatcher",
    "MaxOfRateLimiter",
    "MultiNamespaceInformer",
    "MutationCache",
    "MutationDetector",
    "NamespaceLister",
    "NotFound",
    "ObjectName",
    "OptionError",
    "Phase",
    "ProcessingError",
    "Queue",
    "QueueShutDown",
    "RateLimiter",
    "RateLimitingQueue",
    "RealFIFO",
    "Reflector",
    "ReflectorOptions",
    "ReselectingInformer",
    "Resource",
    "ResourceEventHandler",
    "ResourceEventHandlerDetailedFuncs",
    "ResourceEventHandlerFuncs",
    "ResourceVersionTooLarge",
    "RetryWatcher",
    "SelectorError",
    "ShardedListWatch",
    "SharedIndexInformer",
    "SharedInformerFactory",
    "SingleFileTracker",
    "Store",
    "SyncResult",
    "TTLPolicy",
    "Term",
    "ThreadSafeStore",
    "ThreadedHandler",
    "TransportError",
    "UndeltaStore",
    "UnknownOption",
    "UnknownResource",
    "UsageError",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "default_controller_rate_limiter",
    "deletion_handling_meta_namespace_key_func",
    "deletion_handling_object_name",
    "discover_event_sink",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "object_name",
    "on_error",
    "parallelize",
    "parse_field_selector",
    "parse_label_selector",
    "retry_on_conflict",
    "shard_selectors",
    "split_meta_namespace_key",
    "ttl_store",
    "until",
    "wait_for_cache_sync",
]

#: Where each name is.
_MODULES = {
    name: f"aioinformer.{module}"
    for module, names in {
        "backoff": "BackoffOptions",
        "cache_controller": "CacheController CacheControllerConfig",
        "catalog": "BUILTIN_RESOURCES",
        "coalescing_handler": "CoalescingHandler",
        "delaying_queue": "DelayingQueue",
        "deltas": "DeletedFinalStateUnknown Delta DeltaType Deltas",
        "discovery": "Discovery",
        "dynamic": "DynamicInformers",
        "dynamic_informer": "DynamicInformer",
        "errors": (
            "AioinformerError ApiError DecodeError Expired FIFOClosed FrameTooLarge IndexNotFound "
            "InformerStopped KeyFuncError NotFound OptionError ProcessingError ResourceVersionTooLarge "
            "SelectorError TransportError UnknownOption UsageError"
        ),
        "event_broadcaster": "EventBroadcaster",
        "event_recorder": "EventRecorder FakeRecorder",
        "event_sink": "discover_event_sink",
        "expiration_store": "ExpirationStore TTLPolicy ttl_store",
        "factory": "SharedInformerFactory",
        "fifo": "DeltaFIFO Queue",
        "identity": "InformerName",
        "indices": "Index IndexFunc Indexers",
        "informer_watch": "InformerWatch",
        "keys": (
            "ExplicitKey ObjectName deletion_handling_meta_namespace_key_func deletion_handling_object_name "
            "meta_namespace_index_func meta_namespace_key_func object_name split_meta_namespace_key"
        ),
        "leaderelection": "LeaderElector LeadershipLost Term",
        "lease": "LeaderElectionOptions",
        "lease_candidate": "LeaseCandidate",
        "lease_lock": "LeaseLock",
        "list_pager": "ListPager",
        "lister": "ClusterLister Lister NamespaceLister",
        "listwatch": "ListWatch ListerWatcher",
        "multi_namespace": "MultiNamespaceInformer",
        "mutation_cache": "MutationCache",
        "mutation_detector": "MutationDetector",
        "notifications": (
            "FilteringResourceEventHandler ResourceEventHandler ResourceEventHandlerDetailedFuncs "
            "ResourceEventHandlerFuncs"
        ),
        "options": "ListOptions ReflectorOptions",
        "parallel": "parallelize",
        "rate_limiting_queue": "RateLimitingQueue",
        "ratelimiters": (
            "BucketRateLimiter ItemExponentialFailureRateLimiter ItemFastSlowRateLimiter MaxOfRateLimiter "
            "RateLimiter WithMaxWaitRateLimiter default_controller_rate_limiter"
        ),
        "real_fifo": "RealFIFO",
        "reflector": "Reflector",
        "registration": "HandlerRegistration",
        "reselecting_informer": "ReselectingInformer",
        "resources": "Resource",
        "retry": "DEFAULT_BACKOFF DEFAULT_RETRY on_error retry_on_conflict",
        "retry_watcher": "RetryWatcher until",
        "selectors": "FieldSelector LabelSelector parse_field_selector parse_label_selector",
        "served": "DiscoveryIncomplete UnknownResource",
        "sharded_list_watch": "ShardedListWatch",
        "sharding": "shard_selectors",
        "shared_informer": "SharedIndexInformer",
        "state": "InformerState Phase",
        "store": "NAMESPACE_INDEX Indexer Indices Store ThreadSafeStore",
        "threaded_handler": "ThreadedHandler",
        "tracking": "AsyncTracker SingleFileTracker",
        "undelta_store": "UndeltaStore",
        "waiting": "SyncResult wait_for_cache_sync",
        "workqueue": "QueueShutDown WorkQueue",
    }.items()
    for name in names.split()
}

if not TYPE_CHECKING:  # else every misspelt name would pass for one

    def __getattr__(name: str) -> object:
        import importlib

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
