"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.

What an informer needs is imported with the package. What stands beside it (queues, elections, parts) is imported when
it is first asked for.
"""

from __future__ import annotations

import importlib
import typing

from aioinformer.backoff import BackoffOptions
from aioinformer.cache_controller import CacheController, CacheControllerConfig
from aioinformer.catalog import BUILTIN_RESOURCES
from aioinformer.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType
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
    ResourceVersionTooLarge,
    SelectorError,
    TransportError,
    UsageError,
)
from aioinformer.factory import SharedInformerFactory
from aioinformer.fifo import DeltaFIFO, Queue
from aioinformer.indices import Index, Indexers, IndexFunc
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
from aioinformer.lister import ClusterLister, Lister, NamespaceLister
from aioinformer.listwatch import ListerWatcher, ListWatch
from aioinformer.notifications import (
    FilteringResourceEventHandler,
    ResourceEventHandler,
    ResourceEventHandlerDetailedFuncs,
    ResourceEventHandlerFuncs,
)
from aioinformer.options import ListOptions, ReflectorOptions
from aioinformer.reflector import Reflector
from aioinformer.registration import HandlerRegistration
from aioinformer.resources import Resource
from aioinformer.selectors import (
    FieldSelector,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
)
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.state import InformerState, Phase
from aioinformer.store import NAMESPACE_INDEX, Indexer, Indices, Store, ThreadSafeStore

if typing.TYPE_CHECKING:
    from aioinformer.delaying_queue import DelayingQueue
    from aioinformer.discovery import Discovery
    from aioinformer.dynamic import DynamicInformers
    from aioinformer.dynamic_informer import DynamicInformer
    from aioinformer.event_broadcaster import EventBroadcaster
    from aioinformer.event_recorder import EventRecorder, FakeRecorder
    from aioinformer.expiration_store import ExpirationStore, TTLPolicy, ttl_store
    from aioinformer.leaderelection import LeaderElector, LeadershipLost, Term
    from aioinformer.lease import LeaderElectionOptions
    from aioinformer.lease_candidate import LeaseCandidate
    from aioinformer.lease_lock import LeaseLock
    from aioinformer.list_pager import ListPager
    from aioinformer.multi_namespace import MultiNamespaceInformer
    from aioinformer.mutation_cache import MutationCache
    from aioinformer.mutation_detector import MutationDetector
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
    from aioinformer.retry import DEFAULT_BACKOFF, DEFAULT_RETRY, on_error, retry_on_conflict
    from aioinformer.retry_watcher import RetryWatcher, until
    from aioinformer.threaded_handler import ThreadedHandler
    from aioinformer.tracking import AsyncTracker, SingleFileTracker
    from aioinformer.undelta_store import UndeltaStore
    from aioinformer.waiting import wait_for_cache_sync
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
    "DecodeError",
    "DelayingQueue",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "Discovery",
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
    "InformerState",
    "InformerStopped",
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
    "Queue",
    "QueueShutDown",
    "RateLimiter",
    "RateLimitingQueue",
    "RealFIFO",
    "Reflector",
    "ReflectorOptions",
    "Resource",
    "ResourceEventHandler",
    "ResourceEventHandlerDetailedFuncs",
    "ResourceEventHandlerFuncs",
    "ResourceVersionTooLarge",
    "RetryWatcher",
    "SelectorError",
    "SharedIndexInformer",
    "SharedInformerFactory",
    "SingleFileTracker",
    "Store",
    "TTLPolicy",
    "Term",
    "ThreadSafeStore",
    "ThreadedHandler",
    "TransportError",
    "UndeltaStore",
    "UsageError",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "default_controller_rate_limiter",
    "deletion_handling_meta_namespace_key_func",
    "deletion_handling_object_name",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "object_name",
    "on_error",
    "parallelize",
    "parse_field_selector",
    "parse_label_selector",
    "retry_on_conflict",
    "split_meta_namespace_key",
    "ttl_store",
    "until",
    "wait_for_cache_sync",
]

#: What is imported when it is asked for, and from where.
_LATER = {
    name: module
    for module, names in {
        "aioinformer.delaying_queue": ("DelayingQueue",),
        "aioinformer.discovery": ("Discovery",),
        "aioinformer.dynamic": ("DynamicInformers",),
        "aioinformer.dynamic_informer": ("DynamicInformer",),
        "aioinformer.event_broadcaster": ("EventBroadcaster",),
        "aioinformer.event_recorder": ("EventRecorder", "FakeRecorder"),
        "aioinformer.expiration_store": ("ExpirationStore", "TTLPolicy", "ttl_store"),
        "aioinformer.leaderelection": ("LeaderElector", "LeadershipLost", "Term"),
        "aioinformer.lease": ("LeaderElectionOptions",),
        "aioinformer.lease_candidate": ("LeaseCandidate",),
        "aioinformer.lease_lock": ("LeaseLock",),
        "aioinformer.list_pager": ("ListPager",),
        "aioinformer.multi_namespace": ("MultiNamespaceInformer",),
        "aioinformer.mutation_cache": ("MutationCache",),
        "aioinformer.mutation_detector": ("MutationDetector",),
        "aioinformer.parallel": ("parallelize",),
        "aioinformer.rate_limiting_queue": ("RateLimitingQueue",),
        "aioinformer.ratelimiters": (
            "BucketRateLimiter",
            "ItemExponentialFailureRateLimiter",
            "ItemFastSlowRateLimiter",
            "MaxOfRateLimiter",
            "RateLimiter",
            "WithMaxWaitRateLimiter",
            "default_controller_rate_limiter",
        ),
        "aioinformer.real_fifo": ("RealFIFO",),
        "aioinformer.retry": ("DEFAULT_BACKOFF", "DEFAULT_RETRY", "on_error", "retry_on_conflict"),
        "aioinformer.retry_watcher": ("RetryWatcher", "until"),
        "aioinformer.threaded_handler": ("ThreadedHandler",),
        "aioinformer.tracking": ("AsyncTracker", "SingleFileTracker"),
        "aioinformer.undelta_store": ("UndeltaStore",),
        "aioinformer.waiting": ("wait_for_cache_sync",),
        "aioinformer.workqueue": ("QueueShutDown", "WorkQueue"),
    }.items()
    for name in names
}

if not typing.TYPE_CHECKING:  # else every misspelt name would pass for one

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
