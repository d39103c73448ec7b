"""The shop window: what `aioinformer` and `aioinformer.testing` offer is there, is said once, and is explained."""

from __future__ import annotations

import inspect
from collections import Counter
from types import ModuleType
from typing import TypeVar

import pytest

import aioinformer
import aioinformer.testing

WINDOWS = pytest.mark.parametrize("window", [aioinformer, aioinformer.testing], ids=lambda window: str(window.__name__))


@WINDOWS
def test_every_export_is_named_once(window: ModuleType) -> None:
    assert [name for name, count in Counter(window.__all__).items() if count > 1] == []


@WINDOWS
def test_every_export_exists(window: ModuleType) -> None:
    assert [name for name in window.__all__ if not hasattr(window, name)] == []


@WINDOWS
def test_every_public_name_is_exported(window: ModuleType) -> None:
    public = {name for name, value in vars(window).items() if not name.startswith("_") and not _is_scaffolding(value)}
    public.discard("TYPE_CHECKING")
    assert public - set(window.__all__) == set()


@WINDOWS
def test_every_export_is_documented(window: ModuleType) -> None:
    exports = {name: getattr(window, name) for name in window.__all__}
    undocumented = [name for name, value in exports.items() if _is_documentable(value) and not inspect.getdoc(value)]
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


def _is_scaffolding(value: object) -> bool:
    return isinstance(value, (ModuleType, TypeVar)) or type(value).__name__ == "_Feature"


def _is_documentable(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)
