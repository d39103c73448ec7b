"""Parse the body of a list while it arrives.

A page of a list is one JSON document of up to hundreds of megabytes (a server ignores `limit` at `resourceVersion=0`).
It is never in memory as a whole: each item is yielded as soon as its last byte has arrived.

Finding the end of an item would require a scan of every token. But every item must be decoded anyway, and no proper
prefix of a JSON object is a JSON object. The parser therefore *guesses* the end, and the decoder checks the guess:

1. The items of a list begin alike (`{"metadata":{"name":` or `{"apiVersion":`). The next `},` followed by the beginning
   of the first item is assumed to be the end of an item. One search in C finds it.
2. If the decoder accepts the bytes in between, the guess was right.
3. If it does not (the item contains a list of templates that begin like items, or is malformed), an exact scanner for
   strings and brackets finds the end. It continues where it stopped before, so it takes linear time, too.

Chunks are not concatenated: an item is cut out of its chunk. Only an item that spans two chunks is joined, also by a
guess. Without such a guess, the chunks are collected in one growing buffer.

An item that is nested too deeply for the decoder ends where the scanner finds its end.

The last item is assumed to end at the last `}]` of the complete body, and the decoder checks this, too. The scanner
also reads all unusual bodies: white space, items that begin differently. The parts before and after the items are
joined to a document without items, which is decoded last.

The guess and the scanner share the buffer and their position in it, so the file is longer than most.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from aioinformer.errors import ApiError, DecodeError, FrameTooLarge, api_error
from aioinformer.transport.json_scanner import BOM, DEFAULT_MAX_FRAME, ItemScanner, TooDeep

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


T = TypeVar("T")

_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[')
_SEPARATORS: Final = b" \t\r\n,"
_BETWEEN: Final = re.compile(b"[%b]*" % _SEPARATORS)
_BEGINNING: Final = re.compile(rb'\{"[A-Za-z]{1,40}":(?:\{"[A-Za-z]{1,40}":)?')
#: The scanner reads an item whose end is not found within this number of bytes.
_PATIENCE: Final = 1024 * 1024
#: The largest length of the text before the first item, or of the common beginning of items, that is searched again.
_LONGEST_BEGINNING: Final = 96
#: The head of a list is its type and metadata. A continue token is shorter than 1 KiB.
_MAX_HEAD: Final = 1024 * 1024


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a page of a list."""

    resource_version: str | None = ""
    continue_: str | None = msgspec.field(name="continue", default="")
    remaining_item_count: Any = None  # for people only: no list fails because of it


class ListHead(msgspec.Struct, gc=False):
    """A list without its items."""

    metadata: ListMeta | None = None
    kind: str = ""


class _List(ListHead, gc=False):
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _WholeList(ListHead, gc=False):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


# Made during import: event loops in two threads may decode their first lists at the same time.
_decode_head = msgspec.json.Decoder(_List).decode
_decode_prologue = msgspec.json.Decoder(ListHead).decode
_decode_whole_list = msgspec.json.Decoder(_WholeList).decode


