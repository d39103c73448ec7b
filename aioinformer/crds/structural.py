"""The structural schema of a CustomResourceDefinition, from the JSON Schema of a class.

A structural schema states the type of each value outside of `allOf`, `anyOf`, `oneOf` and `not`, so that the server can
prune and default. Therefore: `null` is `nullable`, a reference is what it refers to, a union of tagged classes is one
object with the fields of all and a `oneOf` of what each requires, and all other unions but int-or-string are refused.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from aioinformer.crds.api_types import API_DESCRIPTION, OF_API
from aioinformer.crds.markers import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, RULES, UNKNOWN, merged
from aioinformer.crds.types import PATTERNS, REFUSED, Schema
from aioinformer.errors import UsageError

#: What the API server adds itself.
_OWN_FIELDS: Final = ("apiVersion", "kind", "metadata")
#: Keywords that are copied. `title` is the class, and examples are not part of a definition.
_COPIED: Final = frozenset(
    {"description", "type", "format", "enum", "multipleOf", "pattern", "default", "nullable", "minimum", "maximum"}
    | {f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")}
)
#: Keywords that a structural schema has not.
_UNSAID: Final = ("patternProperties", "propertyNames", "prefixItems", "not", "if", "contains", "dependentRequired")
#: Of integers, by format.
_BITS: Final = {"int32": 32, "int64": 64}
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
#: Formats of pydantic that no schema of the server can say.
_UNSAID_FORMATS: Final = {
    "password": "a secret does not belong in a resource, which others may read; refer to a Secret by its name",
    "regex": "a schema cannot say that a text is a pattern; use str, and compile it in your code",
}
#: All others are unknown to the server, or mean something else to it, as `duration`.
_FORMATS: Final = ("date-time", "date", "email", "ipv4", "ipv6", "uri", "hostname")
#: No pattern says it. Known to servers since 1.31.
_NETWORK_RULE: Final = {
    "rule": "self.contains('/') ? isCIDR(self) && cidr(self) == cidr(self).masked() : isIP(self)",
    "message": "must not have bits beyond its prefix",
}
#: The server estimates the cost of a rule by the length of the text.
_LONGEST_NETWORK: Final = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")
_KINDS: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}
#: An escaped character, or a class of characters, in which nothing else is special.
_ESCAPED_OR_CLASS: Final = re.compile(r"(\\.)|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
#: What RE2, the library of the API server, does not know, outside of classes.
_NOT_IN_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:=|!|<=|<!|>|\(|P=|#)|\\[1-9ZuU]|[*+?}]\+)")


class _Place(NamedTuple):
    """Where a schema is, for errors: class, field, and the path from the root, ".spec.ports[].name"."""

    owner: str
    field: str = ""
    path: str = ""
    #: Whether any number of values can be here.
    unbounded: bool = False

    def refuse(self, text: str) -> UsageError:
        """Return an error that names class and field."""
        what = f"{self.owner}.{self.field}" if self.field else self.owner
        return UsageError(f"{what}{f' ({self.path})' if self.path not in ('', f'.{self.field}') else ''}: {text}")

    def of(self, owner: str, field: str) -> _Place:
        """Return the place of a field of an object that is here."""
        return _Place(owner, field, f"{self.path}.{field}", self.unbounded)

    def inside(self, part: str = "[]", *, unbounded: bool = False) -> _Place:
        """Return the place of the members of a list or map that is here."""
        return self._replace(path=f"{self.path}{part}", unbounded=self.unbounded or unbounded)


def structural(schema: Schema, root: str, api_descriptions: bool = False) -> Schema:
    """Return the structural schema of the whole object, without what the server adds.

    Args:
        root: the name of the class.
        api_descriptions: describe the fields of types of the API.

    Raises:
        UsageError: the server has no schema for a field; the message names class and field.
    """
    converter = _Converter(schema.get("$defs", {}), api_descriptions)
    whole = converter.resolved(schema)
    fields = {name: each for name, each in whole.get("properties", {}).items() if name not in _OWN_FIELDS}
    required = [name for name in whole.get("required", ()) if name not in _OWN_FIELDS]
    return converter.convert({**whole, "properties": fields, "required": required}, _Place(root))


class _Converter:
    def __init__(self, definitions: dict[str, Schema], api_descriptions: bool) -> None:
        self._definitions = definitions
        self._api_descriptions = api_descriptions
        self._open: list[str] = []

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema without a reference, and with the type of its values, if they are listed."""
        if "$ref" in schema:
            return self.resolved(merged(self._definitions[_target(schema)], _without(schema, "$ref")))
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        kinds = {_KINDS.get(type(each), "any") for each in values if each is not None}
        if not kinds:
            return schema
        kind = {"type": kinds.pop()} if len(kinds) == 1 else {INT_OR_STRING: True}
        return {**kind, **schema, "enum": values}

    def convert(self, schema: Schema, place: _Place) -> Schema:
        """Return the structural form of a schema that is at a place."""
        target = _target(schema)
        if target and target in self._open:
            raise place.refuse(
                f"{self._definitions[target]['title']} contains itself, which a schema cannot say; "
                "make the field dict[str, Any], and convert it in your code"
            )
        self._open.append(target)
        found = self._converted(self.resolved(schema), place)
        self._open.pop()
        if "default" in found:
            found["default"] = _without_null(found["default"])
            if found["default"] in (None, [], {}):
                del found["default"]  # absent means the same
        return found

    def _converted(self, schema: Schema, place: _Place) -> Schema:
        if REFUSED in schema:
            raise place.refuse(schema[REFUSED])
        for name in _UNSAID:
            if name in schema:
                raise place.refuse(f"the API server does not know {name} in a schema; use a class, a map or a rule")
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if options:
            return self._union(options, _without(schema, "anyOf", "oneOf", "allOf"), place)
        found = _copied(schema)
        if self._api_descriptions and API_DESCRIPTION in schema:
            found.setdefault("description", schema[API_DESCRIPTION])
        _convert_scalars(found, schema, place)
        if found.get("type") == "object":
            self._object(found, schema, place)
        elif found.get("type") == "array":
            self._array(found, schema, place)
        elif "type" not in found and INT_OR_STRING not in found:
            found |= {UNKNOWN: True, "nullable": True}
        return found

    def _object(self, found: Schema, schema: Schema, place: _Place) -> None:
        properties = schema.get("properties")
        more = schema.get("additionalProperties")
        if properties is None:
            if isinstance(more, dict) and more:
                members = place.inside("{}", unbounded="maxProperties" not in schema)
                found["additionalProperties"] = _with_null(self.convert(more, members), place)
            else:
                found[UNKNOWN] = True
            return
        if more is True or (isinstance(more, dict) and more):
            found[UNKNOWN] = True
        required = schema.get("required", ())
        found["properties"] = {}
        for name, each in properties.items():
            at = place.of(schema.get("title", place.owner), name)
            inner = self.convert(each, at)
            if name not in required and "default" in each and each["default"] is None:
                inner.pop("nullable", None)  # null means absent, and the server drops it
            found["properties"][name] = _with_null(inner, at)
        if required:
            found["required"] = sorted(required)

    def _array(self, found: Schema, schema: Schema, place: _Place) -> None:
        members = place.inside(unbounded="maxItems" not in schema)
        items = _with_null(self.convert(schema.get("items") or {}, members), place)
        found["items"] = items
        if schema.get("uniqueItems"):
            found.setdefault(LIST_TYPE, "set")
        if found.get(LIST_TYPE) == "set" and items.get("type") in ("object", "array"):
            raise place.refuse("the members of a set must be numbers, texts or booleans; use list_map(…) for objects")
        keys = found.get(LIST_KEYS, ())
        if keys and "properties" not in items:
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

    def _union(self, options: list[Schema], outer: Schema, place: _Place) -> Schema:
        found = [each for each in options if each.get("type") != "null"]
        nullable = {"nullable": True} if len(found) < len(options) else {}
        if len(found) == 1:
            return self.convert(merged(found[0], outer), place) | nullable
        resolved = [self.resolved(each) for each in found]
        kinds = {each.get("type", "any") for each in resolved}
        for each in resolved:
            if REFUSED in each:
                raise place.refuse(each[REFUSED])
        if not all(resolved):
            return self.convert(outer, place) | nullable  # any JSON
        if all("enum" in each for each in resolved):
            values = [value for each in resolved for value in each["enum"]]
            return self.convert(outer | {"enum": values}, place) | nullable
        if kinds == {"integer", "number"}:
            if any(each.keys() - {"type"} for each in resolved):
                raise place.refuse("int | float is a number, of which int cannot have bounds of its own")
            return self.convert(outer | {"type": "number"}, place) | nullable
        if kinds == {"integer", "string"} and len(resolved) == 2:
            both = {name: value for each in resolved for name, value in each.items() if name != "type"}
            if "enum" in both or "format" in both:
                raise place.refuse("int-or-string with values of one of the two only has no schema; add a rule")
            return self.convert(both | {INT_OR_STRING: True} | outer, place) | nullable
        if kinds == {"object"}:
            return self._tagged(found, outer, place) | nullable
        raise place.refuse(
            f"a union of {', '.join(sorted(kinds))} has no schema: the server accepts int | str, a type or None, and "
            "classes with a tag; use one of these, or Any for any JSON"
        )

    def _tagged(self, options: list[Schema], outer: Schema, place: _Place) -> Schema:
        classes = [self.resolved(each) for each in options]
        names = [each.get("title", "a map") for each in classes]
        tags = {(each.get("discriminator") or outer.get("discriminator") or {}).get("propertyName") for each in classes}
        tag = tags.pop() if len(tags) == 1 else None
        if tag is None:
            raise place.refuse(
                f"a union of {', '.join(names)} has no schema, because nothing tells them apart; give them a tag: "
                "Struct(tag=True), or pydantic's Field(discriminator=…)"
            )
        converted = [self.convert(each, place) for each in options]
        properties: Schema = {}
        for name, each in zip(names, converted, strict=True):
            if extensions := [member for member in each if member.startswith("x-kubernetes-")]:
                raise place.refuse(f"a class of a union cannot have {', '.join(extensions)}; put it on the field")
            for field, schema in each["properties"].items():
                known = properties.setdefault(field, _without(schema, "default"))
                if field == tag:
                    known["enum"] = list(dict.fromkeys([*known["enum"], *schema["enum"]]))
                elif _without(known, "description") != _without(schema, "default", "description"):
                    raise place.refuse(
                        f"{field} of {name} has another type than in another class of the union; rename one"
                    )
        branches = []
        for cls, each in zip(classes, converted, strict=True):
            required = sorted({tag, *each.get("required", ())})
            branch: Schema = {"properties": {tag: {"enum": each["properties"][tag]["enum"]}}, "required": required}
            others = sorted(properties.keys() - each["properties"].keys())
            if others and cls.get("additionalProperties") is False:
                branch["not"] = {"anyOf": [{"required": [other]} for other in others]}
            branches.append(branch)
        return {"type": "object", "properties": properties, "required": [tag], "oneOf": branches} | _copied(outer)


