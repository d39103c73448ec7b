"""HTTP requests to answers: what each verb does, once it is known what the request is about."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing import statuses
from aioinformer.testing.answers import JSON, chunked_answer, json_answer
from aioinformer.testing.encoding import decode, encode_object, encode_plain
from aioinformer.testing.list_options import Options, parse_options, parse_selection, version_message
from aioinformer.testing.lists import Page, list_chunks, partial_chunks, read_page
from aioinformer.testing.negotiation import Wanted, negotiate, read_object, read_options
from aioinformer.testing.patching import patch_object, patched_object
from aioinformer.testing.representations import object_in_form, table_list, table_watch
from aioinformer.testing.scale import read_scale, scaled
from aioinformer.testing.statuses import Cause
from aioinformer.testing.strategies import returns_deleted
from aioinformer.testing.streams import BookmarkMaker, WatchStream
from aioinformer.testing.watches import Watch, bookmark_line, error_line, metadata_body, object_body

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.faults import FaultSet
    from aioinformer.testing.routes import Target
    from aioinformer.testing.served import Served
    from aioinformer.testing.storage import Record

_POLICIES = ("Foreground", "Background", "Orphan", "nil")
_WORK_AT_ONCE = 50


class ResourceHandlers:
    """Answers everything that is about a resource.

    Args:
        cluster: what it is answered from.
        faults: that change how.
        bookmark_interval: seconds between the bookmarks of a watch.
        version_wait: seconds to wait for a version that has not happened yet.
        watch_timeout: shortest seconds of a watch that does not say how long; the longest is twice that.

    Attributes:
        streams: the watches that are open.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: FaultSet,
        *,
        bookmark_interval: float,
        version_wait: float,
        watch_timeout: float,
        rng: random.Random,
    ) -> None:
        self.streams: set[WatchStream] = set()
        self._cluster = cluster
        self._faults = faults
        self._bookmark_interval = bookmark_interval
        self._version_wait = version_wait
        self._watch_timeout = watch_timeout
        self._rng = rng

    async def answer(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        """Does what a request asks for.

        Raises:
            StatusError: what the API answers instead.
        """
        served = target.served
        assert served is not None
        wanted = negotiate(request.headers.get("Accept", ""), watch=target.verb == "watch")
        if target.subresource:
            return await self._subresource(request, target, served, wanted)
        match target.verb:
            case "list":
                return await self._list(request, target, served, wanted)
            case "watch":
                return await self._watch(request, target, served, wanted)
            case "get":
                return await self._get(request, target, served, wanted)
            case "create":
                return await self._create(request, target, served, wanted)
            case "update":
                return await self._update(request, target, served, wanted)
            case "patch":
                return await self._patch(request, target, served, wanted)
            case "delete":
                return await self._delete(request, target, served, wanted)
            case _:
                return await self._delete_collection(request, target, served, wanted)

    async def _list(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = parse_options(target.query, served, target.namespace)
        await self._wait_for_version(options.version_number)
        page = await read_page(self._cluster.collection(served), options, self._cluster.storage.version)
        if wanted.form == "table":
            body = await table_list(served, page, wanted, target.query)
            return json_answer(request, body, wanted=wanted)
        return await self._send_page(request, target, served, page, wanted)

    async def _send_page(
        self, request: web.BaseRequest, target: Target, served: Served, page: Page, wanted: Wanted
    ) -> web.StreamResponse:
        if wanted.form == "partial":
            for index, record in enumerate(page.records):
                metadata_body(record)
                if index % _WORK_AT_ONCE == 0:
                    await asyncio.sleep(0)
            chunks = partial_chunks(page)
        else:
            chunks = list_chunks(served, page)
        if target.verb == "list" and self._faults.strike("half_page", target):
            body = b"".join(chunks)
            response = web.StreamResponse(headers={"Content-Type": JSON})
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            if request.transport is not None:
                request.transport.close()
            return response
        return await chunked_answer(request, chunks, wanted)

    async def _watch(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        query = dict(target.query)
        if query.get("sendInitialEvents") and self._faults.strike("ignore_send_initial_events", target):
            del query["sendInitialEvents"]
            query.pop("resourceVersionMatch", None)
            query["ignored"] = "true"
        refused = query.get("sendInitialEvents") and self._faults.strike("refuse_send_initial_events", target)
        options = parse_options(query, served, target.namespace, watch_list=not refused)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        # The header goes out before the first event: a client must know that its watch is open.
        await response.prepare(request)
        try:
            if options.send_initial_events:
                await self._wait_for_version(options.version_number)
            stream = self._stream(request, response, target, served, options, wanted, "ignored" in query)
        except statuses.StatusError as error:
            await response.write(error_line(error))
            await response.write_eof()
            return response
        self.streams.add(stream)
        try:
            await stream.run()
        finally:
            self.streams.discard(stream)
        if request.transport is not None and not request.transport.is_closing():
            await response.write_eof()
        return response

    def _stream(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        target: Target,
        served: Served,
        options: Options,
        wanted: Wanted,
        plain_bookmarks: bool,
    ) -> WatchStream:
        collection = self._cluster.collection(served)
        body: Callable[[Record], bytes] = object_body(served)
        if wanted.form == "partial":
            body = metadata_body
        elif wanted.form == "table":
            body = table_watch(served, wanted, target.query)
        partial = wanted.form == "partial"

        def bookmark(version: int, initial_end: bool) -> bytes:
            return bookmark_line(served, version, initial_end=initial_end, partial=partial)

        return WatchStream(
            request,
            response,
            target,
            served,
            collection,
            Watch(collection, options, body, self._cluster.storage.version),
            options,
            BookmarkMaker(bookmark, self._bookmark_interval, initial_end=not plain_bookmarks),
            lambda: self._cluster.storage.version,
            self._faults,
            options.timeout or self._watch_timeout * (1 + self._rng.random()),
        )

    async def _get(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        version = target.query.get("resourceVersion", "")
        if version and not (version.isascii() and version.isdigit()):
            raise statuses.internal_error(version_message(version))
        await self._wait_for_version(int(version or 0))
        record = self._cluster.get(served, target.namespace, target.name)
        return self._object(request, served, record.body, wanted, target)

    async def _create(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        dry_run = _dry_run(target.query, "CreateOptions")
        obj = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
        body = self._cluster.create(served, target.namespace, obj, dry_run=dry_run)
        return self._object(request, served, body, wanted, target, status=201)

    async def _update(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        dry_run = _dry_run(target.query, "UpdateOptions")
        obj = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
        body = self._cluster.update(
            served, target.namespace, target.name, obj, subresource=target.subresource, dry_run=dry_run
        )
        return self._object(request, served, body, wanted, target)

    async def _patch(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        dry_run = _dry_run(target.query, "PatchOptions")
        body, created = patch_object(
            self._cluster,
            served,
            target.namespace,
            target.name,
            await request.read(),
            request.headers.get("Content-Type", ""),
            target.query,
            subresource=target.subresource,
            dry_run=dry_run,
        )
        return self._object(request, served, body, wanted, target, status=201 if created else 200)

    async def _delete(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = await _delete_options(request, target.query)
        preconditions = options.get("preconditions") or {}
        body, gone = self._cluster.delete(
            served,
            target.namespace,
            target.name,
            uid=str(preconditions.get("uid") or ""),
            version=str(preconditions.get("resourceVersion") or ""),
            policy=str(options.get("propagationPolicy") or ""),
            dry_run=bool(options.get("dryRun")),
        )
        if not gone or returns_deleted(served):
            return self._object(request, served, body, wanted, target)
        details = statuses.resource_details(served.resource, target.name)
        details["uid"] = decode(body)["metadata"]["uid"]
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_answer(request, encode_plain(status), wanted=wanted)

    async def _delete_collection(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        options = await _delete_options(request, target.query)
        selection = parse_selection(target.query, served, target.namespace)
        version = self._cluster.storage.version
        found = [
            record for record in self._cluster.collection(served).records(target.namespace) if selection.matches(record)
        ]
        for index, record in enumerate(found):
            try:
                self._cluster.delete(
                    served,
                    record.namespace,
                    record.name,
                    policy=str(options.get("propagationPolicy") or ""),
                    dry_run=bool(options.get("dryRun")),
                )
            except statuses.StatusError as error:
                if error.code != 404:
                    raise
            if index % _WORK_AT_ONCE == _WORK_AT_ONCE - 1:
                await asyncio.sleep(0)
        return await self._send_page(request, target, served, Page(version, found), wanted)

    async def _subresource(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        if target.subresource == "scale":
            return await self._scale(request, target, served, wanted)
        if target.subresource not in ("status", "finalize", "approval", "resize", "ephemeralcontainers"):
            message = f"this server does not implement {served.resource.plural}/{target.subresource}"
            raise statuses.StatusError(501, "NotImplemented", message)
        match target.verb:
            case "get":
                return await self._get(request, target, served, wanted)
            case "update":
                return await self._update(request, target, served, wanted)
            case _:
                return await self._patch(request, target, served, wanted)

    async def _scale(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        record = self._cluster.get(served, target.namespace, target.name)
        obj = decode(record.body)
        scale = read_scale(served, obj)
        if target.verb != "get":
            dry_run = _dry_run(target.query, "UpdateOptions" if target.verb == "update" else "PatchOptions")
            data, content_type = await request.read(), request.headers.get("Content-Type", "")
            if target.verb == "update":
                new = read_options(data, content_type)
            else:
                new = patched_object(served, scale, data, content_type)
            changed = scaled(served, obj, new)
            body = self._cluster.update(served, target.namespace, target.name, changed, dry_run=dry_run)
            scale = read_scale(served, decode(body))
        return json_answer(request, encode_object(scale, custom=False), wanted=wanted)

    def _object(
        self,
        request: web.BaseRequest,
        served: Served,
        stored: bytes,
        wanted: Wanted,
        target: Target,
        *,
        status: int = 200,
    ) -> web.Response:
        body = object_in_form(served, served.body(stored), wanted, target.query)
        return json_answer(request, body, status=status, wanted=wanted)

    async def _wait_for_version(self, version: int) -> None:
        """Returns when a version has happened.

        Raises:
            StatusError: 504, it has not within the time that the server waits.
        """
        storage = self._cluster.storage
        if version <= storage.version:
            return
        try:
            async with asyncio.timeout(self._version_wait):
                while version > storage.version:
                    await storage.wait_for_change()
        except TimeoutError:
            raise statuses.version_too_large(version, storage.version) from None


async def _delete_options(request: web.BaseRequest, query: Mapping[str, str]) -> Mapping[str, Any]:
    """DeleteOptions from the body and from the query, which wins."""
    options = dict(read_options(await request.read(), request.headers.get("Content-Type", "")))
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    policy = options.get("propagationPolicy")
    if policy and policy not in _POLICIES[:3]:
        cause = Cause.unsupported("propagationPolicy", f'"{policy}"', _POLICIES)
        raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if _dry_run(query, "DeleteOptions"):
        options["dryRun"] = ["All"]
    return options


def _dry_run(query: Mapping[str, str], kind: str) -> bool:
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        cause = Cause.unsupported("dryRun", f'["{value}"]', ("All",))
        raise statuses.invalid(kind, "meta.k8s.io", "", [cause])
    return bool(value)
