"""The names of the modules of this package: each is resolved when it is first used, and then an attribute."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def names_of(
    module: str, resources: Mapping[str, str], parts: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module of types.

    Args:
        module: the `__name__` of the module, which ends in the group's short name and the version, "apps_v1".
        resources: the constants of the module's resources, with their kinds.
        parts: the types of attributes.
    """
    known = frozenset([*resources, *resources.values(), *parts])
    short, _, version = module.rpartition(".")[2].partition("_")

    def load(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = _part(name) if name in parts else _of_kind(name)
        setattr(sys.modules[module], name, value)
        return value

    def _part(name: str) -> Any:
        from aioinformer.cache.objects.models import struct_for
        from aioinformer.cache.objects.models.shapes import has_model

        name, prefix = name.removeprefix("Embedded"), version.capitalize()
        of_group = f"{short.capitalize()}{prefix}{name}"  # the name of several groups
        return struct_for(of_group if has_model(of_group) else f"{prefix}{name}")

    def _of_kind(name: str) -> Any:
        from aioinformer.cache.objects.views import view_class
        from aioinformer.resources.catalog import BUILTIN_RESOURCES

        kind = resources.get(name, name)
        for resource in BUILTIN_RESOURCES:
            if (resource.kind, resource.version) == (kind, version) and _short_name(resource.group) == short:
                return resource if name in resources else view_class(resource)
        raise AssertionError("the catalog and the types are generated together")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *known})

    return load, names


def _short_name(group: str) -> str:
    return group.partition(".")[0] or "core"
