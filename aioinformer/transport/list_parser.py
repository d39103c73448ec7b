"""A list body, taken apart while it arrives.

A page of a list is one JSON document that may be hundreds of megabytes (a server ignores `limit` at
`resourceVersion=0`). It is never held whole: items leave as soon as their last byte is there.

Finding where an item ends would need a scan of every token. But every item has to be decoded anyway, and no proper
prefix of a JSON object is a JSON object. So the parser *guesses*, and the decoder is the judge:

1. Items of one list begin alike (`{"metadata":{"name":` or `{"apiVersion":`). The next place where `},` is followed
   by the beginning of the first item is taken for the end of this one. One search by the C library finds it, beyond
   most of the length of the shortest item so far: one that is much shorter is searched again, and shortens the hop.
2. If the decoder accepts what lies between, the guess was right, beyond doubt.
3. If it does not (the item holds a list of templates that begin like items, or is malformed), an exact scanner that
   knows strings and brackets finds the end. It remembers where it stopped, so that it is linear, too.

Chunks are not put together: an item is cut out of the chunk that it came in. Only what came in several is joined, by a
guess as well, and as long as there is no such guess, what has come is gathered in one growing buffer.

An item that is large and full of tiny values, or nested deeper than a decoder goes, is left to the scanner and then
decoded in steps: any decoder would block the event loop with it.

The last item is taken to end at the last `}]` of the body, once that is complete; the decoder is the judge here, too.
The scanner alone also handles everything unusual: white space, items of mixed beginnings.
What is before and after the items is put together again as a document without items, and decoded last.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from aioinformer.errors import ApiError, DecodeError, FrameTooLarge, api_error
from aioinformer.transport.json_scanner import BOM, DEFAULT_MAX_FRAME, LARGE, Heavy, ItemScanner, Steps, is_heavy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a page of a list."""

    resource_version: str | None = ""
    continue_: str | None = msgspec.field(name="continue", default="")


class ListHead(msgspec.Struct, gc=False):
    """A list without its items."""

    metadata: ListMeta | None = None
    kind: str = ""


class _List(ListHead, gc=False):
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_head = msgspec.json.Decoder(_List).decode  # here, since event loops in two threads may be the first


