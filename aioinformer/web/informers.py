"""`Informers`: the caches of a web service, which start and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeVar

from aioinformer.authorization.rbac import Rbac
from aioinformer.authorization.users import Who
from aioinformer.cache.indices import Indexers
from aioinformer.cache.lister import Lister
from aioinformer.cache.store import Indexer
from aioinformer.client.client import Client
from aioinformer.errors import Stale, UsageError
from aioinformer.exports import lazy_type
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport import Transport
from aioinformer.transport.auth.credentials import connect
from aioinformer.transport.clients import ApiClient, Connection

if TYPE_CHECKING:
    from aioinformer.metrics.provider import MetricsProvider
else:
    MetricsProvider = lazy_type("aioinformer.metrics.provider", "MetricsProvider")

T = TypeVar("T")

_log = get_logger("aioinformer.web")

#: Without `max_staleness`, a cache that has synced once is read during an outage, too.
_FOR_EVER: Final = float("inf")


class OpenStreams(Protocol):
    """The streams of one path of a service, as their informers know them."""

    def begin(self, client: Client) -> None:
        """Get ready: the informers have been started."""

    def end_streams(self) -> None:
        """End all open streams."""


class Informers:
    """The caches of a web service, which start and end with it.

        informers = Informers(core_v1.PODS, indexers={core_v1.PODS: {"node": "spec.nodeName"}})
        app = FastAPI(lifespan=informers.lifespan)

    `async with informers:` is the same in a lifespan of your own. The start connects, and does not wait for the caches:
    the readiness probe does. Until a cache has synced, `lister` and `indexer` raise `Stale`, which is a 503: an answer
    from an incomplete cache would be wrong.

    Args:
        resources: to watch.
        indexers: of resources: index functions or field paths, by name.
        client: a transport, a `Connection`, an `ApiClient` of kubernetes_asyncio, or the URL of the server. By default,
            `connect()` at the start.
        namespace: "" for all namespaces.
        max_staleness: seconds for which a cache may not have followed the server until its readers get 503; None for no
            limit: during an outage, the last state is served.
        metrics: collects the metrics. None: exports them to the registry of prometheus-client, if it is installed.
            False: none.
        name: of the informers, for metrics.

    Attributes:
        resources: as given.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        *resources: Resource[Any],
        indexers: Mapping[Resource[Any], Indexers[Any]] | None = None,
        client: Transport | Connection | ApiClient | str | None = None,
        namespace: str = "",
        max_staleness: float | None = None,
        metrics: MetricsProvider | Literal[False] | None = None,
        name: str = "web",
    ) -> None:
        for each in resources:
            if not isinstance(each, Resource):
                raise UsageError(f"Informers: pass resources such as core_v1.PODS, not {each!r}")
        if not resources:
            raise UsageError("Informers: pass the resources to watch, such as core_v1.PODS")
        self.resources = resources
        self._indexers = dict(indexers or {})
        for each in self._indexers:
            self._check(each)
        self._client_argument = client
        self._namespace = namespace
        self._limit = _FOR_EVER if max_staleness is None else max_staleness
        self._metrics_argument = metrics
        self._name = name
        self._streams: list[OpenStreams] = []
        self._checks: list[Rbac] = []
        self._stack: AsyncExitStack | None = None
        self._factory: SharedInformerFactory | None = None
        self._informers: dict[Resource[Any], SharedIndexInformer[Any]] = {}
        self._client: Client | None = None
        self._metrics: MetricsProvider | None = None

    def __repr__(self) -> str:
        names = ", ".join(each.gvr for each in self.resources)
        return f"<Informers of {names}{'' if self._factory is None else ', running'}>"

    # Life.

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise UsageError("Informers run already; make another object to run two")
        stack = AsyncExitStack()
        self._stack = stack
        try:
            client: Any = self._client_argument
            if client is None:
                client = await stack.enter_async_context(await connect())
            self._metrics = _metrics_of(self._metrics_argument)
            factory = SharedInformerFactory(client, namespace=self._namespace, name=self._name, metrics=self._metrics)
            for each in self.resources:
                self._informers[each] = factory.informer_for(each, indexers=self._indexers.get(each))
            self._factory = await stack.enter_async_context(factory)
            self._client = Client(factory.transport)
            stack.callback(self.end_streams)
            for check in self._checks:
                check.bind(self._client)
            for streams in self._streams:
                streams.begin(self._client)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _close(self) -> None:
        stack = self._stack
        assert stack is not None
        try:
            await stack.aclose()
        finally:
            self._stack = None
            self._factory = None
            self._client = None
            self._informers.clear()

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Run while an application of Starlette or FastAPI runs: `FastAPI(lifespan=informers.lifespan)`.

        Errors of this package become Problem Details in its responses, unless the application has a handler for them.
        """
        from aioinformer.web.starlette import prepare

        prepare(app)
        async with self:
            yield

    # For routes and streams.

    def add_check(self, who: Who | None) -> None:
        """Let an `Rbac` without a client of its own ask by that of these informers, while they run."""
        if isinstance(who, Rbac):
            self._checks.append(who)
            if self._client is not None:
                who.bind(self._client)

    def add_streams(self, streams: OpenStreams) -> None:
        """Begin and end streams with these informers."""
        self._streams.append(streams)
        if self._client is not None:
            streams.begin(self._client)

    def end_streams(self) -> None:
        """End all streams of these informers now. Their readers go on with the next process, by their cursors.

        With uvicorn, gunicorn, hypercorn and aiohttp, this happens by itself when the server ends. Call it before the
        end of any other server. New streams may be opened afterwards.
        """
        for each in self._streams:
            each.end_streams()

    # What runs.

    @property
    def running_client(self) -> Client:
        """The client of the cluster.

        Raises:
            UsageError: the informers do not run.
        """
        if self._client is None:
            raise UsageError(f"{self!r} do not run: pass lifespan=informers.lifespan, or enter `async with informers`")
        return self._client

    @property
    def metrics(self) -> MetricsProvider | None:
        """What collects the metrics of the informers, while they run."""
        return self._metrics

    def informer(self, resource: Resource[T]) -> SharedIndexInformer[T]:
        """Return the informer of a resource.

        Raises:
            UsageError: the resource was not given, or the informers do not run.
        """
        self._check(resource)
        if self._factory is None:
            raise UsageError(f"{self!r} do not run: pass lifespan=informers.lifespan, or enter `async with informers`")
        return self._informers[resource]

    def unready(self) -> dict[str, str]:
        """Return the informers that are not ready, with their states; {} if all are ready."""
        if self._factory is None:
            return {self._name: "not started"}
        return self._factory.unready()

    # Dependencies: `Depends(…)` of FastAPI takes what these return.

    def lister(self, resource: Resource[T]) -> Callable[[], Coroutine[Any, Any, Lister[T]]]:
        """Return a dependency: `Annotated[Lister[core_v1.Pod], Depends(informers.lister(core_v1.PODS))]`.

        It raises `Stale` until the cache has synced, and while it is older than `max_staleness`.

        Raises:
            UsageError: the resource was not given.
        """
        self._check(resource)

        async def lister() -> Lister[T]:
            return self._fresh(resource).lister()

        return lister

    def indexer(self, resource: Resource[T]) -> Callable[[], Coroutine[Any, Any, Indexer[T]]]:
        """Return a dependency: `Annotated[Indexer[core_v1.Pod], Depends(informers.indexer(core_v1.PODS))]`.

        It raises `Stale` as that of `lister` does.

        Raises:
            UsageError: the resource was not given.
        """
        self._check(resource)

        async def indexer() -> Indexer[T]:
            return self._fresh(resource).get_indexer()

        return indexer

    async def client(self) -> Client:
        """Return the client of the cluster; a dependency: `Annotated[Client, Depends(informers.client)]`.

        Raises:
            UsageError: the informers do not run.
        """
        return self.running_client

    def _fresh(self, resource: Resource[T]) -> SharedIndexInformer[T]:
        informer = self.informer(resource)
        if not informer.has_synced():
            raise Stale(informer.name, informer.staleness(), f"not synced, {informer.state}")
        if self._limit != _FOR_EVER:
            informer.check_fresh(self._limit)
        return informer

    def _check(self, resource: Resource[Any]) -> None:
        if resource not in self.resources:
            names = ", ".join(each.gvr for each in self.resources)
            raise UsageError(f"Informers: {resource} is not among the given resources ({names}); pass it, too")


def _metrics_of(given: MetricsProvider | Literal[False] | None) -> MetricsProvider | None:
    """Return what collects the metrics: as given, or an export to the registry of the process."""
    if given is not None:
        return given or None
    try:
        from aioinformer.prometheus import PrometheusMetrics

        return PrometheusMetrics()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        _log.info("there are no metrics: %s", error)
    except ValueError as error:
        _log.warning("there are no metrics: %s; pass metrics=PrometheusMetrics(CollectorRegistry())", error)
    return None
