"""The pages of one list: which one is next, and whether they get anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Collection

    from aioinformer.incoming_list import IncomingList
    from aioinformer.objects import Record
    from aioinformer.options import ListOptions, ReflectorOptions


class Paging:
    """Asks for page after page.

    Args:
        options: how to list.
        incoming: takes what the pages bring.
    """

    def __init__(self, options: ReflectorOptions, incoming: IncomingList) -> None:
        self._options = options
        self._incoming = incoming
        self._token = ""
        self._paged = True
        #: Whether the page under way has brought anything, and anything that the pages before it had not.
        self._items = self._news = False

    @property
    def between_pages(self) -> bool:
        """Whether a page has come and another is to follow."""
        return bool(self._token)

    def begin(self, *, paged: bool = True) -> None:
        """A list begins, in pages or in one body."""
        self._token = ""
        self._paged = paged

    def request(self, version: str | None) -> ListOptions:
        """The request for the page that is due.

        Args:
            version: that is held already, "" if none is; None if none may be named.
        """
        if self._token:
            return self._options.next_page(self._token)
        return self._options.first_page(version, paged=self._paged)

    def ahead(self, token: str) -> ListOptions | None:
        """The request for the page after the one under way, which names this token; None if it goes in circles."""
        return self._options.next_page(token) if token != self._token else None

    def page_begins(self) -> None:
        """A page is on its way."""
        self._items = self._news = False

    def take(self, items: Collection[Record | DecodeError]) -> bool:
        """Takes in what the page brings; returns whether the list had not brought all of it before."""
        progress = self._incoming.take_all(items)
        self._items = self._items or bool(items)
        self._news = self._news or progress or any(isinstance(item, DecodeError) for item in items)
        return progress

    def is_empty(self) -> bool:
        """Whether the page has brought nothing."""
        return not self._items

    def is_circular(self, token: str) -> bool:
        """Whether the page, which names this token for the next one, shows that the server goes in circles."""
        return token == self._token or (self._items and not self._news)

    def turn(self, token: str) -> None:
        """The page is complete, and this is the next one's token."""
        self._token = token
