"""An event loop for tests that compare times on a busy machine.

Client and server share the loop. While the machine works on something else, or the loop on one of a hundred scripts,
neither of them could act, so that time does not count: the clock of the loop goes on by `LONGEST_TURN` at most.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectors import SelectorKey

#: One turn of the loop counts as no more than this, in seconds, and so does being woken too late.
LONGEST_TURN = 0.01


class _Selector(selectors.DefaultSelector):
    """Waits for sockets, and measures what was lost.

    Attributes:
        lost: the seconds that do not count.
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
    """The event loop."""

    def __init__(self) -> None:
        self._steady = _Selector()
        super().__init__(self._steady)

    def time(self) -> float:
        """Return the time, without what was lost."""
        return time.monotonic() - self._steady.lost
