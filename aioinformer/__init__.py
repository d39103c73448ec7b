"""client-go's informer machinery for asyncio: an always-fresh, indexed copy of a cluster's objects in memory.

Start with `SharedInformerFactory`. Everything below it can be used by itself. The API server for tests is
`aioinformer.testing`; transports are in `aioinformer.transport`.

A name is imported when it is first used, so a program loads only the parts that it uses.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(
    __name__,
    {
        "backoff": "BackoffOptions",
        "cache.expiration_store": "ExpirationStore TTLPolicy ttl_store",
        "cache.indices": "Index IndexFunc Indexers",
        "cache.lister": "ClusterLister Lister NamespaceLister",
        "cache.mutation_detector": "MutationDetector",
        "cache.objects.changes": "evolve",
        "cache.objects.codec": "to_json",
        "cache.store": "Indexer Indices NAMESPACE_INDEX Store ThreadSafeStore",
        "cache.undelta_store": "UndeltaStore",
        "client.changes.conditions": "Condition get_condition is_condition_true remove_condition set_condition",
        "client.changes.owners": "add_finalizer controller_of has_finalizer remove_finalizer set_controller_reference",
        "client.changes.patches": "merge_patch",
        "client.client": "Client",
        "client.resource_client": "ResourceClient",
        "errors": (
            "AioinformerError AlreadyExists AlreadyOwned ApiError ApiNotFound Conflict DecodeError Expired "
            "FIFOClosed Forbidden FormerOwner FrameTooLarge Gone IndexNotFound InformerStopped Invalid "
            "KeyFuncError NotFound OptionError ProcessingError ResourceVersionTooLarge SelectorError Stale "
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
        "informer.options": "RunOptions",
        "informer.process_loop": "CacheController CacheControllerConfig",
        "informer.shared_informer": "SharedIndexInformer",
        "informer.sync": "SyncResult wait_for_cache_sync",
        "informer.watch": "InformerWatch RetryWatcher until",
        "leaderelection.candidate": "LeaseCandidate",
        "leaderelection.elector": "LeaderElector LeadershipLost Term",
        "leaderelection.lease": "LeaderElectionOptions",
        "leaderelection.lock": "LeaseLock",
        "metrics.names": "InformerName",
        "queue.delta_fifo": "DeltaFIFO Queue",
        "queue.deltas": "Delta DeltaType Deltas",
        "queue.real_fifo": "RealFIFO",
        "reflector.listwatch": "ListWatch ListerWatcher",
        "reflector.options": "ListOptions ReflectorOptions",
        "reflector.pager": "ListPager",
        "reflector.reflector": "Reflector",
        "reflector.sharding": "ShardedListWatch",
        "reflector.state": "InformerState Phase",
        "resources.catalog": "BUILTIN_RESOURCES",
        "resources.discovery": "Discovery",
        "resources.keys": (
            "DeletedFinalStateUnknown ExplicitKey ObjectName deletion_handling_meta_namespace_key_func "
            "deletion_handling_object_name meta_namespace_index_func meta_namespace_key_func object_name "
            "split_meta_namespace_key"
        ),
        "resources.manifests": "Manifest load_manifests",
        "resources.resource": "Resource",
        "resources.restmapper": "DiscoveryIncomplete UnknownResource",
        "resources.selectors": "FieldSelector LabelSelector parse_field_selector parse_label_selector",
        "resources.shards": "shard_selectors",
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
