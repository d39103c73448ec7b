"""So many things a second, for those who do them: client-go's flowcontrol.RateLimiter (FC-02)."""

from __future__ import annotations

import asyncio

from aioinformer.ratelimiters import TokenBucket


class Throttle:
    """A token bucket that can be waited for; who waits first goes first.

    Args:
        qps: things a second, on average.
        burst: so many may be done at once after a rest.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._bucket = TokenBucket(qps, burst)
        #: One at a time takes a token of the future, so that it can be given back: nobody's builds on it.
        self._turn = asyncio.Lock()

    @property
    def qps(self) -> float:
        """Things a second, on average."""
        return self._bucket.qps

    def try_accept(self) -> bool:
        """Whether one thing may be done now, without waiting; if so, it counts as done."""
        return self._bucket.try_take(asyncio.get_running_loop().time())

    async def wait(self) -> None:
        """Returns when one thing may be done; cancelled, it counts as not done."""
        async with self._turn:
            delay = self._bucket.reserve(asyncio.get_running_loop().time())
            try:
                await asyncio.sleep(delay)
            except BaseException:
                self._bucket.give_back()
                raise
