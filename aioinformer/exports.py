"""Import a name of a package when it is first used, so that a program loads only the parts that it uses."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes as long to import as all of this package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(package: str, names_of: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are in its modules.

    Args:
        package: the name of the package; its `__name__`.
        names_of: the names in each module, separated by spaces. Modules are named relative to the package.
    """
    modules = {name: f"{package}.{module}" for module, names in names_of.items() for name in names.split()}

    def load(name: str) -> object:
        import importlib
        import sys

        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        import sys

        return sorted({*vars(sys.modules[package]), *modules})

    return load, names
