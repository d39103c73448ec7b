"""The reference shows each public name, and none twice."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import aioinformer
from tests.project.docs.blocks import DOCS

if TYPE_CHECKING:
    from types import ModuleType

#: What the pages show, and on which page.
SHOWN = [
    (address, page.name)
    for page in sorted((DOCS / "reference").glob("*.md"))
    for address in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
]
ROOMS = ("aioinformer", *(f"aioinformer.{each.name}" for each in pkgutil.iter_modules(aioinformer.__path__)))
PUBLIC = [
    room for room in ROOMS if room != "aioinformer.__main__" and hasattr(importlib.import_module(room), "__all__")
]


def resolve(address: str) -> object:
    """Return what is at an address: a name of a room, or a module.

    Raises:
        ImportError: there is nothing.
    """
    room, _, name = address.rpartition(".")
    try:
        return getattr(importlib.import_module(room), name)
    except AttributeError:
        return importlib.import_module(address)


def members(module: ModuleType) -> list[object]:
    """Return the public classes and functions that a module defines."""
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


@pytest.fixture(scope="module")
def shown() -> list[tuple[str, object]]:
    """Return the last part of each address on the pages, with what it stands for."""
    found: list[tuple[str, object]] = []
    for address, _ in SHOWN:
        what = resolve(address)
        named = members(what) if inspect.ismodule(what) else [what]
        found += [(getattr(each, "__name__", address.rpartition(".")[2]), each) for each in named]
    return found


@pytest.mark.parametrize(("address", "page"), SHOWN)
def test_address_exists(address: str, page: str) -> None:
    resolve(address)


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_is_in_the_reference(module: str, shown: list[tuple[str, object]]) -> None:
    values = {id(value) for _, value in shown}
    names = {address.rpartition(".")[2] for address, _ in SHOWN}
    exports = {name: getattr(importlib.import_module(module), name) for name in importlib.import_module(module).__all__}
    # Equal numbers and texts may be one object.
    missing = [
        name
        for name, value in exports.items()
        if (name not in names if isinstance(value, int | str) else id(value) not in values)
    ]
    assert missing == []


def test_no_name_is_in_the_reference_twice(shown: list[tuple[str, object]]) -> None:
    counted = Counter((name, id(value)) for name, value in shown)
    assert [name for (name, _), count in counted.items() if count > 1] == []
