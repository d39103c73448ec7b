"""SharedInformerFactory: one informer for each resource a program cares about, and one life for all of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from aioinformer.accessors import Accessors, ClusterAccessor, NamespacedAccessor
from aioinformer.catalog import find
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer_set import InformerSet, synced_in_time
from aioinformer.listwatch import ListWatch
from aioinformer.queue_choice import QueueKind
from aioinformer.resync import checked_period
from aioinformer.shared_informer import SharedIndexInformer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from kubernetes_asyncio.client import ApiClient

    from aioinformer.identity import InformerName
    from aioinformer.informer_options import InformerOptions
    from aioinformer.metrics import MetricsProvider
    from aioinformer.options import ListOptions, ReflectorOptions
    from aioinformer.resources import Resource
    from aioinformer.snapshots import FactorySnapshot
    from aioinformer.transport import Transport

T = TypeVar("T")


class SharedInformerFactory(Accessors):
    """Makes informers, each resource's once, and owns them while it runs.

    `async with factory:` starts what was asked for before; `start()` and `wait_for_cache_sync()` start what was asked
    for since. Leaving it ends them all. It may be entered and left by different tasks.

    Every built-in resource is an attribute path, `factory.apps.v1.deployments`, with `informer()` and `lister()`;
    all others go by `for_resource`.

    Args:
        client: a transport, or an `ApiClient` of kubernetes_asyncio.
        resync_period: the default of all informers, in seconds; 0 for never.

        namespace: "" for all namespaces. Cluster-scoped resources are not limited by it.
        tweak_list_options: changes the options of every list and watch in place.
        custom_resync: periods of single resources, by their `gvr` ("apps/v1/deployments", core: "v1/pods").

        transform: of all informers: sees each object before anybody else does; what it returns is cached.
        options: of all informers: paging, time-outs, backoff.
        shutdown_grace: seconds a handler that is running at the stop has to finish.

        name: of the informers, for metrics; released by `shutdown`.
        metrics: asks informers for their numbers, from time to time; only those with a name.
    """

    def __init__(
        self,
        client: Transport | ApiClient,
        resync_period: float = 0.0,
        *,
        # Selection
        namespace: str = "",
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        custom_resync: Mapping[str, float] | None = None,
        # Informers
        transform: Callable[[Any], Any] | None = None,
        options: ReflectorOptions | None = None,
        shutdown_grace: float = 1.0,
        # Metrics
        name: InformerName | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        if metrics is not None and name is None:
            raise UsageError("metrics go by names: give the factory one, name=InformerName(...)")
        self._client = client
        self._transport: Transport | None = None
        self._resync_period = checked_period(resync_period)
        self._namespace = namespace
        self._tweak = tweak_list_options
        self._custom_resync = {
            gvr: checked_period(period, f"custom_resync[{gvr!r}]") for gvr, period in (custom_resync or {}).items()
        }
        for gvr in self._custom_resync:
            if "/" not in gvr:
                raise UsageError(f"custom_resync: {gvr!r} is no resource; write it as v1/pods or apps/v1/deployments")
        self._transform = transform
        self._options = options
        self._shutdown_grace = shutdown_grace
        self._name = name
        self._metrics = metrics
        self._informers = InformerSet("informer factory")

    # Informers.

    def informer_for(self, resource: Resource[T], **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """The one informer of a resource. The first call makes it, with what is given; later calls find it.

        Args:
            resource: which.
            options: see `InformerOptions`; without effect on an informer that exists.

        Raises:
            InformerStopped: the factory was shut down, and has no such informer.
            UsageError: an option makes no sense, or the resource cannot be listed and watched.
        """
        informer = self._informers.by_gvr.get(resource.gvr)
        if informer is not None:
            return informer
        if self._informers.stopped:
            raise InformerStopped(f"the factory was shut down before it was asked for {resource.gvr}; make a new one")
        resource.require("list", "watch")
        period = options.get("resync_period")
        lister_watcher = ListWatch(
            self._reach(), resource, self._namespace if resource.namespaced else "", tweak=self._tweak
        )
        informer = self._informers.by_gvr[resource.gvr] = SharedIndexInformer(
            lister_watcher,
            self._custom_resync.get(resource.gvr, self._resync_period) if period is None else period,
            indexers=options.get("indexers"),
            decoder=options.get("decoder"),
            transform=options.get("transform") or self._transform,
            storage="metadata" if options.get("metadata_only") else options.get("storage", "bytes"),
            fields=options.get("fields", ()),
            queue=options.get("queue", QueueKind.DELTA),
            options=options.get("options") or self._options,
            shutdown_grace=self._shutdown_grace,
            identifier=self._name.with_resource(resource) if self._name is not None else None,
            metrics=self._metrics,
        )
        return informer

    def for_resource(self, resource: Resource[T] | str) -> NamespacedAccessor[T] | ClusterAccessor[T]:
        """Any resource, with `informer()` and `lister()` as the attribute paths have them.

        Args:
            resource: a `Resource` (of a CRD, say), or the `gvr` of a built-in one: "apps/v1/deployments", "v1/pods".

        Raises:
            UsageError: there is no built-in resource of this name.
        """
        if isinstance(resource, str):
            resource = _built_in(resource)
        accessor = NamespacedAccessor if resource.namespaced else ClusterAccessor
        return accessor(self, resource)

    def informers(self) -> dict[str, SharedIndexInformer[Any]]:
        """All informers that were asked for, by the `gvr` of their resource: a copy."""
        return dict(self._informers.by_gvr)

    def snapshot(self) -> FactorySnapshot:
        """What the informers and their handlers are doing, as plain data for `json.dumps`; any thread may ask.

        It has names and counts, and never the content of an object or a credential.
        """
        return self._informers.snapshot(self._name.name if self._name is not None else "")

    # Life.

    def start(self) -> None:
        """Starts all informers that were asked for and do not run yet. A plain call; may be repeated.

        Raises:
            InformerStopped: the factory was shut down.
            Exception: what an informer crashed with.
        """
        self._check()
        self._informers.start()

    async def wait_for_cache_sync(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
    ) -> dict[str, bool]:
        """Starts what is not started, and waits until every cache is filled. Handlers may not have been told yet.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            For each resource, by `gvr`, whether its cache is filled: all of them, unless the time was too short.

        Raises:
            InformerStopped: the factory was shut down before that.
            Exception: what an informer crashed with.
        """
        self.start()
        return await synced_in_time(self._informers.by_gvr, timeout)

    def is_ready(self) -> bool:
        """Whether every informer asked for runs and has filled its cache: what a readiness probe wants to know."""
        return self._informers.is_ready()

    async def shutdown(self) -> None:
        """Ends all informers and waits for that; bounded by `shutdown_grace` and ten seconds more. May be repeated.

        Raises:
            Exception: what an informer had crashed with.
        """
        try:
            await self._informers.stop()
        finally:
            if self._name is not None:
                self._name.release()
            transport, self._transport = self._transport, None
            if transport is not None and transport is not self._client:
                await transport.aclose()  # type: ignore[attr-defined]  # made here, so it is a KubernetesTransport

    async def __aenter__(self) -> Self:
        self._check()
        try:
            await self._informers.enter()
        except asyncio.CancelledError:
            await self.shutdown()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown()

    def __repr__(self) -> str:
        return self._informers.describe(self, self._name)

    def _check(self) -> None:
        self._informers.check()
        if self._informers.stopped:
            raise InformerStopped("the factory was shut down; make a new one")

    def _reach(self) -> Transport:
        if self._transport is None:
            self._transport = _transport_of(self._client)
        return self._transport


def _transport_of(client: Any) -> Transport:
    if hasattr(client, "call_api"):
        from aioinformer.transport.kubernetes import KubernetesTransport

        return KubernetesTransport(client)
    if not callable(getattr(client, "request", None)):
        raise UsageError(
            f"client: expected a transport or an ApiClient of kubernetes_asyncio, not {type(client).__name__}"
        )
    transport: Transport = client
    return transport


def _built_in(gvr: str) -> Resource[Any]:
    group_version, _, plural = gvr.rpartition("/")
    group, _, version = group_version.rpartition("/")
    resource = find(group, version, plural)
    if resource is None:
        raise UsageError(
            f"{gvr!r} is no built-in resource; write it as group/version/plural (core: v1/pods), "
            "or give a Resource for a custom one"
        )
    return resource
