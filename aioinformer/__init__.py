"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.

A name is imported when it is first asked for: who uses one part does not wait for the others.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.backoff import BackoffOptions
    from aioinformer.cache.expiration_store import ExpirationStore, TTLPolicy, ttl_store
    from aioinformer.cache.indices import Index, Indexers, IndexFunc
    from aioinformer.cache.lister import ClusterLister, Lister, NamespaceLister
    from aioinformer.cache.mutation_cache import MutationCache
    from aioinformer.cache.mutation_detector import MutationDetector
    from aioinformer.cache.objects.changes import evolve
    from aioinformer.cache.objects.codec import to_json
    from aioinformer.cache.store import NAMESPACE_INDEX, Indexer, Indices, Store, ThreadSafeStore
    from aioinformer.cache.undelta_store import UndeltaStore
    from aioinformer.client.changes.conditions import (
        Condition,
        get_condition,
        is_condition_true,
        remove_condition,
        set_condition,
    )
    from aioinformer.client.changes.owners import (
        add_finalizer,
        controller_of,
        has_finalizer,
        remove_finalizer,
        set_controller_reference,
    )
    from aioinformer.client.changes.patches import merge_patch
    from aioinformer.client.client import Client
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.errors import (
        AioinformerError,
        AlreadyExists,
        AlreadyOwned,
        ApiError,
        ApiNotFound,
        Conflict,
        DecodeError,
        Expired,
        FIFOClosed,
        Forbidden,
        FormerOwner,
        FrameTooLarge,
        Gone,
        IndexNotFound,
        InformerStopped,
        Invalid,
        KeyFuncError,
        NotFound,
        OptionError,
        ProcessingError,
        ResourceVersionTooLarge,
        SelectorError,
        TooManyRequests,
        TransportError,
        UnknownOption,
        UsageError,
        WriteOutcomeUnknown,
    )
    from aioinformer.events.broadcaster import EventBroadcaster
    from aioinformer.events.recorder import EventRecorder, FakeRecorder
    from aioinformer.events.sink import discover_event_sink
    from aioinformer.factory.dynamic import DynamicInformer, DynamicInformers
    from aioinformer.factory.factory import SharedInformerFactory
    from aioinformer.factory.multi_namespace import MultiNamespaceInformer
    from aioinformer.factory.reselecting import ReselectingInformer
    from aioinformer.handlers.coalescing import CoalescingHandler
    from aioinformer.handlers.notifications import (
        FilteringResourceEventHandler,
        ResourceEventHandler,
        ResourceEventHandlerDetailedFuncs,
        ResourceEventHandlerFuncs,
    )
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.handlers.synctrack import AsyncTracker, SingleFileTracker
    from aioinformer.handlers.threaded import ThreadedHandler
    from aioinformer.informer.controller import CacheController, CacheControllerConfig
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.informer.sync import SyncResult, wait_for_cache_sync
    from aioinformer.informer.watch import InformerWatch, RetryWatcher, until
    from aioinformer.leaderelection.candidate import LeaseCandidate
    from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term
    from aioinformer.leaderelection.lease import LeaderElectionOptions
    from aioinformer.leaderelection.lock import LeaseLock
    from aioinformer.metrics import InformerName
    from aioinformer.queue.delta_fifo import DeltaFIFO, Queue
    from aioinformer.queue.deltas import Delta, Deltas, DeltaType
    from aioinformer.queue.real_fifo import RealFIFO
    from aioinformer.reflector.listwatch import ListerWatcher, ListWatch
    from aioinformer.reflector.options import ListOptions, ReflectorOptions
    from aioinformer.reflector.pager import ListPager
    from aioinformer.reflector.reflector import Reflector
    from aioinformer.reflector.sharding import ShardedListWatch, shard_selectors
    from aioinformer.reflector.state import InformerState, Phase
    from aioinformer.resources.catalog import BUILTIN_RESOURCES
    from aioinformer.resources.discovery import Discovery
    from aioinformer.resources.keys import (
        DeletedFinalStateUnknown,
        ExplicitKey,
        ObjectName,
        deletion_handling_meta_namespace_key_func,
        deletion_handling_object_name,
        meta_namespace_index_func,
        meta_namespace_key_func,
        object_name,
        split_meta_namespace_key,
    )
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.restmapper import DiscoveryIncomplete, UnknownResource
    from aioinformer.resources.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
    from aioinformer.transport.auth.credentials import connect
    from aioinformer.transport.http import HttpTransport
    from aioinformer.workqueue.delaying import DelayingQueue
    from aioinformer.workqueue.parallelizer import parallelize
    from aioinformer.workqueue.queue import QueueShutDown, WorkQueue
    from aioinformer.workqueue.rate_limiters import (
        BucketRateLimiter,
        ItemExponentialFailureRateLimiter,
        ItemFastSlowRateLimiter,
        MaxOfRateLimiter,
        RateLimiter,
        WithMaxWaitRateLimiter,
        default_controller_rate_limiter,
    )
    from aioinformer.workqueue.rate_limiting import RateLimitingQueue
    from aioinformer.workqueue.retry import DEFAULT_BACKOFF, DEFAULT_RETRY, on_error, retry_on_conflict

