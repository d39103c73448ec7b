"""A timeout for many waits in a row.

`asyncio.timeout` creates a timer for each wait and cancels it. A watch waits once for each event, with a limit of more
than a minute, so that nearly all of these timers would be cancelled. `Alarm` keeps one timer: when it fires, it is set
again if the limit has moved.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Alarm:
    """Limits the waits of one task, one at a time: `with alarm.at(time): await …`.

    After `close`, another task may use it.

    A wait that exceeds the limit is cancelled, and the block raises TimeoutError, as with `asyncio.timeout_at`. A
    cancellation of the task from elsewhere takes precedence.

    Attributes:
        interrupted: whether `interrupt` ended the last wait.
    """

    __slots__ = ("_cancelling", "_limit", "_owner", "_rang", "_rings_at", "_task", "_timer", "interrupted")

    def __init__(self) -> None:
        self.interrupted = False
        self._limit: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf
        self._owner: asyncio.Task[object] | None = None
        #: The task of the wait in progress, how many requests to cancel it there were before, and whether the alarm
        #: has added one.
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._rang = False

    def at(self, limit: float | None) -> Self:
        """Set the limit of the next wait.

        Args:
            limit: by the clock of the event loop; None for no limit.
        """
        self._limit = limit
        if limit is not None and limit < self._rings_at:
            self._set_timer(limit)
        return self

    def interrupt(self) -> None:
        """End the wait in progress, if any, as if its limit were reached."""
        if self._task is not None and not self._rang:
            self.interrupted = True
            self._fire()

    def close(self) -> None:
        """Remove the timer, and the reference to the task. A later wait sets them again."""
        self._cancel_timer()
        self._owner = None

    def __enter__(self) -> None:
        task = self._task = self._owner = self._owner or asyncio.current_task()
        assert task is not None, "an alarm limits waits of a task"
        self._cancelling = task.cancelling()
        self._rang = self.interrupted = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task, self._limit = self._task, None, None
        if self._rang and task is not None and task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _set_timer(self, at: float) -> None:
        self._cancel_timer()
        self._rings_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._on_timer, at)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._rings_at = None, inf

    def _on_timer(self, at: float) -> None:
        self._timer, self._rings_at = None, inf
        if self._limit is None:
            return  # between two waits; the next one sets the timer again
        if self._limit > at:
            self._set_timer(self._limit)
        elif self._task is not None and not self._rang:
            self._fire()

    def _fire(self) -> None:
        self._rang = True
        if self._task is not None:
            self._task.cancel()
