"""The public names: each has one address, and is imported when it is first used.

A program loads only the parts that it uses. Modules that no address names are private. Type checkers read the stubs
beside the packages, which scripts/generate.py makes from the table.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing `typing` would take as long as importing all of `aioinformer`

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

#: The names at each address, separated by spaces, by the module below `aioinformer` that defines them.
ADDRESSES: Final[Mapping[str, Mapping[str, str]]] = {
    "aioinformer": {
        "cache.lister": "Lister",
        "cache.objects.changes": "evolve",
        "cache.objects.codec": "to_json",
        "cache.store": "Indexer",
        "client.changes.conditions": "Condition",
        "client.client": "Client",
        "errors": (
            "AioinformerError AlreadyExists ApiError ApiNotFound Conflict NotFound SelectorError Stale UsageError"
        ),
        "events.recorder": "EventRecorder",
        "factory.dynamic": "DynamicInformers",
        "factory.factory": "SharedInformerFactory",
        "handlers.notifications": "ResourceEventHandler ResourceEventHandlerFuncs",
        "informer.options": "RunOptions",
        "informer.shared_informer": "SharedIndexInformer",
        "informer.sync": "wait_for_cache_sync",
        "leaderelection.elector": "LeaderElector",
        "leaderelection.lease": "LeaderElectionOptions",
        "queue.delta_fifo": "DeltaFIFO",
        "reflector.listwatch": "ListWatch",
        "reflector.reflector": "Reflector",
        "resources.keys": "DeletedFinalStateUnknown meta_namespace_key_func",
        "resources.manifests": "load_manifests",
        "resources.resource": "Resource",
        "transport.auth.credentials": "connect",
        "transport.http": "HttpTransport",
        "workqueue.rate_limiting": "RateLimitingQueue",
    },
    "aioinformer.authorization": {
        "authorization.rbac": "Rbac",
        "authorization.users": (
            "AccessDenied EVERYBODY ReviewUnavailable Unauthenticated User Who permitted permitted_path"
        ),
    },
    "aioinformer.backoff": {
        "backoff": "BackoffOptions",
    },
    "aioinformer.cache": {
        "cache.expiration_store": "ExpirationStore TTLPolicy ttl_store",
        "cache.indices": "Index IndexFunc Indexers",
        "cache.lister": "ClusterLister NamespaceLister",
        "cache.mutation_detector": "CacheMutated MutationDetector",
        "cache.objects.fields": "parse_path",
        "cache.objects.storage": "Storage StorageTier",
        "cache.store": "Indices NAMESPACE_INDEX Store ThreadSafeStore",
        "cache.undelta_store": "UndeltaStore",
    },
    "aioinformer.client": {
        "client.applying": "AppliedObject ApplyFailed ApplyReport",
        "client.bodies": "RawAnswer Status",
        "client.changes.applied": "Applied",
        "client.changes.conditions": "get_condition is_condition_true remove_condition set_condition",
        "client.changes.owners": "add_finalizer controller_of has_finalizer remove_finalizer set_controller_reference",
        "client.changes.ownership": "managed_fields_upgrade",
        "client.changes.patches": "merge_patch",
        "client.lists": "Listing Page",
        "client.migration": "MigrationReport StorageMigration",
        "client.requests": "Impersonation ReadOptions WriteOptions",
        "client.resource_client": "ResourceClient",
        "client.subresources": "Subresource",
    },
    "aioinformer.controller": {
        "controller.background": "BackgroundRun",
        "controller.declaration": "Controller controller",
        "controller.helpers.finalizing": "finalizing",
        "controller.helpers.pruning": "apply_set",
        "controller.helpers.status": "set_status",
        "controller.inputs.mapping": "Owns Watch",
        "controller.inputs.predicates": (
            "Change annotations_changed fields_changed generation_changed labels_changed predicate"
        ),
        "controller.inputs.references": "References",
        "controller.inputs.sources": "Every",
        "controller.manager": "Manager",
        "controller.request": "Request Result Retry RetryAfter TerminalError",
        "leaderelection.leadership": "LeaderElection",
        "workqueue.requests.outcomes": "QueueOptions",
    },
    "aioinformer.controller.debug": {
        "controller.debug.access": "DebugRequest",
        "controller.debug.app": "DebugApp",
    },
    "aioinformer.controller.errors": {
        "controller.helpers.pruning": "ForeignObject",
        "controller.request": "NothingToDo ReconcileTimeout",
        "controller.running.session": "ControllerFailed",
        "controller.writes.own_writes": "StaleCache",
        "controller.writes.sender": "UndeclaredWrite",
    },
    "aioinformer.controller.helpers": {
        "controller.helpers.finalizing": "Ending",
        "controller.helpers.pruning": "AppliedSet",
    },
    "aioinformer.controller.inputs": {
        "controller.inputs.loops": "LoopDetector",
        "controller.inputs.mapping": "Input Primary",
        "controller.inputs.owners": "OWNER_INDEX",
        "controller.inputs.sources": "Source",
    },
    "aioinformer.controller.predicates": {
        "controller.inputs.predicates": "Predicate condition_changed content_changed object_changed version_changed",
    },
    "aioinformer.controller.running": {
        "controller.running.settings": "Restart",
    },
    "aioinformer.controller.snapshots": {
        "controller.health": "Health",
        "controller.report": "BackgroundSnapshot ControllerReport ControllerSnapshot ManagerSnapshot StopReport",
    },
    "aioinformer.controller.writes": {
        "controller.writes.own_writes": "OwnWrites",
        "controller.writes.sender": "WritePolicy",
    },
    "aioinformer.crds": {
        "crds.conversion.converter": "Converter",
        "crds.conversion.steps": "ConversionError Default Function Join Map Move Split Step",
        "crds.declaration": "Column CustomResource Scale custom_resource",
        "crds.markers": (
            "EmbeddedObject INT32 INT64 IntOrString KEEP_UNKNOWN LIST_ATOMIC LIST_SET MAP_ATOMIC list_map rule rules"
        ),
    },
    "aioinformer.errors": {
        "errors": (
            "AlreadyOwned DecodeError Expired FIFOClosed FieldConflict Forbidden FormerOwner FrameTooLarge Gone "
            "IndexNotFound InformerStopped Invalid KeyFuncError OptionError ProcessingError ResourceVersionTooLarge "
            "StatusCause TooManyRequests TransportError UnknownOption WriteOutcomeUnknown"
        ),
    },
    "aioinformer.events": {
        "events.broadcaster": "EventBroadcaster EventWatch",
        "events.correlator": (
            "Correlator CorrelatorOptions EventAggregator EventCorrelateResult EventCorrelator EventLogger "
            "EventSourceObjectSpamFilter event_key spam_key"
        ),
        "events.event": "Event NORMAL WARNING",
        "events.recorder": "FakeRecorder Recorder check generate_event_name",
        "events.series": "EventSeriesCorrelator series_key",
        "events.sink": "CoreEventSink EventSink SeriesEventSink discover_event_sink",
        "events.writer": "EventRecording RecordingStatistics",
    },
    "aioinformer.factory": {
        "factory.dynamic": "DynamicInformer",
        "factory.multi_namespace": "MultiNamespaceInformer",
        "factory.reselecting": "ReselectingInformer",
    },
    "aioinformer.handlers": {
        "handlers.coalescing": "CoalescingHandler",
        "handlers.calls": "HandlerCall HandlerError",
        "handlers.notifications": "FilteringResourceEventHandler ResourceEventHandlerDetailedFuncs",
        "handlers.registration": "HandlerRegistration",
        "handlers.synctrack": "AsyncTracker Lazy SingleFileTracker",
        "handlers.threaded": "ThreadedHandler",
    },
    "aioinformer.harness": {
        "harness.checker": "HarnessFailure NotConverged",
        "harness.converting": "check_conversion",
        "harness.exploring": "HarnessReport explore run",
        "harness.harness": "Converged Harness",
        "harness.plan": "Crash Plan",
        "harness.reviewing": "Reviewed review",
    },
    "aioinformer.informer": {
        "informer.informer_watch": "InformerWatch",
        "informer.options": "InformerOptions QueueName",
        "informer.process_loop": "CacheController CacheControllerConfig",
        "informer.snapshots": (
            "FactorySnapshot HandlerCallSnapshot HandlerErrorSnapshot HandlerSnapshot InformerSnapshot ScopeSnapshot "
            "SourceSnapshot"
        ),
        "informer.sync": "SyncResult Syncing all_synced",
        "informer.watch": "RetryWatcher WatchClosed until",
        "reflector.watch_events": "ObjectEvent",
    },
    "aioinformer.leaderelection": {
        "leaderelection.candidate": "LeaseCandidate",
        "leaderelection.elector": "LeadershipLost Term",
        "leaderelection.lock": "LeaseLock",
    },
    "aioinformer.metrics": {
        "metrics.names": "InformerName InformerNameAndResource",
        "metrics.provider": "MetricsProvider MetricsSource",
        "metrics.statistics": (
            "ControllerStatistics Durations ElectorStatistics InformerStatistics ManagerStatistics QueueStatistics "
            "RequestStatistics RingStatistics Statistics"
        ),
    },
    "aioinformer.models": {
        "models.base": "MetadataView Model Object ObjectMeta",
        "resources.quantities": "Quantity",
    },
    "aioinformer.prometheus": {
        "prometheus": "PrometheusMetrics",
    },
    "aioinformer.queue": {
        "queue.delta_fifo": "Queue",
        "queue.deltas": "Delta DeltaType Deltas",
        "queue.real_fifo": "RealFIFO",
    },
    "aioinformer.reflector": {
        "reflector.consistency": "ConsistencyDetector ENVIRONMENT_VARIABLE InconsistentList consistency_mode",
        "reflector.listwatch": "ListerWatcher",
        "reflector.options": "ListOptions ReflectorOptions",
        "reflector.pager": "ListPager read_page",
        "reflector.sharding": "ShardedListWatch",
        "reflector.state": "InformerState Phase",
        "resources.shards": (
            "HASHES NAMESPACE ShardRange ShardSelector UID parse_shard_selector shard_hash shard_selectors"
        ),
    },
    "aioinformer.resources": {
        "resources.catalog": "BUILTIN_RESOURCES",
        "resources.discovery": "Discovery",
        "resources.keys": (
            "ExplicitKey ObjectName deletion_handling_meta_namespace_key_func deletion_handling_object_name "
            "meta_namespace_index_func object_name split_meta_namespace_key"
        ),
        "resources.manifests": "Manifest",
        "resources.references": "ObjectReference get_partial_reference get_reference",
        "resources.restmapper": "DiscoveryIncomplete UnknownResource",
        "resources.selectors": "FieldSelector LabelSelector parse_field_selector parse_label_selector",
    },
    "aioinformer.ring": {
        "ring.declaration": "ControllerRing RingSnapshot",
        "ring.member": "RingRefused",
        "ring.membership": "Membership SlotGrant SlotLost",
        "ring.table": "RingDamaged",
    },
    "aioinformer.streams": {
        "streams.changes": "ChangeKind Changes StreamChange",
    },
    "aioinformer.testing": {
        "testing.api.statuses": "StatusError",
        "testing.http.faults": "FAULTS Fault FaultScope",
        "testing.http.router": "RequestEntry",
        "testing.server.api_server": "ApiServer FaultController",
        "testing.server.population": "Workload make_pod make_pods populate",
        "testing.state.storage": "Backup",
    },
    "aioinformer.transport": {
        "transport.auth.credentials": "Connection",
        "transport.auth.tokens": "Credential Credentials FixedCredentials",
        "transport.kubernetes": "KubernetesTransport",
        "transport.messages": "HttpRequest Response SendCheck Sending Transport exchange",
        "transport.session": "TLS",
    },
    "aioinformer.web": {
        "web.errors": "BadStreamRequest TooManyReaders",
        "web.informers": "Informers",
        "web.opened": "Opened",
        "web.problems": "Problem problem",
        "web.streams": "StreamCore",
    },
    "aioinformer.web.aiohttp": {
        "web.aiohttp": "require setup stream",
    },
    "aioinformer.web.fastapi": {
        "web.fastapi": "describe_streams router",
    },
    "aioinformer.web.starlette": {
        "web.starlette": "add_exception_handlers require routes stream",
    },
    "aioinformer.webhooks": {
        "webhooks.admission": "Admission",
        "webhooks.hooks": "AdmissionRequest Denied",
        "webhooks.options": "HookOptions",
        "webhooks.server": "WebhookServer",
    },
    "aioinformer.workqueue": {
        "workqueue.delaying": "Delayed DelayingQueue",
        "workqueue.orders": "FIFOOrder PriorityOrder QueueOrder",
        "workqueue.parallelizer": "parallelize",
        "workqueue.queue": "QueueShutDown Work WorkQueue",
        "workqueue.rate_limiters": (
            "BucketRateLimiter ItemExponentialFailureRateLimiter ItemFastSlowRateLimiter MaxOfRateLimiter RateLimiter "
            "TokenBucket WithJitterRateLimiter WithMaxWaitRateLimiter default_controller_rate_limiter "
            "default_item_based_rate_limiter"
        ),
        "workqueue.requests.causes": "Cause LOW_PRIORITY NORMAL_PRIORITY",
        "workqueue.requests.outcomes": "Again Failing Finished Outcome Park Parked Run Unfinished",
        "workqueue.requests.request_queue": "QueueSnapshot RequestQueue",
        "workqueue.retry": "DEFAULT_BACKOFF DEFAULT_RETRY RetryBackoff is_conflict on_error retry_on_conflict",
    },
}

#: Names of the front door that have moved, or will go with a later version: by the name, the module below `aioinformer`
#: that defines it, the version without it, and what to use instead. Each stays for one minor version, with a warning.
#:
#:     "aioinformer": {"Old": ("cache.store", "0.4", "aioinformer.cache.New")},
DEPRECATED: Final[Mapping[str, Mapping[str, tuple[str, str, str]]]] = {}


def lazy_exports(address: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module that is an address of public names, and set its `__all__`.

    The AttributeError for a public name of another address says where that name is. A name in `DEPRECATED` is found
    with a DeprecationWarning, and is not in `__all__`.

    Args:
        address: the `__name__` of the module.
    """
    modules = modules_of(address)

    def load(name: str) -> object:
        import importlib

        if name in DEPRECATED.get(address, {}):
            return _load_deprecated(address, name)
        if name not in modules:
            raise AttributeError(f"module {address!r} has no attribute {name!r}{_elsewhere(name)}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[address], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[address]), *modules})

    vars(sys.modules[address])["__all__"] = sorted(modules)
    return load, names


def _load_deprecated(address: str, name: str) -> object:
    """Return what the name means, with a warning that names the line which uses it."""
    import importlib
    import warnings

    module, end, instead = DEPRECATED[address][name]
    warnings.warn(f"{address}.{name} goes with version {end}: use {instead}", DeprecationWarning, stacklevel=3)
    return getattr(importlib.import_module(f"aioinformer.{module}"), name)


def modules_of(address: str) -> dict[str, str]:
    """Return the module that defines each public name of an address."""
    return {name: f"aioinformer.{module}" for module, names in ADDRESSES[address].items() for name in names.split()}


def _elsewhere(name: str) -> str:
    found = [address for address in ADDRESSES if name in modules_of(address)]
    return f": {name} is in {' and '.join(found)}" if found else ""


def lazy_type(module: str, name: str) -> Any:
    """Return a type for annotations that is imported when they are resolved, since its module takes long to import.

    if TYPE_CHECKING:
        from kubernetes_asyncio.client import ApiClient
    else:
        ApiClient = lazy_type("kubernetes_asyncio.client", "ApiClient")
    """
    from typing import ForwardRef

    return ForwardRef(f"__import__({module!r}, fromlist=({name!r},)).{name}")


def package_version() -> str:
    """Return the version of this package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aioinformer")
    except PackageNotFoundError:
        return ""
