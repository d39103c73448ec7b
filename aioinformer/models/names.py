"""The names of the modules of this package: each is resolved when it is first used, and then an attribute."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing `typing` would take longer than importing a module of types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from aioinformer.resources.resource import Resource


def names_of(
    module: str, resources: Mapping[str, str], parts: Sequence[str], subresources: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module of types.

    Args:
        module: the `__name__` of the module, which ends in the group's short name and the version, "apps_v1".
        resources: the constants of the module's resources -> their kinds.
        parts: the types of attributes.
        subresources: the kinds of objects that only subresources have -> their plurals.
    """
    subresources = subresources or {}
    known = frozenset([*resources, *resources.values(), *parts, *subresources])
    group, _, version = module.rpartition(".")[2].partition("_")

    def load(name: str) -> Any:
        value: Any
        if name in parts:
            value = _part(group, version, name.removeprefix("Embedded"))
        elif name in subresources:
            value = _view(_subresource(group, version, name, subresources[name]))
        elif name in resources:
            value = _resource(group, version, resources[name])
        elif name in known:
            value = _view(_resource(group, version, name))
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *known})

    return load, names


def _part(group: str, version: str, name: str) -> type[Any]:
    from aioinformer.cache.objects.models import struct_for

    return struct_for(_model(group, version, name))


def _model(group: str, version: str, name: str) -> str:
    from aioinformer.cache.objects.models.shapes import has_model

    of_group = f"{group.capitalize()}{version.capitalize()}{name}"  # the name of several groups
    return of_group if has_model(of_group) else f"{version.capitalize()}{name}"


def _view(resource: Resource[Any]) -> type[Any]:
    from aioinformer.cache.objects.views import view_class

    return view_class(resource)


def _resource(group: str, version: str, kind: str) -> Resource[Any]:
    from aioinformer.resources.catalog import BUILTIN_RESOURCES

    for resource in BUILTIN_RESOURCES:
        short = resource.group.partition(".")[0] or "core"
        if short == group and resource.version == version and kind in (resource.kind, ""):
            return resource
    raise AssertionError("the catalog and the types are generated together")


def _subresource(group: str, version: str, kind: str, plural: str) -> Resource[Any]:
    from aioinformer.resources.resource import Resource

    full = _resource(group, version, "").group
    return Resource(full, version, plural, kind, model=_model(group, version, kind))
