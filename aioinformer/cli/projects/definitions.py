"""`aioinformer crd`: compare the definition of a class with one in a file, and with the one before."""

from __future__ import annotations

import reprlib
from functools import reduce
from math import inf
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aioinformer.cli.output.changes import differences
from aioinformer.crds.markers import INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, RULES, UNKNOWN
from aioinformer.errors import UsageError
from aioinformer.resources.manifests import load_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.crds.types import Schema

#: What servers add to definitions that do not state it.
_ADDED: Final[dict[str, Any]] = {"conversion": {"strategy": "None"}, "preserveUnknownFields": False}
#: Limits, with 1 for those that a greater value narrows, and -1 for those that a smaller one does.
_LIMITS: Final = {f"min{what}": 1 for what in ("imum", "Length", "Items", "Properties")} | {
    f"max{what}": -1 for what in ("imum", "Length", "Items", "Properties")
}
_SAME: Final = ("pattern", "format", LIST_TYPE, LIST_KEYS, MAP_TYPE)
_WIDER: Final = (("integer", "number"), ("integer", "int-or-string"), ("string", "int-or-string"))


def compare(body: dict[str, Any], check: str | None, compatible_with: str | None) -> list[str]:
    """Return a line for each difference from the file `check`, and each break since the file `compatible_with`."""
    name = body["metadata"]["name"]
    lines = []
    if check is not None:
        found = _definition(check, name)
        lines += [f"{check}: {name}: {each}" for each in spec_differences(body, found)]
    if compatible_with is not None:
        lines += [f"{name}: {each}" for each in breaks(_definition(compatible_with, name), body)]
    return lines


def spec_differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return how the `spec` of a definition differs from that of the class, a line each.

    What only servers write is ignored: status, metadata, and defaults of the definition.
    """
    spec = {name: value for name, value in found.get("spec", {}).items() if _ADDED.get(name) != value}
    lines = []
    for path, has, is_there in differences("spec", wanted["spec"], spec):
        shown = "missing" if is_there is None else reprlib.repr(is_there)
        wants = "which the class does not have" if has is None else f"the class has {reprlib.repr(has)}"
        lines.append(f"{path}: {shown}; {wants}")
    return lines


def _definition(file: str, name: str) -> dict[str, Any]:
    definitions = (each for each in load_manifests(Path(file)) if each["kind"] == "CustomResourceDefinition")
    found = {str(each["metadata"].get("name")): each for each in definitions}
    if name not in found:
        others = f", only {', '.join(found)}" if found else ""
        raise UsageError(f"{file}: has no CustomResourceDefinition {name}{others}")
    return found[name]


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the changes from one definition to another that break stored objects or clients, a line each."""
    before, after = old["spec"], new["spec"]
    return [*_name_breaks(before, after), *_version_breaks(before, after)]


def _name_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for parts in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        was, now = reduce(getitem, parts, before), reduce(getitem, parts, after)
        if was != now:
            yield f"spec.{'.'.join(parts)}: changed from {was} to {now}: it is another resource"
    for each in ("shortNames", "categories"):
        if gone := set(before["names"].get(each) or ()) - set(after["names"].get(each) or ()):
            yield f"spec.names.{each}: {', '.join(sorted(gone))} removed"


def _version_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    now = {each["name"]: each for each in after["versions"]}
    for was in before["versions"]:
        name, path = was["name"], f"versions.{was['name']}"
        each = now.get(name)
        if each is None:
            stored = "; objects may be stored in it" if was.get("storage") else ""
            yield f"{path}: removed{stored}"
            continue
        if was.get("served") and not each["served"]:
            yield f"{path}: no longer served"
        had, has = was.get("subresources") or {}, each.get("subresources") or {}
        for subresource in sorted(had.keys() - has.keys()):
            yield f"{path}: subresource {subresource} removed"
        if "status" in has.keys() - had.keys():
            yield f"{path}: subresource status added: clients that write the status with the object no longer change it"
        selectable = [[one["jsonPath"] for one in version.get("selectableFields") or ()] for version in (was, each)]
        for gone in sorted(set(selectable[0]) - set(selectable[1])):
            yield f"{path}: {gone} is no longer selectable"
        schemas = [(one.get("schema") or {}).get("openAPIV3Schema") or {UNKNOWN: True} for one in (was, each)]
        yield from _schema_breaks(schemas[0], schemas[1], path)


