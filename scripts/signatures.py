"""Compare the signatures of all public names with those of the last release, which tests/project/signatures.txt lists.

A signature that has changed, or a name that has gone, needs a line in CHANGELOG.md: under the heading
"### Changed signatures" of the first section, which begins with the address of the name. A name that is new needs none.

Without options, the script prints each line of the changelog that is missing, or that names no change, and exits with
status 1 if there is one. `--record` writes the listing again. That is a part of a release: it is refused while the
first section of the changelog is unreleased.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ForwardRef

import changelog

from aioinformer.exports import ADDRESSES, modules_of

if TYPE_CHECKING:
    from collections.abc import Mapping

LISTING = Path(__file__).resolve().parent.parent / "tests" / "project" / "signatures.txt"
HEADING = "Changed signatures"

_LINE = re.compile(r"^- `(aioinformer[\w.]*)`", re.MULTILINE)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def signatures() -> dict[str, str]:
    """Return the signature of each public name, and of each public member of a public class, by its address."""
    values = {
        f"{address}.{name}": getattr(importlib.import_module(address), name)
        for address in ADDRESSES
        for name in modules_of(address)
    }
    public = [value for value in values.values() if inspect.isclass(value)]
    found = {}
    for address, value in values.items():
        if inspect.isclass(value):
            bases = [base.__name__ for base in value.__mro__[1:] if base in public or issubclass(base, Exception)]
            arguments = "" if issubclass(value, enum.Enum) else _callable(value)
            found[address] = f"class{arguments}" + (f" is {', '.join(bases)}" if bases else "")
            found.update({f"{address}.{name}": member for name, member in _members(value).items()})
        else:
            found[address] = _callable(value) if inspect.isroutine(value) else f": {_kind(value)}"
    return dict(sorted(found.items()))


def _members(cls: type) -> dict[str, str]:
    members = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("aioinformer"):
            continue
        for name, annotation in inspect.get_annotations(base).items():
            members[name] = f": {_annotation(annotation) or 'field'}"
        for name, member in vars(base).items():
            if (text := _member(member)) is not None:
                members[name] = text
    return {name: text for name, text in members.items() if not name.startswith("_") or name in _PROTOCOLS}


#: What an object can be used for without naming a method.
_PROTOCOLS = {
    *("__aenter__", "__aiter__", "__anext__", "__await__", "__call__", "__contains__", "__enter__", "__eq__"),
    *("__getattr__", "__getitem__", "__hash__", "__iter__", "__len__", "__lt__"),
}


def _member(member: Any) -> str | None:
    if isinstance(member, property):
        settable = "" if member.fset is None else " (can be set)"
        returned = inspect.get_annotations(member.fget).get("return", "") if member.fget else ""
        return f": {_annotation(returned) or 'property'}{settable}"
    if isinstance(member, (staticmethod, classmethod)):
        return f" {type(member).__name__} {_callable(member.__func__)}"
    if isinstance(member, enum.Enum):
        return f" = {member.value!r}"
    return _callable(member) if inspect.isfunction(member) else None


def _kind(value: Any) -> str:
    """Return what a constant is. The classes of types for annotations differ between versions of Python."""
    cls = type(value)
    return "a type" if cls.__module__ in ("typing", "types", "collections.abc") else cls.__name__


def _callable(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:  # Python knows none of errors, dictionaries and texts whose class has no `__init__`
        return "(…)"
    every = list(signature.parameters.values())
    parameters = [_parameter(each) for each in every]
    kinds = [each.kind for each in every]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        parameters.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    kind = "async " if inspect.iscoroutinefunction(value) else ""
    returned = _annotation(signature.return_annotation)
    return f"{kind}({', '.join(parameters)})" + (f" -> {returned}" if returned else "")


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    if parameter.kind is parameter.VAR_KEYWORD:
        stars = "**"
    annotation = _annotation(parameter.annotation)
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}{f': {annotation}' if annotation else ''}{default}"


def _annotation(annotation: Any) -> str:
    """Return an annotation in the words of the source; "" without one, and for what Python has already evaluated.

    The latter are arguments of structs, whose fields have their words.
    """
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    return " ".join(annotation.split()) if isinstance(annotation, str) else ""


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, _PLAIN) or value in ((), {}, frozenset()):
        return repr(value)
    name = getattr(value, "__name__", "…")
    return "…" if name == "<lambda>" else name


def render(found: Mapping[str, str]) -> str:
    """Return the text of the listing: one line a name."""
    return "".join(f"{address}{text if text[0] in ':( ' else ' ' + text}\n" for address, text in found.items())


def read(text: str) -> dict[str, str]:
    """Return each line of a listing by its address."""
    lines = text.splitlines()
    return {re.split(r"[:( ]", line, maxsplit=1)[0]: line for line in lines}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return what each name that has changed or gone is now, by its address; "gone" if it is no public name."""
    different = {address: now.get(address, "gone") for address, line in before.items() if now.get(address) != line}
    # The members of a class that has gone need no lines of their own.
    return {each: line for each, line in different.items() if different.get(each.rpartition(".")[0]) != "gone"}


def named(section: str) -> set[str]:
    """Return the addresses that a section of the changelog lists as changed."""
    found: set[str] = set()
    for part in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        title, _, lines = part.partition("\n")
        if title.strip() == HEADING:
            found.update(_LINE.findall(lines))
    return found


def find_problems(before: str, now: str, section: str) -> list[str]:
    """Return a line for each change that the changelog lacks, and for each that it lists without a change."""
    changes = changed(read(before), read(now))
    listed = named(section)
    old = read(before)
    missing = [
        f'{address} has changed without a line in the changelog. Add one that begins with "- `{address}`" under '
        f'"### {HEADING}" of the first section of CHANGELOG.md, or restore it.\n  was: {old[address]}\n  now: {line}'
        for address, line in changes.items()
        if address not in listed
    ]
    stale = [
        f"CHANGELOG.md lists {address} as changed, but it is as in the last release: remove the line."
        for address in sorted(listed - changes.keys())
    ]
    return missing + stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the listing; a part of a release")
    first = changelog.sections()[0]
    now = render(signatures())
    if parser.parse_args().record:
        if LISTING.exists() and not first.released:
            sys.exit(f"{first.title!r} of CHANGELOG.md is unreleased: write its date there, then record the signatures")
        LISTING.write_text(now)
        return
    problems = find_problems(LISTING.read_text(), now, first.text)
    print("\n".join(problems) or "each changed signature is in the changelog")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
