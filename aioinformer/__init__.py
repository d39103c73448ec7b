"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.

A name is imported when it is first used, so a program loads only the parts that it uses.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.backoff import BackoffOptions as BackoffOptions
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
    from aioinformer.cache.store import NAMESPACE_INDEX as NAMESPACE_INDEX
    from aioinformer.cache.store import Indexer as Indexer
    from aioinformer.cache.store import Indices as Indices
    from aioinformer.cache.store import Store as Store
    from aioinformer.cache.store import ThreadSafeStore as ThreadSafeStore
    from aioinformer.cache.undelta_store import UndeltaStore as UndeltaStore
    from aioinformer.client.changes.conditions import Condition as Condition
    from aioinformer.client.changes.conditions import get_condition as get_condition
    from aioinformer.client.changes.conditions import is_condition_true as is_condition_true
    from aioinformer.client.changes.conditions import remove_condition as remove_condition
    from aioinformer.client.changes.conditions import set_condition as set_condition
    from aioinformer.client.changes.owners import add_finalizer as add_finalizer
    from aioinformer.client.changes.owners import controller_of as controller_of
    from aioinformer.client.changes.owners import has_finalizer as has_finalizer
    from aioinformer.client.changes.owners import remove_finalizer as remove_finalizer
    from aioinformer.client.changes.owners import set_controller_reference as set_controller_reference
    from aioinformer.client.changes.patches import merge_patch as merge_patch
    from aioinformer.client.client import Client as Client
    from aioinformer.client.resource_client import ResourceClient as ResourceClient
    from aioinformer.errors import AioinformerError as AioinformerError
    from aioinformer.errors import AlreadyExists as AlreadyExists
    from aioinformer.errors import AlreadyOwned as AlreadyOwned
    from aioinformer.errors import ApiError as ApiError
    from aioinformer.errors import ApiNotFound as ApiNotFound
    from aioinformer.errors import Conflict as Conflict
    from aioinformer.errors import DecodeError as DecodeError
    from aioinformer.errors import Expired as Expired
    from aioinformer.errors import FIFOClosed as FIFOClosed
    from aioinformer.errors import Forbidden as Forbidden
    from aioinformer.errors import FormerOwner as FormerOwner
    from aioinformer.errors import FrameTooLarge as FrameTooLarge
    from aioinformer.errors import Gone as Gone
    from aioinformer.errors import IndexNotFound as IndexNotFound
    from aioinformer.errors import InformerStopped as InformerStopped
    from aioinformer.errors import Invalid as Invalid
    from aioinformer.errors import KeyFuncError as KeyFuncError
    from aioinformer.errors import NotFound as NotFound
    from aioinformer.errors import OptionError as OptionError
    from aioinformer.errors import ProcessingError as ProcessingError
    from aioinformer.errors import ResourceVersionTooLarge as ResourceVersionTooLarge
    from aioinformer.errors import SelectorError as SelectorError
    from aioinformer.errors import TooManyRequests as TooManyRequests
    from aioinformer.errors import TransportError as TransportError
    from aioinformer.errors import UnknownOption as UnknownOption
    from aioinformer.errors import UsageError as UsageError
    from aioinformer.errors import WriteOutcomeUnknown as WriteOutcomeUnknown
    from aioinformer.events.broadcaster import EventBroadcaster as EventBroadcaster
    from aioinformer.events.recorder import EventRecorder as EventRecorder
    from aioinformer.events.recorder import FakeRecorder as FakeRecorder
    from aioinformer.events.sink import discover_event_sink as discover_event_sink
    from aioinformer.factory.dynamic import DynamicInformer as DynamicInformer
    from aioinformer.factory.dynamic import DynamicInformers as DynamicInformers
    from aioinformer.factory.factory import SharedInformerFactory as SharedInformerFactory
    from aioinformer.factory.multi_namespace import MultiNamespaceInformer as MultiNamespaceInformer
    from aioinformer.factory.reselecting import ReselectingInformer as ReselectingInformer
    from aioinformer.handlers.coalescing import CoalescingHandler as CoalescingHandler
    from aioinformer.handlers.notifications import FilteringResourceEventHandler as FilteringResourceEventHandler
    from aioinformer.handlers.notifications import ResourceEventHandler as ResourceEventHandler
    from aioinformer.handlers.notifications import (
        ResourceEventHandlerDetailedFuncs as ResourceEventHandlerDetailedFuncs,
    )
    from aioinformer.handlers.notifications import ResourceEventHandlerFuncs as ResourceEventHandlerFuncs
    from aioinformer.handlers.registration import HandlerRegistration as HandlerRegistration
    from aioinformer.handlers.synctrack import AsyncTracker as AsyncTracker
    from aioinformer.handlers.synctrack import SingleFileTracker as SingleFileTracker
    from aioinformer.handlers.threaded import ThreadedHandler as ThreadedHandler
    from aioinformer.informer.controller import CacheController as CacheController
    from aioinformer.informer.controller import CacheControllerConfig as CacheControllerConfig
    from aioinformer.informer.shared_informer import SharedIndexInformer as SharedIndexInformer
    from aioinformer.informer.sync import SyncResult as SyncResult
    from aioinformer.informer.sync import wait_for_cache_sync as wait_for_cache_sync
    from aioinformer.informer.watch import InformerWatch as InformerWatch
    from aioinformer.informer.watch import RetryWatcher as RetryWatcher
    from aioinformer.informer.watch import until as until
    from aioinformer.leaderelection.candidate import LeaseCandidate as LeaseCandidate
    from aioinformer.leaderelection.elector import LeaderElector as LeaderElector
    from aioinformer.leaderelection.elector import LeadershipLost as LeadershipLost
    from aioinformer.leaderelection.elector import Term as Term
    from aioinformer.leaderelection.lease import LeaderElectionOptions as LeaderElectionOptions
    from aioinformer.leaderelection.lock import LeaseLock as LeaseLock
    from aioinformer.metrics import InformerName as InformerName
    from aioinformer.queue.delta_fifo import DeltaFIFO as DeltaFIFO
    from aioinformer.queue.delta_fifo import Queue as Queue
    from aioinformer.queue.deltas import Delta as Delta
    from aioinformer.queue.deltas import Deltas as Deltas
    from aioinformer.queue.deltas import DeltaType as DeltaType
    from aioinformer.queue.real_fifo import RealFIFO as RealFIFO
    from aioinformer.reflector.listwatch import ListerWatcher as ListerWatcher
    from aioinformer.reflector.listwatch import ListWatch as ListWatch
    from aioinformer.reflector.options import ListOptions as ListOptions
    from aioinformer.reflector.options import ReflectorOptions as ReflectorOptions
    from aioinformer.reflector.pager import ListPager as ListPager
    from aioinformer.reflector.reflector import Reflector as Reflector
    from aioinformer.reflector.sharding import ShardedListWatch as ShardedListWatch
    from aioinformer.reflector.sharding import shard_selectors as shard_selectors
    from aioinformer.reflector.state import InformerState as InformerState
    from aioinformer.reflector.state import Phase as Phase
    from aioinformer.resources.catalog import BUILTIN_RESOURCES as BUILTIN_RESOURCES
    from aioinformer.resources.discovery import Discovery as Discovery
    from aioinformer.resources.keys import DeletedFinalStateUnknown as DeletedFinalStateUnknown
    from aioinformer.resources.keys import ExplicitKey as ExplicitKey
    from aioinformer.resources.keys import ObjectName as ObjectName
    from aioinformer.resources.keys import (
        deletion_handling_meta_namespace_key_func as deletion_handling_meta_namespace_key_func,
    )
    from aioinformer.resources.keys import deletion_handling_object_name as deletion_handling_object_name
    from aioinformer.resources.keys import meta_namespace_index_func as meta_namespace_index_func
    from aioinformer.resources.keys import meta_namespace_key_func as meta_namespace_key_func
    from aioinformer.resources.keys import object_name as object_name
    from aioinformer.resources.keys import split_meta_namespace_key as split_meta_namespace_key
    from aioinformer.resources.resource import Resource as Resource
    from aioinformer.resources.restmapper import DiscoveryIncomplete as DiscoveryIncomplete
    from aioinformer.resources.restmapper import UnknownResource as UnknownResource
    from aioinformer.resources.selectors import FieldSelector as FieldSelector
    from aioinformer.resources.selectors import LabelSelector as LabelSelector
    from aioinformer.resources.selectors import parse_field_selector as parse_field_selector
    from aioinformer.resources.selectors import parse_label_selector as parse_label_selector
    from aioinformer.transport.auth.credentials import connect as connect
    from aioinformer.transport.http import HttpTransport as HttpTransport
    from aioinformer.workqueue.delaying import DelayingQueue as DelayingQueue
    from aioinformer.workqueue.parallelizer import parallelize as parallelize
    from aioinformer.workqueue.queue import QueueShutDown as QueueShutDown
    from aioinformer.workqueue.queue import WorkQueue as WorkQueue
    from aioinformer.workqueue.rate_limiters import BucketRateLimiter as BucketRateLimiter
    from aioinformer.workqueue.rate_limiters import (
        ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter,
    )
    from aioinformer.workqueue.rate_limiters import ItemFastSlowRateLimiter as ItemFastSlowRateLimiter
    from aioinformer.workqueue.rate_limiters import MaxOfRateLimiter as MaxOfRateLimiter
    from aioinformer.workqueue.rate_limiters import RateLimiter as RateLimiter
    from aioinformer.workqueue.rate_limiters import WithMaxWaitRateLimiter as WithMaxWaitRateLimiter
    from aioinformer.workqueue.rate_limiters import default_controller_rate_limiter as default_controller_rate_limiter
    from aioinformer.workqueue.rate_limiting import RateLimitingQueue as RateLimitingQueue
    from aioinformer.workqueue.retry import DEFAULT_BACKOFF as DEFAULT_BACKOFF
    from aioinformer.workqueue.retry import DEFAULT_RETRY as DEFAULT_RETRY
    from aioinformer.workqueue.retry import on_error as on_error
    from aioinformer.workqueue.retry import retry_on_conflict as retry_on_conflict
else:  # a type checker must not accept misspelt names
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
