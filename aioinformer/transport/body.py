"""The bytes of an HTTP/1.1 message behind its head into the body they carry.

Rules that are easy to break:

* A whole read is handed over at once: what its chunks carry is joined, once, whatever their number. That is what makes
  this cheaper than a callback for each of them.
* The grammar is that of RFC 9112, and nothing beside it: CRLF and no bare LF, hexadecimal digits without the sign, the
  prefix and the underscores that `int()` accepts. Whoever guesses where a body ends lets others write the next answer.
* What is not yet whole, the line of a chunk or the trailer section, is kept until the next read, and both are bounded.
* Every cut of the same bytes gives the same body, or the same refusal.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

_SLICE: Final = 4096
"""More than the longest line of a chunk that is accepted."""
_MAX_TRAILERS: Final = 8192

_EXTENSION: Final = rb"[ \t]{0,16};[\t\x20-\x7e\x80-\xff]{0,4000}"
# In front of every chunk but the first is the end of the one before it; the first is read as if it had one, too.
_LINE: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,16})(?:" + _EXTENSION + rb")?\r\n").match
_LINE_BEGUN: Final = re.compile(
    rb"(?:\r(?:\n(?:[0-9A-Fa-f]{1,16}(?:[ \t]{0,16}|" + _EXTENSION + rb")\r?)?)?)?"
).fullmatch
_NAME: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_VALUE: Final = rb":[\t\x20-\x7e\x80-\xff]*+"
_FIELDS: Final = rb"(?:" + _NAME + _VALUE + rb"\r\n)*+"
_TRAILERS: Final = re.compile(_FIELDS + rb"\r\n").match
_TRAILERS_BEGUN: Final = re.compile(_FIELDS + rb"(?:\r|" + _NAME + rb"(?:" + _VALUE + rb"\r?)?)?").fullmatch


class MalformedBody(ValueError):
    """The bytes are no body of that kind; where it ends cannot be known."""


class Body(Protocol):
    """A body that is still on its way.

    Attributes:
        ended: it is complete.
    """

    ended: bool

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        """Returns what the next bytes carry, and how many of them belong to the message: all, until it has ended.

        Raises:
            MalformedBody: no body of this kind goes on like this.
        """
        ...


class SizedBody:
    """A body of so many bytes, as `Content-Length` says."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.ended = not size

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        taken = bytes(data[: self._left])
        self._left -= len(taken)
        self.ended = not self._left
        return taken, len(taken)


class ChunkedBody:
    """A body in chunks, each behind a line with its size; trailers are judged, and dropped."""

    def __init__(self) -> None:
        self.ended = False
        self._left = 0  # of the chunk that is under way
        self._last = False  # the chunk that ends the body was seen
        self._begun = b"\r\n"  # of a line, or of the trailers

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        size = len(data)
        at, left = (0, self._left) if self._left else self._next(data, 0)
        self._left = 0
        pieces: list[memoryview] = []
        while left:
            stop = at + left
            pieces.append(data[at:stop])
            if stop > size:
                self._left = stop - size
                at = size
                break
            line = _LINE(data, stop)
            if line is not None:
                at, left = line.end(), int(line[1], 16)
            if line is None or not left:
                at, left = self._next(data, stop)
        return b"".join(pieces), at

    def _next(self, data: memoryview, at: int) -> tuple[int, int]:
        """Where the next chunk begins and how long it is; without a length it is not there yet, or there is none."""
        if not self._last:
            begun = self._begun + data[at : at + _SLICE]
            line = _LINE(begun)
            if line is None:
                if _LINE_BEGUN(begun) is None:
                    raise MalformedBody("a chunk does not begin with its size, behind the end of the chunk before it")
                self._begun = begun
                return len(data), 0
            at += line.end() - len(self._begun)
            self._begun = b""
            if left := int(line[1], 16):
                return at, left
            self._last = True
        begun = self._begun + data[at : at + _MAX_TRAILERS + 1]
        trailers = _TRAILERS(begun)
        if len(begun if trailers is None else trailers[0]) > _MAX_TRAILERS:
            raise MalformedBody(f"the trailers exceed {_MAX_TRAILERS} bytes")
        if trailers is not None:
            self.ended = True
            return at + trailers.end() - len(self._begun), 0
        if _TRAILERS_BEGUN(begun) is None:
            raise MalformedBody("behind the last chunk is neither a trailer nor the end")
        self._begun = begun
        return len(data), 0
