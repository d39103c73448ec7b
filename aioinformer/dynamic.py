"""Informers of whatever a server serves, by name, and of custom resources as they come and go.

An object is a mapping here, whatever it is: who asks for any resource knows no classes.

Custom resources are followed while their definitions are established and serve them. A version that is served no longer
is as good as gone; another one has an informer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, Unpack

from aioinformer.catalog import find
from aioinformer.definitions import CustomResourceDefinition
from aioinformer.deltas import DeletedFinalStateUnknown
from aioinformer.discovery import Discovery
from aioinformer.dynamic_informer import DynamicInformer
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer_set import InformerSet, synced_in_time
from aioinformer.listwatch import ListWatch
from aioinformer.logger import get_logger
from aioinformer.resources import Resource
from aioinformer.shared_informer import SharedIndexInformer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from aioinformer.identity import InformerName
    from aioinformer.informer_options import InformerOptions
    from aioinformer.metrics import MetricsProvider
    from aioinformer.options import ListOptions, ReflectorOptions
    from aioinformer.snapshots import FactorySnapshot
    from aioinformer.transport import Transport

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Following:
    """Who wants to know of custom resources."""

    begin: Callable[[DynamicInformer], Any]
    wanted: Callable[[Resource[Any]], Any]
    options: InformerOptions[Any]


class DynamicInformers:
    """Makes informers of any resource, each resource's once, and owns them while it runs.

    To be entered with `async with`; leaving it ends them all. Informers that are asked for while it runs are started at
    once, those before when it is entered.

    Args:
        transport: the server.
        resync_period: the default of all informers, in seconds; 0 for never.
        namespace: "" for all namespaces. Cluster-scoped resources are not limited by it.
        tweak_list_options: changes the options of every list and watch in place.
        options: of all informers: paging, time-outs, backoff.
        shutdown_grace: seconds a handler that is running at the stop has to finish.

        name: of the informers, for metrics; released when they have ended. What `follow` reads definitions with is not
            among them.
        metrics: asks informers for their numbers, from time to time; only those with a name.
    """

    def __init__(
        self,
        transport: Transport,
        resync_period: float = 0.0,
        *,
        namespace: str = "",
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        options: ReflectorOptions | None = None,
        shutdown_grace: float = 1.0,
        name: InformerName | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        if metrics is not None and name is None:
            raise UsageError("metrics go by names: give the informers one, name=InformerName(...)")
        self.discovery = Discovery(transport)
        self._transport = transport
        self._resync_period = resync_period
        self._namespace = namespace
        self._tweak = tweak_list_options
        self._options = options
        self._shutdown_grace = shutdown_grace
        self._name = name
        self._metrics = metrics
        self._informers = InformerSet("dynamic informers")
        self._following: _Following | None = None
        #: The resource that is followed of each definition.
        self._chosen: dict[str, Resource[Any]] = {}

    # Informers.

    async def informer(self, name: str | Resource[Any], **options: Unpack[InformerOptions[Any]]) -> DynamicInformer:
        """The one informer of a resource. The first call makes it, with what is given; later calls find it.

        Args:
            name: as kubectl takes it: "pods", "deployments.apps", "widgets.example.com", "apps/v1/deployments". A
                `Resource` needs no discovery, and may be one that the server does not serve yet.
            options: see `InformerOptions`; without effect on an informer that exists.

        Raises:
            InformerStopped: the stop has begun.
            UnknownResource: the server does not serve it.
            UsageError: it cannot be listed and watched, this is no name of a resource, or an option makes no sense.
            DiscoveryIncomplete: whether the server serves it could not be found out.
            TransportError: the server was not reached.
            ApiError: the server refuses to tell.
        """
        resource = name if isinstance(name, Resource) else await self.discovery.resolve(name)
        return self._informer_for(resource, options)

    def follow(
        self,
        begin: Callable[[DynamicInformer], Any],
        wanted: Callable[[Resource[Any]], Any] = lambda resource: True,
        **options: Unpack[InformerOptions[Any]],
    ) -> None:
        """Keeps an informer for each custom resource whose definition is there, or will be. To be called once.

        Args:
            begin: called with each new informer before it is started; adds handlers.
            wanted: resource -> whether to follow it.
            options: of these informers.

        Raises:
            InformerStopped: the stop has begun.
            UsageError: it was called before.
        """
        if self._following is not None:
            raise UsageError("follow() was called before: one follower can begin different things")
        self._following = _Following(begin, wanted, options)
        definitions = find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        lister_watcher: ListWatch[Any] = ListWatch(self._transport, definitions)
        informer = self._informers.by_gvr["definitions"] = SharedIndexInformer(
            lister_watcher, decoder=CustomResourceDefinition, options=self._options, shutdown_grace=self._shutdown_grace
        )
        informer.add_event_handler(
            on_add=self._defined,
            on_update=lambda old, new: self._defined(new),
            on_delete=self._withdrawn,
        )
        self._informers.start_informers()

    def informers(self) -> dict[str, DynamicInformer]:
        """All informers by the `gvr` of their resource: a copy."""
        return {gvr: each for gvr, each in self._informers.by_gvr.items() if isinstance(each, DynamicInformer)}

    def snapshot(self) -> FactorySnapshot:
        """What the informers and their handlers are doing, as plain data for `json.dumps`; any thread may ask.

        It has names and counts, and never the content of an object or a credential.
        """
        return self._informers.snapshot(self._name.name if self._name is not None else "")

    def __repr__(self) -> str:
        return self._informers.describe(self, self._name)

    # Life.

    async def wait_for_cache_sync(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
    ) -> dict[str, bool]:
        """Waits until every informer that there is now has filled its cache.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            For each resource, by `gvr`, whether its cache is filled: all of them, unless the time was too short.

        Raises:
            InformerStopped: one stopped before that.
            Exception: what an informer crashed with.
        """
        return await synced_in_time(self.informers(), timeout)

    async def __aenter__(self) -> Self:
        self._informers.check()
        if self._informers.stopped or self._informers.running:
            raise UsageError("dynamic informers run once; make new ones")
        await self._informers.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._informers.stop()
        finally:
            if self._name is not None:
                self._name.release()

    def _informer_for(
        self,
        resource: Resource[Any],
        options: InformerOptions[Any],
        begin: Callable[[DynamicInformer], Any] = lambda informer: None,
    ) -> DynamicInformer:
        known = self._informers.by_gvr.get(resource.gvr)
        if isinstance(known, DynamicInformer):
            return known
        self._informers.check()
        if self._informers.stopped:
            raise InformerStopped(f"the dynamic informers were stopped before they were asked for {resource.gvr}")
        resource.require("list", "watch")
        chosen: dict[str, Any] = {"options": self._options, **options}
        period = chosen.pop("resync_period", None)
        if chosen.pop("metadata_only", False):
            chosen["storage"] = "metadata"
        informer = DynamicInformer(
            self._lister_watcher(resource),
            self._resync_period if period is None else period,
            shutdown_grace=self._shutdown_grace,
            identifier=self._name.with_resource(resource) if self._name is not None else None,
            metrics=self._metrics,
            **chosen,
        )
        begin(informer)
        self._informers.by_gvr[resource.gvr] = informer
        self._informers.start_informers()
        return informer

    def _lister_watcher(self, resource: Resource[Any]) -> ListWatch[Any]:
        namespace = self._namespace if resource.namespaced else ""
        return ListWatch(self._transport, replace(resource, model=""), namespace, tweak=self._tweak)

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
            _log.info("custom resource %s is followed", resource.gvr)
            self._informer_for(resource, following.options, following.begin)
            self._chosen[definition.name] = resource

    def _withdrawn(self, gone: CustomResourceDefinition | DeletedFinalStateUnknown[Any]) -> None:
        self._serve(gone.key if isinstance(gone, DeletedFinalStateUnknown) else gone.name, {})

    def _serve(self, name: str, served: Mapping[str, Resource[Any]]) -> None:
        for gvr, informer in self.informers().items():
            if informer.resource.group_resource != name:
                continue
            if gvr in served and served[gvr].namespaced is not informer.resource.namespaced:
                informer.move(self._lister_watcher(served[gvr]))
            if informer.served is not (gvr in served):
                _log.info("custom resource %s is %s", gvr, "withdrawn" if informer.served else "back")
                informer.serve(gvr in served)