def head_of(document: bytes) -> ListHead:
    """Decode the kind and metadata of a list. The kind may be any: a custom resource names the kind of its lists.

    Args:
        document: the list, with or without its items. Their brackets are required.

    Raises:
        DecodeError: the document is not a list.
        ApiError: the document is a Status.
    """
    try:
        head = _decode_head(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_a_list(document) from error
    if head.kind == "Status":
        raise status_error(0, document)
    if head.kind == "Table":
        raise DecodeError("the server answered with a Table; informers need a list of objects")
    if head.items is msgspec.UNSET:
        raise DecodeError("the server answered with something that is not a list: it has no items")
    return ListHead(head.metadata, head.kind)


def status_error(status: int, body: bytes, *, retry_after: float | None = None, hint: str = "") -> ApiError:
    """Return the error for a body that should be a Status. If it is not, the error does not quote the body.

    Args:
        hint: of the response, if it has one; see `aioinformer.transport.Response`.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    return api_error(status, document if isinstance(document, dict) else None, retry_after=retry_after, hint=hint)


def not_a_list(document: bytes) -> DecodeError:
    """Return the error for a body that is not a list. It does not quote the body."""
    start = document[:1]
    hint = " (it looks like HTML: is there a proxy in between?)" if start == b"<" else ""
    return DecodeError(f"the body is not a JSON list{hint}")


class ListParser(Generic[T]):
    """Parses the body of a list.

    Call `feed()` with each chunk, and iterate over `items()` after it. At the end, call `feed_eof()`, iterate over the
    last items, and read the `head()`.

    Args:
        decode: decodes the bytes of one item. It must read all bytes, and raise `DecodeError` unless they are exactly
            one object; `TooDeep` if it cannot know because the item is nested too deeply.
        max_item: the largest item accepted, in bytes.
        deep: does the same for a complete item that is nested too deeply for `decode`. Without it, such an item is an
            error.
    """

    def __init__(
        self,
        decode: Callable[[bytes], T],
        max_item: int = DEFAULT_MAX_FRAME,
        *,
        deep: Callable[[bytes], T] | None = None,
    ) -> None:
        self._decode = decode
        self._deep = deep
        self._max_item = max_item
        #: One chunk, or several if an item spans them.
        self._buffer: bytes | bytearray = b""
        #: An item that began before the current chunk and ends in it, if the guess is right.
        self._joint = b""
        #: The offset of the first byte after the last item.
        self._start = 0
        #: The offset before which there is no separator.
        self._searched = 0
        self._separator = b""
        #: Whether the last guess was right. Only then, the end of the last item is guessed.
        self._trusted = False
        self._scanner: ItemScanner | None = None
        #: The guessed ends of the current item that the decoder did not accept, with its errors.
        self._rejected: dict[int, DecodeError] = {}
        #: The bytes before the first item, once they are known.
        self._prologue: bytes | None = None
        self._next_page: str | None = None
        self._after_items = False
        self._eof = False

    def feed(self, chunk: bytes) -> None:
        """Add the next chunk of the body. `items()` yields the items that it completes."""
        if self._joint:
            self._join()
        used = self._start
        self._start = 0
        begun = len(self._buffer) - used
        overlap = len(self._separator)
        if not begun:
            self._buffer = chunk
            self._searched = 0
            return
        guessing = self._separator and self._scanner is None and not self._after_items
        found = chunk.find(self._separator) if guessing else -1
        across = (
            guessing and self._separator in bytes(self._buffer[max(used, used + begun - overlap) :]) + chunk[:overlap]
        )
        if found >= 0 and not across and begun + found < self._max_item:
            # The bytes after this item stay in the chunk.
            self._joint = bytes(self._buffer[used:]).lstrip(_SEPARATORS) + chunk[: found + 1]
            self._buffer = chunk
            self._start = found + 1
            self._searched = found + 1
            return
        if not isinstance(self._buffer, bytearray):
            self._buffer = bytearray(self._buffer)
        del self._buffer[:used]
        self._buffer += chunk
        self._searched = max(0, self._searched - used)
        if guessing and found < 0 and not across:
            self._searched = max(0, len(self._buffer) - overlap)
        if self._scanner is not None:
            self._scanner.shift(used)

    def feed_eof(self) -> None:
        """End the body. `items()` yields the remaining items."""
        self._eof = True

    @property
    def next_page(self) -> str:
        """The continue token; "" if there is none, or none yet: some servers write it after the items."""
        if self._next_page is None:
            if self._prologue is None:
                return ""
            try:
                metadata = _decode_prologue(self._prologue + b"]}").metadata
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                metadata = None
            self._next_page = (metadata and metadata.continue_) or ""
        return self._next_page

    def items(self) -> Iterator[T | DecodeError | None]:
        """Yield the complete items in order, with an error in place of an item that cannot be decoded.

        Yield None between the steps of a long search, where the caller may pause. The iteration may be abandoned and
        started again at any point.

        Raises:
            FrameTooLarge: an item is larger than `max_item`.
            DecodeError: the body is not a list.
        """
        if self._prologue is None and not self._find_items():
            if self._eof:
                yield from self._parse_whole()
            return
        if self._after_items and len(self._buffer) - self._start > _MAX_HEAD:
            raise FrameTooLarge(f"the list does not end within {_MAX_HEAD} bytes after its items")
        if self._joint:
            item = self._guess(self._joint)
            if isinstance(item, DecodeError):
                self._rejected = {len(self._joint): item}
                self._join()
                self._scanner = ItemScanner(0)
            else:
                self._joint = b""
                yield item
        while not self._after_items and self._find_item():
            if self._scanner is None:
                yield from self._guessed_items()
                if not self._find_item():
                    break
            end = yield from self._find_end()
            refused = self._rejected
            self._rejected = {}
            if end < 0:
                break
            # A transform that refused the item must not be called twice.
            error = refused.get(end)
            if error is None or isinstance(error, TooDeep):
                found = self._decoded(bytes(self._buffer[self._start : end]))
            else:
                found = error
            self._start = end
            self._searched = max(end, self._searched)
            self._scanner = None
            yield found

    def head(self) -> ListHead:
        """Return the list without its items. Call it after the end of the body.

        Raises:
            DecodeError: the body is truncated, or is not a list.
            ApiError: the body is a Status.
        """
        rest = bytes(self._buffer[self._start :])
        if self._prologue is None:
            return head_of(rest.removeprefix(BOM))
        if not self._after_items:
            raise DecodeError("the list ended in the middle")
        return head_of(self._prologue + rest)

    def _find_items(self) -> bool:
        size = len(self._buffer)
        match = _ITEMS.search(self._buffer, self._searched, _MAX_HEAD)
        if match is not None:
            self._prologue = bytes(self._buffer[: match.end()]).removeprefix(BOM)
            self._start = match.end()
            self._searched = self._start
            return True
        self._searched = max(0, size - _LONGEST_BEGINNING)
        if size > self._max_item:
            raise FrameTooLarge(f"the list shows no items within {self._max_item} bytes")
        return False

    def _find_item(self) -> bool:
        """Move to the beginning of the next item. Return False if it has not arrived yet, or there is none."""
        buffer = self._buffer
        between = _BETWEEN.match(buffer, self._start)
        assert between is not None, "the pattern matches the empty string"
        start = between.end()
        self._start = start
        if start >= len(buffer):
            return False
        if buffer[start] == 0x5D:  # "]": the rest belongs to the document around the items
            self._after_items = True
            return False
        if buffer[start] != 0x7B:  # "{"
            raise DecodeError("the list holds something that is not an object")
        if not self._separator:
            match = _BEGINNING.match(buffer, start)
            if len(buffer) - start < _LONGEST_BEGINNING and not self._eof:
                return False
            self._separator = b"}," + match.group() if match is not None else b"\0"
        return True

    def _join(self) -> None:
        """Undoes a guess about where an item ends that began before the chunk."""
        self._buffer = bytearray(self._joint) + self._buffer[self._start :]
        self._joint = b""
        self._start = 0
        self._searched = 0

    def _guessed_items(self) -> Iterator[T]:
        """Yields items as long as guesses are right. One search, one copy and one call of the decoder for each."""
        buffer = self._buffer
        separator = self._separator
        decode = self._decode
        find = buffer.find
        start = self._start
        searched = max(self._start, self._searched)
        begin = start
        while (found := find(separator, searched)) >= 0:
            # More than one item is allowed to weigh cannot be one: the scanner says what it is.
            if found - start >= self._max_item:
                self._scanner = ItemScanner(start)
                return
            raw = bytes(buffer[start : found + 1])
            try:
                item = decode(raw)
            except DecodeError as error:
                self._reject_guess(error, found + 1)
                return
            self._rejected = {}
            start = found + 2  # the next item begins within the separator
            self._start = start
            self._searched = start
            searched = start
            yield item
        self._searched = max(self._start, len(buffer) - len(separator))
        self._trusted = self._trusted or self._start > begin
        if not self._eof or not self._trusted:
            return
        start = self._start
        end = buffer.rfind(b"}]", self._start) + 1
        if not 0 < end - start <= self._max_item:
            return
        last = self._guess(bytes(buffer[start:end]))
        if isinstance(last, DecodeError):
            self._reject_guess(last, end)
            return
        self._start = end
        self._searched = end
        yield last

    def _reject_guess(self, error: DecodeError, end: int) -> None:
        """Let the scanner find the end of the item, because the decoder did not accept the guess."""
        self._rejected[end] = error
        self._trusted = False
        self._scanner = ItemScanner(self._start)

    def _find_end(self) -> Generator[None, None, int]:
        """Scan for the end of an item. Return the offset after it, or -1 if it has not arrived."""
        buffer = self._buffer
        start = self._start
        if self._scanner is None:
            if not self._eof and len(buffer) - start < min(_PATIENCE, self._max_item):
                return -1
            self._scanner = ItemScanner(start)
        while not (end := self._scanner.step(buffer)):
            yield
        if (len(buffer) if end < 0 else end) - start > self._max_item:
            raise FrameTooLarge(
                f"an item of the list exceeds {self._max_item} bytes; raise max_frame if objects are really that large"
            )
        return end

    def _parse_whole(self) -> Iterator[T | DecodeError | None]:
        document = bytes(self._buffer).removeprefix(BOM)
        try:
            whole = _decode_whole_list(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise not_a_list(document) from error
        if whole.items is msgspec.UNSET and whole.kind not in ("Status", "Table"):
            # An empty list has items, too. This document must not look like one, or all objects would be deleted.
            raise DecodeError("the server answered with something that has no items")
        for raw in whole.items or ():
            item = bytes(raw)
            if not item.startswith(b"{"):
                raise DecodeError("an item of the list is not an object")
            yield self._decoded(item)

    def _guess(self, raw: bytes) -> T | DecodeError:
        """Return the result or error of the decoder."""
        try:
            return self._decode(raw)
        except DecodeError as error:
            return error

    def _decoded(self, raw: bytes) -> T | DecodeError:
        """Return the result or error of the decoder for one item whose end is known."""
        item = self._guess(raw)
        if not isinstance(item, TooDeep) or self._deep is None:
            return item
        try:
            return self._deep(raw)
        except DecodeError as error:
            return error
