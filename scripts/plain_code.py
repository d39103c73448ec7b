"""Count what makes code harder to read, for each room, and compare with the figures in tests/project/plain_code.toml.

The figures only fall. What they count:

- `chained_assignments`: `a = b = x`, with several targets of one value.
- `tuple_assignments`: `a, b = x, y` where one statement for each value says the same. Swaps, whose values read a target
  that is assigned before, and unpacking of one value are not counted.
- `long_conditionals`: conditional expressions of more than 60 characters, or with `and` or `or` outside of strings; and
  `nested_conditionals`: those that contain another one. A short one reads at once, so there may be any number of them.
- `private_attributes`: `other._name`, read, written or called, where the class that the code is in does not define
  `_name`: a class may read its other instances. Names that Python's library documents, such as `_replace`, are not
  counted. What is left are attributes of asyncio and aiohttp that have no public form: a comment beside each says why
  it is needed.
- `forwarding_functions`: a function whose body only calls another one with its own parameters, in their order. Not
  counted are documented methods that call one of a part of their object, which is how an object offers its parts;
  methods that a base class, a protocol or a subclass of the package has; special methods; functions with decorators.
- `raises_missing`: an error class that the body of a public function raises, and that is in no `Raises:` of its
  docstring. That of a class counts for `__init__`, that of a base class for its methods.

Without options, the script prints each figure that differs from the recorded one, with the places of those that have
risen, and exits with status 1 if there is one. `--list ROOM` prints all places in a room. `--record` writes the
figures; it refuses to raise one.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "aioinformer"
LISTING = ROOT / "tests" / "project" / "plain_code.toml"
FILES = "(files)"  # the room of modules that are in no folder
FIGURES = (
    "chained_assignments",
    "tuple_assignments",
    "nested_conditionals",
    "long_conditionals",
    "private_attributes",
    "forwarding_functions",
    "raises_missing",
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
#: Places by figure: "line: text".
Places: TypeAlias = dict[str, list[str]]
#: Figures by room.
Figures: TypeAlias = dict[str, dict[str, int]]

#: Names with an underscore that the documentation of Python's library has.
_DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_exit"}
#: A conditional expression with more characters does not read at once.
_LONG = 60
#: What says that code is incomplete or wrong, or ends an iteration or a task: no caller handles it.
_NO_ERRORS = {"NotImplementedError", "AssertionError", "StopIteration", "StopAsyncIteration", "CancelledError"}
#: What a handler names that catches the errors of all functions.
_ALL_ERRORS = {"Exception", "BaseException", "USER_ERRORS"}
#: Bases that have no methods of a subject.
_PLAIN_BASES = {"object", "Generic", "Protocol", "ABC", "NamedTuple", "Struct", "Enum", "IntEnum", "StrEnum"}


@dataclass
class Classes:
    """What the classes of the package have, by their names: bases, and the docstrings of their methods."""

    bases: dict[str, list[str]] = field(default_factory=dict)
    methods: dict[str, dict[str, str]] = field(default_factory=dict)
    protocols: set[str] = field(default_factory=set)

    def add(self, node: ast.ClassDef) -> None:
        """Take a class into account. Classes with the same name share their methods."""
        bases = [_last_name(base) for base in node.bases]
        self.bases.setdefault(node.name, []).extend(bases)
        methods = self.methods.setdefault(node.name, {})
        for each in node.body:
            if isinstance(each, Function):
                methods[each.name] = ast.get_docstring(each) or ""
                if "Protocol" in bases:
                    self.protocols.add(each.name)

    def above(self, name: str) -> Iterator[str]:
        """Yield the names of all base classes of a class, including those of other packages."""
        seen = {name}
        waiting = list(self.bases.get(name, ()))
        while waiting:
            base = waiting.pop()
            if base in seen:
                continue
            seen.add(base)
            yield base
            waiting.extend(self.bases.get(base, ()))

    def is_of_family(self, cls: str, method: str) -> bool:
        """Return whether a subclass, a base class or a protocol has such a method, or a base class may have it.

        The latter are those of other packages.
        """
        if method in self.protocols:
            return True
        if any(method in own and cls in self.above(other) for other, own in self.methods.items()):
            return True
        for base in self.above(cls):
            if base in _PLAIN_BASES:
                continue
            if base not in self.methods or method in self.methods[base]:
                return True
        return False


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, of what is called or subscribed, too; "" for another expression."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def measure(text: str, classes: Classes) -> Places:
    """Return the places of a module that each figure counts."""
    visitor = _Visitor(classes)
    visitor.visit(ast.parse(text))
    return visitor.places


class _Visitor(ast.NodeVisitor):
    def __init__(self, classes: Classes) -> None:
        self.places: Places = {figure: [] for figure in FIGURES}
        self._classes = classes
        self._class: list[ast.ClassDef] = []
        self._functions = 0

    def _count(self, figure: str, node: ast.AST, text: str = "") -> None:
        line = getattr(node, "lineno", 0)
        self.places[figure].append(f"{line}: {text or ast.unparse(node)}")

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            self._count("chained_assignments", node)
        if any(_is_independent(target, node.value) for target in node.targets):
            self._count("tuple_assignments", node)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        within = [each for each in ast.walk(node) if each is not node]
        if len(ast.unparse(node)) > _LONG or any(isinstance(each, ast.BoolOp) for each in within):
            self._count("long_conditionals", node)
        if any(isinstance(each, ast.IfExp) for each in within):
            self._count("nested_conditionals", node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._is_private_of_another(node):
            self._count("private_attributes", node)
        self.generic_visit(node)

    def _is_private_of_another(self, node: ast.Attribute) -> bool:
        if not node.attr.startswith("_") or node.attr.startswith("__") or node.attr in _DOCUMENTED:
            return False
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in ("self", "cls"):
            return False
        if isinstance(owner, ast.Call) and _last_name(owner) == "super":
            return False
        return not any(node.attr in _defined(each) for each in self._class)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._class.append(node)
        within, self._functions = self._functions, 0
        self.generic_visit(node)
        self._functions = within
        self._class.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: Function) -> None:
        is_method = bool(self._class) and not self._functions
        cls = self._class[-1].name if is_method else ""
        forwards = _only_forwards(node, is_method=is_method)
        if forwards and not (is_method and (_offers_a_part(node) or self._classes.is_of_family(cls, node.name))):
            self._count("forwarding_functions", node, node.name)
        if not self._functions and self._is_public(node, cls):
            described = self._described(node, cls)
            for error in sorted(_raised(node, self._classes)):
                if not any(name in described for name in (error, *self._classes.above(error))):
                    self._count("raises_missing", node, f"{node.name}: {error}")
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1

    def _is_public(self, node: Function, cls: str) -> bool:
        if cls.startswith("_"):
            return False
        return not node.name.startswith("_") or node.name == "__init__"

    def _described(self, node: Function, cls: str) -> set[str]:
        """Return the words in the sections `Raises:` that describe a function."""
        texts = [ast.get_docstring(node) or ""]
        if node.name == "__init__":
            texts.append(ast.get_docstring(self._class[-1]) or "")
        if cls:
            texts.extend(self._classes.methods.get(base, {}).get(node.name, "") for base in self._classes.above(cls))
        found: set[str] = set()
        for text in texts:
            found.update(re.findall(r"\w+", text.partition("Raises:")[2]))
        return found


@cache
def _defined(cls: ast.ClassDef) -> frozenset[str]:
    """Return the names that a class defines for itself and its instances."""
    found = set()
    for node in ast.walk(cls):
        if isinstance(node, Function):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _last_name(node.value) == "self":
            found.add(node.attr)
    return frozenset(found)


def _is_independent(target: ast.expr, value: ast.expr) -> bool:
    """Return whether an assignment of a tuple to a tuple can be written as one assignment after the other."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return False
    parts = (*target.elts, *value.elts)
    if len(target.elts) != len(value.elts) or any(isinstance(each, ast.Starred) for each in parts):
        return False
    assigned: set[str] = set()
    for part, each in zip(target.elts, value.elts, strict=True):
        if any(ast.unparse(read) in assigned for read in ast.walk(each) if isinstance(read, ast.expr)):
            return False
        assigned.update(ast.unparse(written) for written in _targets(part))
    return True


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _targets(each)
    else:
        yield target


