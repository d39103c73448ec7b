"""Log the functions of users that block the event loop.

There are two measurements, neither of which costs anything for a single event:

- A task that calls handlers, or a reconciler, runs `Steps`, which times each step from one suspension to the next.
  During a step, no other code runs on the event loop, whether the handler is a coroutine function or not.
- Transforms, decoders and index functions of users are timed for each call (`Stalls.timed`). Time that is attributed to
  them is not attributed to the handler that called them, too.

Time in which the thread was ready and other threads had the processors is taken off both, as far as it is known.
"""

from __future__ import annotations

import asyncio
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from aioinformer.concurrency import Root
from aioinformer.handlers.repeated import QUIET, RepeatedErrors
from aioinformer.handlers.run_queue import RunQueue
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Coroutine

    from aioinformer.handlers.run_queue import Reading

_log = get_logger("aioinformer.handlers")

_F = TypeVar("_F")

#: A function that runs for longer than this blocks the event loop, in seconds.
LIMIT: Final = 0.1

_run_queue = RunQueue()


class Stalls:
    """Log a warning for each function that blocks the event loop, at most once a minute for each.

    Args:
        errors: logs the errors of functions; by default, to the same log.

    Attributes:
        blocked_seconds: for how many seconds functions have blocked the event loop so far.
        errors: as given.
    """

    __slots__ = ("_log", "_name", "_quiet_until", "blocked_seconds", "errors")

    def __init__(self, name: str, log: logging.Logger = _log, errors: RepeatedErrors | None = None) -> None:
        self.blocked_seconds = 0.0
        self.errors = errors or RepeatedErrors(log)
        self._log = log
        self._name = name
        self._quiet_until: dict[str, float] = {}

    def timed(self, function: _F, what: str, key_of: Callable[[Any], str]) -> _F:
        """Return the function with each of its calls timed.

        Args:
            function: of one argument.
            what: the name of the function for the log: "transform trim at app/pods.py:12".
            key_of: returns the key of the object in the argument; may raise.
        """

        called = cast("Callable[[Any], Any]", function)

        @wraps(called)
        def timed(argument: Any) -> Any:
            began = perf_counter()
            reading = _run_queue.last
            if began >= reading.until:
                reading = _run_queue.read(began)
            try:
                return called(argument)
            finally:
                if (seconds := perf_counter() - began) > LIMIT and _on_a_loop():
                    seconds -= _run_queue.waited_since(reading, began)
                    if seconds > LIMIT:
                        self.report(f"{self._name}: {what}", argument, key_of, seconds)

        return cast("_F", timed)

    def report(self, subject: str, argument: Any, key_of: Callable[[Any], str], seconds: float) -> None:
        """Count a block of the event loop, and log it unless this subject was logged within the last minute."""
        self.blocked_seconds += seconds
        now = perf_counter()
        if now < self._quiet_until.get(subject, now):
            return
        self._quiet_until[subject] = now + QUIET
        try:
            key = key_of(argument)
        except Exception:
            key = "an object without key"
        self._log.warning(
            "%s blocked the event loop for %.2f s with %s; all other tasks waited. Await slow operations, or run them "
            "in a thread",
            *(subject, seconds, key),
        )


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Steps(Root):
    """A coroutine with timed steps.

    Args:
        coroutine: the body of the task; its result is that of the task.
        stalls: time that is attributed to other functions during a step is subtracted.
        report: called with the seconds of a step that takes longer than `LIMIT`.
    """

    __slots__ = ("_report", "_stalls")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], stalls: Stalls, report: Callable[[float], None]) -> None:
        super().__init__(coroutine)
        self._stalls = stalls
        self._report = report

    def __next__(self) -> Any:
        """Take a step."""
        blocked = self._stalls.blocked_seconds
        began = perf_counter()
        reading = _run_queue.last
        if began >= reading.until:
            reading = _run_queue.read(began)
        try:
            return self._coroutine.send(None)
        finally:
            if perf_counter() - began > LIMIT:
                self._long(began, blocked, reading)

    def throw(self, *error: Any) -> Any:
        """Take a step that begins with an exception."""
        blocked = self._stalls.blocked_seconds
        began = perf_counter()
        reading = _run_queue.last
        if began >= reading.until:
            reading = _run_queue.read(began)
        try:
            return super().throw(*error)
        finally:
            if perf_counter() - began > LIMIT:
                self._long(began, blocked, reading)

    def _long(self, began: float, blocked: float, reading: Reading) -> None:
        seconds = perf_counter() - began - (self._stalls.blocked_seconds - blocked)
        if seconds > LIMIT:
            seconds -= _run_queue.waited_since(reading, began)
        if seconds > LIMIT:
            self._report(seconds)
