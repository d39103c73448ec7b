"""Render objects as tables for one request."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.tables.rendering import INCLUDE_OBJECT, layout
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object, encode_plain
from aioinformer.testing.api.protobuf.go_json import go_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.testing.admission.tables.rendering import TableLayout
    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.storage import Record

_ROWS_AT_ONCE = 25


class TableMaker:
    """Renders objects of one resource as tables, for one request.

    Args:
        served: the resource.
        wanted: what the client accepts.
        query: of the request; `includeObject` is read from it.
        now: seconds since 1970, for ages.

    Raises:
        StatusError: 400, the value of `includeObject` is unknown.
    """

    def __init__(self, served: Served, wanted: Wanted, query: Mapping[str, str], now: Callable[[], float]) -> None:
        self._served = served
        self._layout: TableLayout = layout(served.stored_as, served.columns if served.custom else None)
        self._group_version = wanted.group_version
        self._now = now
        self._headers_sent = False
        self._include = query.get("includeObject") or "Metadata"
        if self._include not in INCLUDE_OBJECT:
            why = f"""includeObject: Invalid value: "{self._include}": must be 'Metadata', 'Object', 'None', or empty"""
            raise statuses.bad_request(f"Unable to convert to Table as requested: {why}")

    def one(self, body: bytes) -> bytes:
        """Return a table with one object."""
        obj = self._served.decoded(body)
        return self._table([obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})

    async def page(self, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
        """Return a table of a list, made in small steps."""
        now = self._time()
        rows: list[dict[str, Any]] = []
        for index, record in enumerate(records):
            obj = self._served.decoded(record.body)
            row = self._layout.row(obj, now, include=self._include, api_version=self._group_version)
            rows.append(self._with_object(row, obj))
            if index % _ROWS_AT_ONCE == _ROWS_AT_ONCE - 1:
                await asyncio.sleep(0)
        table = self._layout.table((), now, metadata=metadata, api_version=self._group_version)
        table["rows"] = rows
        return encode_plain(table)

    def event(self, record: Record) -> bytes:
        """Return a table for a watch event. Only the first one has the column definitions."""
        return self._event(self._served.decoded(record.body))

    def bookmark(self, version: int, initial_end: bool) -> bytes:
        """Return the object of a bookmark."""
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        resource = self._served.resource
        empty = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return self._event(empty if self._served.custom else go_json(empty))

    def _event(self, obj: Mapping[str, Any]) -> bytes:
        body = self._table([obj], {"resourceVersion": obj["metadata"]["resourceVersion"]}, not self._headers_sent)
        self._headers_sent = True
        return body

    def _table(self, objects: list[Any], metadata: Mapping[str, Any], headers: bool = True) -> bytes:
        table = self._layout.table(
            objects,
            self._time(),
            metadata=metadata,
            include=self._include,
            headers=headers,
            api_version=self._group_version,
        )
        table["rows"] = [self._with_object(row, obj) for row, obj in zip(table["rows"], objects, strict=True)]
        return encode_plain(table)

    def _with_object(self, row: dict[str, Any], obj: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with its object in the requested version. Cells are made from one version only."""
        if self._include == "Object" and self._served.conversion is not None:
            row["object"] = decode(self._served.body(encode_object(obj, custom=False)))
        return row

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)
