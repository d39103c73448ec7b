"""What the server asks about built-in kinds; `aioinformer.testing.kinds` answers.

The server stores, lists, watches, patches and deletes objects by rules that hold for every kind: names, versions,
ownership of fields, pruning to a schema. What depends on a built-in kind is behind `Admission`: defaults, tables, and
requests that are answered without storing anything. A server loads it when the first request needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.state.storage import Record


class TableRenderer(Protocol):
    """Renders objects of one resource as tables, for one request."""

    def one(self, body: bytes) -> bytes:
        """Return a table of one object."""

    async def page(self, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
        """Return a table of a list, made in small steps."""

    def event(self, record: Record) -> bytes:
        """Return a table for one watch event; only the first one names the columns."""

    def bookmark(self, version: int, initial_end: bool) -> bytes:
        """Return the object of a bookmark."""


class Admission(Protocol):
    """What the server asks about built-in kinds, and about the rules of custom ones."""

    def default(self, served: Served, obj: dict[str, Any]) -> None:
        """Fill in what the writer left out; the writer owns these fields."""

    def prepare(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None, subresource: str) -> None:
        """Bring an object into the form in which its kind is stored, `obj` is changed.

        The status of a new object and the parts that this kind of write cannot change are set already.
        """

    def validate(
        self,
        served: Served,
        obj: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        *,
        subresource: str = "",
        whole: bool = True,
        causes: Sequence[Cause] = (),
    ) -> list[Cause]:
        """Return what is wrong with an object whose defaults are filled in.

        Args:
            obj: the object; for a custom resource, the rules of its schema are evaluated.
            old: the object that it replaces. What was wrong in it already is not returned.
            subresource: the part that is written, "" for the object itself.
            whole: whether required fields have to be there.

        Raises:
            StatusError: 403, the change is forbidden; 501, a rule cannot be evaluated.
        """

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableRenderer:
        """Return what renders objects as tables.

        Raises:
            StatusError: 400 for an unknown `includeObject`.
        """

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Answer a request that stores nothing of its own: reviews, and actions on pods.

        Args:
            wanted: what the client accepts; None for streams.
        """
