"""Find the ends of JSON values, and the members of an object, without recursion.

An API server accepts objects that are nested ten thousand levels deep, which is too deep for decoders. Such an object
must not stop an informer: its members are found here, by strings and brackets. Everything else is decoded.
"""

from __future__ import annotations

import re
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The members to read, by name; None for a member that is read as a whole.
Wanted: TypeAlias = "Mapping[str, Wanted | None]"

#: The largest JSON value that is accepted by default, in bytes.
DEFAULT_MAX_FRAME: Final = 64 * 1024 * 1024
#: The byte order mark, which some proxies write before UTF-8.
BOM: Final = b"\xef\xbb\xbf"
#: The largest number of bytes that one step reads. Most values are small, so windows begin small and grow.
WINDOW: Final = 4096
_FIRST_WINDOW: Final = 64
_SIGNS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{[}]"))
_BRACKET = re.compile(rb"[{}\[\]]")
_SCALAR = re.compile(rb'[^",:{}\[\]]++')
_SPACE: Final = b" \t\r\n"

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class TooDeep(DecodeError):
    """A decoder cannot read these bytes, because they are nested too deeply. They may be invalid, or incomplete."""


def unescaped(window: bytes) -> bytes:
    """Return the window with its escaped backslashes and quotes replaced, byte by byte.

    A backslash at the end, whose escaped byte is not in the window, is removed.
    """
    if (len(window) - len(window.rstrip(b"\\"))) % 2:
        window = window[:-1]
    return window.replace(b"\\\\", b"__").replace(b'\\"', b"__")


class ItemScanner:
    """Finds the end of one JSON object or array in a growing buffer. It reads every byte once."""

    __slots__ = ("_depth", "_in_string", "_position", "_window")

    def __init__(self, start: int) -> None:
        self._position = start
        self._depth = 0
        self._in_string = False
        self._window = _FIRST_WINDOW

    def shift(self, by: int) -> None:
        """Adjust the position after the first `by` bytes of the buffer were removed."""
        self._position -= by

    def step(self, buffer: bytes | bytearray) -> int:
        """Read the next window.

        Returns:
            The offset after the value; 0 if there are more bytes to read; -1 if the buffer ends within the value.
        """
        start = self._position
        window = bytes(buffer[start : start + self._window])
        if b"\\" in window:
            window = unescaped(window)
        if not window:
            return -1
        self._window = min(2 * self._window, WINDOW)
        parts = window.split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        signs = outside.translate(_SIGNS, _NO_BRACKETS)
        closing = signs.count(b"\xff")
        if closing >= self._depth and signs:
            depths = list(accumulate(memoryview(signs).cast("b"), initial=self._depth))
            if min(islice(depths, 1, None)) <= 0:
                # A value that begins with a closing bracket ends there. The caller detects that it is not a value.
                last = 0 if depths[1] < 0 else depths.index(0, 1) - 1
                return start + _bracket_end(parts, last, in_string=self._in_string)
        self._depth += len(signs) - 2 * closing
        self._in_string ^= len(parts) % 2 == 0
        self._position = start + len(window)
        return 0 if self._position < len(buffer) else -1

    def end(self, buffer: bytes | bytearray) -> int:
        """Read the rest of the buffer.

        Returns:
            The offset after the value, or -1 if it is not complete.
        """
        while not (end := self.step(buffer)):
            pass
        return end


def _bracket_end(parts: list[bytes], number: int, *, in_string: bool) -> int:
    """Return the offset after the n-th bracket outside strings, counted from 0."""
    for inside in range(not in_string, len(parts), 2):
        parts[inside] = b"_" * len(parts[inside])
    found = next(islice(_BRACKET.finditer(b'"'.join(parts)), number, None))
    return found.end()


def members(raw: bytes, wanted: Iterable[str] | None = None) -> dict[str, bytes]:
    """Return the encoded values of an object by name, whatever its depth.

    Of an object that is nested too deeply for the decoder, only the brackets are checked, and the search ends when all
    wanted members are found.

    Args:
        raw: the object.
        wanted: the names to find; None for all.

    Returns:
        name -> value; {} if the bytes are not exactly one object.
    """
    names = None if wanted is None else frozenset(wanted)
    try:
        found = _split(raw)
    except RecursionError:
        return _scanned_members(raw, names)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {name: bytes(value) for name, value in found.items() if names is None or name in names}


def outline(raw: bytes, wanted: Wanted) -> bytes:
    """Return an object with only these members of another one, as far as they exist, whatever its depth."""
    shown = []
    for name, value in members(raw, wanted).items():
        within = wanted[name]
        if within is not None:
            # A path through a value that is not an object has no value.
            value = outline(value, within) if value.startswith(b"{") else b"null"
        shown.append(b"%b:%b" % (msgspec.json.encode(name), value))
    return b"{%b}" % b",".join(shown)


def _scanned_members(raw: bytes, names: frozenset[str] | None) -> dict[str, bytes]:
    """Find members by brackets and strings, without recursion and in time linear in the size."""
    found: dict[str, bytes] = {}
    at = _skip(raw, 0, _SPACE)
    if not raw.startswith(b"{", at):
        return {}
    at += 1
    while names is None or not names <= found.keys():
        at = _skip(raw, at, _SPACE + b",")
        if not raw.startswith(b'"', at):
            return found if raw.startswith(b"}", at) and not raw[at + 1 :].strip() else {}
        end = _string_end(raw, at)
        name = _decode_text(raw[at:end])
        begin = _skip(raw, end, _SPACE)
        if end < 0 or not raw.startswith(b":", begin):
            return {}
        begin = _skip(raw, begin + 1, _SPACE)
        at = _value_end(raw, begin)
        if at < 0:
            return {}
        if names is None or name in names:
            found[name] = raw[begin:at].strip()
        at = _skip(raw, at, _SPACE)
        if raw[at : at + 1] not in (b",", b"}"):
            return {}
    return found


def _value_end(raw: bytes, at: int) -> int:
    """Return the offset after the value that begins here, or -1 if it does not end."""
    first = raw[at : at + 1]
    if first in (b"{", b"["):
        return ItemScanner(at).end(raw)
    if first == b'"':
        return _string_end(raw, at)
    scalar = _SCALAR.match(raw, at)
    return -1 if scalar is None else scalar.end()


def _string_end(raw: bytes, at: int) -> int:
    """Return the offset after the string that begins here, or -1 if it does not end."""
    at += 1
    while window := raw[at : at + WINDOW]:
        if b"\\" in window:
            window = unescaped(window)
            if not window:
                break
        quote = window.find(b'"')
        if quote >= 0:
            return at + quote + 1
        at += len(window)
    return -1


def _skip(raw: bytes, at: int, spaces: bytes) -> int:
    """Return the offset of the first byte from here that is none of these."""
    while window := raw[at : at + WINDOW]:
        rest = window.lstrip(spaces)
        at += len(window) - len(rest)
        if rest:
            break
    return at


def _decode_text(encoded: bytes) -> str:
    try:
        return msgspec.json.decode(encoded, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
