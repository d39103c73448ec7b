"""What a work queue can tell of itself: client-go's workqueue metrics (WQ-14), as numbers at the moment of asking."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

#: Upper bounds in seconds, those of client-go: 10 ns to 1000 s.
DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of times, as Prometheus has them.

    Attributes:
        count: how many there were.
        total: their sum in seconds.
        buckets: how many were at most as long as each of `DURATION_BOUNDS`.
    """

    count: int
    total: float
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Numbers of one work queue; times in seconds.

    Attributes:
        name: of the queue, "" if it has none.
        depth: items that wait for a worker.
        processing: items that workers have.
        delayed: items that wait for their time.
        adds: items that were taken in, so far; what collapsed into one counts once.
        retries: items that were taken in with a delay, so far.
        waited: from the add to the worker.
        worked: from the worker to `done`.
        unfinished_work: the sum of how long each worker has had its item.
        longest_running: the longest of these. One that only grows is a worker that is stuck.
    """

    name: str
    depth: int
    processing: int
    delayed: int
    adds: int
    retries: int
    waited: Durations
    worked: Durations
    unfinished_work: float
    longest_running: float


class DurationCounter:
    """Counts times into a histogram."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts = [0] * (len(DURATION_BOUNDS) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one."""
        self._counts[bisect_left(DURATION_BOUNDS, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """What was counted so far."""
        below = tuple(accumulate(self._counts))
        return Durations(below[-1], self._total, below[:-1])
