"""The base classes of the generated accessors: `client.apps.v1.deployments` is a group, a version and a resource.

Accessors have a reference to the client and no other state; each attribute access creates them anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from aioinformer.resources.catalog import find

if TYPE_CHECKING:
    from aioinformer.client.resource_client import ResourceClient
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


class ClientSource(Protocol):
    """The part of a client that accessors need."""

    def resource(self, resource: Resource[T]) -> ResourceClient[T]:
        """Return the client of a resource."""


class VersionAccessor:
    """One version of a group: its resources are attributes, named by their plurals as in URLs."""

    __slots__ = ("_source",)

    _group: ClassVar[str]
    _version: ClassVar[str]

    def __init__(self, source: ClientSource) -> None:
        self._source = source

    def _resource(self, plural: str) -> ResourceClient[Any]:
        resource = find(self._group, self._version, plural)
        assert resource is not None, "accessors and catalog are generated together"
        return self._source.resource(resource)


class GroupAccessor:
    """One API group: its versions are attributes."""

    __slots__ = ("_source",)

    def __init__(self, source: ClientSource) -> None:
        self._source = source
