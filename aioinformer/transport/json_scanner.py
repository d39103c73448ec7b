"""Find the members of a JSON object, without recursion and in small steps.

An API server accepts objects that are nested ten thousand levels deep, which is too deep for decoders. It also accepts
objects of 3 MiB that consist only of brackets, which take any decoder tens of milliseconds. An object must not be able
to stop an informer or to block its event loop. The identity of such objects is therefore read here, in steps between
which the caller can pause.

The cost of a step is limited by the amount of work, not by a clock: this module does no I/O and does not wait.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from functools import cache
from itertools import accumulate, islice
from typing import Final, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

#: Work in steps: yields None where the caller may pause, and returns the result.
Steps: TypeAlias = Generator[None, None, T]
#: The members to read, by name; None for a member that is read as a whole.
Wanted: TypeAlias = "Mapping[str, Wanted | None]"

#: The largest JSON value that is accepted by default, in bytes.
DEFAULT_MAX_FRAME: Final = 64 * 1024 * 1024
#: The byte order mark, which some proxies write before UTF-8.
BOM: Final = b"\xef\xbb\xbf"
#: The largest number of bytes that one step reads. Most values are small, so windows begin small and grow.
WINDOW: Final = 4096
_FIRST_WINDOW: Final = 64
#: A decoder reads this number of bytes in less than a millisecond, whatever they are.
LARGE: Final = 64 * 1024
#: A decoder reads objects of this weight in a few milliseconds. A byte weighs 1, the possible start of a value 8 more.
_HEAVY: Final = 3 * 512 * 1024
_VALUE: Final = 8
#: The number of members that one step reads.
_MEMBERS: Final = 32

_SIGNS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{[}]"))
_BRACKET = re.compile(rb"[{}\[\]]")
_KEY = re.compile(rb'[ \t\r\n,]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb'[^",:{}\[\]]++')
_FLAT = re.compile(rb'[{\[][^"{}\[\]]*+[}\]]')
_SPACE = re.compile(rb"[ \t\r\n]*+")


@cache
def _grammar() -> tuple[re.Pattern[bytes], ...]:
    """Return the patterns of `is_json`. Each matches a limited number of values, and of strings only short ones."""
    few, space = "{0,15}+", r"[ \t\r\n]*+"
    key = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
    text = key.replace("]*+", "]{0,512}+").replace(")*+", "){0,64}+")
    scalar = rf"(?:{text}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+|true|false|null){space}"
    key = rf"{key}{space}:{space}"
    items, members = rf"{scalar}(?:,{space}{scalar}){few}", rf"{key}{scalar}(?:,{space}{key}{scalar}){few}"
    flat = rf"(?:{scalar}|\[{space}(?:{items})?+\]{space}|\{{{space}(?:{members})?+\}}{space})"
    patterns = (
        rf"{space}(?:{flat}|((?:\[{space}(?!\])){{1,16}}+|\{{{space}{key}))",
        rf"(?:,{space}{flat}){{1,16}}+|((?:\]{space}){{1,16}}+)|(,{space})",
        rf"(?:,{space}{key}{flat}){{1,16}}+|(\}}{space})|(,{space}{key})",
    )
    return tuple(re.compile(pattern.encode()) for pattern in patterns)


_decode_string = msgspec.json.Decoder(str).decode


class Heavy(Exception):
    """A decoder must not be given these bytes at once: they are large, and nested deeply or full of tiny values."""


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
            if min(depths[1:]) <= 0:
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


def is_heavy(raw: bytes) -> bool:
    """Return whether a decoder would need more than a few milliseconds to read this JSON.

    Strings cost little: a ConfigMap of 1 MiB is not heavy. Brackets and commas within strings count as well.
    """
    size = len(raw)
    if size <= LARGE:
        return False
    return size > _HEAVY or size + _VALUE * (raw.count(b",") + raw.count(b"[") + raw.count(b"{")) > _HEAVY


def finish(steps: Steps[T]) -> T:
    """Do all steps at once and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def is_json(raw: bytes) -> Steps[bool]:
    """Return whether these bytes are exactly one JSON value, in time linear in the size, whatever the depth.

    The encoding of strings is not checked.
    """
    value_begin, in_array, in_object = _grammar()
    #: The open brackets. A value is due, or one is complete.
    opened, at, due, paused, count = bytearray(), _skip_space(raw, 0, b" \t\r\n"), True, 0, 0
    while due or opened:
        count += 1
        if at - paused >= WINDOW or not count % _MEMBERS:
            yield
            paused = at
        pattern = value_begin if due else in_array if opened[-1] == 0x5B else in_object
        match = pattern.match(raw, at)
        if match is None:
            if not due or not raw.startswith(b'"', at):
                return False
            end = yield from _skip_string(raw, at)
            try:
                _decode_string(raw[at:end])
            except (msgspec.DecodeError, UnicodeDecodeError):
                return False
            at, due = _skip_space(raw, end, b" \t\r\n"), False
            continue
        at = match.end()
        if due:
            if due := match[1] is not None:
                opened += b"{" if match[1].startswith(b"{") else b"[" * match[1].count(b"[")
        elif match[1] is not None:
            closed = match[1].count(b"]") or 1
            if len(set(opened[-closed:])) != 1 or closed > len(opened):
                return False
            del opened[-closed:]
        else:
            due = match[2] is not None
    return at == len(raw)


