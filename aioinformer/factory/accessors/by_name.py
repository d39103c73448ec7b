"""`for_resource` of factories. The stub beside this module has an overload for each built-in resource."""

from __future__ import annotations

from typing import Any

from aioinformer.errors import UnknownOption, UsageError
from aioinformer.factory.accessors.access import ClusterAccessor, InformerSource, NamespacedAccessor
from aioinformer.resources.catalog import find
from aioinformer.resources.resource import Resource


class ByName:
    """Gives a factory `for_resource`."""

    def for_resource(
        self: InformerSource, resource: Resource[Any] | str, **options: Any
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
        if isinstance(resource, str):
            resource = _built_in(resource)
        elif not isinstance(resource, Resource):
            raise UsageError(f'resource: expected a Resource, or a name like "apps/v1/deployments", not {resource!r}')
        accessor = NamespacedAccessor if resource.namespaced else ClusterAccessor
        return accessor(self, resource)


def _built_in(gvr: str) -> Resource[Any]:
    group_version, _, plural = gvr.rpartition("/")
    group, _, version = group_version.rpartition("/")
    resource = find(group, version, plural)
    if resource is None:
        raise UsageError(
            f"{gvr!r} is not a built-in resource; write it as group/version/plural (core: v1/pods), "
            "or pass a Resource for a custom one"
        )
    return resource
