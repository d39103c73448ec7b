"""`aioinformer crd --compatible-with`: what breaks stored objects or clients, and what does not."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from aioinformer.cli.projects.compatibility import breaks

UNKNOWN, EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
LIST, MAP, RULES = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations"
INT, TEXT, FREE = {"type": "integer"}, {"type": "string"}, {"type": "object", UNKNOWN: True}


def of(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


#: Conditions that are written by hand: none of the branches is a class with a tag.
EITHER = {**of(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
ADDRESS: dict[str, Any] = {
    **of(type=TEXT, value=TEXT),
    "oneOf": [
        {"properties": {"type": {"enum": ["IP"]}, "value": {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}}},
        {"properties": {"type": {"not": {"enum": ["IP"]}}}},
    ],
}


def mapped(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def many(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def ruled(*rules: str) -> dict[str, Any]:
    return {**INT, RULES: [{"rule": rule} for rule in rules]}


def version(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": of(spec=schema)}, **more}


def definition(*versions: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = {"kind": "Thing", "plural": "things"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions), **more}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


def of_field(old: Any, new: Any) -> list[str]:
    """Return the lines about a field, without its path, with "" for the field itself."""
    before, after = (definition(version("v1", of(a=each), storage=True)) for each in (old, new))
    return [line.removeprefix("versions.v1.spec.a") for line in breaks(before, after)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({**INT, "default": 3}, {**INT, "default": 5}, ": default changed from 3 to 5: objects that do not state it"),
        ({**INT, "default": 3}, INT, ": default removed: objects that do not state it change"),
        (of(b=TEXT), mapped(INT), ".b: type narrowed from string to integer"),
        (mapped(TEXT), {**of(b=INT), UNKNOWN: True}, ".b: type narrowed from string to integer"),
        (mapped(of(b=TEXT)), mapped(of(b=INT)), "{}.b: type narrowed from string to integer"),
        ({UNKNOWN: True}, TEXT, ": type narrowed from any JSON to string"),
        (FREE, {**FREE, "properties": {"b": INT}}, ".b: type narrowed from any JSON to integer"),
        (FREE, of(), ": unknown fields are no longer kept"),
        (FREE, {**FREE, EMBEDDED: True}, ": is now an embedded object, which needs apiVersion and kind"),
        (many(INT), many(INT, **{LIST: "set"}), f": {LIST} changed from atomic to set"),
        (of(), {**of(), MAP: "atomic"}, f": {MAP} changed from granular to atomic"),
        (TEXT, {**TEXT, "minLength": 1}, ": minLength is now 1"),
        (many(INT), many(INT, minItems=1), ": minItems is now 1"),
        (INT, {**INT, "minimum": 0}, ": minimum is now 0"),
        ({"type": "number"}, {"type": "number", "multipleOf": 0.1}, ": multipleOf is now 0.1"),
        (
            {"type": "number", "multipleOf": 0.1},
            {"type": "number", "multipleOf": 0.3},
            ": multipleOf is now 0.3",
        ),
        (ruled("self > 1"), ruled("self > 2"), ": rule 'self > 2' is new"),
        (ruled("self == 'a b'"), ruled("self == 'ab'"), ": rule \"self == 'ab'\" is new"),
        (TEXT, {**TEXT, "not": {"enum": ["a"]}}, ": has new conditions in not"),
        (EITHER, {**EITHER, "oneOf": [{"required": ["b"]}]}, ": has new conditions in oneOf"),
        (ADDRESS, {**ADDRESS, "oneOf": ADDRESS["oneOf"][:1]}, ": has new conditions in oneOf"),
        (many(of(b=TEXT)), many(of()), "[].b: removed"),
    ],
)
def test_break_is_named(old: Any, new: Any, told: str) -> None:
    (line,) = of_field(old, new)
    assert line.startswith(told)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (many(INT, **{LIST: "atomic"}), many(INT)),
        (many(INT), many(INT, **{LIST: "atomic"})),
        ({**of(b=INT), MAP: "granular"}, of(b=INT)),
        (of(b=INT), {**of(b=INT), MAP: "granular"}),
        (TEXT, {**TEXT, "minLength": 0}),
        (many(INT), many(INT, minItems=0)),
        (mapped(INT), {**mapped(INT), "minProperties": 0}),
        ({**TEXT, "format": "date-time"}, {**TEXT, "format": "date-time", "minItems": 1, "maxItems": 0}),
        ({"type": "number", "multipleOf": 0.3}, {"type": "number", "multipleOf": 0.1}),
        ({**INT, "multipleOf": 6}, {**INT, "multipleOf": 3}),
        (ruled("self.a>1&&self.b in [1,2]"), ruled(" self.a > 1 &&\n  self.b in [1, 2]")),
        (ruled("self == 'a  b'", "x"), ruled("self=='a  b'")),
        (INT, {**INT, "default": 3}),
        (of(b=INT), mapped(INT)),
        (of(b=INT), {**of(b=INT), UNKNOWN: True}),
        (mapped(INT), {**mapped(INT), UNKNOWN: True}),
        (FREE, {**FREE, "properties": {"b": {UNKNOWN: True}}}),
        ({**FREE, EMBEDDED: True}, FREE),
        (TEXT, {"x-kubernetes-int-or-string": True, "anyOf": [INT, TEXT]}),
        (EITHER, {**EITHER, "description": "As kyverno writes it."}),
        (ADDRESS, {**ADDRESS, "description": "As Gateways write it."}),
        (ADDRESS, of(type=TEXT, value=TEXT)),
    ],
)
def test_no_break_is_named_without_one(old: Any, new: Any) -> None:
    assert of_field(old, new) == []
    assert of_field(new, deepcopy(new)) == []


SCALE = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a", "labelSelectorPath": ".status.b"}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("specReplicasPath", ".spec.b", "specReplicasPath of the subresource scale changed from .spec.a to .spec.b"),
        ("statusReplicasPath", ".spec.a", "statusReplicasPath of the subresource scale changed from .status.a to"),
        ("labelSelectorPath", None, "labelSelectorPath of the subresource scale changed from .status.b to none"),
    ],
)
def test_changed_path_of_scale_breaks(name: str, value: Any, told: str) -> None:
    other = {key: path for key, path in {**SCALE, name: value}.items() if path}
    before, after = (definition(version("v1", INT, subresources={"scale": each})) for each in (SCALE, other))
    (line,) = breaks(before, after)
    assert line.startswith(f"versions.v1: {told}")


def moved(stored: Any, now: Any, **more: Any) -> list[str]:
    old, new = version("v1beta1", stored), version("v1", now)
    before = definition({**old, "storage": True}, new, **more)
    return breaks(before, definition(old, {**new, "storage": True}, **more))


def test_moved_storage_names_what_is_lost() -> None:
    start = "versions.v1: storage moved from v1beta1: "
    assert moved(of(a=INT, b=TEXT, c=many(of(d=INT))), of(a=TEXT, c=many(of()))) == [
        f"{start}spec.a is stored as integer, and string there; spec.b is lost; spec.c[].d is lost"
    ]
    assert moved(of(a=INT), of(a=INT, b=INT)) == [
        f"{start}objects are stored in both until each is written again, so v1beta1 must stay"
    ]
    converted = {"conversion": {"strategy": "Webhook", "webhook": {}}}
    assert moved(of(a=INT), of(b=INT), **converted) == []  # converted when they are read


def test_removed_conversion_breaks() -> None:
    before = definition(version("v1", INT), conversion={"strategy": "Webhook", "webhook": {}})
    told = "conversion: Webhook removed: objects of the other versions are no longer converted"
    assert breaks(before, definition(version("v1", INT))) == [told]
    assert breaks(definition(version("v1", INT)), definition(version("v1", INT), conversion={"strategy": "None"})) == []
