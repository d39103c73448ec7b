"""One resource of a factory: `factory.apps.v1.deployments`, with `informer()` and `lister()`.

An accessor refers to the factory and has no other state; each access creates it anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Unpack, cast, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from aioinformer.cache.lister import ClusterLister, Lister
    from aioinformer.cache.objects.codec import BodyDecoder
    from aioinformer.cache.objects.frozen import FrozenDict
    from aioinformer.cache.objects.storage import DecodedTier, DictTier
    from aioinformer.informer.options import CommonOptions
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.resources.resource import Resource

    #: An object of the tier "dict".
    FrozenObject: TypeAlias = FrozenDict[str, Any]

T = TypeVar("T")
M = TypeVar("M")


class InformerSource(Protocol):
    """The part of a factory that accessors need."""

    @property
    def informer_for(self) -> Callable[..., SharedIndexInformer[Any]]:
        """A function that returns the informer of a resource and scope, and creates it if there is none."""


class ResourceAccessor(Generic[T]):
    """One resource of a factory.

    Attributes:
        resource: the resource.
    """

    __slots__ = ("_source", "resource")

    def __init__(self, source: InformerSource, resource: Resource[T]) -> None:
        self._source = source
        self.resource = resource

    @overload
    def informer(
        self, *, decoder: None = None, storage: DecodedTier = ..., **options: Unpack[CommonOptions[T]]
    ) -> SharedIndexInformer[T]: ...
    @overload
    def informer(
        self, *, decoder: BodyDecoder[M], storage: DecodedTier = ..., **options: Unpack[CommonOptions[M]]
    ) -> SharedIndexInformer[M]: ...
    @overload
    def informer(
        self, *, storage: DictTier, decoder: None = None, **options: Unpack[CommonOptions[FrozenObject]]
    ) -> SharedIndexInformer[FrozenObject]: ...

    def informer(self, **options: Any) -> SharedIndexInformer[Any]:
        """Return the factory's informer of this resource and scope; the first call creates it.

        The options are those of `InformerOptions`; see `SharedInformerFactory.informer_for`. Its objects are of the
        type of `decoder`, if there is one, and frozen dicts with `storage="dict"`.
        """
        return self._source.informer_for(self.resource, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.resource.gvr}>"


class NamespacedAccessor(ResourceAccessor[T]):
    """One namespaced resource of a factory."""

    __slots__ = ()

    @overload
    def lister(
        self, *, decoder: None = None, storage: DecodedTier = ..., **options: Unpack[CommonOptions[T]]
    ) -> Lister[T]: ...
    @overload
    def lister(
        self, *, decoder: BodyDecoder[M], storage: DecodedTier = ..., **options: Unpack[CommonOptions[M]]
    ) -> Lister[M]: ...
    @overload
    def lister(
        self, *, storage: DictTier, decoder: None = None, **options: Unpack[CommonOptions[FrozenObject]]
    ) -> Lister[FrozenObject]: ...

    def lister(self, **options: Any) -> Lister[Any]:
        """Return the lister of `informer(**options)`; the first call creates the informer."""
        return self.informer(**options).lister()


class ClusterAccessor(ResourceAccessor[T]):
    """One cluster-scoped resource of a factory."""

    __slots__ = ()

    @overload
    def lister(
        self, *, decoder: None = None, storage: DecodedTier = ..., **options: Unpack[CommonOptions[T]]
    ) -> ClusterLister[T]: ...
    @overload
    def lister(
        self, *, decoder: BodyDecoder[M], storage: DecodedTier = ..., **options: Unpack[CommonOptions[M]]
    ) -> ClusterLister[M]: ...
    @overload
    def lister(
        self, *, storage: DictTier, decoder: None = None, **options: Unpack[CommonOptions[FrozenObject]]
    ) -> ClusterLister[FrozenObject]: ...

    def lister(self, **options: Any) -> ClusterLister[Any]:
        """Return the lister of `informer(**options)`; the first call creates the informer."""
        return cast("ClusterLister[Any]", self.informer(**options).lister())