def _check_bounds(found: Schema, place: _Place) -> None:
    """Refuse bounds of an integer that are none themselves: with one, the server refuses every number."""
    if found.get("type") != "integer":
        return
    bits = _BITS.get(found.get("format", ""), 64)
    for name in ("minimum", "maximum", "multipleOf"):
        bound = float(found.get(name, 0))  # as the server reads it
        if not bound.is_integer() or not -(2.0 ** (bits - 1)) <= bound < 2.0 ** (bits - 1):
            other = ", or use INT64" if bits == 32 else ""
            raise place.refuse(
                f"{name} {found[name]} is no integer of {bits} bits, so the server would refuse every number; "
                f"choose another one{other}"
            )


def _convert_scalars(found: Schema, schema: Schema, place: _Place) -> None:
    """Convert the keywords of texts and numbers."""
    if None in found.get("enum", ()):
        found |= {"nullable": True, "enum": [each for each in found["enum"] if each is not None]}
    text = "base64" if "contentEncoding" in schema else found.get("format")
    if found.get("type") == "string" and text is not None:
        found.pop("format", None)
        if text in _UNSAID_FORMATS:
            raise place.refuse(_UNSAID_FORMATS[text])
        if pattern := PATTERNS.get(text):
            found.setdefault("pattern", pattern)
        if text.endswith("network"):
            _add_rule_of_network(found, place)
        if OF_API in schema:
            found["format"] = text
        elif text in _FORMATS:
            found["format"] = text
            # With a format, the server accepts any array as a string. Limits of arrays do not concern strings.
            found |= {"minItems": 1, "maxItems": 0}
    if schema.get("contentMediaType") == "application/json":
        raise place.refuse("a schema cannot say that a text is JSON; use str, or Any for any JSON")
    for exclusive, bound in _EXCLUSIVE.items():
        limit = schema.get(exclusive)
        if limit is not None and limit is not False:
            if bound in found:
                raise place.refuse(f"it has both {bound} and {exclusive}; leave one out")
            found |= {bound: limit, exclusive: True}
    _check_bounds(found, place)
    plain = _ESCAPED_OR_CLASS.sub(lambda each: each[1] or "[]", found.get("pattern", ""))
    if unknown := _NOT_IN_RE2.search(plain):
        raise place.refuse(
            f"the API server does not know {unknown[0]!r} of the pattern {found['pattern']!r}; it has the syntax of RE2"
        )


