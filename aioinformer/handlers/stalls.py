"""What blocks the event loop: the functions of users that run for too long at a time, named in the log.

Two measures, neither of which costs anything for a single event:

- A task that calls handlers runs `Steps`, which times each of its steps: from one suspension to the next
  nothing else runs on the loop, whether the handler is a coroutine function or not.
- Transforms, decoders and index functions are timed call by call (`Stalls.timed`), and only where a user has given
  some. What they have been blamed for is not blamed a second time on the handler that called them.
"""

from __future__ import annotations

import asyncio
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from aioinformer.concurrency import Root
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_log = get_logger("aioinformer.handlers")

_F = TypeVar("_F")

#: A function that runs for longer at a time blocks the loop, in seconds.
LIMIT: Final = 0.1
#: Each function is named at most once in so many seconds.
QUIET: Final = 60.0


class Stalls:
    """Writes a warning for each function that blocks the loop, at most once a minute each.

    Args:
        name: of the informer.

    Attributes:
        blamed: seconds for which functions have been found to block the loop, so far.
    """

    def __init__(self, name: str) -> None:
        self.blamed = 0.0
        self._name = name
        self._quiet_until: dict[str, float] = {}

    def timed(self, function: _F, what: str, key_of: Callable[[Any], str]) -> _F:
        """Return the function, with each of its calls timed.

        Args:
            function: of one argument.
            what: the function's name for people: "transform trim at app/pods.py:12".
            key_of: the key of the object in the argument; may raise.
        """

        called = cast("Callable[[Any], Any]", function)

        @wraps(called)
        def timed(argument: Any) -> Any:
            began = perf_counter()
            try:
                return called(argument)
            finally:
                if (seconds := perf_counter() - began) > LIMIT and _on_a_loop():
                    self.blame(f"{self._name}: {what}", argument, key_of, seconds)

        return cast("_F", timed)

    def blame(self, subject: str, argument: Any, key_of: Callable[[Any], str], seconds: float) -> None:
        """Count a block of the loop, and write a warning unless one of this subject was written within a minute."""
        self.blamed += seconds
        now = perf_counter()
        if now < self._quiet_until.get(subject, now):
            return
        self._quiet_until[subject] = now + QUIET
        try:
            key = key_of(argument)
        except Exception:
            key = "an object without key"
        _log.warning(
            "%s blocked the event loop for %.2f s with %s; everything else waited meanwhile. Await what takes long, or "
            "move it to a thread",
            subject,
            seconds,
            key,
        )


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Steps(Root):
    """A coroutine whose steps are timed.

    Args:
        coroutine: what the task runs.
        stalls: what others are blamed for while a step lasts is not a part of it.
        report: called with the seconds of a step that takes longer than `LIMIT`.
    """

    __slots__ = ("_report", "_stalls")

    def __init__(self, coroutine: Coroutine[Any, Any, None], stalls: Stalls, report: Callable[[float], None]) -> None:
        super().__init__(coroutine)
        self._stalls = stalls
        self._report = report

    def __next__(self) -> Any:
        """Take a step."""
        blamed = self._stalls.blamed
        began = perf_counter()
        try:
            return self._coroutine.send(None)
        finally:
            if perf_counter() - began > LIMIT:
                self._long(began, blamed)

    def throw(self, *error: Any) -> Any:
        """Take a step that begins with an exception."""
        blamed = self._stalls.blamed
        began = perf_counter()
        try:
            return super().throw(*error)
        finally:
            if perf_counter() - began > LIMIT:
                self._long(began, blamed)

    def _long(self, began: float, blamed: float) -> None:
        seconds = perf_counter() - began - (self._stalls.blamed - blamed)
        if seconds > LIMIT:
            self._report(seconds)