def head_of(document: bytes) -> ListHead:
    """Read what a list says of itself. Its kind may be any: a custom resource chooses what its lists are called.

    Args:
        document: the list; its items may be left out, their brackets may not.

    Raises:
        DecodeError: it is no list.
        ApiError: it is a Status.
    """
    try:
        head = _decode_head(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_a_list(document) from error
    if head.kind == "Status":
        raise status_error(0, document)
    if head.kind == "Table":
        raise DecodeError("the server answered with a Table; informers need the objects themselves")
    if head.items is msgspec.UNSET:
        raise DecodeError("the server answered with something that is not a list: it has no items")
    return ListHead(head.metadata, head.kind)


def status_error(status: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error in a body that should be a Status; a body that is none says so, without being quoted."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    return api_error(status, document if isinstance(document, dict) else None, retry_after=retry_after)


def not_a_list(document: bytes) -> DecodeError:
    """The error for a body that is no list, of which nothing is quoted."""
    start = document[:1]
    hint = " (it looks like HTML: is there a proxy in between?)" if start == b"<" else ""
    return DecodeError(f"the body is not a JSON list{hint}")


T = TypeVar("T")

_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_SEPARATORS = b" \t\r\n,"
_BETWEEN = re.compile(b"[%b]*" % _SEPARATORS)
_BEGINNING = re.compile(rb'\{"[A-Za-z]{1,40}":(?:\{"[A-Za-z]{1,40}":)?')
#: The scanner takes over when an item has no visible end after so many bytes.
_PATIENCE = 1024 * 1024
#: What an item, or the list of items, begins with is shorter than this.
_LONGEST_BEGINNING = 96
#: The head of a list is its type and its metadata; a continue token is below 1 KiB.
_MAX_HEAD = 1024 * 1024


class _WholeList(ListHead, gc=False):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_decode_prologue = msgspec.json.Decoder(ListHead).decode
_decode_whole_list = msgspec.json.Decoder(_WholeList).decode


class ListParser(Generic[T]):
    """Takes the body of a list apart.

    Feed it chunks, take what `items()` yields after each; say `feed_eof()`, take the last items; ask for the `head()`.

    Args:
        decode: makes what `items()` yields of the bytes of one item; raises `DecodeError` if it cannot, and for all
            that is not one whole object: it has to read every byte. Raises `Heavy` for what it must not read at once.
        max_item: the largest item accepted, in bytes.
        in_steps: does the same for an object that is too heavy to be decoded at once; None to decode all at once.
    """

    def __init__(
        self,
        decode: Callable[[bytes], T],
        max_item: int = DEFAULT_MAX_FRAME,
        *,
        in_steps: Callable[[bytes], Steps[T]] | None = None,
    ) -> None:
        self._decode = decode
        self._in_steps = in_steps
        self._max_item = max_item
        #: A chunk as it came, unless an item needs more than one.
        self._buffer: bytes | bytearray = b""
        #: An item that ends in the chunk and began before it, if the guess is right.
        self._joint = b""
        #: Offset of the first byte that no item has used.
        self._start = 0
        #: Offset before which no separator is.
        self._searched = 0
        self._separator = b""
        #: The latest guess was right: only then the end of the last item is guessed, too.
        self._trusted = False
        self._scanner: ItemScanner | None = None
        #: Where guesses about the item ended that the decoder did not accept, and why.
        self._refused: dict[int, DecodeError] = {}
        #: The shortest item's length, and how much of the next one is not searched for its end at first.
        self._shortest, self._hop = max_item, 0
        #: Everything before the first item, once that is known.
        self._prologue: bytes | None = None
        self._next_page: str | None = None
        self._behind_items = False
        self._eof = False

    def feed(self, chunk: bytes) -> None:
        """Takes the next chunk of the body; `items()` has what it completes."""
        if self._joint:
            self._join()
        used, self._start = self._start, 0
        begun, overlap = len(self._buffer) - used, len(self._separator)
        if not begun:
            self._buffer, self._searched = chunk, 0
            return
        guessing = self._separator and self._scanner is None and not self._behind_items
        found = chunk.find(self._separator) if guessing else -1
        across = (
            guessing and self._separator in bytes(self._buffer[max(used, used + begun - overlap) :]) + chunk[:overlap]
        )
        if found >= 0 and not across and begun + found < self._max_item:
            # What is behind this item stays in the chunk.
            self._joint = bytes(self._buffer[used:]).lstrip(_SEPARATORS) + chunk[: found + 1]
            self._buffer, self._start, self._searched = chunk, found + 1, found + 1
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
        """The body has ended; `items()` has what is left."""
        self._eof = True

    @property
    def next_page(self) -> str:
        """The continue token, "" if there is none, or none yet: some servers write it behind the items."""
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
        """Yields what is complete, in order; an item that does not decode is yielded as its error.

        Yields None in the middle of long work, where the caller may pause, if there is `in_steps`.

        May be left and taken up again at any point, so that its user can pause between two items.

        Raises:
            FrameTooLarge: an item exceeds the cap.
            DecodeError: the body is not a list.
        """
        if self._prologue is None and not self._find_items():
            if self._eof:
                yield from self._whole()
            return
        if self._behind_items and len(self._buffer) - self._start > _MAX_HEAD:
            raise FrameTooLarge(f"the list does not end within {_MAX_HEAD} bytes behind its items")
        if self._joint:
            item = self._guess(self._joint)
            if item is None or isinstance(item, DecodeError):
                self._refused = {len(self._joint): item} if item is not None else {}
                self._join()
                self._scanner = ItemScanner(0)
            else:
                self._joint = b""
                yield item
        while not self._behind_items and self._find_item():
            if self._scanner is None:
                yield from self._guessed()
                if not self._find_item():
                    break
            end = yield from self._find_end()
            refused, self._refused = self._refused, {}
            if end < 0:
                break
            # Whoever refuses it (a transform) must not be asked twice.
            item = refused.get(end) or (yield from self._decoded(bytes(self._buffer[self._start : end])))
            self._found(end - self._start)
            self._start = end
            self._searched = max(end, self._searched)
            self._scanner = None
            yield item

    def head(self) -> ListHead:
        """The list without its items, once the body has ended.

        Raises:
            DecodeError: the body ended in the middle, or is not a list.
            ApiError: the body is a Status.
        """
        rest = bytes(self._buffer[self._start :])
        if self._prologue is None:
            return head_of(rest.removeprefix(BOM))
        if not self._behind_items:
            raise DecodeError("the list ended in the middle")
        return head_of(self._prologue + rest)

    def _find_items(self) -> bool:
        size = len(self._buffer)
        match = _ITEMS.search(self._buffer, self._searched, _MAX_HEAD)
        if match is not None:
            self._prologue = bytes(self._buffer[: match.end()]).removeprefix(BOM)
            self._start = self._searched = match.end()
            return True
        self._searched = max(0, size - _LONGEST_BEGINNING)
        if size > self._max_item:
            raise FrameTooLarge(f"the list shows no items within {self._max_item} bytes")
        return False

    def _find_item(self) -> bool:
        """Moves to the beginning of the next item; False if it is not there yet, or there is none."""
        buffer = self._buffer
        between = _BETWEEN.match(buffer, self._start)
        assert between is not None, "nothing at all is between two items, too"
        self._start = start = between.end()
        if start >= len(buffer):
            return False
        if buffer[start] == 0x5D:  # "]": what is left belongs to the document around the items
            self._behind_items = True
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
        self._joint, self._start, self._searched = b"", 0, 0

    def _guessed(self) -> Iterator[T]:
        """Yields items as long as guesses are right. One search, one copy and one call of the decoder for each."""
        buffer, separator, decode, hop = self._buffer, self._separator, self._decode, self._hop
        find, start, searched = buffer.find, self._start, max(self._start, self._searched)
        begin = start
        while (found := find(separator, max(searched, start + hop))) >= 0 or hop:
            if found < 0:
                hop = 0  # what was hopped over is all that is left to be searched
                continue
            # More than one item is allowed to weigh cannot be one: the scanner says what it is.
            if found - start >= self._max_item:
                self._scanner = ItemScanner(start)
                return
            raw = bytes(buffer[start : found + 1])
            try:
                if found - start > LARGE and self._is_heavy(raw):
                    raise Heavy
                item = decode(raw)
            except Heavy:
                self._scanner = ItemScanner(start)
                return
            except DecodeError as error:
                if find(separator, searched, found) < 0:
                    self._refuse(error, found + 1)
                    return
                hop, self._refused[found + 1] = 0, error
                continue
            if not hop:
                self._refused = {}
            if found - start < self._shortest:
                self._found(found - start)
            hop = self._hop
            self._start = self._searched = start = searched = found + 2  # which is a part of what was found
            yield item
        self._searched = max(self._start, len(buffer) - len(separator))
        self._trusted = self._trusted or self._start > begin
        if not self._eof or not self._trusted:
            return
        start, end = self._start, buffer.rfind(b"}]", self._start) + 1
        if not 0 < end - start <= self._max_item:
            return
        last = self._guess(bytes(buffer[start:end]))
        if last is None:
            self._scanner = ItemScanner(start)
            return
        if isinstance(last, DecodeError):
            self._refuse(last, end)
            return
        self._start = self._searched = end
        yield last

    def _found(self, length: int) -> None:
        """An item was so long; the next is taken to be not much shorter than the shortest."""
        self._shortest = min(length, self._shortest)
        self._hop = self._shortest - self._shortest // 8

    def _refuse(self, error: DecodeError, end: int) -> None:
        """The decoder did not accept what a guess said: the scanner decides."""
        self._refused[end], self._trusted = error, False
        self._scanner = ItemScanner(self._start)

    def _find_end(self) -> Steps[int]:
        """The offset behind the item whose end could not be guessed, or -1 if it is not there yet."""
        buffer, start = self._buffer, self._start
        if self._scanner is None:
            if not self._eof and len(buffer) - start < min(_PATIENCE, self._max_item):
                return -1
            self._scanner = ItemScanner(start)
        while not (end := self._scanner.step(buffer)):
            if self._in_steps is not None:
                yield
        if (len(buffer) if end < 0 else end) - start > self._max_item:
            raise FrameTooLarge(
                f"an item of the list exceeds {self._max_item} bytes; raise max_frame if objects are really that large"
            )
        return end

    def _whole(self) -> Iterator[T | DecodeError | None]:
        document = bytes(self._buffer).removeprefix(BOM)
        try:
            whole = _decode_whole_list(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise not_a_list(document) from error
        if whole.items is msgspec.UNSET and whole.kind not in ("Status", "Table"):
            # A list without objects says so; whatever this is, it must not look like one, and everything deleted.
            raise DecodeError("the server answered with something that has no items")
        for raw in whole.items or ():
            item = bytes(raw)
            if not item.startswith(b"{"):
                raise DecodeError("the list holds something that is not an object")
            yield (yield from self._decoded(item))

    def _is_heavy(self, raw: bytes) -> bool:
        return self._in_steps is not None and is_heavy(raw)

    def _guess(self, raw: bytes) -> T | DecodeError | None:
        """What the decoder makes of these bytes; None if they are too heavy to be a guess."""
        try:
            return None if self._is_heavy(raw) else self._decode(raw)
        except Heavy:
            return None
        except DecodeError as error:
            return error

    def _decoded(self, raw: bytes) -> Steps[T | DecodeError]:
        """What the decoder makes of one item that is known to end here."""
        try:
            item = self._guess(raw)
            if item is None and self._in_steps is not None:
                item = yield from self._in_steps(raw)
        except DecodeError as error:
            return error
        assert item is not None, "only what is decoded in steps is too heavy"
        return item
