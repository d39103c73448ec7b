"""Which listeners of an informer call their handlers in one turn of the event loop, and for how long."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from aioinformer import concurrency

if TYPE_CHECKING:
    from collections.abc import Sized

#: The number of slices that all listeners of an informer share in one turn of the event loop.
_SLICES: Final = 2
#: So many listeners go on in one turn. A step of a task costs as much as a few calls of a handler: a step of each of a
#: hundred listeners would block the event loop for longer than the slices.
_AT_ONCE: Final = 8


class Turns:
    """Divides the slices of a turn among the listeners that have more to deliver.

    Args:
        listeners: all of the informer; some may be idle.
    """

    __slots__ = ("_listeners", "_seconds", "_waiting")

    def __init__(self, listeners: Sized) -> None:
        self._listeners = listeners
        self._seconds = concurrency.SLICE_SECONDS * _SLICES
        #: Those that wait for a turn, in their order.
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def first(self) -> float:
        """For how long a listener may deliver when a batch arrives, in seconds. All listeners may begin at once."""
        return self._seconds / max(_SLICES, len(self._listeners))

    async def next(self) -> float:
        """Give other tasks a turn; return for how long the listener may then deliver, in seconds."""
        sharing = len(self._listeners)
        if sharing <= _AT_ONCE:
            await asyncio.sleep(0)
            return self._seconds / max(_SLICES, sharing)
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._go_on, loop)
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn
        return self._seconds / _AT_ONCE

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the next listeners go on; those that were cancelled meanwhile do not count."""
        waiting = self._waiting
        left = _AT_ONCE
        try:
            while waiting and left:
                turn = waiting[0]
                if not turn.done():
                    turn.set_result(None)
                    left -= 1
                waiting.popleft()
        finally:
            if waiting:  # also if a listener could not be woken: all others would wait for ever
                loop.call_soon(self._go_on, loop)
