"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.
"""

from __future__ import annotations

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

__version__ = "0.1.0"

__all__ = [
    "BUILTIN_RESOURCES",
    "NAMESPACE_INDEX",
    "AioinformerError",
    "ApiError",
    "BackoffOptions",
    "CacheController",
    "CacheControllerConfig",
    "ClusterLister",
    "DecodeError",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "Expired",
    "ExplicitKey",
    "FIFOClosed",
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
    "KeyFuncError",
    "LabelSelector",
    "ListOptions",
    "ListWatch",
    "Lister",
    "ListerWatcher",
    "NamespaceLister",
    "NotFound",
    "ObjectName",
    "OptionError",
    "Phase",
    "Queue",
    "Reflector",
    "ReflectorOptions",
    "Resource",
    "ResourceEventHandler",
    "ResourceEventHandlerDetailedFuncs",
    "ResourceEventHandlerFuncs",
    "ResourceVersionTooLarge",
    "SelectorError",
    "SharedIndexInformer",
    "SharedInformerFactory",
    "Store",
    "ThreadSafeStore",
    "TransportError",
    "UsageError",
    "deletion_handling_meta_namespace_key_func",
    "deletion_handling_object_name",
    "meta_namespace_index_func",
    "meta_namespace_key_func",
    "object_name",
    "parse_field_selector",
    "parse_label_selector",
    "split_meta_namespace_key",
]
