"""Handle lists, watches and gets: an object or a page of objects, in the form that the client accepts."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, partial_body
from aioinformer.testing.api.responses import (
    JSON,
    check_partial,
    chunked_response,
    common_headers,
    json_response,
    truncated_response,
)
from aioinformer.testing.http.reading.broadcasts import Broadcasts
from aioinformer.testing.http.reading.list_options import Options, parse_options, version_fault
from aioinformer.testing.http.reading.lists import Page, list_chunks, list_metadata, partial_chunks, read_page
from aioinformer.testing.http.reading.streams import BookmarkMaker, WatchStream
from aioinformer.testing.http.reading.watches import (
    Watch,
    bookmark_line,
    error_line,
    metadata_body,
    object_body,
    partial_form,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.converting import Conversions
    from aioinformer.testing.http.faults import FaultSet
    from aioinformer.testing.state.admission import TableRenderer
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record, Storage

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
        stored: the stored body, in any API version.
        cluster: the state of the server; its admission renders tables.

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
    """Return a response with one page of a list, made and sent in small steps."""
    check_partial(served, wanted, is_list=True)
    if wanted.form == "table":
        renderer = cluster.admission.render(served, wanted, query)
        table = await renderer.page(page.records, decode(list_metadata(page)))
        return json_response(request, table, headers=headers)
    if wanted.form == "object":
        return await chunked_response(request, list_chunks(served, page), headers)
    if served.webhook is None:
        for index, record in enumerate(page.records):
            metadata_body(record)
            if index % _WORK_AT_ONCE == 0:
                await asyncio.sleep(0)
    item = partial_form(served, wanted.group_version)
    chunks = partial_chunks(page, map(item, page.records), wanted.group_version)
    return await chunked_response(request, chunks, headers)


class Reads:
    """Answer lists, watches and gets. The arguments are those of `ResourceHandlers`."""

    def __init__(
        self,
        cluster: Cluster,
        faults: FaultSet,
        *,
        bookmark_interval: float,
        version_wait: float,
        watch_timeout: float,
        rng: random.Random,
        conversions: Conversions,
    ) -> None:
        self.streams: set[WatchStream] = set()
        self._cluster = cluster
        self._faults = faults
        self._bookmark_interval = bookmark_interval
        self._version_wait = version_wait
        self._watch_timeout = watch_timeout
        self._rng = rng
        self._conversions = conversions
        self._broadcasts = Broadcasts(faults)

    async def list(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = parse_options(target.query, served, target.namespace)
        storage = self._source(target)
        await self._wait_for_version(storage, options.version_number)
        collection = storage.collection(served.collection)
        page = await read_page(collection, options, storage.version)
        await self._conversions.prepare(served, page.records)
        if self._faults.strike("half_page", target):
            return await truncated_response(request, list_chunks(served, page))
        return await page_response(request, served, page, wanted, target.query, self._cluster)

    async def watch(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Answer a watch until it ends.

        Raises:
            StatusError: the server refuses the watch.
        """
        if request.version < HttpVersion11 or request.headers.get("Upgrade", "").lower() == "websocket":
            why = "this server has watches by HTTP/1.1 alone: neither by HTTP/1.0 nor by WebSocket"
            raise statuses.StatusError(501, "NotImplemented", why)
        query = dict(target.query)
        if query.get("sendInitialEvents") and self._faults.strike("ignore_send_initial_events", target):
            del query["sendInitialEvents"]
            query.pop("resourceVersionMatch", None)
            query["ignored"] = "true"
        refused = query.get("sendInitialEvents") and self._faults.strike("refuse_send_initial_events", target)
        options = parse_options(query, served, target.namespace, target.name, watch_list=not refused)
        if wanted.form == "table":
            tables = self._cluster.admission.render(served, wanted, query)
        else:
            tables = None
        response = web.StreamResponse(headers={"Content-Type": JSON, **common_headers(request)})
        response.enable_chunked_encoding()
        # Send the header before the first event: the client must know that its watch is open.
        await response.prepare(request)
        if options.timeout < 0:
            await response.write_eof()
            return response
        try:
            if options.send_initial_events:
                await self._wait_for_version(self._cluster.store.storage, options.version_number)
            stream = self._stream(request, response, target, served, options, wanted, tables, "ignored" in query)
            if wanted.form == "nothing":
                # A watch ends with the first event that has no form the client accepts; an error has one.
                await response.write_eof()
                return response
        except statuses.StatusError as error:
            await response.write(error_line(error))
            await response.write_eof()
            return response
        self.streams.add(stream)
        try:
            await stream.run()
            if request.transport is not None and not request.transport.is_closing():
                await response.write_eof()
        finally:
            self.streams.discard(stream)
            stream.ended.set()
        return response

    def _stream(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        target: Target,
        served: Served,
        options: Options,
        wanted: Wanted,
        tables: TableRenderer | None,
        plain_bookmarks: bool,
    ) -> WatchStream:
        collection = self._cluster.store.collection(served)
        body: Callable[[Record], bytes] = object_body(served)
        partial = wanted.group_version if wanted.form == "partial" else ""
        if partial:
            body = partial_form(served, partial)
        if tables is not None:
            body = tables.event

        def bookmark(version: int, initial_end: bool) -> bytes:
            if tables is not None:
                return b'{"type":"BOOKMARK","object":%s}\n' % tables.bookmark(version, initial_end)
            return bookmark_line(served, version, initial_end=initial_end, partial=partial)

        return WatchStream(
            request,
            response,
            target,
            served,
            collection,
            Watch(collection, options, body, self._cluster.store.storage.version),
            options,
            BookmarkMaker(bookmark, self._bookmark_interval, initial_end=not plain_bookmarks),
            lambda: self._cluster.store.storage.version,
            self._faults,
            options.timeout or self._watch_timeout * (1 + self._rng.random()),
            self._broadcasts,
            # Tables are not shared: they show ages, and name their columns only once. Nor is what must be converted.
            None if tables is not None or served.webhook is not None else (served, partial, options.selection),
            None if served.webhook is None else functools.partial(self._conversions.prepare, served),
        )

    async def get(self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted) -> web.StreamResponse:
        version = target.query.get("resourceVersion", "")
        if message := version_fault(version):
            raise statuses.internal_error(message)
        storage = self._source(target)
        await self._wait_for_version(storage, int(version or 0))
        key = f"{target.namespace}/{target.name}" if target.namespace else target.name
        record = storage.collection(served.collection).get(key)
        if record is None:
            raise statuses.not_found(served.resource, target.name)
        body = record.body
        if served.webhook is not None:
            body = await self._conversions.settle(lambda: served.body(record.body))
        return object_response(request, served, body, wanted, target.query, self._cluster)

    def _source(self, target: Target) -> Storage:
        """Return the storage that answers a list or a get."""
        stale = self._faults.strike("stale_replica", target)
        if stale is None or stale.replica is None:
            return self._cluster.store.storage
        return stale.replica

    async def _wait_for_version(self, storage: Storage, version: int) -> None:
        """Wait until a version has happened.

        Raises:
            StatusError: 504, it did not happen in time.
        """
        if version <= storage.version:
            return
        try:
            async with asyncio.timeout(self._version_wait):
                while version > storage.version:
                    await storage.wait_for_change()
        except TimeoutError:
            raise statuses.version_too_large(version, storage.version) from None
