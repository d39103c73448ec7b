"""`resource` of a client. The stub beside this module has an overload for each built-in resource."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.resources import catalog
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from aioinformer.cache.objects.codec import BodyDecoder
    from aioinformer.client.resource_client import ResourceClient


class ByName(ABC):
    """Gives a client `resource`."""

    _known: dict[Resource[Any], ResourceClient[Any]]

    def resource(self, resource: Resource[Any] | str, decoder: BodyDecoder[Any] | None = None) -> ResourceClient[Any]:
        """Return the client of a resource.

        Args:
            resource: a `Resource`, or the `gvr` of a built-in one: "apps/v1/deployments", "v1/pods".
            decoder: as for `SharedIndexInformer`: a class that msgspec or pydantic can decode from JSON, or a function
                of an object's JSON bytes.

        Raises:
            UsageError: there is no built-in resource of this name, or the decoder cannot be used.
        """
        if isinstance(resource, str):
            resource = _built_in(resource)
        elif not isinstance(resource, Resource):
            raise UsageError(f'resource: expected a Resource, or a name like "apps/v1/deployments", not {resource!r}')
        if decoder is not None:
            return self._make(resource, decoder)
        found = self._known.get(resource)
        if found is None:
            found = self._known[resource] = self._make(resource, None)
        return found

    @abstractmethod
    def _make(self, resource: Resource[Any], decoder: BodyDecoder[Any] | None) -> ResourceClient[Any]:
        """Return a new client of a resource."""


def _built_in(name: str) -> Resource[Any]:
    api_version, _, plural = name.rpartition("/")
    group, _, version = api_version.rpartition("/")
    found = catalog.find(group, version, plural)
    if found is None:
        raise UsageError(
            f'resource: there is no built-in resource {name!r}; write "apps/v1/deployments" or "v1/pods", or make a '
            "Resource"
        )
    return found