def _only_forwards(node: Function, *, is_method: bool) -> bool:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if node.decorator_list or len(body) != 1 or node.name.startswith("__"):
        return False
    (statement,) = body
    value = statement.value if isinstance(statement, ast.Return | ast.Expr) else None
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name | ast.Attribute):
        return False
    if any(isinstance(each, ast.Call) for each in ast.walk(value.func)):
        return False
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)][is_method:]
    positional = names + ["*" + given.vararg.arg for _ in "*" if given.vararg]
    keywords = [each.arg for each in given.kwonlyargs]
    parameters = positional + keywords + ["**" + given.kwarg.arg for _ in "*" if given.kwarg]
    passed = [ast.unparse(each) for each in value.args]
    for keyword in value.keywords:
        text = ast.unparse(keyword.value)
        if keyword.arg is None:
            text = f"**{text}"
        elif keyword.arg != text:
            return False
        passed.append(text)
    return passed == parameters and (bool(parameters) or _last_name(value.func) == node.name)


def _offers_a_part(node: Function) -> bool:
    """Return whether a documented public method that only forwards calls a method of an attribute of its object."""
    if node.name.startswith("_") or ast.get_docstring(node) is None:
        return False
    calls = [each.func for each in ast.walk(node.body[-1]) if isinstance(each, ast.Call)]
    return isinstance(calls[0], ast.Attribute) and isinstance(calls[0].value, ast.Attribute)


