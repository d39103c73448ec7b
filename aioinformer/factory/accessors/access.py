"""The base classes of the generated accessors: `factory.apps.v1.deployments` is a group, a version and a resource.

Accessors have a reference to the factory and no other state; each attribute access creates them anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, Unpack, cast

from aioinformer.resources.catalog import find

if TYPE_CHECKING:
    from aioinformer.cache.lister import ClusterLister, Lister
    from aioinformer.informer.options import InformerOptions
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


class InformerSource(Protocol):
    """The part of a factory that accessors need."""

    def informer_for(self, resource: Resource[T], **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """Return the informer of a resource and scope; create it with these options if there is none."""


class ResourceAccessor(Generic[T]):
    """One resource of a factory.

    Attributes:
        resource: the resource.
    """

    __slots__ = ("_source", "resource")

    def __init__(self, source: InformerSource, resource: Resource[T]) -> None:
        self._source = source
        self.resource = resource

    def informer(self, **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """Return the factory's informer of this resource and scope; the first call creates it.

        The options are those of `InformerOptions`; see `SharedInformerFactory.informer_for`.
        """
        return self._source.informer_for(self.resource, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.resource.gvr}>"


class NamespacedAccessor(ResourceAccessor[T]):
    """One namespaced resource of a factory."""

    __slots__ = ()

    def lister(self, **options: Unpack[InformerOptions[T]]) -> Lister[T]:
        """Return the lister of `informer(**options)`; the first call creates the informer."""
        return self.informer(**options).lister()


class ClusterAccessor(ResourceAccessor[T]):
    """One cluster-scoped resource of a factory."""

    __slots__ = ()

    def lister(self, **options: Unpack[InformerOptions[T]]) -> ClusterLister[T]:
        """Return the lister of `informer(**options)`; the first call creates the informer."""
        return cast("ClusterLister[T]", self.informer(**options).lister())


class VersionAccessor:
    """One version of a group: its resources are attributes, named by their plurals as in URLs."""

    __slots__ = ("_source",)

    _group: ClassVar[str]
    _version: ClassVar[str]

    def __init__(self, source: InformerSource) -> None:
        self._source = source

    def _namespaced(self, plural: str) -> NamespacedAccessor[Any]:
        return NamespacedAccessor(self._source, self._resource(plural))

    def _cluster(self, plural: str) -> ClusterAccessor[Any]:
        return ClusterAccessor(self._source, self._resource(plural))

    def _resource(self, plural: str) -> Resource[Any]:
        resource = find(self._group, self._version, plural)
        assert resource is not None, "accessors and catalog are generated together"
        return resource


class GroupAccessor:
    """One API group: its versions are attributes."""

    __slots__ = ("_source",)

    def __init__(self, source: InformerSource) -> None:
        self._source = source
