"""`aioinformer crd --compatible-with`: what a definition breaks that replaces another one.

Stored objects must stay valid and readable, lose nothing, and keep their meaning; what clients send must be accepted.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import reduce
from math import inf
from operator import getitem
from typing import TYPE_CHECKING, Any, Final

from aioinformer.crds.agreement import ANY, disagreements, field_of, type_of_schema
from aioinformer.crds.markers import EMBEDDED, LIST_KEYS, LIST_TYPE, MAP_TYPE, RULES, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.crds.types import Schema

#: Limits by the type of the values, with 1 for those that a greater value narrows, and -1 for those that a smaller one
#: does. Those of other types do not concern the values.
_LIMITS: Final = {
    "integer": {"minimum": 1, "maximum": -1},
    "number": {"minimum": 1, "maximum": -1},
    "string": {"minLength": 1, "maxLength": -1},
    "array": {"minItems": 1, "maxItems": -1},
    "object": {"minProperties": 1, "maxProperties": -1},
}
_LIMITS_OF_BOTH: Final = _LIMITS["integer"] | _LIMITS["string"]
_SAME: Final = ("pattern", "format", LIST_TYPE, LIST_KEYS, MAP_TYPE)
#: What the server does without these keywords.
_IMPLIED: Final = {("array", LIST_TYPE): "atomic", ("object", MAP_TYPE): "granular"}
_WIDER: Final = (("integer", "number"), ("integer", "int-or-string"), ("string", "int-or-string"))
#: Conditions of others than classes of a union, which are in `oneOf`.
_CONDITIONS: Final = ("allOf", "anyOf", "not")
#: A text in CEL, or blanks outside of texts.
_TEXT_OR_BLANKS: Final = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\s+""", re.DOTALL)
_NEEDLESS_BLANK: Final = re.compile(r"(?<!\w) | (?!\w)")


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the changes from one definition to another that break stored objects or clients, a line each."""
    before = old["spec"]
    after = new["spec"]
    return [
        *_name_breaks(before, after),
        *_conversion_breaks(before, after),
        *_storage_breaks(before, after),
        *_version_breaks(before, after),
    ]


def _name_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for parts in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        was = reduce(getitem, parts, before)
        now = reduce(getitem, parts, after)
        if was != now:
            yield f"{'.'.join(parts)}: changed from {was} to {now}: it is another resource"
    for each in ("shortNames", "categories"):
        if gone := set(before["names"].get(each) or ()) - set(after["names"].get(each) or ()):
            yield f"names.{each}: {', '.join(sorted(gone))} removed"


def _conversion_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    was, now = ((each.get("conversion") or {}).get("strategy", "None") for each in (before, after))
    if was != "None" and now == "None":
        yield f"conversion: {was} removed: objects of the other versions are no longer converted"


def _storage_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    was, now = (next((each for each in spec["versions"] if each.get("storage")), None) for spec in (before, after))
    names = [each["name"] for each in after["versions"]]
    if was is None or now is None or was["name"] == now["name"] or was["name"] not in names:
        return
    if (after.get("conversion") or {}).get("strategy", "None") != "None":
        return  # what is stored is converted when it is read
    lost = []
    for path, stored, kept in disagreements(_schema(was), _schema(now)):
        if stored and not kept:
            lost.append(f"{path} is lost")
        elif stored:
            lost.append(f"{path} is stored as {stored}, and {kept} there")
    what = "; ".join(lost) or f"objects are stored in both until each is written again, so {was['name']} must stay"
    yield f"versions.{now['name']}: storage moved from {was['name']}: {what}"


def _version_breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    now = {each["name"]: each for each in after["versions"]}
    for was in before["versions"]:
        name = was["name"]
        path = f"versions.{was['name']}"
        each = now.get(name)
        if each is None:
            stored = "; objects may be stored in it" if was.get("storage") else ""
            yield f"{path}: removed{stored}"
            continue
        if was.get("served") and not each["served"]:
            yield f"{path}: no longer served"
        yield from _subresource_breaks(was.get("subresources") or {}, each.get("subresources") or {}, path)
        selectable = [[one["jsonPath"] for one in version.get("selectableFields") or ()] for version in (was, each)]
        for gone in sorted(set(selectable[0]) - set(selectable[1])):
            yield f"{path}: {gone} is no longer selectable"
        yield from _schema_breaks(_schema(was), _schema(each), path)


def _subresource_breaks(had: dict[str, Any], has: dict[str, Any], path: str) -> Iterator[str]:
    for subresource in sorted(had.keys() - has.keys()):
        yield f"{path}: subresource {subresource} removed"
    if "status" in has.keys() - had.keys():
        yield f"{path}: subresource status added: clients that write the status with the object no longer change it"
    if "scale" in had and "scale" in has:
        for name, was in sorted(had["scale"].items()):
            now = has["scale"].get(name)
            if was != now:
                yield f"{path}: {name} of the subresource scale changed from {was} to {now or 'none'}"


def _schema(version: dict[str, Any]) -> Schema:
    found: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {UNKNOWN: True}
    return found


def _schema_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    was = type_of_schema(old)
    now = type_of_schema(new)
    if was != now and now != ANY and (was, now) not in _WIDER:
        yield f"{path}: type narrowed from {was} to {now}"
        return
    yield from _value_breaks(old, new, path)
    yield from _limit_breaks(old, new, path)
    if "items" in old and "items" in new:
        yield from _schema_breaks(old["items"], new["items"], f"{path}[]")
    if was == now == "object":
        yield from _field_breaks(old, new, path)


def _value_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    if "default" in old and old["default"] != new.get("default"):
        if "default" in new:
            what = f"changed from {old['default']!r} to {new['default']!r}"
        else:
            what = "removed"
        yield f"{path}: default {what}: objects that do not state it change"
    known = [_without_blanks(each["rule"]) for each in old.get(RULES) or ()]
    for each in new.get(RULES) or ():
        if _without_blanks(each["rule"]) not in known:
            yield f"{path}: rule {each['rule']!r} is new"
    if old.get("nullable") and not new.get("nullable"):
        yield f"{path}: null is no longer accepted"
    if old.get(UNKNOWN) and not new.get(UNKNOWN):
        yield f"{path}: unknown fields are no longer kept"
    if new.get(EMBEDDED) and not old.get(EMBEDDED):
        yield f"{path}: is now an embedded object, which needs apiVersion and kind"
    for name in _CONDITIONS:
        if name in new and old.get(name) != new[name] and type_of_schema(new) != "int-or-string":
            yield f"{path}: has new conditions in {name}"


def _without_blanks(rule: str) -> str:
    """Return a CEL expression without blanks that mean nothing."""
    texts: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return " "
        texts.append(match[1])
        return f'"{len(texts) - 1}"'

    plain = _NEEDLESS_BLANK.sub("", _TEXT_OR_BLANKS.sub(replaced, rule.strip()))
    return re.sub(r'"(\d+)"', lambda match: texts[int(match[1])], plain)


def _field_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    had = old.get("properties") or {}
    has = new.get("properties") or {}
    more = old.get("additionalProperties")
    now_more = new.get("additionalProperties")
    for name in had:
        now = field_of(new, name)
        if now is None:
            yield f"{path}.{name}: removed"
        else:
            yield from _schema_breaks(had[name], now, f"{path}.{name}")
    for name in sorted(has.keys() - had.keys()):
        # Without a type of its own, it had that of the map, or any.
        if (was := field_of(old, name)) is not None:
            yield from _schema_breaks(was, has[name], f"{path}.{name}")
    for name in sorted(_needed(new) - _needed(old)):
        yield f"{path}.{name}: newly required"
    if isinstance(more, dict) and isinstance(now_more, dict):
        yield from _schema_breaks(more, now_more, f"{path}{{}}")
    elif more and not now_more and not new.get(UNKNOWN):
        yield f"{path}: no longer a map"
    elif isinstance(now_more, dict) and old.get(UNKNOWN):
        yield from _schema_breaks({UNKNOWN: True}, now_more, f"{path}{{}}")
    yield from _class_breaks(old, new, path)


def _class_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    branches = {_tag(branch): branch for branch in old.get("oneOf") or ()}
    if "oneOf" in new and not branches:
        yield f"{path}: is now one of several classes"
        return
    if not all(branch.get("required") and _tag(branch) for branch in (new.get("oneOf") or ())):
        # Written by hand: what its branches have in common is not known.
        if old.get("oneOf") != new["oneOf"]:
            yield f"{path}: has new conditions in oneOf"
        return
    for branch in new.get("oneOf") or ():
        known = branches.get(_tag(branch), branch)
        for name in sorted(set(branch["required"]) - set(known.get("required") or ())):
            yield f"{path}.{name}: newly required in {_tag(branch)}"
        if "not" in branch and "not" not in known:
            yield f"{path}: fields of other classes are no longer accepted in {_tag(branch)}"


def _limit_breaks(old: Schema, new: Schema, path: str) -> Iterator[str]:
    kind = type_of_schema(old)
    if "enum" in new and "enum" not in old:
        yield f"{path}: only {new['enum']} are accepted now"
    elif gone := [each for each in old.get("enum", ()) if each not in new.get("enum", [each])]:
        yield f"{path}: {', '.join(map(str, gone))} no longer accepted"
    for name, sign in _LIMITS_OF_BOTH.items() if kind == "int-or-string" else _LIMITS.get(kind, {}).items():
        if _limit(new, name, sign) > _limit(old, name, sign):
            yield f"{path}: {name} is now {new[name]}"
    step, known_step = (_exact(schema.get("multipleOf")) for schema in (new, old))
    if step is not None and (known_step is None or known_step % step):
        yield f"{path}: multipleOf is now {new['multipleOf']}"
    for name in _SAME:
        was, now = (schema.get(name, _IMPLIED.get((kind, name))) for schema in (old, new))
        if (now is not None or name.startswith("x-")) and was != now:
            yield f"{path}: {name} changed from {was or 'none'} to {now or 'none'}"


def _exact(step: float | None) -> Fraction | None:
    """Return a number as its decimals say it: 0.3 is a multiple of 0.1."""
    return None if step is None else Fraction(str(step))


def _limit(schema: Schema, name: str, sign: int) -> tuple[float, bool]:
    """Return a limit so that a tighter one is greater. What counts members is at least 0."""
    if name not in schema:
        return (0 if sign > 0 and name != "minimum" else -inf), False
    return sign * schema[name], bool(schema.get(f"exclusive{name[0].upper()}{name[1:]}"))


def _needed(schema: Schema) -> set[str]:
    properties = schema.get("properties") or {}
    return {name for name in schema.get("required") or () if "default" not in properties.get(name, {})}


def _tag(branch: Schema) -> str:
    values = [value for each in (branch.get("properties") or {}).values() for value in each.get("enum", ())]
    return ", ".join(map(str, values))
