"""Combine the small reads of a busy stream.

A server writes each event of a watch by itself. Each write wakes the event loop, and a wake-up costs more than the
processing of the event. At many hundred events a second, the coalescer sets the low-water mark of the socket
(SO_RCVLOWAT) to the size of several events, for three milliseconds at most. The kernel collects events until the mark
is reached. This is a nap.

* The first events after a quiet time are read at once, and so is everything if events are rare.
* A nap takes place while reads are small and frequent. It ends when the expected number of bytes has arrived, when the
  server closes the connection, or by a timer. If naps bring nothing together, the next one is a while off.
* A nap changes nothing but this option of one socket. Reading that asyncio, TLS or aiohttp have paused stays paused.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_OPTION: Final = getattr(socket, "SO_RCVLOWAT", None)
#: Reads that follow each other within this number of seconds are frequent.
_FREQUENT: Final = 0.0016
#: After this number of frequent reads, the first nap begins.
_PATIENCE: Final = 3
#: Larger reads need no nap, in bytes. It is also the most that a nap waits for.
_LARGE: Final = 64 * 1024
#: For how many seconds events are collected if many come in that time; otherwise, a nap collects this number of pieces.
_NAP: Final = 0.0012
_PIECES: Final = 3
#: After how many seconds a nap ends in any case. Timers of asyncio have a resolution of a millisecond, so most naps
#: must end by the number of bytes.
_LIMIT: Final = 0.0032
#: The share of the expected bytes that ends a nap.
_ENOUGH: Final = 0.95
#: A nap must be likely to combine this number of pieces at least: what it delays has left the caches of the processor.
_WORTHWHILE: Final = 2.0
#: A read after a nap of less than this number of pieces shows that the nap was useless.
_USEFUL: Final = 1.2
#: After this number of naps in a row that combined nothing, a number of reads takes place without naps.
_USELESS: Final = 3
_PENALTY = 16
_MAX_PENALTY = 256


class ReadCoalescer:
    """Delays the reads of one connection, if that combines them. `note_read` is called after each read."""

    __slots__ = (
        "_clock",
        "_connection",
        "_frequent",
        "_loop",
        "_napping",
        "_penalty",
        "_piece",
        "_rate",
        "_read_at",
        "_timer",
        "_useless",
        "_waits_for",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        self._loop = loop
        self._clock: Callable[[], float] = loop.time
        self._connection = connection
        self._read_at = 0.0
        #: The number of frequent small reads in a row; negative after naps that were useless.
        self._frequent = 0
        self._useless = 0
        self._penalty = _PENALTY
        #: The bytes of the last read without a nap, and the bytes per second of the last reads.
        self._piece = 0
        self._rate = 0.0
        self._napping = False
        #: The value of the socket's option.
        self._waits_for = 1
        self._timer: asyncio.TimerHandle | None = None

    def note_read(self, size: int) -> None:
        """Take note of a read, and begin a nap if it is likely to combine the next reads."""
        now = self._clock()
        gap = now - self._read_at
        self._read_at = now
        if self._timer is not None:
            self._cancel_timer()
        napped = self._napping
        self._napping = False
        if size >= _LARGE or gap > (2 * _LIMIT if napped else _FREQUENT):
            if self._frequent > 0:
                self._frequent = 0
            if self._waits_for > 1:
                self._wait_for(1)
            return
        if napped:
            self._count_useless_nap(size)
        else:
            self._piece = size
        rate = size / gap if gap > 0 else self._rate
        self._rate = (self._rate + rate) / 2 if self._frequent > 0 else rate
        self._frequent += 1
        soon = max(self._rate * _NAP, min(_PIECES * self._piece, self._rate * _LIMIT))
        enough = min(_LARGE, int(soon * _ENOUGH))
        if self._frequent < _PATIENCE or soon < _WORTHWHILE * self._piece:
            if self._waits_for > 1:
                self._wait_for(1)
            return
        self._wait_for(enough)
        if self._waits_for > 1:
            self._napping = True
            self._timer = self._loop.call_later(_LIMIT, self._wake)

    def _count_useless_nap(self, size: int) -> None:
        """Count naps that combined nothing."""
        if size >= _USEFUL * self._piece:
            self._useless = 0
            self._penalty = _PENALTY
            return
        self._useless += 1
        if self._useless >= _USELESS:
            self._useless = 0
            self._frequent = -self._penalty
            self._penalty = min(2 * self._penalty, _MAX_PENALTY)

    def close(self) -> None:
        """End the nap, if there is one: the connection may serve another response."""
        self._cancel_timer()
        self._wait_for(1)

    def _wake(self) -> None:
        self._timer = None
        self._wait_for(1)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait_for(self, size: int) -> None:
        """Set from how many bytes on the socket counts as readable."""
        if size == self._waits_for:
            return
        # A system may not support the option, and the socket may be closed: then there are no naps. A closed socket
        # raises OSError with asyncio, ValueError with uvloop.
        with suppress(OSError, ValueError):
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
            self._waits_for = size


def coalescer_of(transport: asyncio.BaseTransport | None, loop: asyncio.AbstractEventLoop) -> ReadCoalescer | None:
    """Return a coalescer for a connection, None if it has no socket or the system has no such option."""
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is None or _OPTION is None:
        return None
    return ReadCoalescer(loop, connection)
