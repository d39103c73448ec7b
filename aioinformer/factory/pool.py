"""`InformerPool`: informers that start and stop one by one, as controllers acquire and release them."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.factory.builder import InformerBuilder
from aioinformer.factory.informer_set import InformerSet
from aioinformer.factory.multi_namespace import MultiNamespaceInformer
from aioinformer.informer.options import Making, named_options
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.resources.scopes import InformerKey, Scope, check_namespace, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.factory.factory import SharedInformerFactory
    from aioinformer.factory.memory import InformerMemory
    from aioinformer.informer.snapshots import FactorySnapshot
    from aioinformer.metrics.provider import MetricsProvider
    from aioinformer.resources.resource import Resource
    from aioinformer.transport import Transport


class ControllerInformers(Protocol):
    """Where controllers get their informers."""

    def acquire(self, resource: Resource[Any], options: Mapping[str, Any]) -> SharedIndexInformer[Any]:
        """Return the informer of a resource and scope; each call counts as a use."""

    async def release(self, informer: SharedIndexInformer[Any]) -> None:
        """End a use."""

    def start(self) -> None:
        """Start the informers that do not run yet."""

    async def stop(self) -> None:
        """Stop the informers that belong to this object."""

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers."""

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes."""


class InformerPool:
    """Creates informers, one for each resource and scope, and stops each one after its last use.

    An informer that crashes does not affect the others. The next use of its resource and scope creates another one.

    Args:
        namespaces: of namespaced resources; none for all. Several are watched one by one, into one cache.
        name: of the informers, for metrics.
        metrics: collects the informers' metrics.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        transport: Transport,
        namespaces: Iterable[str] = (),
        *,
        name: str | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        self._namespaces = checked_namespaces(namespaces)
        self._builder = InformerBuilder(
            transport,
            "transport",
            Making(),
            namespace="",
            tweak_list_options=None,
            name=name,
            metrics=metrics,
        )
        self._own = Scope(",".join(self._namespaces))
        self._informers: InformerSet[SharedIndexInformer[Any]] = InformerSet(
            "informer pool", "start its manager", "drop"
        )
        self._uses: Counter[SharedIndexInformer[Any]] = Counter()

    def acquire(self, resource: Resource[Any], options: Mapping[str, Any]) -> SharedIndexInformer[Any]:
        """Return the informer of a resource and scope, after creating it if necessary; each call counts as a use.

        Call `start` afterwards.

        Args:
            resource: the resource to watch.
            options: see `InformerOptions`.

        Raises:
            InformerStopped: the pool has stopped.
            UnknownOption: there is no such option.
            UsageError: an option is invalid, or differs from that of the existing informer; or the resource does not
                support list.
        """
        named = named_options(options, f"the informer of {resource.gvr}")
        several = resource.namespaced and len(self._namespaces) > 1 and "namespace" not in named
        if several:
            # `Scope` describes all of them; each namespace has a scope of its own.
            scope = replace(
                Scope.requested({**named, "namespace": ""}, Scope(), resource), namespace=self._own.namespace
            )
            key = InformerKey(resource, scope, self._own)
        else:
            key = key_of(resource, named, self._own)
        informer = self._informers.find(key, named)
        if informer is None:
            if self._informers.stopped:
                raise InformerStopped(f"{key} has no informer, and the pool has stopped")
            resource.require("list")
            making = self._builder.defaults.with_options(named)
            informer = self._several(key, named, making) if several else self._one(key, named, making)
            self._informers.add(key, informer, making)
        self._uses[informer] += 1
        return informer

    async def release(self, informer: SharedIndexInformer[Any]) -> None:
        """End a use. After the last one, stop the informer, and wait for its end."""
        self._uses[informer] -= 1
        if self._uses[informer] <= 0:
            del self._uses[informer]
            await self._informers.remove(informer)

    def start(self) -> None:
        """Start the informers that do not run yet."""
        self._informers.start()

    async def stop(self) -> None:
        """Stop all informers, and wait for them."""
        try:
            await self._informers.stop()
        finally:
            await self._builder.aclose()

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers and their handlers, as plain data for `json.dumps`."""
        return self._informers.snapshot(self._builder.name)

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes."""
        return await self._informers.memory()

    def _one(self, key: InformerKey, options: Mapping[str, Any], making: Making) -> SharedIndexInformer[Any]:
        return self._builder.build(SharedIndexInformer, key, options, making)

    def _several(self, key: InformerKey, options: Mapping[str, Any], making: Making) -> SharedIndexInformer[Any]:
        def source(namespace: str) -> Any:
            return self._builder.list_watch(key.resource, replace(key.scope, namespace=namespace))

        kind = partial(MultiNamespaceInformer, namespaces=self._namespaces)
        return self._builder.build(kind, key, options, making, source)


class SharedFactory:
    """The informers of a factory that belongs to the caller, who stops it."""

    def __init__(self, factory: SharedInformerFactory) -> None:
        self._factory = factory

    def acquire(self, resource: Resource[Any], options: Mapping[str, Any]) -> SharedIndexInformer[Any]:
        """Return the informer of a resource and scope, after creating it if necessary.

        Raises:
            UsageError: as `SharedInformerFactory.informer_for`.
        """
        return self._factory.informer_for(resource, **options)

    async def release(self, informer: SharedIndexInformer[Any]) -> None:
        """Do nothing: the informer belongs to the factory."""

    def start(self) -> None:
        """Start the informers of the factory that do not run yet."""
        self._factory.start()

    async def stop(self) -> None:
        """Do nothing: the informers belong to the factory."""

    def snapshot(self) -> FactorySnapshot:
        """Return the state of the informers and their handlers, as plain data for `json.dumps`."""
        return self._factory.snapshot()

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes."""
        return await self._factory.memory()


def checked_namespaces(namespaces: Iterable[str]) -> tuple[str, ...]:
    """Return the namespaces, each one once.

    Raises:
        UsageError: one is invalid, or they are a string.
    """
    if isinstance(namespaces, str):
        raise UsageError(f"namespaces must be a list of names, not a string: [{namespaces!r}]")
    found = tuple(dict.fromkeys(namespaces))
    for each in found:
        check_namespace(each, "namespaces")
        if not each:
            raise UsageError("namespaces: name them one by one; for all of them, pass none")
    return found
