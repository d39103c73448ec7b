"""Descriptions of classes and fields, from their docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from aioinformer.cache.objects.models.model import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECTION: Final = re.compile(r"^([A-Z][A-Za-z ]*):\s*$")
_OF_FIELDS: Final = ("Attributes", "Args", "Arguments", "Parameters")
_FIELD: Final = re.compile(r"^ {1,4}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def class_description(cls: type[Any]) -> str:
    """Return the docstring of a class without its sections, "" if it has none of its own, or is a built-in type."""
    return "" if issubclass(cls, Model) else _split(cls)[0]


def field_descriptions(cls: type[Any]) -> dict[str, str]:
    """Return the descriptions of the fields of a class and of its bases.

    They are in the section "Attributes" of the docstring, or in strings that follow the fields, which need the source.
    """
    found: dict[str, str] = {}
    for base in () if issubclass(cls, Model) else reversed(cls.__mro__):
        if base.__module__ not in ("builtins", "msgspec", "msgspec._core", "typing"):
            found |= {**_split(base)[1], **_strings_after_fields(base)}
    return found


def _split(cls: type[Any]) -> tuple[str, dict[str, str]]:
    own = vars(cls).get("__doc__") or ""
    if own.startswith(f"{cls.__name__}("):  # dataclasses make one of the signature
        return "", {}
    text: list[str] = []
    fields: dict[str, list[str]] = {}
    section = ""
    name = ""
    for line in inspect.cleandoc(own).splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
            name = ""
        elif not section:
            text.append(line)
        elif section in _OF_FIELDS and (match := _FIELD.match(line)):
            name = match[1]
            fields[name] = [match[2]]
        elif name:
            fields[name].append(line.strip())
    return "\n".join(text).strip(), {name: " ".join(lines).strip() for name, lines in fields.items()}


@lru_cache(maxsize=1024)  # Python reads the module of a class again for each class, and a schema is made several times
def _strings_after_fields(cls: type[Any]) -> Mapping[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}  # made at run time
    if tree.body and isinstance(tree.body[0], ast.ClassDef):
        body = tree.body[0].body
    else:
        body = []
    found = {}
    for pair in pairwise(body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
