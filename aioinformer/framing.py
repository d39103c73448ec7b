"""Chunks to lines, in time linear in their size however they are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.errors import FrameTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_MAX_FRAME = 64 * 1024 * 1024


class LineSplitter:
    """Cuts a stream of chunks into lines.

    A line that came in many chunks is joined once, when its end is there; nothing is searched twice. Lines are cut one
    by one, as they are taken: so each finds the memory of the one before it free, and still in the processor's cache.

    Args:
        max_line: the longest line accepted, in bytes.
    """

    def __init__(self, max_line: int = DEFAULT_MAX_FRAME) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the lines that this chunk completes, without their ends and without empty ones.

        Raises:
            FrameTooLarge: a line exceeds the cap, if it is still growing: at once.
        """
        last = chunk.rfind(b"\n")
        begun = self._parts
        if last >= 0:
            self._parts = []
            self._size = 0
        if tail := chunk[last + 1 :]:
            self._parts.append(tail)
            self._size += len(tail)
            if self._size > self._max_line:
                raise self._too_long()
        return self._lines(begun, chunk, last)

    def _lines(self, begun: list[bytes], chunk: bytes, last: int) -> Iterator[bytes]:
        at = 0
        while at <= last:
            end = chunk.index(b"\n", at)
            line = chunk[at:end]
            if begun and not at:
                line = b"".join([*begun, line])
            at = end + 1
            if len(line) > self._max_line:
                raise self._too_long()
            if line and not line.isspace():
                yield line

    def _too_long(self) -> FrameTooLarge:
        return FrameTooLarge(
            f"a line of the watch exceeds {self._max_line} bytes; raise max_frame if objects are really that large"
        )

    def finish(self) -> bytes:
        """What came after the last line end: empty unless the stream was cut in the middle of a line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return rest.strip()
