"""What a work queue can tell of itself: client-go's workqueue metrics (WQ-14), as numbers at the moment of asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aioinformer.durations import Durations

#: Upper bounds in seconds, those of client-go: 10 ns to 1000 s.
DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))


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
        shutting_down: it takes nothing in any more.
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
    shutting_down: bool = False
