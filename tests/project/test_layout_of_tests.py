"""Tests use the public names of the package, and helpers of their own folder or of `tests/support`."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aioinformer.exports import ADDRESSES, modules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]


class Private(NamedTuple):
    """What the files of a folder use, and users of the package do not.

    Attributes:
        imports: the files that import a module below a room.
        replaced: the replaced attributes of the package, as by `monkeypatch.setattr(module, "_PAGE", 2)`.
    """

    imports: int
    replaced: int


#: These figures may only fall: if one has grown, assert the behaviour by public names; if one has fallen, enter it.
#: What several folders replace, `tests/support/limits.py` replaces: then one place knows where it is.
PRIVATE = {
    "benchmarks": Private(4, 0),
    "tests/project": Private(0, 1),
    "tests/project/docs": Private(3, 0),
    "tests/project/typing": Private(1, 0),
    "tests/real/e2e": Private(4, 0),
    "tests/real/files": Private(1, 0),
    "tests/real/rows": Private(4, 0),
    "tests/support": Private(10, 15),
    "tests/system/budget": Private(1, 2),
    "tests/system/cli": Private(6, 2),
    "tests/system/client": Private(2, 1),
    "tests/system/controller": Private(11, 10),
    "tests/system/factory": Private(3, 1),
    "tests/system/harness": Private(1, 1),
    "tests/system/hostile": Private(2, 2),
    "tests/system/informer": Private(0, 2),
    "tests/system/leaderelection": Private(1, 0),
    "tests/system/models": Private(1, 0),
    "tests/system/ring": Private(1, 1),
    "tests/system/secrets": Private(3, 1),
    "tests/system/simulation": Private(1, 0),
    "tests/system/webhooks": Private(1, 0),
    "tests/unit": Private(0, 1),
    "tests/unit/authorization": Private(1, 1),
    "tests/unit/cache": Private(9, 1),
    "tests/unit/cli": Private(6, 2),
    "tests/unit/client": Private(3, 0),
    "tests/unit/controller": Private(14, 10),
    "tests/unit/crds": Private(4, 1),
    "tests/unit/events": Private(1, 2),
    "tests/unit/factory": Private(2, 0),
    "tests/unit/handlers": Private(3, 2),
    "tests/unit/informer": Private(4, 4),
    "tests/unit/leaderelection": Private(4, 1),
    "tests/unit/models": Private(4, 0),
    "tests/unit/queue": Private(2, 0),
    "tests/unit/reflector": Private(8, 1),
    "tests/unit/resources": Private(5, 0),
    "tests/unit/ring": Private(5, 0),
    "tests/unit/streams": Private(3, 2),
    "tests/unit/testing": Private(7, 2),
    "tests/unit/transport": Private(13, 7),
    "tests/unit/webhooks": Private(1, 0),
    "tests/unit/workqueue": Private(2, 0),
}


class Import(NamedTuple):
    """One imported name.

    Attributes:
        module: the module after `from`, or after `import`.
        name: the name that is taken from it; "" for `import module`.
        bound: the name in the file that imports it.
    """

    module: str
    name: str
    bound: str


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports_of(tree: ast.AST) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield Import(each.name, "", each.asname or each.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield Import(node.module or "", each.name, each.asname or each.name)


def is_module(name: str) -> bool:
    path = PROJECT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def is_below_a_room(imported: Import) -> bool:
    package, *rooms = imported.module.split(".")
    if package != "aioinformer" or not rooms or rooms[0] == "models":
        return False
    if imported.module not in ADDRESSES:
        return len(rooms) > 1
    whole = f"{imported.module}.{imported.name}"
    is_public = imported.name in ("", *modules_of(imported.module)) or whole in ADDRESSES
    return not is_public and is_module(whole)


def replaced_in(tree: ast.AST) -> int:
    """Return the number of calls that replace an attribute of the package."""
    ours = {each.bound for each in imports_of(tree) if each.module.partition(".")[0] == "aioinformer"}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    targets = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "setattr"]
    return sum(_root_of(target) in ours or _text_of(target).startswith("aioinformer.") for target in targets)


def _root_of(target: ast.expr) -> str:
    while isinstance(target, ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _text_of(target: ast.expr) -> str:
    """Return the constant beginning of a string."""
    if isinstance(target, ast.JoinedStr):
        target = target.values[0]
    return str(target.value) if isinstance(target, ast.Constant) else ""


def test_private_uses_do_not_grow() -> None:
    importing, replacing = Counter[str](), Counter[str]()
    for top in ("tests", "benchmarks", "examples"):
        for path in (PROJECT / top).rglob("*.py"):
            parts = path.relative_to(PROJECT).parts
            if any(part.startswith(".") for part in parts):  # what benchmarks have built and installed
                continue
            folder = "/".join(parts[:-1][:3])
            tree = tree_of(path)
            importing[folder] += any(map(is_below_a_room, imports_of(tree)))
            replacing[folder] += replaced_in(tree)
    grown = {}
    for folder in importing:
        allowed = PRIVATE.get(folder, Private(0, 0))
        found = Private(importing[folder], replacing[folder])
        if found.imports > allowed.imports or found.replaced > allowed.replaced:
            grown[folder] = found
    assert grown == {}


def test_helpers_are_in_the_folder_or_in_support() -> None:
    wrong = []
    for path in (PROJECT / "tests").rglob("*.py"):
        own = path.relative_to(PROJECT).parts[:-1]
        for imported in imports_of(tree_of(path)):
            if imported.module.partition(".")[0] != "tests":
                continue
            whole = f"{imported.module}.{imported.name}"
            *folder, leaf = (whole if is_module(whole) else imported.module).split(".")
            is_near = folder == ["tests", "support"] or tuple(folder) == own[: len(folder)]
            if not is_near or leaf == "conftest" or leaf.startswith("test_"):
                wrong.append(f"{path.relative_to(PROJECT)}: {imported.module}")
    assert wrong == [], "move what they import to a module of their folder, or of tests/support"
