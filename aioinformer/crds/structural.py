"""The structural schema of a CustomResourceDefinition, from the JSON Schema of a class.

A structural schema states the type of each value outside of `allOf`, `anyOf`, `oneOf` and `not`, so that the server can
prune and default. Therefore: `null` is `nullable`, a reference is what it refers to, a union of tagged classes is one
object with the fields of all and a `oneOf` of what each requires, and all other unions but int-or-string are refused.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from aioinformer.crds.markers import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, UNKNOWN, merged
from aioinformer.crds.types import BASE64, DATE, DATE_TIME, UUID, Place, Schema, check_pattern

#: Keywords that are copied. `title` is the class, and examples are not part of a definition.
_COPIED: Final = frozenset(
    {"description", "type", "format", "enum", "multipleOf", "pattern", "default", "nullable", "minimum", "maximum"}
    | {f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")}
)
_UNSAID: Final = {
    "patternProperties": "properties by pattern; use a map",
    "propertyNames": "constraints on the keys of a map; add a rule",
    "prefixItems": "a type for each position of a list; use a class",
    "not": "`not`; add a rule",
    "if": "`if`; add a rule",
    "contains": "`contains`; add a rule",
    "dependentRequired": "`dependentRequired`; add a rule",
}
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
#: The server's own check of these formats is more lenient than a class, or refuses what a class accepts.
_PATTERNS: Final = {"base64": BASE64, "base64url": BASE64, "binary": BASE64, "byte": BASE64} | {
    "date-time": DATE_TIME,
    "date": DATE,
    "uuid": UUID,
}
#: All others are unknown to the server, or mean something else to it, as `duration`.
_FORMATS: Final = ("date-time", "date", "email", "ipv4", "ipv6", "uri", "hostname")


def structural(schema: Schema, root: str) -> Schema:
    """Return the structural schema of the whole object.

    Args:
        schema: of the class, by `schema_of`.
        root: name of the class, for errors.

    Raises:
        UsageError: the server has no schema for a field; the message names class and field.
    """
    return _Converter(schema.get("$defs", {})).convert(schema, Place(root))


class _Converter:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._open: list[str] = []

    def convert(self, schema: Schema, place: Place) -> Schema:
        """Return the structural form of a schema that is at a place."""
        found = self._converted(schema, place)
        if "default" in found:
            found["default"] = _without_null(found["default"])
            if found["default"] in (None, [], {}):
                del found["default"]  # absent means the same
        return found

    def _converted(self, schema: Schema, place: Place) -> Schema:
        reference = schema.get("$ref", "").rpartition("/")[2]
        if reference:
            if reference in self._open:
                raise place.refuse(
                    f"{reference} contains itself, which a schema cannot say; "
                    "make the field dict[str, Any], and convert it in your code"
                )
            self._open.append(reference)
            siblings = {name: value for name, value in schema.items() if name != "$ref"}
            found = self.convert(merged(self._definitions[reference], siblings), place)
            self._open.pop()
            return found
        for name, text in _UNSAID.items():
            if name in schema:
                raise place.refuse(f"the API server has no schema for {text}")
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if options:
            outer = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf", "allOf")}
            return self._union(options, outer, place)
        found = {name: value for name, value in schema.items() if name in _COPIED or name.startswith("x-kubernetes-")}
        self._scalars(found, schema, place)
        if found.get("type") == "object":
            self._object(found, schema, place)
        elif found.get("type") == "array":
            self._array(found, schema, place)
        elif "type" not in found and INT_OR_STRING not in found:
            found |= {UNKNOWN: True, "nullable": True}
        return found

    def _scalars(self, found: Schema, schema: Schema, place: Place) -> None:
        if "const" in schema:
            found["enum"] = [schema["const"]]
        if "enum" in found:
            found.setdefault("type", "integer" if all(isinstance(each, int) for each in found["enum"]) else "string")
            if None in found["enum"]:
                found |= {"nullable": True, "enum": [each for each in found["enum"] if each is not None]}
            if INT_OR_STRING in found:
                del found["type"]
        text = "base64" if "contentEncoding" in schema else found.get("format")
        if found.get("type") == "string" and text is not None:
            found.pop("format", None)
            if text in _PATTERNS:
                found.setdefault("pattern", _PATTERNS[text])
            if text in _FORMATS:
                # With a format, the server accepts any array as a string. Limits of arrays do not concern strings.
                found |= {"format": text, "minItems": 1, "maxItems": 0}
        for exclusive, bound in _EXCLUSIVE.items():
            limit = schema.get(exclusive)
            if limit is not None and limit is not False:
                if bound in found:
                    raise place.refuse(f"it has both {bound} and {exclusive}; leave one out")
                found |= {bound: limit, exclusive: True}
        for name in ("minimum", "maximum", "multipleOf"):
            if isinstance(found.get(name), float) and not math.isfinite(found[name]):
                raise place.refuse(f"{name} is no finite number")
        if "pattern" in found:
            check_pattern(found["pattern"], place)

    def _object(self, found: Schema, schema: Schema, place: Place) -> None:
        owner = schema.get("title", place.owner)
        properties = schema.get("properties")
        more = schema.get("additionalProperties")
        if properties is None:
            if isinstance(more, dict) and more:
                found["additionalProperties"] = _with_null(self.convert(more, place.inside("{}")), place)
            else:
                found[UNKNOWN] = True
            return
        if more is True or (isinstance(more, dict) and more):
            found[UNKNOWN] = True
        required = list(schema.get("required", ()))
        converted = {}
        for name, each in properties.items():
            inner = self.convert(each, place.of(owner, name))
            if name not in required and "default" in each and each["default"] is None:
                inner.pop("nullable", None)  # null means absent, and the server drops it
            converted[name] = _with_null(inner, place.of(owner, name))
        found["properties"] = converted
        if required:
            found["required"] = sorted(required)

    def _array(self, found: Schema, schema: Schema, place: Place) -> None:
        found["items"] = items = _with_null(self.convert(schema.get("items") or {}, place.inside()), place)
        if schema.get("uniqueItems"):
            found.setdefault(LIST_TYPE, "set")
        if found.get(LIST_TYPE) == "set" and items.get("type") in ("object", "array"):
            raise place.refuse("the members of a set must be numbers, texts or booleans; use list_map(…) for objects")
        keys = found.get(LIST_KEYS)
        if keys is None:
            return
        if items.get("type") != "object" or "properties" not in items:
            raise place.refuse("list_map() is for lists of objects; use LIST_SET for values")
        for key in keys:
            member = items["properties"].get(key)
            if member is None:
                raise place.refuse(f"list_map({key!r}): its members have no such field")
            if member.get("type") in ("object", "array", None):
                raise place.refuse(f"list_map({key!r}): a key must be a number, a text or a boolean")
            if "default" not in member and key not in items.get("required", ()):
                items["required"] = sorted([*items.get("required", ()), key])
            member.pop("nullable", None)

    def _union(self, options: list[Schema], outer: Schema, place: Place) -> Schema:
        found = [each for each in options if each.get("type") != "null"]
        nullable = {"nullable": True} if len(found) < len(options) else {}
        if len(found) == 1:
            return self.convert(merged(found[0], outer), place) | nullable
        resolved = [self._resolved(each) for each in found]
        kinds = {each.get("type", "any") for each in resolved}
        if any(not each for each in resolved):
            return self.convert(outer, place) | nullable  # any JSON
        if all("enum" in each or "const" in each for each in resolved):
            values = [value for each in resolved for value in each.get("enum", [each.get("const")])]
            kind: Schema = {"type": kinds.pop()} if len(kinds) == 1 else {INT_OR_STRING: True}
            return self.convert(outer | kind | {"enum": values}, place) | nullable
        if kinds <= {"integer", "number"} and len(kinds) == 2:
            bounded = [each for each in resolved if each.keys() - {"type"}]
            if not bounded:
                return self.convert(outer | {"type": "number"}, place) | nullable
            raise place.refuse("int | float is a number, of which int cannot have bounds of its own")
        if kinds == {"integer", "string"} and len(resolved) == 2:
            both = {name: value for each in resolved for name, value in each.items() if name != "type"}
            if "enum" in both or "format" in both:
                raise place.refuse("int-or-string with values of one of the two only has no schema; add a rule")
            return self.convert(both | {INT_OR_STRING: True} | outer, place) | nullable
        if kinds == {"object"}:
            return self._tagged(resolved, outer, place) | nullable
        raise place.refuse(
            f"a union of {', '.join(sorted(kinds))} has no schema: the server accepts int | str, a type or None, and "
            "classes with a tag; use one of these, or Any for any JSON"
        )

    def _resolved(self, schema: Schema) -> Schema:
        return self._definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def _tagged(self, options: list[Schema], outer: Schema, place: Place) -> Schema:
        names = [each.get("title", "a map") for each in options]
        tags = {(each.get("discriminator") or outer.get("discriminator") or {}).get("propertyName") for each in options}
        tag = tags.pop() if len(tags) == 1 else None
        if tag is None:
            raise place.refuse(
                f"a union of {', '.join(names)} has no schema, because nothing tells them apart; give them a tag: "
                "Struct(tag=True), or pydantic's Field(discriminator=…)"
            )
        converted = [self.convert(each, place) for each in options]
        properties: Schema = {}
        for name, each in zip(names, converted, strict=True):
            for field, schema in each["properties"].items():
                plain = {key: value for key, value in schema.items() if key not in ("default", "description")}
                if field == tag:
                    known = properties.setdefault(tag, {**plain, "enum": []})
                    known["enum"] = [*known["enum"], *plain["enum"]]
                elif properties.setdefault(field, {**plain, **_texts(schema)}) | _texts(schema) != plain | _texts(
                    schema
                ):
                    raise place.refuse(
                        f"{field} of {name} has another type than in another class of the union; rename one"
                    )
        branches = []
        for option, each in zip(options, converted, strict=True):
            required = sorted({tag, *each.get("required", ())})
            branch: Schema = {"properties": {tag: {"enum": each["properties"][tag]["enum"]}}, "required": required}
            others = sorted(properties.keys() - each["properties"].keys())
            if others and (option.get("closed") or option.get("additionalProperties") is False):
                branch["not"] = {"anyOf": [{"required": [other]} for other in others]}
            branches.append(branch)
        kept = {name: value for name, value in outer.items() if name in _COPIED or name.startswith("x-kubernetes-")}
        for each in converted:
            if extensions := [name for name in each if name.startswith("x-kubernetes-")]:
                raise place.refuse(f"a class of a union cannot have {', '.join(extensions)}; put it on the field")
        return {"type": "object", "properties": properties, "required": [tag], "oneOf": branches} | kept


def _with_null(schema: Schema, place: Place) -> Schema:
    """Return a schema that accepts null if it is nullable: the server refuses null for each `enum`."""
    if not (schema.get("nullable") and "enum" in schema):
        return schema
    if schema.get("type") != "string" or "pattern" in schema:
        raise place.refuse("one of some numbers or None has no schema; give it the default None, which null then means")
    values = "|".join(map(re.escape, schema["enum"]))
    return {name: each for name, each in schema.items() if name != "enum"} | {"pattern": f"^({values})$"}


def _texts(schema: Schema) -> Schema:
    return {"description": schema["description"]} if "description" in schema else {}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(each) for name, each in value.items() if each is not None}
    return [_without_null(each) for each in value] if isinstance(value, (list, tuple)) else value


#: A step of a JSON path: `.name`, `['name']`, or what selects members of a list.
_STEP: Final = re.compile(r"\.(?P<name>[\w-]+)|\['(?P<quoted>[^']+)'\]|(?P<members>\[[^]]*\])")


def find(schema: Schema, path: str) -> Schema | None:
    """Return the schema at a path such as ".spec.size" or ".status.conditions[*].type"; {} if it is unknown there.

    Returns:
        None if the class has no such field, or the path does not parse.
    """
    position, here = 0, schema
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        name = step["name"] or step["quoted"]
        if "properties" in here and name in here["properties"]:
            here = here["properties"][name]
        elif "additionalProperties" in here and name:
            here = here["additionalProperties"]
        elif "items" in here and step["members"]:
            here = here["items"]
        else:
            return {} if here.get(UNKNOWN) or here.get(EMBEDDED) else None
    return here
