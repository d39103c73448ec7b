"""The public names: each export of the package and of its rooms exists, is listed once, and is documented."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import Counter
from pathlib import Path
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
    exports = {name: getattr(module, name) for name in module.__all__}
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


@every_package
def test_type_checkers_and_the_interpreter_see_the_same(package: str) -> None:
    source = Source(package)
    assert source.for_type_checkers == source.for_the_interpreter
    assert sorted([*source.for_type_checkers, *source.defined]) == sorted(exports_of(package))


class Source:
    """What an `__init__` states about its exports: a type checker reads imports, the interpreter a lazy table.

    Attributes:
        for_type_checkers: the module that each name is imported from under `if TYPE_CHECKING:`, by name.
        for_the_interpreter: the module of each name in the table that `lazy_exports` gets, by name.
        defined: public names that the `__init__` itself defines.
    """

    def __init__(self, package: str) -> None:
        tree = ast.parse(Path(inspect.getfile(importlib.import_module(package))).read_text())
        guarded = [node for node in tree.body if isinstance(node, ast.If)]
        self.for_type_checkers = {
            alias.asname or alias.name: node.module
            for block in guarded
            if isinstance(block.test, ast.Name)
            for node in block.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "aioinformer"
            for alias in node.names
        }
        (table,) = (
            ast.literal_eval(call.args[1])
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "_lazy_exports"
        )
        self.for_the_interpreter = {
            name: f"{package}.{module}" for module, names in table.items() for name in names.split()
        }
        self.defined = [
            node.name
            for node in tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
        ]


def exports_of(package: str) -> list[str]:
    exports: list[str] = importlib.import_module(package).__all__
    return exports


def _is_foreign(value: object) -> bool:
    if isinstance(value, (ModuleType, TypeVar)) or type(value).__name__ == "_Feature":
        return True
    return not str(getattr(value, "__module__", "aioinformer")).startswith("aioinformer")


def _can_have_docs(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)
