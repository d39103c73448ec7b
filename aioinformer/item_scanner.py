"""Find where a JSON object or array ends, by its strings and brackets, in small steps.

Each step looks at one window of the bytes and leaves the counting to the C library, so that its cost is bounded
whatever the bytes are: a caller that shares the event loop can pause between two steps.
"""

from __future__ import annotations

import re
from itertools import accumulate, islice

#: The largest number of bytes that one step looks at. Most values are small: windows begin small and grow.
WINDOW = 4096
_FIRST_WINDOW = 64

_SIGNS = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{[}]"))
_BRACKET = re.compile(rb"[{}\[\]]")


def unescaped(window: bytes) -> bytes:
    """Return the window with its escaped backslashes and quotes replaced, byte by byte.

    A backslash at the end whose escaped byte is not in the window is left out.
    """
    if (len(window) - len(window.rstrip(b"\\"))) % 2:
        window = window[:-1]
    return window.replace(b"\\\\", b"__").replace(b'\\"', b"__")


class ItemScanner:
    """Finds the end of one JSON object or array in a growing buffer. Looks at every byte once.

    Args:
        start: offset of the opening bracket.
    """

    __slots__ = ("_depth", "_in_string", "_position", "_window")

    def __init__(self, start: int) -> None:
        self._position = start
        self._depth = 0
        self._in_string = False
        self._window = _FIRST_WINDOW

    def shift(self, by: int) -> None:
        """Note that the first `by` bytes of the buffer are gone."""
        self._position -= by

    def step(self, buffer: bytes | bytearray) -> int:
        """Look at the next window.

        Returns:
            The offset behind the value; 0 if there is more to look at; -1 if the buffer holds no more of the value.
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
                # A value that begins with a closing bracket ends there: the caller finds that it is none.
                last = 0 if depths[1] < 0 else depths.index(0, 1) - 1
                return start + _place(parts, last, in_string=self._in_string)
        self._depth += len(signs) - 2 * closing
        self._in_string ^= len(parts) % 2 == 0
        self._position = start + len(window)
        return 0 if self._position < len(buffer) else -1

    def end(self, buffer: bytes | bytearray) -> int:
        """Look at all that is left of the buffer.

        Returns:
            The offset behind the value, or -1 if it is not complete yet.
        """
        while not (end := self.step(buffer)):
            pass
        return end


def _place(parts: list[bytes], number: int, *, in_string: bool) -> int:
    """Return the offset behind the bracket of this number, of those outside strings."""
    for inside in range(not in_string, len(parts), 2):
        parts[inside] = b"_" * len(parts[inside])
    found = next(islice(_BRACKET.finditer(b'"'.join(parts)), number, None))
    return found.end()
