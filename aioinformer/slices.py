"""Long work in short slices: the event loop also belongs to others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: How often the clock is looked at at least: reading it costs about as much as a small step of work.
_EVERY = 8


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock of a loop, to be read between any two calls.

    asyncio's is `time.monotonic`, which is cheaper to read directly. uvloop's is the same clock, but stands still
    within a turn. A loop that has a clock of its own (virtual time) is asked; while it stands still, real time passes.
    """
    if not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time:
        return monotonic
    last = real = 0.0

    def clock() -> float:
        nonlocal last, real
        if (now := loop.time()) != last:
            last, real = now, perf_counter()
        return now + perf_counter() - real

    return clock


class Slicer:
    """Tells when work has held the loop for long enough, and lets go of it.

    A slice begins with a look at the clock after its first step, and looks ever more rarely: it is not known how large
    the steps are (a handler, an index function), and slow ones must not come in eights.

    Args:
        seconds: the length of a slice; may be changed.
    """

    __slots__ = ("_gap", "_left", "_since", "seconds")

    def __init__(self, seconds: float = 0.0005) -> None:
        self.seconds = seconds
        self.start()

    def start(self) -> None:
        """A slice begins now."""
        self._since = perf_counter()
        self._gap = self._left = 1

    def due(self) -> bool:
        """Whether the slice is used up; to be asked after each small step of work."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._gap = min(2 * self._gap, _EVERY)
        return perf_counter() - self._since >= self.seconds

    async def let_go(self) -> None:
        """Lets the loop do what else there is; a new slice begins after that."""
        await asyncio.sleep(0)
        self.start()

    async def pause(self) -> None:
        """Lets go if it is time to."""
        if self.due():
            await self.let_go()


def discard(loop: asyncio.AbstractEventLoop, items: dict[str, Any], seconds: float = 0.0005) -> None:
    """Empties a dict that nobody else has, in slices: to free a large one at once would hold the loop.

    Args:
        loop: does it, unless it is closed. May be called from any thread.
        items: what is to be freed.
        seconds: the length of a slice.
    """

    def go_on() -> None:
        end = perf_counter() + seconds
        while items and perf_counter() < end:
            for _ in range(min(len(items), _EVERY)):
                items.popitem()
        if items:
            loop.call_soon(go_on)

    with suppress(RuntimeError):  # closed: nothing is left to be held
        loop.call_soon_threadsafe(go_on)
