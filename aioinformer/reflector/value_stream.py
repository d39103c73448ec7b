"""Split the chunks of a watch into values, in time linear in their size, however the chunks are cut.

API servers end each event with a line break. Lines are therefore the fast path: one search in C finds the line. But a
watch is a stream of JSON values. Behind a proxy or an aggregated API, an event may span several lines, follow another
one on the same line, have white space, and the last one may have no line break yet. If the decoder does not accept a
line, values are found by strings and brackets (`json_scanner`) until a value ends at the end of a line again.

The reader must not wait for the end of a broken value. A value that continues after a line break is therefore checked
to be the beginning of valid JSON: at its first chunks, and whenever its size has doubled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from aioinformer.errors import DecodeError, FrameTooLarge
from aioinformer.transport.json_scanner import BOM, DEFAULT_MAX_FRAME, ItemScanner, TooDeep

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")

_BETWEEN: Final = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*+")
#: The bytes that may follow a value before its line break.
_BLANK: Final = b" \t\r" + BOM
#: An incomplete value is checked at this number of chunks, whatever its size, and later when its size has doubled.
_FIRST_CHECKS: Final = 8
#: The number of bytes before and after a line break that are checked in a value too deep for the decoder.
_NEARBY: Final = 256
_VALUE_ENDS: Final = (b"}", b"]", b'"')
_VALUE_STARTS: Final = (b"{", b"[", b'"')
#: If one of these follows a value, the value is the front part of a broken one that has a bracket too many.
_WITHIN: Final = (b"}", b"]", b",", b":")

# Made during import: event loops in two threads may decode their first events at the same time.
_decode_any = msgspec.json.Decoder(msgspec.Raw).decode


class _OpenValue:
    """A value that is read by its brackets and whose end has not arrived.

    Attributes:
        data: its bytes so far.
        scanner: searches them for the end.
    """

    __slots__ = ("_checked", "_checks", "_lines", "_seen", "data", "scanner")

    def __init__(self, data: bytearray, scanner: ItemScanner) -> None:
        self.data = data
        self.scanner = scanner
        #: How many bytes were searched for a line break, and whether one was found.
        self._seen = 0
        self._lines = False
        #: How often the value was checked, and its size at the last check.
        self._checks = 0
        self._checked = 0

    def is_broken(self) -> bool:
        """Return whether a check was due and found that the value cannot become valid."""
        size = len(self.data)
        self._lines = self._lines or self.data.find(b"\n", self._seen) >= 0
        self._seen = size
        if not self._lines or (self._checks >= _FIRST_CHECKS and size < 2 * self._checked):
            return False
        self._checks += 1
        self._checked = size
        return not _may_be_valid(bytes(self.data))


class ValueStream:
    """Split a stream of JSON objects into values.

    A line that arrives in many chunks is joined once, when it is complete. Lines are cut one by one, on demand: each
    one reuses the memory of the line before it, which is still in the processor's cache.

    Args:
        max_frame: the largest object accepted, in bytes.
    """

    __slots__ = ("_max_frame", "_open", "_parts", "_size")

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        #: The incomplete line.
        self._parts: list[bytes] = []
        self._size = 0
        self._open: _OpenValue | None = None

    def read(
        self,
        chunk: bytes,
        decode: Callable[[bytes], T],
        deep: Callable[[bytes], T],
        usual: Callable[[bytes, int, int], int] | None = None,
    ) -> Iterator[T | None]:
        """Yield the values that this chunk completes, in order, and None where the caller may pause.

        Args:
            chunk: the next bytes of the stream.
            decode: decodes the bytes of one object. It raises `DecodeError` unless they are exactly one object, and
                `TooDeep` if it cannot know because the object is nested too deeply.
            deep: does the same for a complete object that is nested too deeply for `decode`.
            usual: takes some lines of the usual form, given the chunk, and the offsets of the first of them and of its
                end, so that lines need not be copied and yielded one by one. It keeps what it makes of them, and
                returns the offset of the first line that it has not taken.

        Raises:
            FrameTooLarge: a value is larger than `max_frame`, or grows beyond it.
            DecodeError: the next bytes are not a value that the decoder accepts.
        """
        at = 0
        if self._open is not None:
            data = self._open.data
            data += chunk
            chunk = bytes(data[(yield from self._values(data, 0, decode, deep)) :])
        elif self._parts and (end := chunk.find(b"\n")) >= 0:
            line = self._joined(chunk[: end + 1])
            if usual and len(line) <= self._max_frame and usual(line, 0, len(line) - 1):
                at = end + 1  # the rest of the chunk, which may be many lines, need not be copied
            else:
                chunk = line + chunk[end + 1 :]
        while (end := chunk.find(b"\n", at)) >= 0:
            if usual and end - at <= self._max_frame and (behind := usual(chunk, at, end)) > at:
                at = behind
                if at < len(chunk):
                    yield None
            else:
                at = yield from self._unusual_line(chunk, at, end, decode, deep)
        if at < len(chunk):
            yield from self._tail(chunk[at:], decode, deep)

    def unread(self) -> bytes:
        """Return the bytes after the last value, unchanged. After `DecodeError`, they begin with the refused ones."""
        return b"".join(self._parts) if self._open is None else bytes(self._open.data)

    def finish(self) -> bytes:
        """Return the bytes after the last value. They are empty unless the stream was cut in the middle of a value."""
        rest = self.unread()
        between = _BETWEEN.match(rest)
        self._parts = []
        self._size = 0
        self._open = None
        return rest[between.end() if between is not None else 0 :].rstrip()

    def _unusual_line(
        self, data: bytes, at: int, end: int, decode: Callable[[bytes], T], deep: Callable[[bytes], T]
    ) -> Generator[T | None, None, int]:
        """Read a complete line of any form, and return the offset of the next line."""
        line = data[at:end]
        if not line or line.isspace():
            return end + 1
        error: DecodeError | None = None
        try:
            self._check_size(len(line))
            yield decode(line)
            return end + 1
        except TooDeep:
            pass  # the brackets tell where it ends
        except DecodeError as refused:
            error = refused
        return (yield from self._values(data, at, decode, deep, error, line))

    def _tail(self, tail: bytes, decode: Callable[[bytes], T], deep: Callable[[bytes], T]) -> Iterator[T | None]:
        """Read the bytes after the last line break."""
        if tail.rstrip(_BLANK).endswith(b"}"):
            # A value may end here, and must not wait for its line break. If another value follows it in this chunk, it
            # waits for the end of that one, or of the line: searching each tail for its end would cost too much.
            yield from self._values(self._joined(tail), 0, decode, deep)
            return
        self._parts.append(tail)
        self._size += len(tail)
        self._check_size(self._size)

    def _joined(self, part: bytes) -> bytes:
        line = b"".join([*self._parts, part])
        self._parts = []
        self._size = 0
        return line

    def _values(
        self,
        data: bytes | bytearray,
        at: int,
        decode: Callable[[bytes], T],
        deep: Callable[[bytes], T],
        error: DecodeError | None = None,
        line: bytes = b"",
    ) -> Generator[T | None, None, int]:
        """Find values by their brackets, up to the first one at the end of a line.

        Args:
            data: the bytes.
            at: the offset of the next value, or of the incomplete one.
            decode: as for `read`.
            deep: as for `read`.
            error: why the decoder did not accept the line at this offset.
            line: this line.

        Returns:
            The offset of the next line; the size of the data if more bytes are needed.
        """
        opened = self._open
        self._open = None
        try:
            while opened is not None or (at := self._next_value(data, at)) < len(data):
                if data[at] != 0x7B:  # "{"
                    raise error or DecodeError("the bytes after an event of the watch are not an event")
                scanner = opened.scanner if opened is not None else ItemScanner(at)
                while not (end := scanner.step(data)):
                    yield None
                self._check_size((len(data) if end < 0 else end) - at)
                if end < 0:
                    scanner.shift(at)
                    self._open = opened or _OpenValue(bytearray(data[at:]), scanner)
                    if self._open.is_broken():
                        raise error or DecodeError("an event of the watch that spans several lines is not JSON")
                    return len(data)
                value = bytes(data[at:end])
                if error is not None and line.rstrip() == value:
                    raise error
                opened = None
                error = None
                try:
                    made = decode(value)
                except TooDeep:
                    made = deep(value)
                rest = self._next_value(data, end)
                alone = data.find(b"\n", end, rest) >= 0
                if not alone and data[rest : rest + 1] in _WITHIN:
                    raise DecodeError("an event of the watch continues after its last bracket")
                at = end
                yield made
                if alone:
                    return rest
            return at
        except DecodeError:
            self._parts = [bytes(data[at:])]
            self._open = None
            raise

    def _next_value(self, data: bytes | bytearray, at: int) -> int:
        """Return the offset of the next value, after white space and byte order marks; `len(data)` if there is none."""
        between = _BETWEEN.match(data, at)
        assert between is not None, "the pattern matches the empty string"
        rest = bytes(data[between.end() : between.end() + len(BOM)])
        if rest and rest != BOM and BOM.startswith(rest):
            self._parts = [rest]  # a part of a byte order mark, at the end of the chunk
            self._size = len(rest)
            return len(data)
        return between.end()

    def _check_size(self, size: int) -> None:
        if size > self._max_frame:
            raise FrameTooLarge(
                f"an event of the watch exceeds {self._max_frame} bytes; "
                "raise max_frame if objects are really that large"
            )


def _decode_error(text: bytes) -> str:
    """Return the message of the error with which the decoder refuses these bytes; "" if it accepts them."""
    try:
        _decode_any(text)
    except msgspec.DecodeError as error:
        return str(error)
    return ""


#: The message for JSON that is valid but truncated.
_TRUNCATED: Final = _decode_error(b"{")


def _may_be_valid(text: bytes) -> bool:
    """Return whether the complete lines of this text may be the beginning of valid JSON."""
    first = text.find(b"\n")
    last = text.rfind(b"\n") + 1
    lines = text[:last]  # a value that is cut within a number or a word looks invalid
    try:
        return _decode_error(lines) in (_TRUNCATED, "")
    except RecursionError:
        # Within a value, a line that ends with a value is not followed by another.
        before = text[:first][-_NEARBY:].rstrip()
        after = text[first : first + _NEARBY].lstrip()
        return before[-1:] not in _VALUE_ENDS or after[:1] not in _VALUE_STARTS
