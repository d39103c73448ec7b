"""Lazy exports: a name of a package is imported when it is first used, so that a program loads only what it uses.

The table in the `__init__` of such a package is the only place that states them. Type checkers read the stub beside it,
which scripts/generate.py makes from the table.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing `typing` would take as long as importing all of `aioinformer`

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(package: str, names_of: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that exports names of its modules, and set a missing `__all__`.

    Args:
        package: the `__name__` of the package.
        names_of: the names in each module, separated by spaces. Modules are named relative to the package, those of
            other rooms in full.
    """
    modules = {
        name: module if module.startswith("aioinformer.") else f"{package}.{module}"
        for module, names in names_of.items()
        for name in names.split()
    }

    def load(name: str) -> object:
        import importlib

        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    vars(sys.modules[package]).setdefault("__all__", sorted(modules))
    return load, names


def package_version() -> str:
    """Return the version of this package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aioinformer")
    except PackageNotFoundError:
        return ""