def members(raw: bytes) -> dict[str, bytes]:
    """Do the same as `find_members`, at once, for all names."""
    return finish(find_members(raw))


def find_members(raw: bytes, wanted: Iterable[str] | None = None) -> Steps[dict[str, bytes]]:
    """Find the encoded values of an object by name. Of several values with the same name, the last one is returned.

    The time is linear in the size, whatever the depth. Brackets of the values match, but the values may be invalid.

    Args:
        wanted: the names to find; None for all.

    Returns:
        name -> value; {} if the bytes are not exactly one object.
    """
    names = None if wanted is None else frozenset(wanted)
    found: dict[str, bytes] = {}
    at = _SPACE.match(raw).end()  # type: ignore[union-attr] # matches nothing, too
    if not raw.startswith(b"{", at):
        return {}
    at, count = at + 1, 0
    while True:
        key = _KEY.match(raw, at, at + WINDOW)
        if key is not None and key.end() < at + WINDOW:
            name, begin = _decode_text(key[1]), key.end()
        else:
            # A long key, much white space, or the end of the object.
            quote = _skip_space(raw, at, b" \t\r\n,")
            if not raw.startswith(b'"', quote):
                return found if raw.startswith(b"}", quote) and not raw[quote + 1 :].strip() else {}
            begin = yield from _skip_string(raw, quote)
            name = _decode_text(raw[quote + 1 : begin - 1]) if begin - quote < WINDOW else ""
            begin = _skip_space(raw, begin, b" \t\r\n")
            if not raw.startswith(b":", begin):
                return {}
            begin = _skip_space(raw, begin + 1, b" \t\r\n")
        at = yield from _skip_value(raw, begin)
        if at < 0:
            return {}
        if names is None or name in names:
            found[name] = raw[begin:at].strip()
        at = _skip_space(raw, at, b" \t\r\n")
        if raw[at : at + 1] not in (b",", b"}"):
            return {}
        count += 1
        if not count % _MEMBERS:
            yield


def outline(raw: bytes, wanted: Wanted) -> Steps[bytes]:
    """Return an object with only these members of another one, as far as they exist."""
    found = yield from find_members(raw, wanted)
    return (yield from narrowed(found, wanted))


def narrowed(found: Mapping[str, bytes], wanted: Wanted) -> Steps[bytes]:
    """Do the same as `outline`, for members that were found already."""
    shown = []
    for name, value in found.items():
        within = wanted[name]
        if within is not None:
            # A path through a value that is not an object has no value.
            value = (yield from outline(value, within)) if value.startswith(b"{") else b"null"
        shown.append(b"%b:%b" % (msgspec.json.encode(name), value))
    return b"{%b}" % b",".join(shown)


def _skip_value(raw: bytes, at: int) -> Steps[int]:
    """Return the offset after the value that begins here, or -1 if it does not end."""
    first = raw[at : at + 1]
    if first in (b"{", b"["):
        flat = _FLAT.match(raw, at, at + WINDOW)
        if flat is not None:
            return flat.end()
        scanner = ItemScanner(at)
        while not (end := scanner.step(raw)):
            yield
        return end
    if first == b'"':
        short = _STRING.match(raw, at, at + WINDOW)
        return short.end() if short is not None else (yield from _skip_string(raw, at))
    scalar = _SCALAR.match(raw, at)
    return -1 if scalar is None else scalar.end()


def _skip_string(raw: bytes, at: int) -> Steps[int]:
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
        yield
    return -1


def _skip_space(raw: bytes, at: int, spaces: bytes) -> int:
    window = raw[at : at + WINDOW]
    while window and not (rest := window.lstrip(spaces)):
        at += len(window)
        window = raw[at : at + WINDOW]
    return at + len(window) - len(rest) if window else at


def _decode_text(encoded: bytes) -> str:
    try:
        return msgspec.json.decode(b'"%b"' % encoded, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
