"""Tables, the format in which the server renders objects for `kubectl get`.

Each resource has a layout: its columns and the function that fills them. kubectl shows columns of priority 0 always,
others with `-o wide`; the server sends all.

- Pods, workloads, jobs, nodes, services, events and namespaces have the columns of a real server, with cells computed
  as it does.
- Other built-in resources have their name and age.
- Custom resources have their name and the printer columns of their definition, or their age without such columns.

Cells are computed once: ages do not advance.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from aioinformer.resources.catalog.go_structs import go_json
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object, encode_plain, encode_sorted, quote
from aioinformer.testing.tables import jsonpath
from aioinformer.testing.tables.pods import age, field, human_duration, instant, name, pod_cells, pod_row_conditions
from aioinformer.testing.tables.resources import RESOURCE_CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.storage import Record
    from aioinformer.testing.tables.pods import Cells

_CELLS: Mapping[str, Cells] = {"pods": pod_cells, **RESOURCE_CELLS}
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_INCLUDE_OBJECT = ("None", "Metadata", "Object")
_ROWS_AT_ONCE = 25


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How objects of one resource are rendered.

    Attributes:
        cells: returns the cells of an object, at least one for each column.
    """

    columns: tuple[Mapping[str, Any], ...]
    cells: Cells
    row_conditions: Callable[[Mapping[str, Any]], list[dict[str, str]]] | None = None


class TableMaker:
    """Renders objects of one resource as tables, for one request.

    Raises:
        StatusError: 400, the value of `includeObject` is unknown.
    """

    def __init__(self, served: Served, wanted: Wanted, query: Mapping[str, str], now: Callable[[], float]) -> None:
        self._served = served
        self._layout = layout(served.stored_as, served.columns if served.custom else None)
        self._group_version = wanted.group_version
        self._now = now
        self._headers_sent = False
        self._include = query.get("includeObject") or "Metadata"
        if self._include not in _INCLUDE_OBJECT:
            why = f"""includeObject: Invalid value: "{self._include}": must be 'Metadata', 'Object', 'None', or empty"""
            raise statuses.bad_request(f"Unable to convert to Table as requested: {why}")

    def one(self, body: bytes) -> bytes:
        """Return a table with one object."""
        obj = self._served.decoded(body)
        return self._table([self._row(obj)], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})

    async def page(self, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
        """Return a table of a list, made in small steps."""
        rows: list[dict[str, Any]] = []
        for index, record in enumerate(records):
            rows.append(self._row(self._served.decoded(self._served.source(record))))
            if index % _ROWS_AT_ONCE == _ROWS_AT_ONCE - 1:
                await asyncio.sleep(0)
        return self._table(rows, metadata)

    def event(self, record: Record) -> bytes:
        """Return a table for a watch event. Only the first one has the column definitions."""
        return self._event(self._served.decoded(self._served.source(record)))

    def bookmark(self, version: int, initial_end: bool) -> bytes:
        """Return the object of a bookmark."""
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        resource = self._served.resource
        empty = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return self._event(empty if self._served.custom else go_json(empty))

    def _event(self, obj: Mapping[str, Any]) -> bytes:
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        body = self._table([self._row(obj)], metadata, headers=not self._headers_sent)
        self._headers_sent = True
        return body

    def _table(self, rows: list[dict[str, Any]], metadata: Mapping[str, Any], *, headers: bool = True) -> bytes:
        return encode_plain(
            {
                "kind": "Table",
                "apiVersion": self._group_version,
                "metadata": metadata,
                "columnDefinitions": self._layout.columns if headers else None,
                "rows": rows,
            }
        )

    def _row(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"cells": self._layout.cells(obj, datetime.fromtimestamp(self._now(), UTC))}
        if self._layout.row_conditions is not None and (conditions := self._layout.row_conditions(obj)):
            row["conditions"] = conditions
        metadata = field(obj, "metadata", {})
        if self._include == "Object":
            row["object"] = obj
            if not self._served.is_stored and not self._served.custom:
                row["object"] = decode(self._served.body(encode_object(obj, custom=False)))
        elif self._include == "None" and _INITIAL_EVENTS_END not in (metadata.get("annotations") or {}):
            # The bookmark that ends the initial events always has its metadata, as nothing else identifies it.
            row["object"] = None
        else:
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": self._group_version, "metadata": metadata}
        return row


def layout(resource: Resource[Any], printer_columns: Sequence[Mapping[str, Any]] | None = None) -> TableLayout:
    """Return the layout of a resource.

    Args:
        printer_columns: `additionalPrinterColumns` of a custom resource, empty if its definition has none; None for
            built-in resources.
    """
    if printer_columns is not None:
        return _custom_layout(printer_columns)
    recorded = _recorded_columns()
    cells = _CELLS.get(resource.group_resource)
    if resource.gvr not in recorded or cells is None:
        return TableLayout(recorded["name and age"], _plain_cells)
    return TableLayout(recorded[resource.gvr], cells, pod_row_conditions if resource.group_resource == "pods" else None)


def _custom_layout(printer_columns: Sequence[Mapping[str, Any]]) -> TableLayout:
    if not printer_columns:
        created = {"name": "Age", "type": "date", "format": ""}
        printer_columns = [
            created
            | {
                "description": _recorded_columns()["name and age"][1]["description"],
                "jsonPath": ".metadata.creationTimestamp",
            }
        ]
    printer_columns = [column for column in printer_columns if _is_path(column["jsonPath"])]
    sources = [(column["jsonPath"], column["type"]) for column in printer_columns]

    def cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
        return [name(obj), *(_custom_cell(path, kind, obj, now) for path, kind in sources)]

    columns = [
        {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format", ""),
            "description": column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            "priority": column.get("priority", 0),
        }
        for column in printer_columns
    ]
    return TableLayout((_recorded_columns()["name and age"][0], *columns), cells)


def _is_path(text: str) -> bool:
    """Return whether a column has a valid path. Definitions may have others, whose columns are not shown."""
    try:
        jsonpath.parse(text)
    except ValueError:
        return False
    return True


def _custom_cell(path: str, kind: str, obj: Mapping[str, Any], now: datetime) -> Any:
    found = jsonpath.find(path, obj)
    if not found:
        return None
    value = found[0]
    match kind, value:
        case "string", dict() | list():
            return encode_sorted(value).decode()
        case "string", _:
            return value if isinstance(value, str) else quote(value)
        case "boolean", bool():
            return value
        case "integer" | "number", bool():
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return value
        case "date", str():
            moment = instant(value)
            return human_duration(now - moment) if moment else "<invalid>"
    return None


def _plain_cells(obj: Mapping[str, Any], now: datetime) -> list[Any]:
    return [name(obj), age(obj, now)]


@cache
def _recorded_columns() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    recorded = json.loads(resources.files("aioinformer.testing").joinpath("data/columns.json").read_text())
    keys = ("name", "type", "format", "priority", "description")
    return {
        gvr: tuple(
            dict(zip(keys, (*values, recorded["descriptions"][number]), strict=True)) for *values, number in columns
        )
        for gvr, columns in recorded["columns"].items()
    }
