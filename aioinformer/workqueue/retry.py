"""Trying a write again: after conflicts, or after any error that a predicate picks (RT-01)."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """How often to try, and how long to wait in between; in seconds.

    Attributes:
        steps: tries altogether, the first included.
        initial: the first delay, before jitter.
        factor: by which each delay grows.
        jitter: each delay is drawn from [d, d * (1 + jitter)).
        cap: the longest delay, before jitter.
    """

    steps: int
    initial: float
    factor: float = 1.0
    jitter: float = 0.1
    cap: float = 60.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1 (one try), not {self.steps!r}")
        for name in ("initial", "jitter", "cap"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)!r}")
        if not self.factor >= 1:
            raise ValueError(f"factor must be at least 1, not {self.factor!r}")

    def delays(self, random: Callable[[], float]) -> Iterator[float]:
        """The delays between the tries: one fewer than there are tries.

        Args:
            random: gives numbers in [0, 1).
        """
        delay = min(self.initial, self.cap)
        for _ in range(self.steps - 1):
            yield delay * (1 + self.jitter * random())
            delay = min(delay * self.factor, self.cap)


#: For objects that several clients change, all of them briefly: five tries, about 10 ms apart.
DEFAULT_RETRY: Final = RetryBackoff(steps=5, initial=0.01)

#: For objects that somebody changes all the time: four tries, after 10, 50 and 250 ms.
DEFAULT_BACKOFF: Final = RetryBackoff(steps=4, initial=0.01, factor=5.0)


async def on_error(
    fn: Callable[[], Awaitable[T]],
    retriable: Callable[[Exception], bool],
    backoff: RetryBackoff = DEFAULT_BACKOFF,
    *,
    random: Callable[[], float] = random.random,
) -> T:
    """Calls a coroutine function until it succeeds, or fails in another way, or has failed often enough.

    Cancelled, it ends at once, also between two tries.

    Args:
        fn: one try.
        retriable: whether an error is worth another try.
        backoff: how many tries, and how far apart.
        random: for the jitter, gives numbers in [0, 1).

    Returns:
        What the first try returned that succeeded.

    Raises:
        Exception: the error of the last try.
    """
    for delay in backoff.delays(random):
        try:
            return await fn()
        except Exception as error:
            if not retriable(error):
                raise
        await asyncio.sleep(delay)
    return await fn()


async def retry_on_conflict(
    fn: Callable[[], Awaitable[T]],
    backoff: RetryBackoff = DEFAULT_RETRY,
    *,
    random: Callable[[], float] = random.random,
) -> T:
    """Calls a coroutine function that reads an object, changes it and writes it back, until nobody came in between.

    Args:
        fn: one try. It must read the object anew each time: what was read before is what conflicts.
        backoff: how many tries, and how far apart.
        random: for the jitter, gives numbers in [0, 1).

    Returns:
        What the first try returned that succeeded.

    Raises:
        Exception: the conflict of the last try, or another error of any.
    """
    return await on_error(fn, is_conflict, backoff, random=random)


def is_conflict(error: BaseException) -> bool:
    """Whether an error of this package or of kubernetes_asyncio says that the object has changed meanwhile.

    The status alone does not: what exists already is 409, too, and does not get better by trying again.
    """
    if getattr(error, "status", None) != 409:
        return False
    reason = getattr(error, "reason", None)
    body = getattr(error, "body", None)  # where kubernetes_asyncio keeps the Status; its reason is HTTP's
    if isinstance(body, (str, bytes)):
        with suppress(ValueError):
            document = json.loads(body)
            reason = document.get("reason", reason) if isinstance(document, dict) else reason
    return reason in ("Conflict", "", None)
