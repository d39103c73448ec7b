"""How long a thread was ready and did not run, because other threads had the processors. Linux says so, in schedstat.

A step of a task that takes 0.2 s on a loaded machine may have run for 0.02 s. Time in the queue of the scheduler is no
fault of the function that was called; time in a blocking call is, and does not count as such.

The total of a thread is read from a file, which takes 6 us. So it is read at most 20 times a second, at the begin of
steps, and what was waited between that and the begin of a step is not known. At most this time is taken for time of the
step, so a blocking call always counts in full.
"""

from __future__ import annotations

import os
import threading
from typing import Final

import msgspec

#: Fields: nanoseconds on a processor, nanoseconds in the queue, and the number of time slices.
_FILE: Final = "/proc/thread-self/schedstat"
#: Seconds for which a reading serves as the begin of steps; and before the next attempt if the file cannot be read.
FRESH: Final = 0.05
_UNREADABLE: Final = 60.0


class Reading(msgspec.Struct, frozen=True):
    """The seconds that a thread has waited in all, at a time of `perf_counter`, and until when this is good enough."""

    waited: float | None
    at: float
    until: float


class RunQueue(threading.local):
    """How long each thread has waited. What one thread reads says nothing of the others.

    Args:
        file: in the form of schedstat. Without it, nothing is known, and no wait counts.

    Attributes:
        last: the last reading of this thread.
    """

    def __init__(self, file: str = _FILE) -> None:
        self.last = Reading(None, 0.0, float("-inf"))
        self._file = file

    def read(self, now: float) -> Reading:
        """Read how long this thread has waited until now, a time of `perf_counter`."""
        waited = self._waited()
        self.last = Reading(waited, now, now + (_UNREADABLE if waited is None else FRESH))
        return self.last

    def waited_since(self, reading: Reading, began: float) -> float:
        """Return for how many seconds this thread has waited since `began`, at least; 0 if that is not known.

        Args:
            reading: of this thread, the last one before `began`.
            began: a time of `perf_counter`.
        """
        now = None if reading.waited is None else self._waited()
        if now is None or reading.waited is None:
            return 0.0
        return max(0.0, now - reading.waited - (began - reading.at))

    def _waited(self) -> float | None:
        try:
            file = os.open(self._file, os.O_RDONLY)
        except OSError:  # not Linux, or a kernel without it
            return None
        try:
            return int(os.read(file, 100).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None
        finally:
            os.close(file)
