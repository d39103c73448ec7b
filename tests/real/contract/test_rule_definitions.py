"""CEL: rules that do not compile, and results of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.paths import DEFINITIONS
from tests.real.contract.rules import (
    INTEGER,
    KEYED,
    RULES,
    SAMPLE,
    SAMPLE_SCHEMA,
    TEXT,
    TRUE,
    WITHOUT_A_VALUE,
    define,
    definition,
    fields,
    items,
    recorded_part,
    ruled,
    widget,
)
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Answer, Conversation


@pytest.fixture(autouse=True)
async def clean(api: Conversation) -> AsyncIterator[None]:
    """Delete the CRD of the row, which is cluster-scoped."""
    yield
    await api("DELETE", f"{DEFINITIONS}/widgets.{api.namespace}.example.com", recorded=False)


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
