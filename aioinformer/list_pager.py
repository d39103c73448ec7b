"""A collection listed once, page by page, for those who need no cache (PG-01 to PG-04)."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.answers import AnswerReader
from aioinformer.errors import DecodeError, Expired, UsageError
from aioinformer.object_type import BodyDecoder, ObjectType
from aioinformer.options import ListOptions, ReflectorOptions
from aioinformer.steps import Failed, Listed, PageEnded, Send
from aioinformer.wire import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aioinformer.listwatch import ListerWatcher

T = TypeVar("T")


class ListPager(Generic[T]):
    """Lists a collection: `async for obj in pager.each()`, or `await pager.list()`.

    A page is never held as a whole: objects are handed out as they arrive, and the next page is asked for when the one
    before is used up.

    Args:
        lister_watcher: what to list.
        page_size: objects in a page, 0 for all in one.
        resource_version: as old as this at most; "" for what is true now.
        resource_version_match: "", "NotOlderThan" or "Exact".
        decoder: as for `SharedIndexInformer`.
        options: time-outs, and the cap on objects.

    Attributes:
        resource_version: of the list: that of its first page; "" before that.
        pages: how many were read.
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
        self._intake = Intake(self._objects.admit if self._objects.decodes_early else None)
        self._options = options or ReflectorOptions()
        self.resource_version = ""
        self.pages = 0

    async def each(self) -> AsyncGenerator[T]:
        """Yields every object as it arrives. Who stops early closes it, with `contextlib.aclosing`.

        Raises:
            Expired: the list took so long that the server forgot where it was; what was yielded is no whole.
            ApiError: the server refuses.
            TransportError: the server was not reached, broke off, or fell silent.
            DecodeError: what it sent cannot be read.
        """
        self.pages = 0
        self.resource_version = ""
        options: ListOptions | None = self._first
        while options is not None:
            token = ""
            async with aclosing(
                read_page(self._lister_watcher, replace(options), self._intake, self._options)
            ) as answers:
                async for answer in answers:
                    if isinstance(answer, PageEnded):
                        self.resource_version = self.resource_version or answer.resource_version
                        token = answer.continue_token
                    else:
                        for item in answer.items:
                            if isinstance(item, DecodeError):
                                raise item
                            yield self._objects.present(item)
            self.pages += 1
            # The token says which version it is about.
            options = ListOptions(limit=self._first.limit, continue_token=token) if token else None

    async def list(self) -> list[T]:
        """All objects. If the server forgets where it was, all are listed again in one page (PG-03).

        Raises:
            ApiError: the server refuses.
            TransportError: the server was not reached, broke off, or fell silent.
            DecodeError: what it sent cannot be read.
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
        self.resource_version, self.pages = whole.resource_version, self.pages + whole.pages
        return objects


async def read_page(
    lister_watcher: ListerWatcher[Any], options: ListOptions, intake: Intake, how: ReflectorOptions
) -> AsyncGenerator[Listed | PageEnded]:
    """One page of a list, bit by bit.

    Args:
        lister_watcher: what to list.
        options: which page.
        intake: makes records of objects.
        how: time-outs, the cap on objects, and the length of slices.

    Raises:
        ApiError: the server refuses.
        TransportError: the server was not reached, broke off, or fell silent.
        DecodeError: what it sent cannot be read.
    """
    response = await lister_watcher.request(options)
    reader = AnswerReader(response, Send(options, initial=True), intake, how)
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
