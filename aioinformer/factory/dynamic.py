"""`DynamicInformers`: informers of any resource by name, and of custom resources while they are served.

Objects are mappings, for built-in kinds, too, since code for any resource has no model classes.

`follow` keeps an informer for each custom resource whose definition is established and serves it. When a version is no
longer served, its objects are delivered as deletes; another version gets its own informer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, Unpack

import msgspec
from msgspec.structs import replace

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.factory.builder import InformerBuilder
from aioinformer.factory.informer_set import InformerSet
from aioinformer.handlers.resync import checked_period
from aioinformer.informer.options import InformerOptions, Making, RunOptions, named_options
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.snapshots import FactorySnapshot
from aioinformer.informer.sources import OneCollection
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.logs import get_logger
from aioinformer.metrics.names import InformerName
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.reflector.listwatch import ListerWatcher, ListWatch
from aioinformer.reflector.options import ListOptions
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.catalog import find
from aioinformer.resources.crds import CustomResourceDefinition
from aioinformer.resources.discovery import Discovery
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.resource import Resource
from aioinformer.transport import Transport
from aioinformer.transport.clients import ApiClient, Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.scopes import Scope


_log = get_logger("aioinformer.factory")


class _ServedCollection(OneCollection[Any]):
    """A collection that is followed while it is served. Initially, it counts as served."""

    def __init__(self, lister_watcher: ListerWatcher[Any]) -> None:
        super().__init__(lister_watcher)
        self.served = asyncio.Event()
        self.served.set()
        self._following = False

    async def follow(self) -> None:
        self._following = True
        try:
            while not self.served.is_set():
                if self.source is not None:
                    self.source.controller.reflector.quarantine.clear()
                    await self.feed.pipeline.forget(self.source.known.all_keys())
                await self.served.wait()
            await super().follow()
        finally:
            self._following = False

    @property
    def state(self) -> InformerState:
        if self.served.is_set() or not self._following:
            return super().state
        return replace(super().state, phase=Phase.NOT_FOUND, reason="its definition is not there, or does not serve it")


class DynamicInformer(SharedIndexInformer[Any]):
    """A `SharedIndexInformer` of a resource that may not be served. Initially, it counts as served."""

    def __init__(self, lister_watcher: ListerWatcher[Any], resync_period: float = 0.0, **options: Any) -> None:
        self._collection = _ServedCollection(lister_watcher)
        super().__init__(self._collection, resync_period, **options)

    @property
    def served(self) -> bool:
        """Whether the resource is known to be served, so that the informer watches it."""
        return self._collection.served.is_set()

    def serve(self, served: bool) -> None:
        """Set whether the resource is served. If not, empty the cache and deliver deletes."""
        if served:
            self._collection.served.set()
        elif self.served:
            self._collection.served.clear()
            self._collection.replace(self._collection.lister_watcher)

    def move(self, lister_watcher: ListerWatcher[Any]) -> None:
        """Replace the lister-watcher, for a resource that is now namespaced or cluster-scoped and was not before.

        Args:
            lister_watcher: of the same resource.
        """
        self.resource = lister_watcher.resource
        self._collection.replace(lister_watcher)


class _Following(msgspec.Struct, frozen=True):
    """The arguments of `follow`."""

    begin: Callable[[DynamicInformer], Any]
    wanted: Callable[[Resource[Any]], Any]
    options: dict[str, Any]


class DynamicInformers:
    """Creates informers of any resource, one for each resource and scope, and owns them while it runs.

    Use it as `async with DynamicInformers(…) as informers`; leaving the block stops all of them. Informers that are
    created inside the block start at once, those created before start on entry.

    Args:
        transport: a transport, a `Connection`, an `ApiClient` of kubernetes_asyncio, or the URL of the server. For the
            latter two, a transport is created, and closed on exit; you close the others.
        resync_period: the default for all informers, in seconds; 0 for never.
        namespace: "" for all namespaces. It does not apply to cluster-scoped resources.
        tweak_list_options: changes the options of every list and watch in place.
        options: how the informers run: paging, timeouts, backoff, their queue, readiness, the grace of handlers.

        name: of the informers, for metrics; released when they have stopped. The informer of definitions for `follow`
            is not included. If a string is in use, `name-2`, `name-3` and so on follow it. With `metrics`, `default` by
            default.
        metrics: collects the informers' metrics; without it, they are not counted.

    Raises:
        UsageError: the transport, the period or the name is invalid.
    """

    def __init__(
        self,
        transport: Transport | Connection | ApiClient | str,
        resync_period: float = 0.0,
        *,
        namespace: str = "",
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        options: RunOptions | None = None,
        name: InformerName | str | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        self._builder = InformerBuilder(
            transport,
            "transport",
            Making(resync_period=checked_period(resync_period), options=RunOptions() if options is None else options),
            namespace=namespace,
            tweak_list_options=tweak_list_options,
            name=name,
            metrics=metrics,
        )
        self.discovery = Discovery(self._builder.client.transport)
        self._informers: InformerSet[DynamicInformer] = InformerSet(
            "dynamic informers", "enter `async with` of the DynamicInformers"
        )
        self._scopes: dict[DynamicInformer, Scope] = {}
        self._following: _Following | None = None
        #: The watched version of each definition.
        self._chosen: dict[str, Resource[Any]] = {}

    # Informers.

    async def informer(self, name: str | Resource[Any], **options: Unpack[InformerOptions[Any]]) -> DynamicInformer:
        """Return the informer of a resource and scope; the first call creates it.

        The options are those of `SharedInformerFactory.informer_for`.

        Args:
            name: as for kubectl: "pods", "deployments.apps", "widgets.example.com", "apps/v1/deployments". A `Resource`
                needs no discovery, and the server need not serve it yet.
            options: see `InformerOptions`.

        Raises:
            InformerStopped: the stop has begun.
            UnknownResource: the server does not serve the resource.
            UnknownOption: there is no such option.
            UsageError: the resource does not support list, the name is invalid, or an option is invalid or differs from
                that of the existing informer.
            DiscoveryIncomplete: discovery failed for a part of the API that may contain the resource.
            TransportError: the server was not reached.
            ApiError: the server refused the discovery.
        """
        named = named_options(options, "informer()")
        resource = name if isinstance(name, Resource) else await self.discovery.resolve(name)
        return self._informer_for(resource, named)

    def follow(
        self,
        begin: Callable[[DynamicInformer], Any],
        wanted: Callable[[Resource[Any]], Any] = lambda resource: True,
        **options: Unpack[InformerOptions[Any]],
    ) -> None:
        """Keep an informer for each custom resource with a definition, now or later. Call it once.

        Args:
            begin: called with each new informer before its start, to add handlers.
            wanted: resource -> whether to watch it.
            options: of these informers.

        Raises:
            InformerStopped: the stop has begun.
            UsageError: it was called before.
        """
        if self._following is not None:
            raise UsageError("follow() was called before: tell resources apart in `begin`")
        self._following = _Following(begin, wanted, named_options(options, "follow()"))
        definitions = find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        lister_watcher: ListWatch[Any] = ListWatch(self._builder.client.transport, definitions)
        informer: SharedIndexInformer[Any] = SharedIndexInformer(
            lister_watcher, decoder=CustomResourceDefinition, options=self._builder.defaults.options
        )
        self._informers.add_other(informer)
        informer.add_event_handler(
            on_add=self._defined,
            on_update=lambda old, new: self._defined(new),
            on_delete=self._withdrawn,
        )
        self._informers.start_informers()

    def informers(self) -> dict[str, DynamicInformer]:
        """Return all informers by the `gvr` of their resource, and the scope if it is not the default: a copy."""
        return dict(self._informers.by_key)

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers and their handlers, as plain data for `json.dumps`, in any thread.

        It contains names and counts, but never the content of an object or a credential.
        """
        return self._informers.snapshot(self._builder.name)

    def __repr__(self) -> str:
        return self._informers.describe(self, self._builder.name)

    # Life.

    async def wait_for_cache_sync(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - a timeout is a result here, not an exception
    ) -> SyncResult:
        """Wait until the caches of all current informers have synced.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            Whether each cache has synced, by the keys of `informers()`. True if all have.

        Raises:
            InformerStopped: an informer stopped before that.
            Exception: an informer crashed with it.
        """
        return await all_synced(self.informers(), timeout=timeout)

    def is_ready(self) -> bool:
        """Return whether every informer is ready; see `SharedIndexInformer.is_ready`."""
        return self._informers.is_ready()

    async def __aenter__(self) -> Self:
        self._informers.check()
        if self._informers.stopped or self._informers.running:
            raise UsageError("DynamicInformers can be entered once; create another one")
        await self._informers.enter()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self._informers.leave(kind, self._informers.stop)
        finally:
            await self._builder.aclose()

    def _informer_for(
        self,
        resource: Resource[Any],
        named: dict[str, Any],
        begin: Callable[[DynamicInformer], Any] = lambda informer: None,
    ) -> DynamicInformer:
        key = self._builder.key(replace(resource, model=""), named)
        known = self._informers.find(key, named)
        if known is not None:
            return known
        self._informers.check()
        if self._informers.stopped:
            raise InformerStopped(f"{key} has no informer, and the DynamicInformers were stopped")
        resource.require("list")
        making = self._builder.defaults.with_options(named)
        informer = self._builder.build(DynamicInformer, key, named, making)
        begin(informer)
        self._informers.add(key, informer, making)
        self._scopes[informer] = key.scope
        self._informers.start_informers()
        return informer

    # Definitions.

    def _defined(self, definition: CustomResourceDefinition) -> None:
        following = self._following
        assert following is not None
        served = {resource.gvr: resource for resource in definition.served()}
        self._serve(definition.name, served)
        chosen = self._chosen.get(definition.name)
        if not served or (chosen is not None and chosen.gvr in served):
            return
        resource = next(iter(served.values()))
        if following.wanted(resource):
            _log.info("custom resource %s is served: watching it", resource.gvr)
            try:
                self._informer_for(resource, following.options, following.begin)
            except UsageError as error:
                _log.error("custom resource %s cannot be watched: %s", resource.gvr, error)
            self._chosen[definition.name] = resource

    def _withdrawn(self, last: CustomResourceDefinition | DeletedFinalStateUnknown[Any]) -> None:
        self._serve(last.key if isinstance(last, DeletedFinalStateUnknown) else last.name, {})

    def _serve(self, name: str, served: Mapping[str, Resource[Any]]) -> None:
        for key, informer in self.informers().items():
            if informer.resource.group_resource != name:
                continue
            resource = served.get(informer.resource.gvr)
            if resource is not None and resource.namespaced is not informer.resource.namespaced:
                scope = self._scopes[informer]
                if scope.namespace and scope.namespace != self._builder.namespace and not resource.namespaced:
                    resource = None  # the requested namespace has no objects of it
                else:
                    namespace = scope.namespace or self._builder.namespace if resource.namespaced else ""
                    informer.move(
                        self._builder.list_watch(replace(resource, model=""), replace(scope, namespace=namespace))
                    )
            if informer.served is not (resource is not None):
                _log.info("custom resource %s is %s", key, "no longer served" if informer.served else "served again")
                informer.serve(resource is not None)
