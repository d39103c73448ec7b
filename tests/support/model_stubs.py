"""The stubs of `aioinformer.models`, read as text: the types that they state, and whether values are of these types."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import aioinformer.models

FOLDER = Path(aioinformer.models.__file__).parent
MODULES = sorted(path.parent.name for path in FOLDER.glob("*/__init__.pyi"))
_METADATA = FOLDER.parent / "cache" / "objects" / "metadata.pyi"
_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "builtins.str": (str,),
    "int": (int,),
    "builtins.int": (int,),
    "float": (float, int),
    "builtins.float": (float, int),
    "bool": (bool,),
    "builtins.bool": (bool,),
    "datetime": (datetime,),
    "None": (type(None),),
}


@cache
def classes(module: str) -> dict[str, dict[str, ast.expr]]:
    """Return the classes of a stub, with their attributes and the types of these."""
    paths = [FOLDER / module / "__init__.pyi", *([_METADATA] if module == "meta_v1" else [])]
    nodes = [node for path in paths for node in ast.parse(path.read_text()).body]
    return {node.name: dict(_attributes(node)) for node in nodes if isinstance(node, ast.ClassDef)}


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id, part.annotation
        elif isinstance(part, ast.FunctionDef) and part.name != "__init__":
            assert part.returns is not None
            yield part.name, part.returns


@cache
def constants(module: str) -> dict[str, str]:
    """Return the constants of a stub, with the classes of their objects."""
    nodes = ast.parse((FOLDER / module / "__init__.pyi").read_text()).body
    assigned = [node for node in nodes if isinstance(node, ast.AnnAssign)]
    return {ast.unparse(node.target): ast.unparse(node.annotation)[len("Final[Resource[") : -2] for node in assigned}


def misfits(value: Any, module: str, name: str, path: str = "$") -> Iterator[str]:
    """Yield the places where an object and its parts are not of the types that the stub of its class states."""
    for attribute, annotation in classes(module)[name].items():
        yield from _misfits(getattr(value, attribute), annotation, module, f"{path}.{attribute}")


def _misfits(value: Any, annotation: ast.expr, module: str, path: str) -> Iterator[str]:
    if isinstance(annotation, ast.BinOp):  # a union
        results = [list(_misfits(value, side, module, path)) for side in (annotation.left, annotation.right)]
        if all(results):
            yield from max(results, key=lambda each: each[0].count("."))  # that which fits deepest
        return
    stated = ast.unparse(annotation)
    if stated == "Any":
        return
    if stated in _PLAIN:
        fits = isinstance(value, _PLAIN[stated]) and not (type(value) is bool and "bool" not in stated)
        if not fits:
            yield f"{path}: {value!r} is no {stated}"
        return
    if isinstance(annotation, ast.Subscript):
        yield from _misfits_inside(value, annotation, module, path)
        return
    prefix, _, name = stated.rpartition(".")
    home = prefix or module
    if not isinstance(value, getattr(import_module(f"aioinformer.models.{home}"), name)):
        yield f"{path}: {type(value).__name__} is no {stated}"
        return
    yield from misfits(value, home, name, path)


def _misfits_inside(value: Any, annotation: ast.Subscript, module: str, path: str) -> Iterator[str]:
    origin = ast.unparse(annotation.value)
    if origin == "Literal":
        if value != ast.literal_eval(annotation.slice):
            yield f"{path}: {value!r} is no {ast.unparse(annotation)}"
    elif origin == "Sequence":
        if not isinstance(value, Sequence) or isinstance(value, str):
            yield f"{path}: {type(value).__name__} is no Sequence"
            return
        for at, item in enumerate(value):
            yield from _misfits(item, annotation.slice, module, f"{path}[{at}]")
    else:
        assert origin == "Mapping"
        assert isinstance(annotation.slice, ast.Tuple)
        if not isinstance(value, Mapping):
            yield f"{path}: {type(value).__name__} is no Mapping"
            return
        for key, item in value.items():
            yield from _misfits(item, annotation.slice.elts[1], module, f"{path}[{key!r}]")
