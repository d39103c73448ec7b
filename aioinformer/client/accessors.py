"""The resources of a client, by attribute path (`client.apps.v1.deployments`) and by name (`resource`).

The stub beside this module has the type of each path and name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import Any

from aioinformer.cache.objects.codec import BodyDecoder
from aioinformer.client.resource_client import ResourceClient
from aioinformer.resources.accessors import add_groups, named_resource
from aioinformer.resources.resource import Resource

__all__ = ["Accessors"]


class Accessors(ABC):
    """Gives a client an attribute path for each built-in resource, and `resource`."""

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
        resource = named_resource(resource)
        if decoder is not None:
            return self._make(resource, decoder)
        found = self._known.get(resource)
        if found is None:
            found = self._make(resource, None)
            self._known[resource] = found
        return found

    @abstractmethod
    def _make(self, resource: Resource[Any], decoder: BodyDecoder[Any] | None) -> ResourceClient[Any]:
        """Return a new client of a resource."""


add_groups(Accessors, attrgetter("resource"))
