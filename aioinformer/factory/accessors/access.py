"""What the generated accessors are made of: `factory.apps.v1.deployments` is a group, a version and a resource.

None of them holds anything but the factory: they are made when they are asked for, and thrown away.
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
    """What accessors need of a factory."""

    def informer_for(self, resource: Resource[T], **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """The informer of this resource and scope; made with these options if there is none yet."""


class ResourceAccessor(Generic[T]):
    """One resource of a factory.

    Attributes:
        resource: which one.
    """

    __slots__ = ("_source", "resource")

    def __init__(self, source: InformerSource, resource: Resource[T]) -> None:
        self._source = source
        self.resource = resource

    def informer(self, **options: Unpack[InformerOptions[T]]) -> SharedIndexInformer[T]:
        """Return the factory's informer of this resource and scope; the first call makes it.

        The options are those of `InformerOptions`; `SharedInformerFactory.informer_for` says what they do.
        """
        return self._source.informer_for(self.resource, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.resource.gvr}>"


class NamespacedAccessor(ResourceAccessor[T]):
    """One resource of a factory, with objects that live in namespaces."""

    __slots__ = ()

    def lister(self, **options: Unpack[InformerOptions[T]]) -> Lister[T]:
        """Return what reads the cache of `informer(**options)`, which is made if there is none yet."""
        return self.informer(**options).lister()


class ClusterAccessor(ResourceAccessor[T]):
    """One resource of a factory, with objects that live in no namespace."""

    __slots__ = ()

    def lister(self, **options: Unpack[InformerOptions[T]]) -> ClusterLister[T]:
        """Return what reads the cache of `informer(**options)`, which is made if there is none yet."""
        return cast("ClusterLister[T]", self.informer(**options).lister())


class VersionAccessor:
    """One version of a group: its resources are attributes, by the plurals of the URLs."""

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
