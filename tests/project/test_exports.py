"""The public names: each export of the package and of its rooms exists, is listed once, and is documented."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import Counter
from types import ModuleType
from typing import TypeVar

import pytest

#: The rooms that users import from.
ROOMS = (
    "transport",
    "resources",
    "cache",
    "queue",
    "reflector",
    "client",
    "handlers",
    "informer",
    "factory",
    "workqueue",
    "leaderelection",
    "events",
    "ring",
    "testing",
)

every_package = pytest.mark.parametrize("package", ["aioinformer", *(f"aioinformer.{room}" for room in ROOMS)])


@every_package
def test_each_export_exists_and_is_listed_once(package: str) -> None:
    assert [name for name, count in Counter(exports_of(package)).items() if count > 1] == []
    module = importlib.import_module(package)
    assert [name for name in exports_of(package) if not hasattr(module, name)] == []


@every_package
def test_each_public_name_is_exported(package: str) -> None:
    module = importlib.import_module(package)
    public = {name for name, value in vars(module).items() if not name.startswith("_") and not _is_foreign(value)}
    assert public - {"TYPE_CHECKING"} <= set(exports_of(package))


@every_package
def test_each_export_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    exports = {name: getattr(module, name) for name in exports_of(package)}
    undocumented = [name for name, value in exports.items() if _can_have_docs(value) and not inspect.getdoc(value)]
    undocumented += [
        f"{name}.{member}"
        for name, value in exports.items()
        if inspect.isclass(value)
        for member, attribute in vars(value).items()
        if not member.startswith("_")
        and (inspect.isroutine(attribute) or isinstance(attribute, property))
        and not inspect.getdoc(getattr(value, member))
    ]
    assert undocumented == []


def test_each_name_has_one_address() -> None:
    packages = ["aioinformer", *(f"aioinformer.{room}" for room in (*ROOMS, "controller"))]
    exports = [(package, name) for package in packages for name in exports_of(package)]
    objects = Counter(id(getattr(importlib.import_module(package), name)) for package, name in exports)
    assert [export for export in exports if objects[id(getattr(sys.modules[export[0]], export[1]))] > 1] == []


def exports_of(package: str) -> list[str]:
    return list(getattr(importlib.import_module(package), "__all__", ()))


def _is_foreign(value: object) -> bool:
    if isinstance(value, (ModuleType, TypeVar)) or type(value).__name__ == "_Feature":
        return True
    return not str(getattr(value, "__module__", "aioinformer")).startswith("aioinformer")


def _can_have_docs(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)