def _schema_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    was, now = _kind(old), _kind(new)
    if was != now and now != "any JSON" and (was, now) not in _WIDER:
        yield f"{path}: type narrowed from {was} to {now}"
        return
    yield from _limit_breaks(old, new, path)
    rules = [[each.get("rule") for each in schema.get(RULES) or ()] for schema in (old, new)]
    for each in rules[1]:
        if each not in rules[0]:
            yield f"{path}: rule {each!r} is new"
    if old.get("nullable") and not new.get("nullable"):
        yield f"{path}: null is no longer accepted"
    if old.get(UNKNOWN) and not new.get(UNKNOWN):
        yield f"{path}: unknown fields are no longer kept"
    if "items" in old and "items" in new:
        yield from _schema_breaks(old["items"], new["items"], f"{path}[]")
    if was == now == "object":
        yield from _field_breaks(old, new, path)


def _field_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    had, has = old.get("properties") or {}, new.get("properties") or {}
    more, now_more = old.get("additionalProperties"), new.get("additionalProperties")
    for name in had:
        if name in has:
            yield from _schema_breaks(had[name], has[name], f"{path}.{name}")
        elif not new.get(UNKNOWN) and not now_more:
            yield f"{path}.{name}: removed"
    for name in sorted(_needed(new) - _needed(old)):
        yield f"{path}.{name}: newly required"
    if isinstance(more, dict) and isinstance(now_more, dict):
        yield from _schema_breaks(more, now_more, f"{path}{{}}")
    elif more and not now_more and not new.get(UNKNOWN):
        yield f"{path}: no longer a map"
    branches = {_tag(branch): branch for branch in old.get("oneOf") or ()}
    if "oneOf" in new and not branches:
        yield f"{path}: is now one of several classes"
        return
    for branch in new.get("oneOf") or ():
        known = branches.get(_tag(branch), branch)
        for name in sorted(set(branch["required"]) - set(known.get("required") or ())):
            yield f"{path}.{name}: newly required in {_tag(branch)}"
        if "not" in branch and "not" not in known:
            yield f"{path}: fields of other classes are no longer accepted in {_tag(branch)}"


def _limit_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    if "enum" in new and "enum" not in old:
        yield f"{path}: only {new['enum']} are accepted now"
    elif gone := [each for each in old.get("enum", ()) if each not in new.get("enum", [each])]:
        yield f"{path}: {', '.join(map(str, gone))} no longer accepted"
    for name, sign in _LIMITS.items():
        if _limit(new, name, sign) > _limit(old, name, sign):
            yield f"{path}: {name} is now {new[name]}"
    step, known_step = new.get("multipleOf"), old.get("multipleOf")
    if step is not None and (known_step is None or known_step % step):
        yield f"{path}: multipleOf is now {step}"
    for name in _SAME:
        if (name in new or name.startswith("x-")) and old.get(name) != new.get(name):
            yield f"{path}: {name} changed from {old.get(name, 'none')} to {new.get(name, 'none')}"


def _limit(schema: Schema, name: str, sign: int) -> tuple[float, bool]:
    """Return a limit so that a tighter one is greater."""
    exclusive = bool(schema.get(f"exclusive{name[0].upper()}{name[1:]}"))
    return (sign * schema[name], exclusive) if name in schema else (-inf, False)


def _needed(schema: Schema) -> set[str]:
    properties = schema.get("properties") or {}
    return {name for name in schema.get("required") or () if "default" not in properties.get(name, {})}


def _tag(branch: Schema) -> str:
    values = [value for each in (branch.get("properties") or {}).values() for value in each.get("enum", ())]
    return ", ".join(map(str, values))


def _kind(schema: Schema) -> str:
    return "int-or-string" if schema.get(INT_OR_STRING) else str(schema.get("type") or "any JSON")
