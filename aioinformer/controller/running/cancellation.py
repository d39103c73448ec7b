"""Cancellation of attempts: at a stop, when the right to work is lost, and after the timeout.

A cancelled attempt has `CLEANING_UP` seconds to end. One that ignores its cancellation is named in the log. It is
abandoned, unless the timeout has cancelled it: it may write no more, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aioinformer.controller.report import ControllerReport
from aioinformer.controller.running.attached import CLEANING_UP
from aioinformer.controller.running.attempts import subject_of
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.controller.running.attempts import Attempt
    from aioinformer.controller.writes.permits import UnansweredWrites

_log = get_logger("aioinformer.controller")


async def cancel_within(task: asyncio.Task[Any], seconds: float, hurry: asyncio.Future[None]) -> bool:
    """Cancel a task, and wait for its end; return whether it has ended in time.

    Further cancellations of the caller do not end the wait. Once `hurry` is done, it takes a second at most.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    task.cancel()
    while not task.done():
        if hurry.done():
            deadline = min(deadline, clock() + 1.0)
        left = deadline - clock()
        if left <= 0:
            return False
        watched: set[asyncio.Future[Any]] = {task} if hurry.done() else {task, hurry}
        with suppress(asyncio.CancelledError):
            await asyncio.wait(watched, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    return True


class Cancellation:
    """Cancels attempts of one controller, and waits for their ends.

    Args:
        timeout: that of its attempts, in seconds; None for none.
        unanswered: the writes that have no answer, those of attempts that are abandoned among them.

    Attributes:
        attempts: those that run, by their tasks. The controller adds and removes them.
    """

    def __init__(self, name: str, timeout: float | None, unanswered: UnansweredWrites) -> None:
        self.attempts: dict[asyncio.Task[Any], Attempt] = {}
        self._name = name
        self._timeout = timeout
        self._unanswered = unanswered

    async def drain(self, grace: float, hurry: asyncio.Future[None]) -> ControllerReport:
        """Wait until the attempts end: they have `grace` seconds, and are then cancelled. Return how they have ended.

        When `hurry` is done, they are cancelled at once, and not awaited for long.
        """
        loop = asyncio.get_running_loop()
        began = {task: attempt.run.started for task, attempt in self.attempts.items()}
        keys = {task: attempt.run.key for task, attempt in self.attempts.items()}
        deadline = loop.time() + grace
        while (left := deadline - loop.time()) > 0 and self.attempts and not hurry.done():
            await asyncio.wait({hurry, *self.attempts}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        cut = list(self.attempts)
        at = loop.time()
        if hurry.done():
            reason = "the manager ends at once"
        else:
            reason = f"it did not end within {grace:g} s of the stop"
        await self.cut(cut, reason, 1.0 if hurry.done() else CLEANING_UP, hurry)
        in_threads = []
        for task in cut:
            if (attempt := self.attempts.get(task)) is not None and attempt.threads is not None:
                in_threads += [f"{attempt.run.key}: {name}" for name in attempt.threads.running.values()]
                attempt.threads.running.clear()  # its task ends now
                task.cancel()
        return ControllerReport(
            finished=tuple(sorted(str(keys[task]) for task in keys.keys() - cut)),
            cancelled={str(keys[task]): at - began[task] for task in cut if task.done()},
            abandoned={str(keys[task]): loop.time() - began[task] for task in cut if not task.done()},
            threads=tuple(in_threads),
        )

    async def cut(
        self,
        tasks: Iterable[asyncio.Task[Any]],
        reason: str,
        seconds: float = CLEANING_UP,
        hurry: asyncio.Future[None] | None = None,
    ) -> None:
        """Cancel attempts, and wait for them; name those in the log that do not end in time."""
        left = {task for task in tasks if task not in self.attempts or not self.attempts[task].abandoned}
        clock = asyncio.get_running_loop().time
        for task in left:
            if (attempt := self.attempts.get(task)) is not None:
                attempt.cut = reason
                what = f"controller {self._name}: the attempt for"
                extra = subject_of(self._name, attempt.run.key)
                _log.warning("%s %s is cancelled: %s", what, attempt.run.key, reason, extra=extra)
            task.cancel()
        deadline = clock() + seconds
        while left and (rest := deadline - clock()) > 0:
            watched: set[asyncio.Future[Any]] = {*left} if hurry is None or hurry.done() else {hurry, *left}
            await asyncio.wait(watched, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            left = {task for task in left if not task.done()}
            if hurry is not None and hurry.done():
                deadline = min(deadline, clock() + 1.0)
        for task in left:
            self._log_late(task, "did not end within %g s of its cancellation: it is abandoned", seconds)
            self.attempts[task].abandoned = True
        self._unanswered.abort_refused()

    def expire(self, task: asyncio.Task[Any]) -> None:
        """Cancel an attempt because of the timeout; name it in the log if it does not end."""
        attempt = self.attempts[task]
        if task.done():
            return  # its result counts
        if not attempt.expired:
            attempt.expired = f"it took longer than the timeout of {self._timeout:g} s"
            task.cancel()
            attempt.timer = asyncio.get_running_loop().call_later(CLEANING_UP, self.expire, task)
        else:
            self._log_late(task, "did not end within %g s of its timeout, and keeps a worker", CLEANING_UP)

    async def wait_for_threads(self) -> None:
        """Wait until no attempt has threads: the next `ActiveController` could run their keys at the same time."""
        while in_threads := [task for task, each in self.attempts.items() if each.threads and each.threads.running]:
            await asyncio.wait(in_threads)

    def _log_late(self, task: asyncio.Task[Any], what: str, seconds: float) -> None:
        extra = subject_of(self._name, self.attempts[task].run.key)
        _log.error(f"%s {what}", task.get_name(), seconds, extra=extra)
