"""Rules in CEL: what objects are refused for, which definitions are, and what the functions of the language give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import DEFINITIONS
from tests.contract.rules import SAMPLE, SAMPLE_SCHEMA, TRUE, WITHOUT_A_VALUE
from tests.contract.tables import variants
from tests.contract.talk import APPLY, JSON_PATCH, MERGE_PATCH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.talk import Answer, Talk

RULES = "x-kubernetes-validations"
INTEGER = {"type": "integer"}
TEXT = {"type": "string", "maxLength": 64}
MANY = {"maxItems": 16}


def ruled(schema: dict[str, Any], *rules: dict[str, Any] | str) -> dict[str, Any]:
    """A schema with rules."""
    return schema | {RULES: [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def keyed(**properties: Any) -> dict[str, Any]:
    """What items of a list that is a map are."""
    return fields(name=TEXT, **properties) | {"required": ["name"]}


def items(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": schema, **MANY, **more}


@pytest.fixture(autouse=True)
async def clean(talk: Talk) -> AsyncIterator[None]:
    """Takes the definition of the row away again: it lies outside of its namespace."""
    yield
    await talk("DELETE", f"{DEFINITIONS}/widgets.{talk.namespace}.example.com", kept=False)


def definition(talk: Talk, schema: dict[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """A definition of widgets.

    Args:
        schema: of their spec.
        whole: whether the schema is that of widgets.
    """
    told = schema if whole else fields(spec=schema)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": told}}
    group = f"{talk.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": [version | {"subresources": {"status": {}}}],
    }
    return {"metadata": {"name": f"widgets.{group}"}, "spec": spec}


async def defined(talk: Talk, schema: dict[str, Any], *, whole: bool = False) -> str:
    """Serves widgets, and gives where they are."""
    await talk.made(DEFINITIONS, definition(talk, schema, whole=whole))
    path = f"/apis/{talk.namespace}.example.com/v1/namespaces/{{ns}}/widgets"
    await talk.until(path, lambda answer: answer.status == 200, kept=False)
    return path


def widget(talk: Talk, spec: Any, **more: Any) -> dict[str, Any]:
    named = {"apiVersion": f"{talk.namespace}.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    return named | {"spec": spec} | more


def said(body: Any) -> Any:
    """What the recording has: refusals, and of objects what they say."""
    return body if body["kind"] == "Status" else body["spec"]


ROUTE = fields(
    matches=items(
        fields(
            type=TEXT,
            value=TEXT,
            headers=items(fields(name=TEXT, value=TEXT), **{"x-kubernetes-list-type": "atomic"}),
        )
    ),
    filters=items(
        fields(type={**TEXT, "enum": ["Redirect", "Rewrite"]}, redirect=fields(port=INTEGER), rewrite=fields())
    ),
    rules=items(fields(name=TEXT)),
)
GOOD_ROUTE: dict[str, Any] = {
    "matches": [{"type": "PathPrefix", "value": "/a/b", "headers": [{"name": "x", "value": "y"}]}],
    "filters": [{"type": "Redirect", "redirect": {"port": 80}}],
    "rules": [{"name": "a"}, {"name": "b"}],
}


def _route() -> dict[str, Any]:
    """Rules as routes of gateways have them."""
    match = ROUTE["properties"]["matches"]["items"]
    match = ruled(
        match,
        {
            "rule": "(self.type in ['Exact', 'PathPrefix']) ? self.value.startsWith('/') : true",
            "message": "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']",
        },
        {
            "rule": "(self.type in ['Exact', 'PathPrefix']) ? !self.value.contains('//') : true",
            "message": "must not contain '//'",
        },
        {"rule": 'self.value.matches(r"^(?:[-A-Za-z0-9/._~!$&\'()*+,;=:@]|[%][0-9a-fA-F]{2})+$")'},
        {"rule": "!has(self.headers) || self.headers.all(h, self.headers.exists_one(o, o.name == h.name))"},
    )
    filter_ = ruled(
        ROUTE["properties"]["filters"]["items"],
        {"rule": "!(has(self.redirect) && self.type != 'Redirect')", "message": "redirect must be nil"},
        {"rule": "!(!has(self.redirect) && self.type == 'Redirect')", "message": "redirect must be specified"},
    )
    filters = ruled(
        items(filter_),
        {
            "rule": "!(self.exists(f, f.type == 'Redirect') && self.exists(f, f.type == 'Rewrite'))",
            "message": "may specify either one, but not both",
        },
        {"rule": "self.filter(f, f.type == 'Redirect').size() <= 1", "message": "Redirect filter cannot be repeated"},
    )
    rules = ruled(
        ROUTE["properties"]["rules"],
        {
            "rule": "self.all(l1, !has(l1.name) || self.exists_one(l2, has(l2.name) && l1.name == l2.name))",
            "message": "Rule name must be unique within the route",
        },
    )
    return fields(matches=items(match), filters=filters, rules=rules)


OBJECTS: dict[str, tuple[dict[str, Any], list[tuple[Any, int]]]] = {
    "route": (
        _route(),
        [
            (GOOD_ROUTE, 201),
            ({"matches": [{"type": "Exact", "value": "a"}]}, 422),
            ({"matches": [{"type": "Exact", "value": "/a//b"}]}, 422),
            ({"matches": [{"type": "Regex", "value": "a b"}]}, 422),
            ({"matches": [{"type": "Regex", "value": "a", "headers": [{"name": "x"}, {"name": "x"}]}]}, 422),
            ({"filters": [{"type": "Rewrite", "redirect": {"port": 1}}]}, 422),
            ({"filters": [{"type": "Redirect"}]}, 422),
            ({"filters": [{"type": "Redirect", "redirect": {}}, {"type": "Rewrite"}]}, 422),
            ({"filters": [{"type": "Redirect", "redirect": {}}, {"type": "Redirect", "redirect": {}}]}, 422),
            ({"rules": [{"name": "a"}, {"name": "a"}]}, 422),
            ({"matches": [{"value": "a"}]}, 422),
        ],
    ),
    "exclusive": (
        ruled(
            fields(inline=TEXT, secret=TEXT, config=TEXT),
            {"rule": "[has(self.inline), has(self.secret), has(self.config)].exists_one(x, x)", "message": "pick one"},
            "!(has(self.inline) && has(self.secret))",
        ),
        [({"inline": "a"}, 201), ({}, 422), ({"inline": "a", "secret": "b"}, 422), ({"inline": "", "config": ""}, 422)],
    ),
    "crossing": (
        ruled(
            fields(min={"type": "integer"}, max={"type": "integer"}, replicas={"type": "integer", "default": 2}),
            {
                "rule": "self.min <= self.max",
                "messageExpression": "'min %d is more than max %d'.format([self.min, self.max])",
            },
            {"rule": "self.replicas >= self.min", "fieldPath": ".replicas", "message": " too few "},
            {"rule": "self.replicas <= self.max", "fieldPath": ".replicas", "reason": "FieldValueForbidden"},
        ),
        [
            ({"min": 1, "max": 3}, 201),
            ({"min": 4, "max": 3, "replicas": 3}, 422),
            ({"min": 3, "max": 4}, 422),
            ({"min": 1, "max": 1}, 422),
            ({"max": 3}, 422),
            ({"min": "1", "max": 3}, 422),
        ],
    ),
    "reasons": (
        fields(
            a=ruled(TEXT, {"rule": "self != 'x'", "reason": "FieldValueForbidden", "message": "not x"}),
            b=ruled(TEXT, {"rule": "self != 'x'", "reason": "FieldValueRequired", "message": "not x"}),
            c=ruled(TEXT, {"rule": "self != 'x'", "reason": "FieldValueDuplicate", "message": "not x"}),
            d=ruled(TEXT, {"rule": "self != 'x'", "reason": "FieldValueInvalid"}),
            e=ruled(fields(), {"rule": "false", "reason": "FieldValueDuplicate"}),
            f=ruled(items(TEXT), {"rule": "false", "reason": "FieldValueRequired"}),
            g=ruled(fields(), {"rule": "false", "reason": "FieldValueForbidden", "message": "never"}),
        ),
        [({key: "x"}, 422) for key in "abcd"] + [({"e": {}}, 422), ({"f": []}, 422), ({"g": {}}, 422)],
    ),
    "messages": (
        ruled(
            fields(x=INTEGER, path=fields(**{"a.b": TEXT}), map={"type": "object", "additionalProperties": TEXT}),
            {"rule": "self.x != 1", "messageExpression": "'  got %d  '.format([self.x])"},
            {"rule": "self.x != 2", "messageExpression": "''", "message": "instead"},
            {"rule": "self.x != 3", "messageExpression": "'a\\nb'", "message": "instead"},
            {"rule": "self.x != 4", "messageExpression": "'%d'.format([1 / (self.x - 4)])"},
            {
                "rule": "self.x != 5",
                "messageExpression": "'%d'.format([self.x])",
                "message": "not told",
                "fieldPath": ".x",
            },
            {"rule": "self.x != 6", "fieldPath": ".path['a.b']", "message": "there"},
            {"rule": "self.x != 7", "fieldPath": ".map['k']", "message": "there"},
            {"rule": "\n  self.x != 8 \n", "message": "told"},
            {"rule": "  self.x != 9  "},
        ),
        [({"x": x}, 422) for x in range(1, 10)] + [({"x": 0}, 201)],
    ),
    "places": (
        fields(
            list=items(ruled(INTEGER, "self > 0")),
            keyed=items(
                ruled(keyed(port=INTEGER), "self.port > 0", "self.name != 'bad'"),
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ),
            map={"type": "object", "additionalProperties": ruled(TEXT, "self.size() < 3"), "maxProperties": 4},
            maps={"type": "object", "additionalProperties": ruled(fields(x=INTEGER), "self.x > 0"), "maxProperties": 4},
            number=ruled({"type": "number"}, "self < 1.5", "self != 1.0"),
            flag=ruled({"type": "boolean"}, "self"),
            either=ruled({"x-kubernetes-int-or-string": True, "maxLength": 8}, "type(self) == int || self == '10%'"),
            nullable=ruled({**TEXT, "nullable": True}, "self != 'x'"),
            nested=fields(deep=fields(deeper=ruled(items(TEXT), "self.isSorted()", "size(self) > 1"))),
        ),
        [
            ({"list": [1, 0, 2]}, 422),
            ({"keyed": [{"name": "a", "port": 1}, {"name": "bad", "port": 0}]}, 422),
            ({"map": {"a": "aaa"}}, 422),
            ({"map": {"a.b/c": "aaa"}}, 422),
            ({"maps": {"k": {"x": 0}}}, 422),
            ({"number": 2}, 422),
            ({"number": 1}, 422),
            ({"flag": False}, 422),
            ({"either": "x"}, 422),
            ({"either": 3, "nullable": None, "number": 1.25}, 201),
            ({"nullable": "x"}, 422),
            ({"nested": {"deep": {"deeper": ["b", "a"]}}}, 422),
            ({"nested": {"deep": {"deeper": ["a"]}}}, 422),
        ],
    ),
    "names": (
        ruled(
            fields(
                namespace=TEXT,
                **{
                    "in": TEXT,
                    "a-b": TEXT,
                    "c.d": TEXT,
                    "e/f": TEXT,
                    "g__h": TEXT,
                    "true": TEXT,
                    "_x": TEXT,
                    "$y": TEXT,
                },
            ),
            *("has(self.__namespace__) ? self.__namespace__ != 'x' : true", "!has(self.__in__) || self.__in__ != 'x'"),
            *("!has(self.a__dash__b) || self.a__dash__b != 'x'", "!has(self.c__dot__d) || self.c__dot__d != 'x'"),
            *("!has(self.e__slash__f) || self.e__slash__f != 'x'", "self.?__true__.orValue('') != 'x'"),
            *("!has(self.g__underscores__h) || self.g__underscores__h != 'x'", "!has(self._x) || self._x != 'x'"),
        ),
        [({name: "x"}, 422) for name in ("namespace", "in", "a-b", "c.d", "e/f", "g__h", "true", "_x")]
        + [({"$y": "x"}, 201)],
    ),
    "sets": (
        ruled(
            fields(
                set=items(TEXT, **{"x-kubernetes-list-type": "set"}),
                other=items(TEXT, **{"x-kubernetes-list-type": "set"}),
                list=items(TEXT),
            ),
            {"rule": "!has(self.other) || self.set == self.other", "message": "not the same set"},
            {"rule": "!has(self.list) || self.set + self.list == self.set", "message": "more"},
            {"rule": "!has(self.list) || sets.contains(self.set, self.list)", "message": "outside"},
            {"rule": "'never' in self.set ? false : true", "message": "never"},
        ),
        [
            ({"set": ["a", "b"], "other": ["b", "a"], "list": ["b"]}, 201),
            ({"set": ["a", "b"], "other": ["a"]}, 422),
            ({"set": ["a"], "list": ["b"]}, 422),
            ({"set": ["never"]}, 422),
            ({}, 422),
        ],
    ),
    "formats": (
        ruled(
            fields(
                time={"type": "string", "format": "date-time"},
                day={"type": "string", "format": "date"},
                span={"type": "string", "format": "duration"},
                data={"type": "string", "format": "byte", "maxLength": 64},
            ),
            "!has(self.time) || self.time < timestamp('2030-01-01T00:00:00Z')",
            "!has(self.time) || self.time.getFullYear() >= 2020",
            "!has(self.day) || self.day.getMonth() == 0",
            "!has(self.span) || self.span >= duration('1m')",
            {"rule": "!has(self.span) || self.span.getHours() < 2", "messageExpression": "string(self.span)"},
            "!has(self.data) || self.data == b'abc'",
        ),
        [
            ({"time": "2024-05-06T07:08:09Z", "day": "2024-01-02", "span": "90s", "data": "YWJj"}, 201),
            ({"time": "2031-05-06T07:08:09+02:00"}, 422),
            ({"time": "2019-05-06T07:08:09.5Z"}, 422),
            ({"day": "2024-02-02"}, 422),
            ({"span": "30s"}, 422),
            ({"span": "3h"}, 422),
            ({"data": "YWI="}, 422),
        ],
    ),
    "embedded": (
        fields(
            inner=ruled(
                {**fields(x=INTEGER), "x-kubernetes-embedded-resource": True},
                "self.kind != 'Bad'",
                "self.metadata.name.startsWith('a')",
                "!has(self.x) || self.apiVersion == 'v1'",
            ),
            free={
                **fields(known=INTEGER),
                "x-kubernetes-preserve-unknown-fields": True,
                RULES: [{"rule": "self.known > 0"}],
            },
        ),
        [
            ({"inner": {"apiVersion": "v1", "kind": "Good", "metadata": {"name": "a"}, "x": 1}}, 201),
            ({"inner": {"apiVersion": "v1", "kind": "Bad", "metadata": {"name": "a"}}}, 422),
            ({"inner": {"apiVersion": "v1", "kind": "Good", "metadata": {"name": "b"}}}, 422),
            ({"inner": {"apiVersion": "v1", "kind": "Good", "metadata": {}}}, 422),
            ({"inner": {"apiVersion": "v2", "kind": "Good", "metadata": {"name": "a"}, "x": 1}}, 422),
            ({"free": {"known": 1, "other": {}}}, 201),
            ({"free": {"known": 0}}, 422),
        ],
    ),
    "other_faults": (
        ruled(fields(x=INTEGER, y={**TEXT, "pattern": "^a"}, z={**TEXT, "enum": ["a"]}), "self.x > 0"),
        [({"x": "0"}, 422), ({"x": 0, "y": "b"}, 422), ({"x": 1, "y": "b"}, 422), ({"x": 0, "z": "b"}, 422)],
    ),
}


@variants("row", OBJECTS)
async def test_an_object_obeys_the_rules_of_its_schema(
    talk: Talk, row: tuple[dict[str, Any], list[tuple[Any, int]]]
) -> None:
    schema, cases = row
    path = await defined(talk, schema)
    for spec, status in cases:
        answer = await talk("POST", f"{path}?dryRun=All", widget(talk, spec), shown=said)
        assert answer.status == status, answer.body


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
CHANGES: dict[str, tuple[dict[str, Any], Any, list[tuple[Any, int]]]] = {
    "immutable": (
        fields(
            a=ruled(TEXT, {"rule": "self == oldSelf", "message": "Value is immutable"}),
            b=ruled(fields(x=INTEGER, y=INTEGER), {"rule": "self == oldSelf", "message": "is immutable"}),
            c=INTEGER,
        ),
        {"a": "x", "b": {"x": 1, "y": 2}},
        [
            ({"a": "x", "b": {"y": 2, "x": 1}, "c": 1}, 200),
            ({"a": "y", "b": {"x": 1, "y": 2}}, 422),
            ({"a": "x", "b": {"x": 1}}, 422),
            ({}, 200),
        ],
    ),
    "not_removed": (
        ruled(
            fields(a=TEXT, b=TEXT),
            {"rule": "!has(oldSelf.a) || has(self.a)", "message": "a is required once set"},
            {"rule": "has(self.b) == has(oldSelf.b)", "message": "b may not be added or removed"},
        ),
        {"a": "x"},
        [({"a": "y"}, 200), ({}, 422), ({"a": "x", "b": "x"}, 422)],
    ),
    "growing": (
        fields(size=ruled(INTEGER, {"rule": "self >= oldSelf", "messageExpression": "'was %d'.format([oldSelf])"})),
        {"size": 3},
        [({"size": 4}, 200), ({"size": 2}, 422), ({}, 200)],
    ),
    "optional": (
        fields(
            a=ruled(TEXT, {"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": True}),
            b=ruled(INTEGER, {"rule": "self >= oldSelf.orValue(5)", "optionalOldSelf": True}),
        ),
        {"b": 7},
        [({"a": "x"}, 422), ({"a": "first"}, 200), ({"b": 8}, 200), ({"b": 6}, 422), ({"a": "x", "b": 7}, 422)],
    ),
    "keyed": (
        fields(parts=items(ruled(keyed(x=INTEGER, y=ruled(TEXT, "self == oldSelf")), "self.x >= oldSelf.x"), **KEYED)),
        {"parts": [{"name": "a", "x": 1, "y": "1"}, {"name": "b", "x": 5, "y": "1"}]},
        [
            ({"parts": [{"name": "b", "x": 6, "y": "1"}, {"name": "a", "x": 1, "y": "1"}, {"name": "c", "x": 0}]}, 200),
            ({"parts": [{"name": "b", "x": 4, "y": "1"}, {"name": "a", "x": 2, "y": "1"}]}, 422),
            ({"parts": [{"name": "b", "x": 5, "y": "2"}]}, 422),
            ({"parts": []}, 200),
        ],
    ),
    "keyed_whole": (
        fields(parts=ruled(items(keyed(x=INTEGER), **KEYED), "self == oldSelf", "oldSelf.all(o, o in self)")),
        {"parts": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]},
        [
            ({"parts": [{"name": "b", "x": 2}, {"name": "a", "x": 1}]}, 200),
            ({"parts": [{"name": "b", "x": 2}, {"name": "a", "x": 3}]}, 422),
        ],
    ),
    "map": (
        fields(map={"type": "object", "additionalProperties": ruled(TEXT, "self == oldSelf"), "maxProperties": 4}),
        {"map": {"a": "1"}},
        [({"map": {"a": "1", "b": "2"}}, 200), ({"map": {"a": "2"}}, 422), ({"map": {}}, 200)],
    ),
    "lists": (
        fields(list=ruled(items(TEXT), "oldSelf.all(x, x in self)", "self.size() >= oldSelf.size()")),
        {"list": ["a", "b"]},
        [({"list": ["b", "a", "c"]}, 200), ({"list": ["a", "c"]}, 422)],
    ),
}


@variants("row", CHANGES)
async def test_a_change_obeys_the_rules_of_changes(
    talk: Talk, row: tuple[dict[str, Any], Any, list[tuple[Any, int]]]
) -> None:
    schema, old, cases = row
    path = await defined(talk, schema)
    made = await talk.made(path, widget(talk, old))
    for spec, status in cases:
        answer = await talk("PUT", f"{path}/a?dryRun=All", made | {"spec": spec}, shown=said)
        assert answer.status == status, answer.body


async def test_every_kind_of_write_obeys_rules(talk: Talk) -> None:
    path = await defined(talk, fields(x=ruled(INTEGER, "self > 0", {"rule": "self >= oldSelf", "message": "less"})))
    await talk.made(path, widget(talk, {"x": 3}))
    await talk("PATCH", f"{path}/a", {"spec": {"x": 2}}, content_type=MERGE_PATCH)
    await talk("PATCH", f"{path}/a", [{"op": "replace", "path": "/spec/x", "value": 0}], content_type=JSON_PATCH)
    answer = await talk("PATCH", f"{path}/a?fieldManager=m&force=true", widget(talk, {"x": 1}), content_type=APPLY)
    assert answer.status == 422


async def test_a_status_obeys_rules(talk: Talk) -> None:
    schema = fields(spec=fields(x=INTEGER), status=ruled(fields(n=INTEGER), "self.n < 3", "self.n >= oldSelf.n"))
    path = await defined(talk, ruled(schema, "!has(self.status) || self.status.n <= self.spec.x"), whole=True)
    made = await talk.made(path, widget(talk, {"x": 2}))
    for n in (2, 1, 3):
        answer = await talk("PUT", f"{path}/a/status?dryRun=All", made | {"status": {"n": n}}, shown=said)
    assert answer.status == 422


async def test_rules_of_whole_objects_see_their_names(talk: Talk) -> None:
    rules = (
        {"rule": "self.metadata.name.size() < 3", "message": "name too long"},
        {"rule": "self.kind == 'Widget' && self.apiVersion.endsWith('/v1')"},
        {"rule": "!has(self.metadata.generateName) || self.metadata.generateName == 'g'"},
    )
    path = await defined(talk, ruled(fields(spec=fields(x=INTEGER)), *rules), whole=True)
    for metadata, status in (({"name": "ab"}, 201), ({"name": "abc"}, 422), ({"name": "a", "generateName": "h"}, 422)):
        body = widget(talk, {"x": 1}, metadata=metadata)
        answer = await talk("POST", f"{path}?dryRun=All", body, shown=said)
        assert answer.status == status, answer.body


NO_LONGER = {"rule": "self != 'old'", "message": "no longer"}
TOLERATED: dict[str, tuple[dict[str, Any], dict[str, Any], Any, list[tuple[Any, int]]]] = {
    "field": (
        TEXT,
        ruled(TEXT, NO_LONGER),
        "old",
        [("old", 200), ("new", 200)],
    ),
    "map": (
        fields(a=TEXT, b=TEXT),
        ruled(fields(a=TEXT, b=TEXT), {"rule": "self.a != 'old'", "message": "no longer"}),
        {"a": "old", "b": "1"},
        [({"b": "1", "a": "old"}, 200), ({"a": "old", "b": "2"}, 422), ({"a": "new"}, 200)],
    ),
    "list": (
        items(TEXT),
        items(ruled(TEXT, NO_LONGER)),
        ["old", "new"],
        [(["old", "new"], 200), (["old", "other"], 422)],
    ),
    "keyed": (
        items(keyed(v=TEXT), **KEYED),
        items(ruled(keyed(v=TEXT), {"rule": "!has(self.v) || self.v != 'old'", "message": "no longer"}), **KEYED),
        [{"name": "a", "v": "old"}, {"name": "b"}],
        [
            ([{"name": "b", "v": "new"}, {"name": "a", "v": "old"}], 200),
            ([{"name": "a", "v": "old"}, {"name": "c", "v": "old"}], 422),
        ],
    ),
    "changes": (
        INTEGER,
        ruled(INTEGER, {"rule": "self > oldSelf", "message": "must grow"}),
        1,
        [(1, 422), (2, 200)],
    ),
}


@variants("row", TOLERATED)
async def test_what_does_not_change_may_go_on_breaking_a_rule(
    talk: Talk, row: tuple[dict[str, Any], dict[str, Any], Any, list[tuple[Any, int]]]
) -> None:
    loose, strict, old, cases = row
    path = await defined(talk, fields(x=loose, y=INTEGER))
    made = await talk.made(path, widget(talk, {"x": old}))
    where = f"{DEFINITIONS}/widgets.{talk.namespace}.example.com"
    other = ruled(fields(x=strict, y=INTEGER), {"rule": "!has(self.y) || self.y > 0", "message": "known"})
    change = {"spec": {"versions": definition(talk, other)["spec"]["versions"]}}
    assert (await talk("PATCH", where, change, content_type=MERGE_PATCH, kept=False)).status == 200
    probe = widget(talk, {"y": 0}, metadata={"name": "probe"})
    while (await talk("POST", f"{path}?dryRun=All", probe, kept=False)).status != 422:
        pass
    for value, status in cases:
        body = made | {"spec": {"x": value, "y": 1}}
        answer = await talk("PUT", f"{path}/a?dryRun=All", body, shown=said)
        assert answer.status == status, answer.body


REFUSED: dict[str, list[dict[str, Any]]] = {
    "unknown_field": [ruled(fields(x=INTEGER), "self.y > 0"), ruled(fields(x=INTEGER), "has(self.y)")],
    "types": [
        ruled(fields(x=INTEGER), "self.x > 'a'"),
        ruled(fields(x=INTEGER), "self.x == 1.0"),
        ruled(fields(x=INTEGER), "self.x"),
        ruled(fields(x=TEXT), "self.x.size() > 1 && self.x"),
        ruled(fields(x=TEXT), "self.x == null"),
        ruled(fields(x=items(TEXT)), "self.x.all(i, i > 1)"),
        ruled(fields(x=items(TEXT)), "self.x.map(i, i).sum() > 1"),
        ruled(fields(x=TEXT), "self.x.all(c, c == 'a')"),
        ruled(fields(x=TEXT), "self.x.y == 'a'"),
        ruled(fields(x=TEXT), "(self.x == 'a' ? 1 : 'b') == 1"),
        ruled(fields(x=TEXT), "self.x in ['a', 1]"),
    ],
    "unknown_function": [
        ruled(fields(x=TEXT), "self.x.foo()"),
        ruled(fields(x=TEXT), "foo(self.x)"),
        ruled(fields(x=TEXT), "self.x.matches(1)"),
        ruled(fields(x=TEXT), "other == 1 && another"),
    ],
    "messages": [
        ruled(fields(x=TEXT), {"rule": "true", "messageExpression": "self.y"}),
        ruled(fields(x=TEXT), {"rule": "true", "messageExpression": "1"}),
        ruled(fields(x=TEXT), {"rule": "true", "messageExpression": " "}),
        ruled(fields(x=TEXT), {"rule": "true", "message": " "}),
        ruled(fields(x=TEXT), {"rule": "true", "message": "a\nb"}),
        ruled(fields(x=TEXT), {"rule": "true &&\ntrue"}),
        ruled(fields(x=TEXT), {"rule": " "}),
    ],
    "parts": [
        ruled(fields(x=TEXT), {"rule": "true", "reason": "Other"}),
        ruled(fields(x=TEXT), {"rule": "true", "fieldPath": ".y"}),
        ruled(fields(x=TEXT), {"rule": "true", "fieldPath": "x"}),
        ruled(fields(x=TEXT), {"rule": "true", "fieldPath": " "}),
        ruled(fields(x=TEXT), {"rule": "true", "optionalOldSelf": True}),
        ruled(fields(x=TEXT), {"rule": "self.y", "message": "m", "reason": "FieldValueInvalid", "fieldPath": ".x"}),
    ],
    "lists": [
        fields(x=items(ruled(TEXT, "self == oldSelf"))),
        fields(x=items(fields(y=ruled(TEXT, "self == oldSelf")), **{"x-kubernetes-list-type": "atomic"})),
    ],
    "combined": [
        fields(x=INTEGER) | {"allOf": [{RULES: [{"rule": "self.x > 0"}]}]},
        fields(x=INTEGER) | {"anyOf": [{"properties": {"x": {RULES: [{"rule": "self > 0"}]}}}]},
    ],
    "keys": [fields(x=items(fields(name=TEXT), **KEYED)), fields(x=items(fields(), **KEYED))],
    "constants": [
        ruled(fields(x=TEXT), "int(1e99) == 1"),
        ruled(fields(x=TEXT), "string(b'\\377') == 'x'"),
        ruled(fields(x=TEXT), "self.x.matches('(')"),
        ruled(fields(x=TEXT), "self.x.find('[') == ''"),
        ruled(fields(x=TEXT), "duration('1') == duration('1s')"),
        ruled(fields(x=TEXT), "timestamp('a') == timestamp('b')"),
        ruled(fields(x=TEXT), "'%d'.format(['a']) == 'x'"),
        ruled(fields(x=TEXT), "'%s'.format([]) == 'x'"),
        ruled(fields(x=TEXT), "'%z'.format([1]) == 'x'"),
        ruled(fields(x=TEXT), "'%d'.format([self.x]) == 'x'"),
        ruled(fields(x=TEXT), "self.x.matches('a(?=b)')"),
    ],
    "more_lines": [ruled(fields(x=INTEGER), {"rule": "self.x > 0 &&\n  self.z > 1", "message": "m"})],
}


@variants("schemas", REFUSED)
async def test_rules_that_do_not_compile_are_refused(talk: Talk, schemas: list[dict[str, Any]]) -> None:
    for schema in schemas:
        answer = await talk("POST", f"{DEFINITIONS}?dryRun=All", definition(talk, schema), shown=_without_types)
        assert answer.status == 422, schema


def _without_types(body: Any) -> Any:
    return body if body["kind"] == "Status" else None


@variants("rules", TRUE)
async def test_expressions_have_the_values_of_the_language(talk: Talk, rules: list[str]) -> None:
    schema = ruled(SAMPLE_SCHEMA, *rules)
    answer = await talk("POST", f"{DEFINITIONS}?dryRun=All", definition(talk, schema), shown=_without_types)
    path = await defined(talk, schema)
    answer = await talk("POST", f"{path}?dryRun=All", widget(talk, SAMPLE), shown=said)
    assert answer.status == 201, _told(answer)


@variants("rules", WITHOUT_A_VALUE)
async def test_expressions_without_a_value_say_why(talk: Talk, rules: list[str]) -> None:
    path = await defined(talk, ruled(SAMPLE_SCHEMA, *rules))
    answer = await talk("POST", f"{path}?dryRun=All", widget(talk, SAMPLE), shown=said)
    assert len(answer.body["details"]["causes"]) == len(rules)


def _told(answer: Answer) -> str:
    return "\n".join(cause["message"] for cause in (answer.body.get("details") or {}).get("causes") or ())
