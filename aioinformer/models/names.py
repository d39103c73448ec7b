"""The modules of types, `aioinformer.models.apps_v1` and so on. Each has a stub, and lines in `names.txt`.

A line of this file, which scripts/generate.py writes, has a module and some of its names: "resources" are constants and
their kinds, "subresources" the kinds of objects that only subresources have, and their plurals, "parts" the types of
attributes.

The modules have no source files. `MODULES` finds and loads them: it stands in the path of the package, as a zip file
may stand in `sys.path`. So `import`, `reload`, `importlib.util` and `pkgutil` treat them like any other module. A name
is resolved when it is first used, and then an attribute of its module.

A stub is the `__init__.pyi` of a folder, because pyright warns of each import of a stub that has neither a source nor a
folder of its name.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing `typing` would take longer than importing a module of types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Final

    from aioinformer.resources.resource import Resource

#: Stands for `MODULES` in the path of the package. It is no valid name of a file.
ENTRY: Final = "<aioinformer.models>"

_ModuleSpec: Any = type(__spec__)  # importing `importlib.machinery` would take longer than all else here


class _Modules:
    """Finds and loads the modules of types: a finder for `ENTRY`, and the loader of each module."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, list[str]]] = {}

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        module = name.rpartition(".")[2]
        if module not in self._names():
            return None
        spec: ModuleSpec = _ModuleSpec(
            name, self, origin=os.path.join(os.path.dirname(__file__), module, "__init__.pyi")
        )
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the module is an ordinary one."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.rpartition(".")[2]
        module.__doc__ = f"The types of {name.replace('_', '/')}."
        lines = self._names()[name]
        resources = dict(each.split("=") for each in lines.get("resources", ()))
        subresources = dict(each.split("=") for each in lines.get("subresources", ()))
        found = names_of(module.__name__, resources, frozenset(lines.get("parts", ())), subresources)
        vars(module).update(zip(("__getattr__", "__dir__"), found, strict=True))

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Yield name and False for each module, for `pkgutil`."""
        return ((prefix + name, False) for name in self._names())

    def _names(self) -> dict[str, dict[str, list[str]]]:
        """Return the lines of the file, by module and what they have."""
        if not self._lines:
            loader: Any = __spec__.loader  # which may read from an archive
            text = loader.get_data(os.path.join(os.path.dirname(__file__), "names.txt")).decode()
            for line in text.splitlines():
                module, what, *names = line.split()
                self._lines.setdefault(module, {})[what] = names
        return self._lines


MODULES: Final = _Modules()


def find_modules(path: str) -> _Modules:
    """Return the finder for an entry of a path, as a hook for `sys.path_hooks`.

    Raises:
        ImportError: the entry is another one.
    """
    if path != ENTRY:
        raise ImportError(f"{path!r} is not {ENTRY!r}", path=path)
    return MODULES


def names_of(
    module: str, resources: Mapping[str, str], parts: Collection[str], subresources: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module of types.

    Args:
        module: the `__name__` of the module, which ends in the group's short name and the version, "apps_v1".
        resources: the constants of the module's resources -> their kinds.
        parts: the types of attributes.
        subresources: the kinds of objects that only subresources have -> their plurals.
    """
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
