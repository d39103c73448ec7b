"""Objects and pages of objects as answers, in the form that the client asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aioinformer.testing.api.answers import chunked_answer, json_answer
from aioinformer.testing.api.negotiation import check_partial
from aioinformer.testing.http.reading.lists import Page, list_chunks, partial_chunks
from aioinformer.testing.http.reading.representations import TableMaker, object_in_form
from aioinformer.testing.http.reading.watches import beta_metadata_body, metadata_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web

    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.served import Served

_WORK_AT_ONCE = 50


def object_answer(
    request: web.BaseRequest,
    served: Served,
    stored: bytes,
    wanted: Wanted,
    query: Mapping[str, str],
    now: Callable[[], float],
    *,
    status: int = 200,
) -> web.Response:
    """One object.

    Args:
        stored: its body as it is stored, in whichever API version.
        now: seconds since 1970, for the ages in tables.
    """
    body = object_in_form(served, stored, wanted, query, now)
    return json_answer(request, body, status=status, wanted=wanted)


async def page_answer(
    request: web.BaseRequest,
    served: Served,
    page: Page,
    wanted: Wanted,
    query: Mapping[str, str],
    now: Callable[[], float],
    headers: dict[str, str] | None = None,
) -> web.StreamResponse:
    """One page of a list, made and sent in small steps.

    Args:
        now: seconds since 1970, for the ages in tables.
        headers: besides those that every answer has.
    """
    check_partial(served, wanted, is_list=True)
    if wanted.form == "table":
        table = await TableMaker(served, wanted, query, now).page(page)
        return json_answer(request, table, headers=headers, wanted=wanted)
    if wanted.form == "object":
        return await chunked_answer(request, list_chunks(served, page), wanted, headers)
    for index, record in enumerate(page.records):
        metadata_body(record)
        if index % _WORK_AT_ONCE == 0:
            await asyncio.sleep(0)
    item = metadata_body if wanted.group_version == "meta.k8s.io/v1" else beta_metadata_body
    chunks = partial_chunks(page, map(item, page.records), wanted.group_version)
    return await chunked_answer(request, chunks, wanted, headers)
