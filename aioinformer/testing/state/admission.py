"""The seam between the server and its second part, `aioinformer.testing.admission`.

The server stores, lists, watches, patches and deletes objects by rules that hold for every kind: names, versions,
ownership of fields, pruning to a schema. What depends on a built-in kind is behind `Admission`: defaults, checks of
specifications, warnings, tables, and requests that are answered without storing anything.

The second part is large. A server loads it when the first request needs it; `NoAdmission` takes its place where it is
not installed.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from aioinformer.testing.api.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

_PART = "aioinformer.testing.admission"


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

    def assign(
        self,
        served: Served,
        obj: dict[str, Any],
        old: Mapping[str, Any] | None,
        *,
        name: str,
        dry_run: bool,
        whole: bool,
    ) -> None:
        """Set what the server allocates before an object is validated: priorities, addresses, ports.

        Args:
            served: the resource.
            obj: is changed.
            old: the object that it replaces; None for a new one.
            name: of the object; generated names are not in its metadata yet.
            dry_run: do not reserve anything.
            whole: refuse what this cluster does not have.

        Raises:
            StatusError: 403, 422 or 500.
        """

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
            served: the resource.
            obj: the object; for a custom resource, the rules of its schema are evaluated.
            old: the object that it replaces. What was wrong in it already is not returned.
            subresource: the part that is written, "" for the object itself.
            whole: whether required fields have to be there.
            causes: what is wrong already.

        Raises:
            StatusError: 403, the change is forbidden; 501, a rule cannot be evaluated.
        """

    def warn(self, served: Served, body: bytes, *, subresource: str = "", created: bool) -> list[str]:
        """Return the warnings about an object that was written."""

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableRenderer:
        """Return what renders objects as tables.

        Raises:
            StatusError: 400 for an unknown `includeObject`; 501, tables are not available.
        """

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Answer a request that stores nothing of its own: reviews, and actions on pods.

        Args:
            request: the request.
            target: what it is about.
            served: the resource.
            wanted: what the client accepts; None for streams.

        Raises:
            StatusError: what the API answers instead; 501, this is not available.
        """


class NoAdmission:
    """Accept what passes the checks that hold for every kind; render no tables, answer no reviews."""

    def default(self, served: Served, obj: dict[str, Any]) -> None:
        """Fill in nothing."""

    def assign(
        self,
        served: Served,
        obj: dict[str, Any],
        old: Mapping[str, Any] | None,
        *,
        name: str,
        dry_run: bool,
        whole: bool,
    ) -> None:
        """Assign nothing."""

    def prepare(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None, subresource: str) -> None:
        """Change nothing."""

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
        """Find nothing wrong."""
        return []

    def warn(self, served: Served, body: bytes, *, subresource: str = "", created: bool) -> list[str]:
        """Warn of nothing."""
        return []

    def render(self, served: Served, wanted: Wanted, query: Mapping[str, str]) -> TableRenderer:
        """Refuse tables."""
        raise _missing("tables")

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted | None
    ) -> web.StreamResponse:
        """Refuse reviews, and actions on pods."""
        part = f"/{target.subresource}" if target.subresource else ""
        raise _missing(f"{served.resource.plural}{part}")


def is_installed() -> bool:
    """Return whether the second part can be imported."""
    return find_spec(_PART) is not None


def load_admission(cluster: Cluster, access: object) -> Admission:
    """Import the second part and return it; `NoAdmission` where it is not installed.

    Args:
        cluster: the state that it works on.
        access: the users of the server.
    """
    if not is_installed():
        return NoAdmission()
    # By name: nothing in the first part imports the second one.
    admission: Admission = import_module(f"{_PART}.builtin").BuiltinAdmission(cluster, access)
    return admission


def _missing(what: str) -> StatusError:
    message = f"this server has no {what}: aioinformer.testing.admission is not installed"
    return StatusError(501, "NotImplemented", message)