def _raised(node: Function, classes: Classes) -> set[str]:
    """Return the error classes that the body of a function raises and does not catch itself."""
    found: set[str] = set()

    def look(each: ast.AST, caught: frozenset[str]) -> None:
        if isinstance(each, Function | ast.Lambda | ast.ClassDef):
            return
        if isinstance(each, ast.Raise) and each.exc is not None:
            name = _last_name(each.exc)
            is_error = name[:1].isupper() and name not in _NO_ERRORS and not _is_of_click(each.exc)
            if is_error and not caught & {name, *classes.above(name), *_ALL_ERRORS}:
                found.add(name)
        if isinstance(each, ast.Try | ast.TryStar):
            within = caught | {name for handler in each.handlers for name in _caught(handler)}
            for statement in each.body:
                look(statement, within)
            for part in (each.handlers, each.orelse, each.finalbody):
                for inner in part:
                    look(inner, caught)
            return
        for child in ast.iter_child_nodes(each):
            look(child, caught)

    for statement in node.body:
        look(statement, frozenset())
    return found


def _is_of_click(error: ast.expr) -> bool:
    """Return whether an error is one of click, which shows it to people: the caller of a command is click."""
    return ast.unparse(error).startswith("click.")


def _caught(handler: ast.ExceptHandler) -> Iterator[str]:
    if handler.type is None:
        yield "BaseException"
    elif isinstance(handler.type, ast.Tuple):
        yield from map(_last_name, handler.type.elts)
    else:
        yield _last_name(handler.type)


def classes_of(texts: Iterable[str]) -> Classes:
    """Return what the classes of these modules have."""
    found = Classes()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found.add(node)
    return found


def places(package: Path = PACKAGE) -> dict[str, Places]:
    """Return what each figure counts, by room: the file, the line and the text of each place."""
    texts = {path.relative_to(package): path.read_text() for path in sorted(package.rglob("*.py"))}
    classes = classes_of(texts.values())
    found: dict[str, Places] = {}
    for path, text in texts.items():
        room = path.parts[0] if len(path.parts) > 1 else FILES
        known = found.setdefault(room, {figure: [] for figure in FIGURES})
        for figure, lines in measure(text, classes).items():
            known[figure] += [f"{package.name}/{path}:{line}" for line in lines]
    return dict(sorted(found.items()))


def figures(found: Mapping[str, Places]) -> Figures:
    """Return the number of places of each figure, by room."""
    return {room: {figure: len(lines) for figure, lines in each.items()} for room, each in found.items()}


def render(now: Figures) -> str:
    """Return the text of the listing: one line a room, without figures that are 0."""
    lines = ["# What makes the code of each room harder to read. Written by scripts/plain_code.py --record."]
    for room, each in now.items():
        parts = [f"{figure} = {count}" for figure, count in each.items() if count]
        lines.append(f'"{room}" = {{ {", ".join(parts)} }}' if parts else f'"{room}" = {{}}')
    return "\n".join(lines) + "\n"


def read(text: str) -> Figures:
    """Return the figures of a listing."""
    return {room: {figure: each.get(figure, 0) for figure in FIGURES} for room, each in tomllib.loads(text).items()}


def find_problems(before: Figures, found: Mapping[str, Places]) -> list[str]:
    """Return a text for each figure that is higher or lower than the recorded one: 0 for a room without a record."""
    problems = []
    for room, now in figures(found).items():
        known = before.get(room, dict.fromkeys(FIGURES, 0))
        for figure, count in now.items():
            if count > known[figure]:
                listed = "".join(f"\n  {place}" for place in found[room][figure])
                problems.append(f"{room}: {figure} has risen from {known[figure]} to {count}: write it plainly{listed}")
            elif count < known[figure]:
                problems.append(
                    f"{room}: {figure} has fallen from {known[figure]} to {count}: run scripts/plain_code.py --record"
                )
    gone = [f"{room} is no room: run scripts/plain_code.py --record" for room in before if room not in found]
    return problems + gone


def risen(before: Figures, found: Mapping[str, Places]) -> list[str]:
    """Return the problems that recording does not mend. What a new room has at first may be recorded."""
    known = {room: each for room, each in found.items() if room in before}
    return [problem for problem in find_problems(before, known) if "has risen" in problem]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures; none may have risen")
    parser.add_argument("--list", metavar="ROOM", help="print what is counted in a room")
    parser.add_argument("--figure", choices=FIGURES, help="with --list: only what this figure counts")
    options = parser.parse_args()
    found = places()
    if options.list:
        for figure in (options.figure,) if options.figure else FIGURES:
            print("\n".join([f"{figure}:", *(f"  {place}" for place in found[options.list][figure])]))
        return
    before = read(LISTING.read_text()) if LISTING.exists() else {}
    if options.record:
        if problems := risen(before, found):
            sys.exit("\n".join(problems))
        LISTING.write_text(render(figures(found)))
        return
    problems = find_problems(before, found)
    print("\n".join(problems) or "no figure has changed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
