"""Something that comes true once, or fails, and that any number of tasks may wait for."""

from __future__ import annotations

import asyncio


class Latch:
    """An event that is never cleared, and that can tell its waiters that it will never come.

    Setting and asking are plain calls. Waiting belongs to the loop.
    """

    __slots__ = ("_error", "_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._error: BaseException | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def __bool__(self) -> bool:
        return self._set

    def set(self) -> None:
        """It has come true."""
        if self._set or self._error is not None:
            return
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """It will not come true; whoever waits, now or later, is raised this."""
        if self._set or self._error is not None:
            return
        self._error = error
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)

    async def wait(self) -> None:
        """Returns once it has come true.

        Raises:
            BaseException: what it failed with.
        """
        if self._set:
            return
        if self._error is not None:
            raise self._error
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
