"""Chunks to lines, in time linear in their size however they are cut."""

from __future__ import annotations

from aioinformer.errors import FrameTooLarge

DEFAULT_MAX_FRAME = 64 * 1024 * 1024


class LineSplitter:
    """Cuts a stream of chunks into lines.

    A line that came in many chunks is joined once, when its end is there; nothing is searched twice.

    Args:
        max_line: the longest line accepted, in bytes.
    """

    def __init__(self, max_line: int = DEFAULT_MAX_FRAME) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that this chunk completes, without their ends and without empty ones.

        Raises:
            FrameTooLarge: the line that is still growing exceeds the cap.
        """
        lines = chunk.split(b"\n")
        tail = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        if tail:
            self._parts.append(tail)
            self._size += len(tail)
        if self._size > self._max_line or max(map(len, lines), default=0) > self._max_line:
            raise FrameTooLarge(
                f"a line of the watch exceeds {self._max_line} bytes; raise max_frame if objects are really that large"
            )
        return [line for line in lines if line and not line.isspace()]

    def finish(self) -> bytes:
        """What came after the last line end: empty unless the stream was cut in the middle of a line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return rest.strip()
