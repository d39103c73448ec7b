"""Tables, the format in which the server renders objects for `kubectl get`.

Each resource has a layout: its columns and the function that fills them. kubectl shows columns of priority 0 always,
others with `-o wide`; the server sends all.

- Built-in resources have columns recorded from a real server, with cells computed as it does.
- Built-in resources without such columns have their name and creation time.
- Custom resources have their name and the printer columns of their definition, or their age without such columns.

Cells are computed once: ages do not advance.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.tables import jsonpath
from aioinformer.testing.admission.tables.cells import field, human_duration, instant, name
from aioinformer.testing.admission.tables.cluster import CLUSTER_CELLS
from aioinformer.testing.admission.tables.network import NETWORK_CELLS
from aioinformer.testing.admission.tables.pods import pod_cells, pod_row_conditions
from aioinformer.testing.admission.tables.workloads import WORKLOAD_CELLS
from aioinformer.testing.api.encoding import encode_sorted
from aioinformer.testing.patches.strategic import as_go

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.admission.tables.cells import Cells

_CELLS: Mapping[str, Cells] = {"pods": pod_cells, **WORKLOAD_CELLS, **NETWORK_CELLS, **CLUSTER_CELLS}
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

INCLUDE_OBJECT = ("None", "Metadata", "Object")
"""The values of `includeObject`: what a row has besides its cells. The default is "Metadata"."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How objects of one resource are rendered.

    Attributes:
        columns: the column definitions, as sent in a Table.
        cells: returns the cells of an object, at least one for each column.
        row_conditions: returns the conditions of an object's row.
    """

    columns: tuple[Mapping[str, Any], ...]
    cells: Cells
    row_conditions: Any = None

    def row(
        self,
        obj: Mapping[str, Any],
        now: datetime,
        *,
        include: str = "Metadata",
        api_version: str = "meta.k8s.io/v1",
    ) -> dict[str, Any]:
        """Return one row.

        Args:
            obj: in JSON form.
            now: the time to which ages are computed, with a time zone.
            include: one of `INCLUDE_OBJECT`. The bookmark that ends the initial events always has its metadata, as
                nothing else identifies it.
            api_version: of the metadata, the same as the table's.
        """
        row: dict[str, Any] = {"cells": self.cells(obj, now)}
        conditions = self.row_conditions(obj) if self.row_conditions else []
        if conditions:
            row["conditions"] = conditions
        metadata = field(obj, "metadata", {})
        if include == "Object":
            row["object"] = obj
        elif include == "None" and _INITIAL_EVENTS_END not in (metadata.get("annotations") or {}):
            row["object"] = None
        else:
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}
        return row

    def table(
        self,
        objects: Iterable[Mapping[str, Any]],
        now: datetime,
        *,
        metadata: Mapping[str, Any],
        include: str = "Metadata",
        headers: bool = True,
        api_version: str = "meta.k8s.io/v1",
    ) -> dict[str, Any]:
        """Return a Table for a list, an object or a watch event.

        Args:
            objects: in JSON form.
            now: the time to which ages are computed, with a time zone.
            metadata: of the list; the resourceVersion of a single object.
            include: one of `INCLUDE_OBJECT`.
            headers: whether the columns are sent; a watch sends them with its first event only.
            api_version: of the table, "meta.k8s.io/v1" or the beta.
        """
        return {
            "kind": "Table",
            "apiVersion": api_version,
            "metadata": dict(metadata),
            "columnDefinitions": [dict(column) for column in self.columns] if headers else None,
            "rows": [self.row(obj, now, include=include, api_version=api_version) for obj in objects],
        }


def layout(resource: Resource[Any], printer_columns: Sequence[Mapping[str, Any]] | None = None) -> TableLayout:
    """Return the layout of a resource.

    Args:
        resource: built-in or custom.
        printer_columns: `additionalPrinterColumns` of a custom resource, empty if its definition has none; None for
            built-in resources.
    """
    if printer_columns is not None:
        return _custom_layout(printer_columns)
    columns = _recorded_columns().get(resource.gvr) or _subresource_columns().get(resource.gvr)
    cells = _CELLS.get(resource.group_resource)
    if columns is None or cells is None:
        return TableLayout((_name_column(), _created_column()), _plain_cells)
    return TableLayout(columns, cells, pod_row_conditions if resource.group_resource == "pods" else None)


def _custom_layout(printer_columns: Sequence[Mapping[str, Any]]) -> TableLayout:
    if not printer_columns:
        age = {"name": "Age", "type": "date", "format": "", "description": _created_column()["description"]}
        printer_columns = [age | {"jsonPath": ".metadata.creationTimestamp"}]
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
    return TableLayout((_name_column(), *columns), cells)


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
            return "null" if value is None else as_go(value)
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
    return [name(obj), field(obj, "metadata.creationTimestamp")]


def _name_column() -> Mapping[str, Any]:
    return _recorded_columns()["v1/limitranges"][0]


def _created_column() -> Mapping[str, Any]:
    return _recorded_columns()["v1/limitranges"][1]


def _subresource_columns() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Return the columns of subresources."""
    columns = {column["name"]: column for column in _recorded_columns()["apps/v1/replicasets"]}
    desired = "replicas is the desired number of instances for the scaled object."
    available = "replicas is the actual number of observed instances of the scaled object."
    counts = (
        {**columns["Desired"], "description": desired},
        {**columns["Current"], "name": "Available", "description": available},
    )
    return {"autoscaling/v1/scales": (columns["Name"], *counts, columns["Age"])}


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