__all__ = [
    "BUILTIN_RESOURCES",
    "DEFAULT_BACKOFF",
    "DEFAULT_RETRY",
    "NAMESPACE_INDEX",
    "AioinformerError",
    "AlreadyExists",
    "AlreadyOwned",
    "ApiError",
    "ApiNotFound",
    "AsyncTracker",
    "BackoffOptions",
    "BucketRateLimiter",
    "CacheController",
    "CacheControllerConfig",
    "Client",
    "ClusterLister",
    "CoalescingHandler",
    "Condition",
    "Conflict",
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
    "Forbidden",
    "FormerOwner",
    "FrameTooLarge",
    "Gone",
    "HandlerRegistration",
    "HttpTransport",
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
    "Invalid",
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
    "ResourceClient",
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
    "TooManyRequests",
    "TransportError",
    "UndeltaStore",
    "UnknownOption",
    "UnknownResource",
    "UsageError",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "WriteOutcomeUnknown",
    "add_finalizer",
    "connect",
    "controller_of",
    "default_controller_rate_limiter",
    "deletion_handling_meta_namespace_key_func",
    "deletion_handling_object_name",
    "discover_event_sink",
    "evolve",
    "get_condition",
    "has_finalizer",
    "is_condition_true",
    "merge_patch",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "object_name",
    "on_error",
    "parallelize",
    "parse_field_selector",
    "parse_label_selector",
    "remove_condition",
    "remove_finalizer",
    "retry_on_conflict",
    "set_condition",
    "set_controller_reference",
    "shard_selectors",
    "split_meta_namespace_key",
    "to_json",
    "ttl_store",
    "until",
    "wait_for_cache_sync",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "backoff": "BackoffOptions",
            "cache.expiration_store": "ExpirationStore TTLPolicy ttl_store",
            "cache.indices": "Index IndexFunc Indexers",
            "cache.lister": "ClusterLister Lister NamespaceLister",
            "cache.mutation_cache": "MutationCache",
            "cache.mutation_detector": "MutationDetector",
            "cache.objects.changes": "evolve",
            "cache.objects.codec": "to_json",
            "cache.store": "Indexer Indices NAMESPACE_INDEX Store ThreadSafeStore",
            "cache.undelta_store": "UndeltaStore",
            "client.client": "Client",
            "client.changes.conditions": "Condition get_condition is_condition_true remove_condition set_condition",
            "client.changes.owners": (
                "add_finalizer controller_of has_finalizer remove_finalizer set_controller_reference"
            ),
            "client.changes.patches": "merge_patch",
            "client.resource_client": "ResourceClient",
            "errors": (
                "AioinformerError AlreadyExists AlreadyOwned ApiError ApiNotFound Conflict DecodeError Expired "
                "FIFOClosed Forbidden FormerOwner FrameTooLarge Gone IndexNotFound InformerStopped Invalid "
                "KeyFuncError NotFound OptionError ProcessingError ResourceVersionTooLarge SelectorError "
                "TooManyRequests TransportError UnknownOption UsageError WriteOutcomeUnknown"
            ),
            "events.broadcaster": "EventBroadcaster",
            "events.recorder": "EventRecorder FakeRecorder",
            "events.sink": "discover_event_sink",
            "factory.dynamic": "DynamicInformer DynamicInformers",
            "factory.factory": "SharedInformerFactory",
            "factory.multi_namespace": "MultiNamespaceInformer",
            "factory.reselecting": "ReselectingInformer",
            "handlers.coalescing": "CoalescingHandler",
            "handlers.notifications": (
                "FilteringResourceEventHandler ResourceEventHandler ResourceEventHandlerDetailedFuncs "
                "ResourceEventHandlerFuncs"
            ),
            "handlers.registration": "HandlerRegistration",
            "handlers.synctrack": "AsyncTracker SingleFileTracker",
            "handlers.threaded": "ThreadedHandler",
            "informer.controller": "CacheController CacheControllerConfig",
            "informer.shared_informer": "SharedIndexInformer",
            "informer.sync": "SyncResult wait_for_cache_sync",
            "informer.watch": "InformerWatch RetryWatcher until",
            "leaderelection.candidate": "LeaseCandidate",
            "leaderelection.elector": "LeaderElector LeadershipLost Term",
            "leaderelection.lease": "LeaderElectionOptions",
            "leaderelection.lock": "LeaseLock",
            "metrics": "InformerName",
            "queue.delta_fifo": "DeltaFIFO Queue",
            "queue.deltas": "Delta DeltaType Deltas",
            "queue.real_fifo": "RealFIFO",
            "reflector.listwatch": "ListWatch ListerWatcher",
            "reflector.options": "ListOptions ReflectorOptions",
            "reflector.pager": "ListPager",
            "reflector.reflector": "Reflector",
            "reflector.sharding": "ShardedListWatch shard_selectors",
            "reflector.state": "InformerState Phase",
            "resources.catalog": "BUILTIN_RESOURCES",
            "resources.discovery": "Discovery",
            "resources.keys": (
                "DeletedFinalStateUnknown ExplicitKey ObjectName deletion_handling_meta_namespace_key_func "
                "deletion_handling_object_name meta_namespace_index_func meta_namespace_key_func object_name "
                "split_meta_namespace_key"
            ),
            "resources.resource": "Resource",
            "resources.restmapper": "DiscoveryIncomplete UnknownResource",
            "resources.selectors": "FieldSelector LabelSelector parse_field_selector parse_label_selector",
            "transport.auth.credentials": "connect",
            "transport.http": "HttpTransport",
            "workqueue.delaying": "DelayingQueue",
            "workqueue.parallelizer": "parallelize",
            "workqueue.queue": "QueueShutDown WorkQueue",
            "workqueue.rate_limiters": (
                "BucketRateLimiter ItemExponentialFailureRateLimiter ItemFastSlowRateLimiter MaxOfRateLimiter "
                "RateLimiter WithMaxWaitRateLimiter default_controller_rate_limiter"
            ),
            "workqueue.rate_limiting": "RateLimitingQueue",
            "workqueue.retry": "DEFAULT_BACKOFF DEFAULT_RETRY on_error retry_on_conflict",
        },
    )
