"""Long work in short slices: the event loop also belongs to others."""

from __future__ import annotations

import asyncio
from time import perf_counter

#: How often the clock is looked at: reading it costs about as much as a small step of work.
_EVERY = 8


class Slicer:
    """Tells when work has held the loop for long enough, and lets go of it.

    Args:
        seconds: the length of a slice.
    """

    __slots__ = ("_count", "_seconds", "_since")

    def __init__(self, seconds: float = 0.001) -> None:
        self._seconds = seconds
        self._since = perf_counter()
        self._count = 0

    def start(self) -> None:
        """A slice begins now."""
        self._since = perf_counter()
        self._count = 0

    def due(self) -> bool:
        """Whether the slice is used up; to be asked after each small step of work."""
        self._count += 1
        if self._count < _EVERY:
            return False
        self._count = 0
        return perf_counter() - self._since >= self._seconds

    async def let_go(self) -> None:
        """Lets the loop do what else there is; a new slice begins after that."""
        await asyncio.sleep(0)
        self.start()

    async def pause(self) -> None:
        """Lets go if it is time to."""
        if self.due():
            await self.let_go()
