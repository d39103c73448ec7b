"""Something that comes true once, or fails, and that any number of tasks may wait for."""

from __future__ import annotations

import asyncio


class Failure:
    """An exception that is raised to many, each time as it was: raising adds to its traceback, and would go on adding.

    Args:
        error: the exception.
    """

    __slots__ = ("_error", "_traceback")

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._traceback = error.__traceback__

    @property
    def error(self) -> BaseException:
        """The exception, to be raised."""
        return self._error.with_traceback(self._traceback)


class Latch:
    """An event that is never cleared, and that can tell its waiters that it will never come.

    Setting and asking are plain calls. Waiting belongs to the loop.
    """

    __slots__ = ("_failure", "_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._failure: Failure | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    def __bool__(self) -> bool:
        return self._set

    def set(self) -> None:
        """It has come true."""
        if self._set or self._failure is not None:
            return
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """It will not come true; whoever waits, now or later, is raised this."""
        if self._set or self._failure is not None:
            return
        self._failure = Failure(error)
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
        if self._failure is not None:
            raise self._failure.error
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
