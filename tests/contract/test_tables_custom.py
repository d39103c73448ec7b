"""Table rows of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.conversation import TABLE
from tests.contract.normal import AGE
from tests.contract.paths import DEFINITIONS
from tests.contract.rows import ago
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

WIDGETS = "/apis/{ns}.example.com/v1/namespaces/{ns}/widgets"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DAYS = ago(days=10)
WIDGET = {
    "spec": {
        "size": 3,
        "ratio": 1.5,
        "whole": 2.0,
        "huge": 12345678901,
        "yes": True,
        "no": False,
        "text": "t",
        "empty": "",
        "number-as-text": "7",
        "list": ["a", "b", "c"],
        "numbers": [1, 2.5, True],
        "nothing": [],
        "any": {"b": [1, True], "a": "x"},
        "with.dot": "d",
        "with-dash": "e",
        "old": DAYS,
        "quantity": "500Mi",
    },
    "status": {
        "conditions": [
            {"type": "A", "status": "no", "weight": 1},
            {"type": "Ready", "status": "yes", "weight": 5},
        ]
    },
}
# Type and JSON path of a column.
CELLS = {
    "integer": ("integer", ".spec.size"),
    "ratio-as-integer": ("integer", ".spec.ratio"),
    "whole-as-integer": ("integer", ".spec.whole"),
    "huge": ("integer", ".spec.huge"),
    "text-as-integer": ("integer", ".spec.number-as-text"),
    "bool-as-integer": ("integer", ".spec.yes"),
    "number": ("number", ".spec.ratio"),
    "integer-as-number": ("number", ".spec.size"),
    "text-as-number": ("number", ".spec.number-as-text"),
    "bool": ("boolean", ".spec.no"),
    "text-as-bool": ("boolean", ".spec.text"),
    "integer-as-bool": ("boolean", ".spec.size"),
    "text": ("string", ".spec.text"),
    "empty": ("string", ".spec.empty"),
    "integer-as-text": ("string", ".spec.size"),
    "ratio-as-text": ("string", ".spec.ratio"),
    "huge-as-text": ("string", ".spec.huge"),
    "bool-as-text": ("string", ".spec.yes"),
    "list": ("string", ".spec.list"),
    "every-element": ("string", ".spec.list[*]"),
    "numbers": ("string", ".spec.numbers"),
    "empty-list": ("string", ".spec.nothing"),
    "elements-of-nothing": ("string", ".spec.nothing[*]"),
    "map": ("string", ".spec.any"),
    "missing": ("string", ".spec.missing"),
    "missing-below": ("string", ".spec.missing.more"),
    "missing-integer": ("integer", ".spec.missing"),
    "missing-date": ("date", ".spec.missing"),
    "below-a-text": ("string", ".spec.text.more"),
    "index": ("string", ".spec.list[1]"),
    "last": ("string", ".spec.list[-1]"),
    "too-far": ("string", ".spec.list[9]"),
    "slice": ("string", ".spec.list[0:2]"),
    "slice-from": ("string", ".spec.list[1:]"),
    "index-of-a-map": ("string", ".spec.any[0]"),
    "filter": ("string", '.status.conditions[?(@.type=="Ready")].status'),
    "filter-in-single-quotes": ("string", ".status.conditions[?(@.type=='Ready')].status"),
    "filter-of-none": ("string", '.status.conditions[?(@.type=="B")].status'),
    "filter-of-both": ("string", ".status.conditions[*].type"),
    "filter-by-number": ("string", ".status.conditions[?(@.weight>2)].type"),
    "filter-unequal": ("string", '.status.conditions[?(@.type!="A")].type'),
    "filter-of-what-is-there": ("string", ".status.conditions[?(@.weight)].type"),
    "escaped-dot": ("string", r".spec.with\.dot"),
    "quoted-key": ("string", ".spec['with.dot']"),
    "dash": ("string", ".spec.with-dash"),
    "whole": ("string", "."),
    "name": ("string", ".metadata.name"),
    "date": ("date", ".spec.old"),
    "age": ("date", ".metadata.creationTimestamp"),
    "no-date": ("date", ".spec.text"),
    "integer-as-date": ("date", ".spec.size"),
    "labels": ("string", ".metadata.labels"),
    "kind": ("string", ".kind"),
}
COLUMNS: dict[str, list[dict[str, Any]] | None] = {
    "none": None,
    "empty": [],
    "one": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    "priority": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "How large."},
        {"name": "Since", "type": "string", "format": "date-time", "jsonPath": ".spec.old"},
        {"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size"},
    ],
    "name-twice": [{"name": "Name", "type": "string", "jsonPath": ".spec.text"}],
}
REFUSED = {"no-dot": "spec.size", "braces": "{.spec.size}", "no-path": "", "no-dot-but-a-key": "['spec']"}
BROKEN = {
    "exclamation-mark": ".spec[!]",
    "descent": "..size",
    "union": ".spec['size','ratio']",
    "unclosed": ".spec.list[0",
    "quote": ".spec['size",
    "filter": ".status.conditions[?(@.type==)].status",
    "two-dots": ".spec..size",
    "dot-at-the-end": ".spec.",
    "blank": ".spec. size",
}


def definition(api: Conversation, columns: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return a CRD for widgets in the row's own group."""
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
    }
    if columns is not None:
        version["additionalPrinterColumns"] = columns
    group = f"{api.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def define(api: Conversation, columns: list[dict[str, Any]] | None) -> None:
    """Create a CRD for widgets with these columns, and a widget."""
    await api.create(DEFINITIONS, definition(api, columns))
    await api.poll(WIDGETS, lambda answer: answer.status == 200, recorded=False)
    group = f"{api.namespace}.example.com/v1"
    await api.create(WIDGETS, {"apiVersion": group, "kind": "Widget", "metadata": {"name": "a"}, **WIDGET})


@variants("columns", COLUMNS)
async def test_columns_come_from_the_crd(api: Conversation, columns: list[dict[str, Any]] | None) -> None:
    await define(api, columns)
    answer = await api("GET", f"{WIDGETS}?includeObject=None", accept=TABLE)
    assert answer.body["columnDefinitions"][0]["name"] == "Name"


async def test_cells_follow_path_and_column_type(api: Conversation) -> None:
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, (kind, path) in CELLS.items()]
    await define(api, columns)
    answer = await api("GET", f"{WIDGETS}/a?includeObject=None", accept=TABLE, shown=by_column)
    assert len(answer.body["rows"][0]["cells"]) == len(columns) + 1


@variants("path", REFUSED)
async def test_invalid_path_is_refused(api: Conversation, path: str) -> None:
    answer = await api("POST", DEFINITIONS, definition(api, [{"name": "C", "type": "string", "jsonPath": path}]))
    assert answer.status == 422


@variants("path", BROKEN)
async def test_unparsable_path_leaves_its_cell_out(api: Conversation, path: str) -> None:
    columns = [
        {"name": "B", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "C", "type": "string", "jsonPath": path},
    ]
    await define(api, columns)
    answer = await api("GET", f"{WIDGETS}?includeObject=None", accept=TABLE)
    assert answer.status == 200


@pytest.mark.parametrize("kind", ["object", "", "String"])
async def test_invalid_type_is_refused(api: Conversation, kind: str) -> None:
    answer = await api("POST", DEFINITIONS, definition(api, [{"name": "C", "type": kind, "jsonPath": ".spec"}]))
    assert answer.status == 422


def by_column(table: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of the only row by column."""
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = ["<age>" if AGE.fullmatch(str(cell)) else cell for cell in table["rows"][0]["cells"]]
    return {"cells": dict(zip(names, cells, strict=True))}
