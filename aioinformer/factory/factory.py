"""`SharedInformerFactory`: one informer for each resource and scope; all of them start and stop together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from msgspec.structs import replace

from aioinformer.errors import InformerStopped, OptionError, UsageError, did_you_mean
from aioinformer.factory.accessors import Accessors
from aioinformer.factory.builder import InformerBuilder
from aioinformer.factory.informer_set import InformerSet
from aioinformer.factory.memory import InformerMemory
from aioinformer.functions import plain_function
from aioinformer.handlers.resync import checked_period
from aioinformer.informer.options import Making, RunOptions, named_options
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.snapshots import FactorySnapshot
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.metrics.names import InformerName
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.reflector.options import ListOptions
from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.resources.resource import Resource
from aioinformer.transport import Transport
from aioinformer.transport.clients import ApiClient, Connection

if TYPE_CHECKING:
    from aioinformer.cache.objects.codec import BodyDecoder
    from aioinformer.cache.objects.storage import DecodedTier, DictTier
    from aioinformer.factory.resource_accessor import FrozenObject
    from aioinformer.informer.options import CommonOptions

T = TypeVar("T")
M = TypeVar("M")


class SharedInformerFactory(Accessors):
    """Creates informers, one for each resource and scope, and owns them while it runs.

    `async with factory:` starts the informers that exist; `start()` and `wait_for_cache_sync()` start those created
    since. Leaving the block stops all of them. Different tasks may enter and leave it.

    Every built-in resource is an attribute path, `factory.apps.v1.deployments`, with `informer()` and `lister()`. Use
    `for_resource` for all others.

    Args:
        client: a transport, a `Connection`, an `ApiClient` of kubernetes_asyncio, or the URL of the server. For the
            latter two, the factory creates a transport, and `shutdown` closes it; you close the others.
        resync_period: the default for all informers, in seconds; 0 for never.

        namespace: "" for all namespaces. It does not apply to cluster-scoped resources.
        tweak_list_options: changes the options of every list and watch in place.
        custom_resync: `gvr` of a resource ("apps/v1/deployments", core: "v1/pods") -> its resync period.

        transform: for all informers: called with each object before it is cached and delivered; its result is cached.
        options: how the informers run: paging, timeouts, backoff, their queue, readiness, the grace of handlers.

        name: of the informers, for metrics; `shutdown` releases it. If a string is in use, `name-2`, `name-3` and so on
            follow it. With `metrics`, `default` by default.
        metrics: collects the informers' metrics; without it, they are not counted.

        on_crash: what follows an informer that crashes, which is logged in any case. "raise": all informers stop, and
            the block of `async with` is cancelled and raises the error. "log": the block and the other informers go on.

        memory_limit: in bytes: a warning with the remedy is logged when the caches take more; None for no limit. They
            are measured each minute, as by `memory()`.

    Raises:
        OptionError: an option has a value that does not exist.
        UsageError: the client, a period or the name is invalid.
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
        options: RunOptions | None = None,
        # Metrics
        name: InformerName | str | None = None,
        metrics: MetricsProvider | None = None,
        # Crashes
        on_crash: Literal["raise", "log"] = "raise",
        # Memory
        memory_limit: int | None = None,
    ) -> None:
        if on_crash not in ("raise", "log"):
            raise OptionError(f"on_crash={on_crash!r} does not exist; choose 'raise' or 'log'")
        self._custom_resync = {
            gvr: checked_period(period, f"custom_resync[{gvr!r}]") for gvr, period in (custom_resync or {}).items()
        }
        for gvr in self._custom_resync:
            _check_gvr(gvr)
        defaults = Making(
            transform=plain_function(transform, "transform"),
            resync_period=checked_period(resync_period),
            options=RunOptions() if options is None else options,
        )
        self._builder = InformerBuilder(
            client,
            "client",
            defaults,
            namespace=namespace,
            tweak_list_options=tweak_list_options,
            name=name,
            metrics=metrics,
        )
        self._informers: InformerSet[SharedIndexInformer[Any]] = InformerSet(
            "informer factory",
            "create it before `async with factory`, or call factory.start() afterwards",
            on_crash,
            memory_limit,
        )

    # Informers.

    @overload
    def informer_for(
        self,
        resource: Resource[T],
        *,
        decoder: None = None,
        storage: DecodedTier = ...,
        **options: Unpack[CommonOptions[T]],
    ) -> SharedIndexInformer[T]: ...
    @overload
    def informer_for(
        self,
        resource: Resource[Any],
        *,
        decoder: BodyDecoder[M],
        storage: DecodedTier = ...,
        **options: Unpack[CommonOptions[M]],
    ) -> SharedIndexInformer[M]: ...
    @overload
    def informer_for(
        self,
        resource: Resource[Any],
        *,
        storage: DictTier,
        decoder: None = None,
        **options: Unpack[CommonOptions[FrozenObject]],
    ) -> SharedIndexInformer[FrozenObject]: ...

    def informer_for(self, resource: Resource[Any], **options: Any) -> SharedIndexInformer[Any]:
        """Return the informer of a resource and scope; the first call creates it.

        Namespace and selectors select the informer: each scope of a resource has its own. Their defaults are the
        factory's. `tweak_list_options` of the factory is applied last.

        Later calls return the existing informer. Options that they omit do not matter; new indices are added to it.

        Args:
            resource: the resource to watch.
            options: see `InformerOptions`.

        Raises:
            InformerStopped: the factory was shut down, and has no such informer.
            UnknownOption: there is no such option.
            UsageError: an option is invalid, or differs from that of the existing informer; or the resource does not
                support list.
        """
        if not isinstance(resource, Resource):
            raise UsageError(
                f"resource: expected a Resource, not {resource!r}; for_resource() takes names of built-in ones"
            )
        named = named_options(options, "informer_for()")
        key = self._builder.key(resource, named)
        known = self._informers.find(key, named)
        if known is not None:
            return known
        if self._informers.stopped:
            raise InformerStopped(f"{key} has no informer, and the factory was shut down; create another factory")
        resource.require("list")
        defaults = self._builder.defaults
        period = self._custom_resync.get(resource.gvr, defaults.resync_period)
        making = replace(defaults, resync_period=period).with_options(named)
        informer: SharedIndexInformer[Any] = self._builder.build(SharedIndexInformer, key, named, making)
        self._informers.add(key, informer, making)
        return informer

    @property
    def transport(self) -> Transport:
        """The transport of the informers."""
        return self._builder.client.transport

    def informers(self) -> dict[str, SharedIndexInformer[Any]]:
        """Return all informers by the `gvr` of their resource, and the scope if it is not the factory's: a copy."""
        return dict(self._informers.by_key)

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers and their handlers, as plain data for `json.dumps`, in any thread.

        It contains names and counts, but never the content of an object or a credential.
        """
        return self._informers.snapshot(self._builder.name)

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes: objects, bytes and indices, by the keys of `informers()`.

            for informer in (await factory.memory()).values():
                print(informer)  # v1/secrets: 33,000 objects, 214 MB, 96 % never read; storage='metadata' would …

        All objects are measured, in slices: for 100,000 of them, that takes about half a second. Reads are not counted:
        an object counts as read if its body was decoded in its stored version.
        """
        return await self._informers.memory()

    # Life.

    def start(self) -> None:
        """Start all informers that are not running yet. Returns at once, and may be called again.

        Raises:
            InformerStopped: the factory was shut down.
            Exception: an informer crashed with it.
        """
        self._check()
        self._informers.start()

    async def wait_for_cache_sync(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - a timeout is a result here, not an exception
    ) -> SyncResult:
        """Start all informers, and wait until every cache has synced. Handlers may still have pending notifications.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            Whether each cache has synced, by the `gvr` of the resource ("v1/pods"), followed by the scope
            ("v1/pods?namespace=shop&labelSelector=app=web") if that is not the factory's. True if all have.

        Raises:
            InformerStopped: the factory was shut down before that.
            Exception: an informer crashed with it.
        """
        self.start()
        return await all_synced(self._informers.by_key, timeout=timeout)

    def is_ready(self) -> bool:
        """Return whether every informer is ready: it is running, its cache has synced, and its objects decode.

        Use it for a readiness probe; see `SharedIndexInformer.is_ready`. `unready()` has the reasons.
        """
        return self._informers.is_ready()

    def unready(self) -> dict[str, str]:
        """Return the informers that are not ready, with their states: "stopped: crashed: KeyError"."""
        return self._informers.unready()

    async def shutdown(self) -> None:
        """Stop all informers and wait, for at most their `shutdown_grace` and ten seconds. May be called again.

        Raises:
            Exception: an informer had crashed with it.
        """
        try:
            await self._informers.stop()
        finally:
            await self._builder.aclose()

    async def __aenter__(self) -> Self:
        self._check()
        try:
            await self._informers.enter()
        except BaseException:
            await self.shutdown()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._informers.leave(kind, self.shutdown)

    def __repr__(self) -> str:
        return self._informers.describe(self, self._builder.name)

    def _check(self) -> None:
        self._informers.check()
        if self._informers.stopped:
            raise InformerStopped("the factory was shut down; create another one")


def _check_gvr(gvr: str) -> None:
    """Refuse names that no resource can have; the plural is checked for built-in groups only."""
    group_version, _, plural = gvr.rpartition("/")
    group, _, version = group_version.rpartition("/")
    known = [each.gvr for each in BUILTIN_RESOURCES if (each.group, each.version) == (group, version)]
    if not version or not plural or (known and gvr not in known):
        hint = did_you_mean(gvr, known) or "write it as v1/pods or apps/v1/deployments"
        raise UsageError(f"custom_resync: {gvr!r} is not a resource; {hint}")
