"""Histograms of times, as Prometheus has them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of times.

    Attributes:
        count: how many there were.
        total: their sum in seconds.
        buckets: how many were at most as long as each of `bounds`.
        bounds: in seconds.
    """

    count: int
    total: float
    buckets: tuple[int, ...]
    bounds: tuple[float, ...]


class DurationCounter:
    """Counts times into a histogram.

    Args:
        bounds: upper bounds in seconds, the lowest first.
    """

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """What was counted so far."""
        below = tuple(accumulate(self._counts))
        return Durations(below[-1], self._total, below[:-1], self._bounds)
