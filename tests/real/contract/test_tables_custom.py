"""Table rows of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import TABLE
from tests.real.contract.paths import DEFINITIONS
from tests.real.contract.rows import ago
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

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
