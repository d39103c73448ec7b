"""Lists: `Listing` reads a collection page by page, or as a whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from aioinformer.client.retries import new_request
from aioinformer.concurrency import running_loop
from aioinformer.errors import DecodeError, Expired, OptionError
from aioinformer.logs import Trace, get_logger
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.pager import read_page
from aioinformer.reflector.protocol.messages import PageEnded
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.resources.selectors import field_selector_of, label_selector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping

    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.cache.objects.record import Record
    from aioinformer.client.requests import Settings
    from aioinformer.client.retries import Sender
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.selectors import FieldSelector, LabelSelector
    from aioinformer.transport import Response

T = TypeVar("T")

_log = get_logger("aioinformer.client")

_PAGE_SIZE = 500


class Page(list[T]):
    """Objects that the server has listed: one page, or all of them. You own the list; the objects are immutable.

    Attributes:
        resource_version: of the list: all its objects are as they were at this version.
        continue_token: requests the next page; "" after the last one.
    """

    def __init__(self, items: list[T], resource_version: str, continue_token: str = "") -> None:
        super().__init__(items)
        self.resource_version = resource_version
        self.continue_token = continue_token


class Listing(Generic[T]):
    """A list that is requested when it is read: `async for obj in listing`, `await listing`, or `listing.pages()`.

    Each page is read as a whole before its first object is yielded. So no connection is open while your code runs, and
    you may leave the loop at any time. `await listing` returns all objects in one list.

    Made by `ResourceClient.list`.
    """

    def __init__(self, requests: PageRequests[T], first: ListOptions, limit: int | None) -> None:
        self._requests = requests
        self._first = first
        self._limit = limit

    async def pages(self) -> AsyncGenerator[Page[T]]:
        """Yield page by page.

        Raises:
            Expired: the continue token expired before the list was complete.
            ApiError: the server refused a request.
            TransportError: the server was not reached, or the response was cut.
            DecodeError: a response or an object cannot be read.
        """
        left = self._limit
        options = copy(self._first)
        version = ""
        trace = Trace(_log, f"the list of {self._requests.resource.gvr}", running_loop("a list is read").time)
        while True:
            if left is not None and (options.limit == 0 or left < options.limit):
                options.limit = left
            page = await self._requests.page(options)
            version = version or page.resource_version
            page.resource_version = version
            if left is not None:
                del page[left:]
                left -= len(page)
            trace.count(len(page), pages=1)
            yield page
            if not page.continue_token or left == 0:
                return
            options = ListOptions(
                label_selector=self._first.label_selector,
                field_selector=self._first.field_selector,
                limit=self._first.limit,
                continue_token=page.continue_token,  # contains the version
            )

    async def __aiter__(self) -> AsyncGenerator[T]:
        async for page in self.pages():
            for obj in page:
                yield obj

    def __await__(self) -> Generator[Any, None, Page[T]]:
        return self._whole().__await__()

    async def _whole(self) -> Page[T]:
        whole: Page[T] = Page([], "")
        pages = 0
        try:
            async for page in self.pages():
                pages += 1
                whole += page
                whole.resource_version = page.resource_version
                whole.continue_token = page.continue_token
        except Expired:
            if not pages:
                raise
        else:
            return whole
        # The token expired: list again, in one page, which cannot expire. If the version of `first` has expired, too,
        # this raises: no other version is what the caller asked for.
        options = copy(self._first)
        options.limit = 0
        again = await self._requests.page(options)
        if self._limit is not None:
            del again[self._limit :]
        return again


class _Opened(NamedTuple):
    """A collection whose only request is made already."""

    resource: Resource[Any]
    response: Callable[[], Coroutine[Any, Any, Response]]

    def request(self, options: ListOptions) -> Coroutine[Any, Any, Response]:
        return self.response()


class PageRequests(Generic[T]):
    """Requests and reads single pages of one collection."""

    def __init__(
        self, sender: Sender, settings: Settings, resource: Resource[T], path: str, objects: ObjectType[T]
    ) -> None:
        self._sender = sender
        self._settings = settings
        self._path = path
        self._objects = objects
        self._decoder = RecordDecoder(objects.on_arrival if objects.decodes_early else None)
        self.resource = resource

    async def page(self, options: ListOptions) -> Page[T]:
        """Return one page.

        Raises:
            AioinformerError: as for `Listing.pages`.
        """
        request = new_request(self._settings, "GET", self._path, tuple(options.to_query()))
        opened = _Opened(self.resource, lambda: self._sender.open(request))
        return await self._sender.persist(lambda: self._read(opened, options), request, self._settings, safe=True)

    async def _read(self, opened: _Opened, options: ListOptions) -> Page[T]:
        records: list[Record] = []
        version = ""
        token = ""
        async with aclosing(read_page(opened, options, self._decoder, _READING)) as answers:
            async for answer in answers:
                if isinstance(answer, PageEnded):
                    version = answer.resource_version
                    token = answer.continue_token
                    continue
                for item in answer.items:
                    if isinstance(item, DecodeError):
                        raise item
                    records.append(item)
        return Page(list(map(self._objects.to_view, records)), version, token)


_READING = ReflectorOptions()


def list_options(
    label_selector: str | LabelSelector | Mapping[str, str],
    field_selector: str | FieldSelector | Mapping[str, str],
    page_size: int = _PAGE_SIZE,
    resource_version: str = "",
    resource_version_match: str = "",
    limit: int | None = None,
) -> ListOptions:
    """Return the options of the first page.

    Raises:
        SelectorError: a selector does not parse.
        OptionError: a value is invalid.
    """
    numbers: tuple[tuple[str, object, int], ...] = (
        ("page_size", page_size, 0),
        ("limit", 1 if limit is None else limit, 1),
    )
    for name, number, least in numbers:
        if not isinstance(number, int) or number < least:
            raise OptionError(f"{name} must be a number of objects, at least {least}, not {number!r}")
    labels = label_selector_of(label_selector, "label_selector")
    wanted = field_selector_of(field_selector, "field_selector")
    return ListOptions(
        label_selector=label_selector if isinstance(label_selector, str) else str(labels),
        field_selector=field_selector if isinstance(field_selector, str) else str(wanted),
        limit=page_size,
        resource_version=resource_version,
        resource_version_match=resource_version_match,
    )
