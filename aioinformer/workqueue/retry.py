"""Retry a write after a conflict, or after any error that a predicate accepts."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """How often to try, and how long to wait in between, in seconds.

    Attributes:
        steps: the number of tries, including the first.
        initial: the first delay, before jitter.
        factor: multiplies the delay after each try.
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
        """Yield the delays between the tries: `steps - 1` of them.

        Args:
            random: returns a number in [0, 1).
        """
        delay = min(self.initial, self.cap)
        for _ in range(self.steps - 1):
            yield delay * (1 + self.jitter * random())
            delay = min(delay * self.factor, self.cap)


#: For objects that several clients change now and then: five tries, about 10 ms apart.
DEFAULT_RETRY: Final = RetryBackoff(steps=5, initial=0.01)

#: For objects that other clients change all the time: four tries, with delays of about 10, 50 and 250 ms.
DEFAULT_BACKOFF: Final = RetryBackoff(steps=4, initial=0.01, factor=5.0)


async def on_error(
    fn: Callable[[], Awaitable[T]],
    retriable: Callable[[Exception], bool],
    backoff: RetryBackoff = DEFAULT_BACKOFF,
    *,
    random: Callable[[], float] = random.random,
) -> T:
    """Call an async function until it succeeds, raises an error that is not retriable, or `backoff.steps` is reached.

    Args:
        fn: the async function.
        retriable: returns whether to retry after this error.
        backoff: the number of tries and the delays between them.
        random: returns a number in [0, 1), for the jitter.

    Returns:
        The result of the first successful try.

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
    """Call an async function that reads, changes and writes an object, until the write succeeds without a conflict.

    Args:
        fn: the async function. It must read the object on each call: the version read before is the one that conflicts.
        backoff: the number of tries and the delays between them.
        random: returns a number in [0, 1), for the jitter.

    Returns:
        The result of the first successful try.

    Raises:
        Exception: the conflict of the last try, or any other error, without a retry.
    """
    return await on_error(fn, is_conflict, backoff, random=random)


def is_conflict(error: BaseException) -> bool:
    """Return whether an error of this package or of kubernetes_asyncio is a conflict: the object changed meanwhile.

    Status 409 alone is not enough: AlreadyExists has it too, and a retry does not help there.
    """
    if getattr(error, "status", None) != 409:
        return False
    reason = getattr(error, "reason", None)
    body = getattr(error, "body", None)  # kubernetes_asyncio has the Status here; its `reason` is the HTTP reason
    if isinstance(body, (str, bytes)):
        with suppress(ValueError):
            document = json.loads(body)
            reason = document.get("reason", reason) if isinstance(document, dict) else reason
    return reason in ("Conflict", "", None)
