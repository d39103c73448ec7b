"""What all work queues wait with: the workers in `get`, one timer for a time that changes, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from aioinformer.concurrency import running_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def loop_time() -> float:
    """Return the time of the event loop; without a running loop, of the clock that event loops use."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


class Getters:
    """The workers that wait for an item, woken in the order of their arrival.

    Args:
        on_lost: called if a worker is cancelled after it was woken: another one must be woken, if there is an item.
    """

    __slots__ = ("_on_lost", "_waiting")

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self) -> None:
        """Wait to be woken."""
        getter: asyncio.Future[None] = running_loop("a worker waits for an item").create_future()
        self._waiting.append(getter)
        try:
            await getter
        except BaseException:
            if getter.done() and not getter.cancelled():
                self._on_lost()
            elif getter in self._waiting:
                self._waiting.remove(getter)
            raise

    def wake(self) -> bool:
        """Wake the first worker. Return whether there was one."""
        while self._waiting:
            getter = self._waiting.popleft()
            if not getter.done():
                getter.set_result(None)
                return True
        return False

    def wake_all(self) -> None:
        """Wake all workers."""
        while self.wake():
            pass


class DueTimer:
    """Calls a function at the time that was set last.

    Args:
        call: is called with the present time, which is never before the time that was set.

    Attributes:
        due: the time that is set; None for none.
    """

    __slots__ = ("_call", "_handle", "due")

    def __init__(self, call: Callable[[float], None]) -> None:
        self._call = call
        self.due: float | None = None
        self._handle: asyncio.TimerHandle | None = None

    def set(self, due: float | None) -> None:
        """Set the time.

        Args:
            due: by the clock of the running event loop; None for no call.
        """
        if due == self.due:
            return
        self.due = due
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if due is not None:
            self._handle = asyncio.get_running_loop().call_at(due, self._on_time, due)

    def _on_time(self, due: float) -> None:
        self._handle = None
        self.due = None
        self._call(max(due, asyncio.get_running_loop().time()))  # event loops may call a timer slightly early
