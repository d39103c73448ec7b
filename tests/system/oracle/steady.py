"""An event loop whose clock ignores delays of a busy machine, for tests that compare times.

Client and server share the loop. While the machine runs other processes, or the loop runs another of the hundred
scripts, neither of them can act. Such time does not count: a turn advances the clock by `LONGEST_TURN` at most.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectors import SelectorKey

#: The most seconds that a turn of the loop, or a late wake-up, counts for.
LONGEST_TURN = 0.01


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and measures the lost time.

    Attributes:
        lost: seconds that do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0.0
        self._returned_at = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        begin = time.monotonic()
        self.lost += max(0.0, begin - self._returned_at - LONGEST_TURN)
        ready = super().select(timeout)
        self._returned_at = time.monotonic()
        if timeout is not None:
            self.lost += max(0.0, self._returned_at - begin - max(timeout, 0.0) - LONGEST_TURN)
        return ready


class SteadyLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock ignores lost time."""

    def __init__(self) -> None:
        self._steady = _Selector()
        super().__init__(self._steady)

    def time(self) -> float:
        """Return the time without the lost time."""
        return time.monotonic() - self._steady.lost
