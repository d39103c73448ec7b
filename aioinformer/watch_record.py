"""How watches went of late: which were short, which brought nothing, and where one broke.

One watch that ends at once is an accident. The same again and again says something: of the version it began at, or of a
server that must not be asked so often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.pace import Pace

#: A watch that lives shorter than this is suspect, whatever it brought.
SHORT_WATCH = 1.0
#: After a watch of this length, a version that is lost is news again.
LONG_WATCH = 10.0
#: So many watches in a row that fail to open, or end at once with nothing, make the version suspect.
MAX_VAIN_WATCHES = 4


class WatchRecord:
    """Keeps count of watches, one after the other."""

    def __init__(self) -> None:
        self._opened_at = 0.0
        self._events = 0
        self._vain = 0
        self._broken_at = ""

    def opened(self, now: float) -> None:
        """An answer begins."""
        self._opened_at = now
        self._events = 0

    def took(self, events: int) -> None:
        """So many events came."""
        self._events += events

    def is_short(self, now: float) -> bool:
        """Whether the answer, which ends now, was suspiciously short."""
        return now - self._opened_at < SHORT_WATCH

    def brought_nothing(self) -> bool:
        """Whether no event came."""
        return not self._events

    def over(self, now: float, pace: Pace) -> None:
        """A watch has ended: what it proved is noted."""
        if self._events:
            self._vain = 0
            pace.reset("idle")
        if not self.is_short(now):
            pace.reset("short", "line")
        if now - self._opened_at >= LONG_WATCH:
            pace.reset("expired", "expired list", "rewound")

    def count_fruitless(self) -> bool:
        """Count a watch that brought nothing; return whether there were so many in a row that only a list can help."""
        self._vain = (self._vain + 1) % MAX_VAIN_WATCHES
        return self._vain == 0

    def listed(self) -> None:
        """A list came: what watches brought before it does not count."""
        self._vain = 0

    def count_break(self, version: str) -> bool:
        """Count a watch that broke after this version; return whether the one before it broke there, too."""
        again = version == self._broken_at
        self._broken_at = version
        return again
