"""Lists and watches outside an informer: `ListPager` reads all pages, `read_page` one of them, `read_watch` a watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from aioinformer.cache.objects.codec import BodyDecoder, ObjectType
from aioinformer.errors import DecodeError, Expired, FrameTooLarge, TransportError, UsageError
from aioinformer.logs import Trace, get_logger
from aioinformer.reflector.listwatch import ListerWatcher
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.protocol.messages import Failed, Listed, PageEnded, Send, Watched
from aioinformer.reflector.response_reader import ResponseReader
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, RecordDecoder, WatchEvent

if TYPE_CHECKING:
    from aioinformer.transport import Response

T = TypeVar("T")

_log = get_logger("aioinformer.reflector")


class ListPager(Generic[T]):
    """List a collection: `async for obj in pager.each()`, or `await pager.list()`.

    No page is in memory as a whole: objects are yielded as they arrive, and the next page is requested after the last
    object of the current one.

    Args:
        lister_watcher: lists the collection.
        page_size: the number of objects in a page, 0 for one page.
        resource_version: the list must not be older; "" for the current state.
        resource_version_match: "", "NotOlderThan" or "Exact".
        decoder: as for `SharedIndexInformer`.
        options: timeouts, and the largest object accepted.

    Attributes:
        resource_version: of the list, from its first page; "" before that.
        pages: the number of pages that were read.

    Raises:
        UsageError: `page_size` is negative.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        *,
        page_size: int = 500,
        resource_version: str = "",
        resource_version_match: str = "",
        decoder: BodyDecoder[T] | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        if page_size < 0:
            raise UsageError(f"page_size={page_size} must be a number of objects, or 0 for one page")
        self._lister_watcher = lister_watcher
        self._first = ListOptions(
            limit=page_size, resource_version=resource_version, resource_version_match=resource_version_match
        )
        self._decoder = decoder
        self._objects: ObjectType[T] = ObjectType(lister_watcher.resource, decoder)
        self._record_decoder = RecordDecoder(self._objects.on_arrival if self._objects.decodes_early else None)
        self._options = options or ReflectorOptions()
        self.resource_version = ""
        self.pages = 0

    async def each(self) -> AsyncGenerator[T]:
        """Yield every object as it arrives. If you stop early, close the generator, e.g. with `contextlib.aclosing`.

        Raises:
            Expired: the continue token expired before the list was complete.
            ApiError: the server refused a request.
            TransportError: the server was unreachable, cut the response, or sent no data for too long.
            DecodeError: a response or an object cannot be read.
        """
        self.pages = 0
        self.resource_version = ""
        trace = Trace(_log, f"the list of {self._lister_watcher.resource.gvr}", asyncio.get_running_loop().time)
        options: ListOptions | None = self._first
        while options is not None:
            token = ""
            async with aclosing(
                read_page(self._lister_watcher, replace(options), self._record_decoder, self._options)
            ) as answers:
                async for answer in answers:
                    if isinstance(answer, PageEnded):
                        self.resource_version = self.resource_version or answer.resource_version
                        token = answer.continue_token
                    else:
                        trace.count(len(answer.items))
                        for item in answer.items:
                            if isinstance(item, DecodeError):
                                raise item
                            yield self._objects.to_view(item)
            self.pages += 1
            trace.count(pages=1)
            # The token contains the version.
            options = ListOptions(limit=self._first.limit, continue_token=token) if token else None

    async def list(self) -> list[T]:
        """Return all objects. If the continue token expires, list them again in one page.

        Raises:
            ApiError: the server refused a request.
            TransportError: the server was unreachable, cut the response, or sent no data for too long.
            DecodeError: a response or an object cannot be read.
        """
        try:
            return [obj async for obj in self.each()]
        except Expired:
            if self.pages == 0:
                raise
        whole = ListPager(
            self._lister_watcher,
            page_size=0,
            resource_version=self._first.resource_version,
            resource_version_match=self._first.resource_version_match,
            decoder=self._decoder,
            options=self._options,
        )
        objects = [obj async for obj in whole.each()]
        self.resource_version = whole.resource_version
        self.pages += whole.pages
        return objects


async def read_page(
    lister_watcher: ListerWatcher[Any], options: ListOptions, decoder: RecordDecoder, reader_options: ReflectorOptions
) -> AsyncGenerator[Listed | PageEnded]:
    """Request one page of a list, and yield its items while they arrive, then its end.

    Args:
        lister_watcher: sends the request.
        options: of the request.
        decoder: makes records of objects.
        reader_options: timeouts, the largest object accepted, and the length of slices.

    Raises:
        ApiError: the server refused the request.
        TransportError: the server was unreachable, cut the response, or sent no data for too long.
        DecodeError: the response cannot be read.
    """
    options.max_frame = reader_options.max_frame
    response = await lister_watcher.request(options)
    reader = ResponseReader(response, Send(options, initial=True), decoder, reader_options)
    try:
        if response.status != 200:
            raise await reader.read_failure()
        async with aclosing(reader.answers(initial=True)) as answers:
            async for answer in answers:
                if isinstance(answer, Failed):
                    raise answer.error
                if isinstance(answer, (Listed, PageEnded)):
                    yield answer
    finally:
        await reader.close()


async def read_watch(
    response: Response, options: ListOptions, decoder: RecordDecoder, reader_options: ReflectorOptions
) -> AsyncGenerator[WatchEvent]:
    """Yield the events of a watch: bookmarks, and changes with objects that have a version. Close the response.

    Args:
        response: to the request of the watch.
        options: of the request.
        decoder: makes records of objects.
        reader_options: timeouts, and the largest object accepted.

    Raises:
        ApiError: the server refused the request, or ended the watch with an error, such as `Expired`.
        TransportError: the connection broke, sent no data for too long, or sent a line that is not an event.
        DecodeError: an object cannot be decoded, or has no version; or the server sent an event of an unknown type.
    """
    reader = ResponseReader(response, Send(options), decoder, reader_options)
    try:
        if response.status != 200:
            raise await reader.read_failure()
        async with aclosing(reader.answers(initial=False)) as answers:
            async for answer in answers:
                if isinstance(answer, Failed):
                    if isinstance(answer.error, FrameTooLarge):
                        raise answer.error
                    # The next watch requests the events of a broken line again.
                    raise TransportError(str(answer.error)) from answer.error
                for event in answer.events if isinstance(answer, Watched) else ():
                    if event.type == ERROR and event.error is not None:
                        raise event.error
                    if event.type not in (ADDED, MODIFIED, DELETED, BOOKMARK):
                        raise DecodeError(f"the watch received an event of the unknown type {event.type[:20]!r}")
                    if event.type != BOOKMARK:
                        if event.record is None:
                            raise event.error or DecodeError("the watch received an event without an object")
                        if not event.record.resource_version:
                            raise DecodeError(
                                "the watch received an object without resourceVersion", key=event.record.key
                            )
                    yield event
    finally:
        await reader.close()
