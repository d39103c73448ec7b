"""Logs of containers: the parameters of a request, and the lines of an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.client.requests import Query
    from aioinformer.transport import Response

#: A longer line comes in pieces of this number of bytes.
_MAX_LINE: Final = 1024 * 1024


class LineSplitter:
    """Cuts chunks of bytes into lines."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the lines that a chunk completes, and pieces of lines that are too long."""
        *ended, begun = chunk.split(b"\n")
        for line in ended:
            yield self._take(line)
        if begun:
            self._begun.append(begun)
            self._size += len(begun)
        if self._size >= _MAX_LINE:
            yield self._take(b"")

    def feed_eof(self) -> Iterator[str]:
        """Yield the last line if it has no line end."""
        if self._begun:
            yield self._take(b"")

    def _take(self, end: bytes) -> str:
        line = b"".join((*self._begun, end)) if self._begun else end
        self._begun = []
        self._size = 0
        return line.decode(errors="replace")


async def read_lines(response: Response) -> AsyncGenerator[str]:
    """Yield the lines of a response, and close it.

    Raises:
        TransportError: the connection broke.
    """
    splitter = LineSplitter()
    chunks = response.chunks()
    try:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
        for line in splitter.feed_eof():
            yield line
    finally:
        await response.close()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()  # otherwise asyncio closes it later, in a task of its own


def log_query(
    container: str,
    follow: bool,
    previous: bool,
    tail: int | None,
    since: float | datetime | None,
    timestamps: bool,
    limit_bytes: int | None,
) -> Query:
    """Return the parameters of a request for a log; see `ResourceClient.logs`.

    Raises:
        OptionError: a value is invalid.
    """
    for name, number, least in (("tail", tail, 0), ("limit_bytes", limit_bytes, 1)):
        if number is not None and number < least:
            raise OptionError(f"{name} must be None or a number, at least {least}, not {number!r}")
    query = [
        ("container", container),
        ("follow", "true" if follow else ""),
        ("previous", "true" if previous else ""),
        ("tailLines", "" if tail is None else str(tail)),
        ("timestamps", "true" if timestamps else ""),
        ("limitBytes", "" if limit_bytes is None else str(limit_bytes)),
    ]
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise OptionError("since must be a datetime with a time zone, or a number of seconds")
        query.append(("sinceTime", since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
    elif since is not None:
        if not since > 0:
            raise OptionError(f"since must be a positive number of seconds, or a datetime, not {since!r}")
        query.append(("sinceSeconds", str(max(1, round(since)))))
    return tuple((name, value) for name, value in query if value)