def _add_rule_of_network(found: Schema, place: _Place) -> None:
    """Refuse bits beyond the prefix, as the class does."""
    if place.unbounded:
        raise place.refuse(
            "the server checks a network by a rule, and accepts no rule for any number of values; limit the list or "
            "map around it, Field(max_length=1000), or use an interface, such as IPv4Interface, and its .network"
        )
    found.setdefault("maxLength", _LONGEST_NETWORK)
    found[RULES] = [*found.get(RULES, ()), dict(_NETWORK_RULE)]


def _target(schema: Schema) -> str:
    """Return the definition that a schema refers to, "" if it does not."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _without(schema: Schema, *names: str) -> Schema:
    return {name: value for name, value in schema.items() if name not in names}


def _copied(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name in _COPIED or name.startswith("x-kubernetes-")}


def _with_null(schema: Schema, place: _Place) -> Schema:
    """Return a schema that accepts null if it is nullable: the server refuses null for each `enum`."""
    if not (schema.get("nullable") and "enum" in schema):
        return schema
    if schema.get("type") != "string" or "pattern" in schema:
        raise place.refuse("one of some numbers or None has no schema; give it the default None, which null then means")
    values = "|".join(map(re.escape, schema["enum"]))
    return _without(schema, "enum") | {"pattern": f"^({values})$"}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(each) for name, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [_without_null(each) for each in value]
    return value


#: A step of a JSON path: `.name`, `['name']`, or what selects members of a list.
_STEP: Final = re.compile(r"\.(?P<name>[\w-]+)|\['(?P<quoted>[^']+)'\]|(?P<members>\[[^]]*\])")


def find(schema: Schema, path: str) -> Schema | None:
    """Return the schema at a path such as ".status.conditions[*].type"; {} if it is unknown, None if there is none."""
    steps = list(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path:
        return None
    for step in steps:
        name = step["name"] or step["quoted"]
        if step["members"] and "items" in schema:
            schema = schema["items"]
        elif name in schema.get("properties", {}):
            schema = schema["properties"][name]
        elif name and "additionalProperties" in schema:
            schema = schema["additionalProperties"]
        else:
            return {} if schema.get(UNKNOWN) or schema.get(EMBEDDED) else None
    return schema
