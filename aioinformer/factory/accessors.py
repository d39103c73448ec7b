"""The resources of a factory, by attribute path (`factory.apps.v1.deployments`) and by name (`for_resource`).

The stub beside this module has the type of each path and name.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from aioinformer.errors import UnknownOption
from aioinformer.factory.resource_accessor import ClusterAccessor, InformerSource, NamespacedAccessor, ResourceAccessor
from aioinformer.resources.accessors import add_groups, named_resource
from aioinformer.resources.resource import Resource

__all__ = ["Accessors", "ClusterAccessor", "InformerSource", "NamespacedAccessor", "ResourceAccessor"]


class Accessors:
    """Gives a factory an attribute path for each built-in resource that can be watched, and `for_resource`."""

    def for_resource(
        self, resource: Resource[Any] | str, **options: Any
    ) -> NamespacedAccessor[Any] | ClusterAccessor[Any]:
        """Return the accessor of any resource, with `informer()` and `lister()`, like the attribute paths.

        Args:
            resource: a `Resource`, for example of a CRD, or the `gvr` of a built-in one: "apps/v1/deployments",
                "v1/pods".

        Raises:
            UnknownOption: an option was passed here, and not to `informer()` or `lister()` of the result.
            UsageError: there is no built-in resource with this name.
        """
        if options:
            raise UnknownOption(
                f"for_resource() has no option {next(iter(options))!r}; pass options to its result: "
                "for_resource(...).informer(...) or .lister(...)"
            )
        return self._accessor(named_resource(resource))

    def _accessor(self, resource: Resource[Any]) -> NamespacedAccessor[Any] | ClusterAccessor[Any]:
        accessor = NamespacedAccessor if resource.namespaced else ClusterAccessor
        return accessor(self, resource)


add_groups(Accessors, attrgetter("_accessor"), verbs=("list", "watch"))
