"""CEL: validation of objects, rules that do not compile, and results of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH
from tests.real.contract.rules import (
    INTEGER,
    KEYED,
    OBJECTS,
    SAMPLE,
    SAMPLE_SCHEMA,
    TEXT,
    TRUE,
    WITHOUT_A_VALUE,
    define,
    definition,
    fields,
    items,
    keyed,
    recorded_part,
    ruled,
    widget,
)
from tests.real.contract.tables import DEFINITIONS, variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Answer, Conversation


@pytest.fixture(autouse=True)
async def clean(api: Conversation) -> AsyncIterator[None]:
    """Delete the CRD of the row, which is cluster-scoped."""
    yield
    await api("DELETE", f"{DEFINITIONS}/widgets.{api.namespace}.example.com", recorded=False)


@variants("row", OBJECTS)
async def test_schema_rules_are_enforced_on_create(
    api: Conversation, row: tuple[dict[str, Any], list[tuple[Any, int]]]
) -> None:
    schema, cases = row
    path = await define(api, schema)
    for spec, status in cases:
        answer = await api("POST", f"{path}?dryRun=All", widget(api, spec), shown=recorded_part)
        assert answer.status == status, answer.body


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
    "growing": (
        fields(size=ruled(INTEGER, {"rule": "self >= oldSelf", "messageExpression": "'was %d'.format([oldSelf])"})),
        {"size": 3},
        [({"size": 4}, 200), ({"size": 2}, 422), ({}, 200)],
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
}


@variants("row", CHANGES)
async def test_transition_rules_are_enforced_on_update(
    api: Conversation, row: tuple[dict[str, Any], Any, list[tuple[Any, int]]]
) -> None:
    schema, old, cases = row
    path = await define(api, schema)
    made = await api.create(path, widget(api, old))
    for spec, status in cases:
        answer = await api("PUT", f"{path}/a?dryRun=All", made | {"spec": spec}, shown=recorded_part)
        assert answer.status == status, answer.body


async def test_every_write_is_validated(api: Conversation) -> None:
    path = await define(api, fields(x=ruled(INTEGER, "self > 0", {"rule": "self >= oldSelf", "message": "less"})))
    await api.create(path, widget(api, {"x": 3}))
    await api("PATCH", f"{path}/a", {"spec": {"x": 2}}, content_type=MERGE_PATCH)
    await api("PATCH", f"{path}/a", [{"op": "replace", "path": "/spec/x", "value": 0}], content_type=JSON_PATCH)
    answer = await api("PATCH", f"{path}/a?fieldManager=m&force=true", widget(api, {"x": 1}), content_type=APPLY)
    assert answer.status == 422


async def test_status_rules_are_enforced(api: Conversation) -> None:
    schema = fields(spec=fields(x=INTEGER), status=ruled(fields(n=INTEGER), "self.n < 3", "self.n >= oldSelf.n"))
    path = await define(api, ruled(schema, "!has(self.status) || self.status.n <= self.spec.x"), whole=True)
    made = await api.create(path, widget(api, {"x": 2}))
    for n in (2, 1, 3):
        answer = await api("PUT", f"{path}/a/status?dryRun=All", made | {"status": {"n": n}}, shown=recorded_part)
    assert answer.status == 422


async def test_root_rules_see_metadata_and_type(api: Conversation) -> None:
    rules = (
        {"rule": "self.metadata.name.size() < 3", "message": "name too long"},
        {"rule": "self.kind == 'Widget' && self.apiVersion.endsWith('/v1')"},
        {"rule": "!has(self.metadata.generateName) || self.metadata.generateName == 'g'"},
    )
    path = await define(api, ruled(fields(spec=fields(x=INTEGER)), *rules), whole=True)
    for metadata, status in (({"name": "ab"}, 201), ({"name": "abc"}, 422), ({"name": "a", "generateName": "h"}, 422)):
        body = widget(api, {"x": 1}, metadata=metadata)
        answer = await api("POST", f"{path}?dryRun=All", body, shown=recorded_part)
        assert answer.status == status, answer.body


KNOWN = {"rule": "!has(self.y) || self.y > 0", "message": "known"}
NO_LONGER = {"rule": "self != 'old'", "message": "no longer"}


async def test_unchanged_values_may_still_break_a_rule(api: Conversation) -> None:
    path = await define(api, fields(x=TEXT, y=INTEGER))
    made = await api.create(path, widget(api, {"x": "old"}))
    where = f"{DEFINITIONS}/widgets.{api.namespace}.example.com"
    other = ruled(fields(x=ruled(TEXT, NO_LONGER), y=INTEGER), KNOWN)
    change = {"spec": {"versions": definition(api, other)["spec"]["versions"]}}
    assert (await api("PATCH", where, change, content_type=MERGE_PATCH, recorded=False)).status == 200
    probe = widget(api, {"y": 0}, metadata={"name": "probe"})
    while (await api("POST", f"{path}?dryRun=All", probe, recorded=False)).status != 422:
        pass
    for value in ("old", "new"):
        body = made | {"spec": {"x": value, "y": 1}}
        answer = await api("PUT", f"{path}/a?dryRun=All", body, shown=recorded_part)
        assert answer.status == 200, answer.body


REFUSED: dict[str, list[dict[str, Any]]] = {
    "unknown_field": [ruled(fields(x=INTEGER), "self.y > 0"), ruled(fields(x=INTEGER), "has(self.y)")],
    "types": [
        ruled(fields(x=INTEGER), "self.x > 'a'"),
        ruled(fields(x=INTEGER), "self.x == 1.0"),
        ruled(fields(x=INTEGER), "self.x"),
        ruled(fields(x=TEXT), "self.x.size() > 1 && self.x"),
        ruled(fields(x=TEXT), "self.x == null"),
    ],
}


@variants("schemas", REFUSED)
async def test_rules_that_do_not_compile_are_refused(api: Conversation, schemas: list[dict[str, Any]]) -> None:
    for schema in schemas:
        answer = await api("POST", f"{DEFINITIONS}?dryRun=All", definition(api, schema), shown=_without_types)
        assert answer.status == 422, schema


def _without_types(body: Any) -> Any:
    return body if body["kind"] == "Status" else None


@variants("rules", TRUE)
async def test_cel_functions_return_expected_values(api: Conversation, rules: list[str]) -> None:
    schema = ruled(SAMPLE_SCHEMA, *rules)
    answer = await api("POST", f"{DEFINITIONS}?dryRun=All", definition(api, schema), shown=_without_types)
    path = await define(api, schema)
    answer = await api("POST", f"{path}?dryRun=All", widget(api, SAMPLE), shown=recorded_part)
    assert answer.status == 201, _told(answer)


@variants("rules", WITHOUT_A_VALUE)
async def test_failing_cel_expressions_report_the_error(api: Conversation, rules: list[str]) -> None:
    path = await define(api, ruled(SAMPLE_SCHEMA, *rules))
    answer = await api("POST", f"{path}?dryRun=All", widget(api, SAMPLE), shown=recorded_part)
    assert len(answer.body["details"]["causes"]) == len(rules)


def _told(answer: Answer) -> str:
    return "\n".join(cause["message"] for cause in (answer.body.get("details") or {}).get("causes") or ())
