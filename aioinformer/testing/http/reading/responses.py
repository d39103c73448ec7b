"""Responses with an object or a page of objects, in the form that the client accepts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aioinformer.testing.api.encoding import decode, partial_body
from aioinformer.testing.api.negotiation import check_partial
from aioinformer.testing.api.responses import chunked_response, json_response
from aioinformer.testing.http.reading.lists import Page, list_chunks, list_metadata, partial_chunks
from aioinformer.testing.http.reading.watches import beta_metadata_body, metadata_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster

_WORK_AT_ONCE = 50


def object_response(
    request: web.BaseRequest,
    served: Served,
    stored: bytes,
    wanted: Wanted,
    query: Mapping[str, str],
    cluster: Cluster,
    *,
    status: int = 200,
) -> web.Response:
    """Return a response with one object.

    Args:
        request: the request.
        served: the resource.
        stored: the stored body, in any API version.
        wanted: the form that the client accepts.
        query: of the request.
        cluster: the state of the server; its admission renders tables.
        status: HTTP status.

    Raises:
        StatusError: 406, the client accepts only a list.
    """
    check_partial(served, wanted, is_list=False)
    if wanted.form == "partial":
        body = partial_body(stored, wanted.group_version)
    elif wanted.form == "table":
        body = cluster.admission.render(served, wanted, query).one(stored)
    else:
        body = served.body(stored)
    return json_response(request, body, status=status)


async def page_response(
    request: web.BaseRequest,
    served: Served,
    page: Page,
    wanted: Wanted,
    query: Mapping[str, str],
    cluster: Cluster,
    headers: dict[str, str] | None = None,
) -> web.StreamResponse:
    """Return a response with one page of a list, made and sent in small steps.

    Args:
        request: the request.
        served: the resource.
        page: the records.
        wanted: the form that the client accepts.
        query: of the request.
        cluster: the state of the server; its admission renders tables.
        headers: additional headers.
    """
    check_partial(served, wanted, is_list=True)
    if wanted.form == "table":
        renderer = cluster.admission.render(served, wanted, query)
        table = await renderer.page(page.records, decode(list_metadata(page)))
        return json_response(request, table, headers=headers)
    if wanted.form == "object":
        return await chunked_response(request, list_chunks(served, page), headers)
    for index, record in enumerate(page.records):
        metadata_body(record)
        if index % _WORK_AT_ONCE == 0:
            await asyncio.sleep(0)
    item = metadata_body if wanted.group_version == "meta.k8s.io/v1" else beta_metadata_body
    chunks = partial_chunks(page, map(item, page.records), wanted.group_version)
    return await chunked_response(request, chunks, headers)
