"""SharedInformerFactory: one informer for each resource a program cares about, and one life for all of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar, Unpack

from aioinformer.errors import InformerStopped, UnknownOption, UsageError
from aioinformer.factory.accessors import Accessors, ClusterAccessor, NamespacedAccessor
from aioinformer.factory.informer_set import InformerSet
from aioinformer.functions import plain_function
from aioinformer.handlers.resync import checked_period
from aioinformer.informer.options import Making, named_options
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.metrics import InformerName, identity_for, name_for
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import check_metrics, check_options, check_seconds, check_share
from aioinformer.resources.catalog import BUILTIN_RESOURCES, find
from aioinformer.resources.resource import Resource
from aioinformer.resources.scopes import Scope, check_namespace, key_of
from aioinformer.transport.clients import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from kubernetes_asyncio.client import ApiClient

    from aioinformer.informer.options import InformerOptions
    from aioinformer.informer.snapshots import FactorySnapshot
    from aioinformer.metrics import MetricsProvider
    from aioinformer.reflector.options import ListOptions, ReflectorOptions
    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection

T = TypeVar("T")


class SharedInformerFactory(Accessors):
    """Makes informers, one for each resource and scope, and owns them while it runs.

    `async with factory:` starts what was asked for before; `start()` and `wait_for_cache_sync()` start what was asked
    for since. Leaving it ends them all. It may be entered and left by different tasks.

    Every built-in resource is an attribute path, `factory.apps.v1.deployments`, with `informer()` and `lister()`;
    all others go by `for_resource`.

    Args:
        client: a transport, a `Connection`, an `ApiClient` of kubernetes_asyncio, or the URL of the server. Only what
            the factory makes of the latter two is closed by `shutdown`.
        resync_period: the default of all informers, in seconds; 0 for never.

        namespace: "" for all namespaces. Cluster-scoped resources are not limited by it.
        tweak_list_options: changes the options of every list and watch in place.
        custom_resync: periods of single resources, by their `gvr` ("apps/v1/deployments", core: "v1/pods").

        transform: of all informers: sees each object before anybody else does; what it returns is cached.
        options: of all informers: paging, time-outs, backoff.
        max_undecodable: of all informers: the share of objects, from 0 to 1, above which one is not ready; None for no
            limit.
        shutdown_grace: seconds a handler that is running at the stop has to finish.

        name: of the informers, for metrics; released by `shutdown`. By default, and if a string is in use, the first
            free one of `default`, `default-2` and so on.
        metrics: asks informers for their numbers, from time to time; without it, nothing is counted.
    """

    def __init__(
        self,
        client: Transport | Connection | ApiClient | str,
        resync_period: float = 0.0,
        *,
        # Selection
        namespace: str = "",
        tweak_list_options: Callable[[ListOptions], None] | None = None,
        custom_resync: Mapping[str, float] | None = None,
        # Informers
        transform: Callable[[Any], Any] | None = None,
        options: ReflectorOptions | None = None,
        max_undecodable: float | None = None,
        shutdown_grace: float = 1.0,
        # Metrics
        name: InformerName | str | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        check_namespace(namespace)
        check_seconds(shutdown_grace, "shutdown_grace")
        check_options(options)
        check_share(max_undecodable)
        self._client = Client(client)
        self._namespace = namespace
        self._tweak = plain_function(tweak_list_options, "tweak_list_options")
        self._making = Making(
            transform=plain_function(transform, "transform"),
            resync_period=checked_period(resync_period),
            max_undecodable=max_undecodable,
            options=options,
        )
        self._custom_resync = {
            gvr: checked_period(period, f"custom_resync[{gvr!r}]") for gvr, period in (custom_resync or {}).items()
        }
        for gvr in self._custom_resync:
            _check_gvr(gvr)
        self._shutdown_grace = shutdown_grace
        check_metrics(metrics)
        self._name = name_for(name, metrics)
        self._metrics = metrics
        self._informers: InformerSet[SharedIndexInformer[Any]] = InformerSet(
            "informer factory", "ask for it before `async with factory`, or call factory.start() afterwards"
        )

    # Informers.

    def informer_for(self, resource: Resource[T], **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """Return the informer of a resource and scope; the first call makes it.

        Namespace and selectors say which informer is meant: several scopes of a resource are several informers. What is
        not named of them is as the factory has it. `tweak_list_options` of the factory comes last, on top of them.

        Later calls get the informer that exists. Options that they do not name are those of that informer; indexes that
        it does not have are added.

        Args:
            resource: which.
            options: see `InformerOptions`.

        Raises:
            InformerStopped: the factory was shut down, and has no such informer.
            UnknownOption: there is no such option.
            UsageError: an option makes no sense, or differs from that of the informer that exists; or the resource
                cannot be listed.
        """
        if not isinstance(resource, Resource):
            raise UsageError(
                f"resource: expected a Resource, not {resource!r}; for_resource() takes names of built-in ones"
            )
        named = named_options(options, "informer_for()")
        key = key_of(resource, named, Scope(self._namespace))
        known = self._informers.find(key, named)
        if known is not None:
            return known
        if self._informers.stopped:
            raise InformerStopped(f"the factory was shut down before it was asked for {key}; make a new one")
        resource.require("list")
        period = self._custom_resync.get(resource.gvr, self._making.resync_period)
        making = replace(self._making, resync_period=period).with_options(named)
        scope = key.scope
        informer: SharedIndexInformer[T] = SharedIndexInformer(
            ListWatch(
                self._client.transport,
                resource,
                scope.namespace,
                scope.label_selector,
                scope.field_selector,
                tweak=self._tweak,
            ),
            indexers=named.get("indexers"),
            name=f"informer of {key}" if key.differences else "",
            shutdown_grace=self._shutdown_grace,
            identifier=identity_for(self._name, self._metrics, resource, key.query),
            metrics=self._metrics,
            **making.arguments(),
        )
        self._informers.add(key, informer, making)
        return informer

    def for_resource(self, resource: Resource[T] | str, **options: Never) -> NamespacedAccessor[T] | ClusterAccessor[T]:
        """Any resource, with `informer()` and `lister()` as the attribute paths have them.

        Args:
            resource: a `Resource` (of a CRD, say), or the `gvr` of a built-in one: "apps/v1/deployments", "v1/pods".

        Raises:
            UnknownOption: an option is given; they are given to `informer()` and `lister()` of what this returns.
            UsageError: there is no built-in resource of this name.
        """
        if options:
            raise UnknownOption(
                f"for_resource() has no option {next(iter(options))!r}; give options to what it returns: "
                "for_resource(...).informer(...) or .lister(...)"
            )
        if isinstance(resource, str):
            resource = _built_in(resource)
        elif not isinstance(resource, Resource):
            raise UsageError(f'resource: expected a Resource, or a name like "apps/v1/deployments", not {resource!r}')
        accessor = NamespacedAccessor if resource.namespaced else ClusterAccessor
        return accessor(self, resource)

    def informers(self) -> dict[str, SharedIndexInformer[Any]]:
        """Return a copy: all informers by the `gvr` of their resource, and the scope if it is not the factory's."""
        return dict(self._informers.by_key)

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
    ) -> SyncResult:
        """Starts what is not started, and waits until every cache is filled. Handlers may not have been told yet.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            Whether all caches are filled, and whether each is: a mapping with the `gvr` of each resource ("v1/pods") as
            key, or that and the scope ("v1/pods?namespace=shop&labelSelector=app=web") if it is not the factory's own.

        Raises:
            InformerStopped: the factory was shut down before that.
            Exception: what an informer crashed with.
        """
        self.start()
        return await all_synced(self._informers.by_key, timeout=timeout)

    def is_ready(self) -> bool:
        """Whether every informer asked for is ready: it runs, its cache is filled, and objects can be decoded.

        This is what a readiness probe wants to know; see `SharedIndexInformer.is_ready`.
        """
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
            await self._client.aclose()

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


def _check_gvr(gvr: str) -> None:
    """Refuse what cannot be the name of a resource; those of groups that are not built in may be anything."""
    group_version, _, plural = gvr.rpartition("/")
    group, _, version = group_version.rpartition("/")
    known = [each.gvr for each in BUILTIN_RESOURCES if (each.group, each.version) == (group, version)]
    if not version or not plural or (known and gvr not in known):
        nearest = get_close_matches(gvr, known, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "write it as v1/pods or apps/v1/deployments"
        raise UsageError(f"custom_resync: {gvr!r} is no resource; {hint}")


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
