"""Objects in the form that a client asked for: whole, metadata alone, or as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing import statuses
from aioinformer.testing.encoding import partial_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.lists import Page
    from aioinformer.testing.negotiation import Wanted
    from aioinformer.testing.served import Served
    from aioinformer.testing.storage import Record


def object_in_form(served: Served, body: bytes, wanted: Wanted, query: Mapping[str, str]) -> bytes:
    """One object."""
    if wanted.form == "partial":
        return partial_body(body)
    if wanted.form == "table":
        raise statuses.not_acceptable("tables are not available")
    return body


async def table_list(served: Served, page: Page, wanted: Wanted, query: Mapping[str, str]) -> bytes:
    raise statuses.not_acceptable("tables are not available")


def table_watch(served: Served, wanted: Wanted, query: Mapping[str, str]) -> Callable[[Record], bytes]:
    raise statuses.not_acceptable("tables are not available")
