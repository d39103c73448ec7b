"""The threads of attempts: what `Request.to_thread` calls; and those of background tasks.

- An attempt ends when its coroutine and all of its threads have ended. Until then, its key does not run again, its
  worker is not free, and the Lease is not released.
- Each call has a thread of its own. The executor of the event loop is not used: the resolution of names needs its few
  threads. The threads are daemons: Python would wait for others at the end of the process, without a limit.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aioinformer.controller.running.attached import CLEANING_UP
from aioinformer.controller.running.settings import GuardedThread
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

R = TypeVar("R")

_log = get_logger("aioinformer.controller")

#: How many threads an attempt has at a time. Further calls wait.
LIMIT: Final = 8


class Threads:
    """The threads of one attempt, or of one run of a background task, which has no slot.

    Args:
        subject: of the attempt, for log lines.
        check: raises if the attempt may not begin a thread.
        guarded: has the threads that need the leadership or a slot; None if the attempt needs neither.
        slot: in which the attempt works; None without a ring.
        what: the attempt or the run, for log lines.
        waiting: what waits for its threads besides the Lease, for log lines.

    Attributes:
        running: the functions that run, by the future of their end.
    """

    def __init__(
        self,
        subject: str,
        check: Callable[[], None],
        guarded: dict[asyncio.Future[None], GuardedThread] | None,
        slot: int | None,
        what: str = "attempt",
        waiting: Sequence[str] = ("the key", "the worker"),
    ) -> None:
        self.running: dict[asyncio.Future[None], str] = {}
        self._subject = subject
        self._check = check
        self._guarded = guarded
        self._slot = slot
        self._what = what
        self._waiting = list(waiting)
        self._slots = asyncio.Semaphore(LIMIT)

    async def run(self, call: Callable[[], R], name: str) -> R:
        """Return the result of a call in a thread, as `Request.to_thread` describes; `name` is that of the function."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        context = copy_context()
        answer: asyncio.Future[R] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()

        def body() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = context.run(call)
            except BaseException as raised:
                error = raised
                if isinstance(raised, StopIteration):  # a future cannot raise it
                    error = RuntimeError(f"{name} raised StopIteration")
                    error.__cause__ = raised
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(end, value, error)

        def end(value: Any, error: BaseException | None) -> None:
            self.running.pop(ended, None)
            if self._guarded is not None:
                self._guarded.pop(ended, None)
            self._slots.release()
            ended.set_result(None)
            if answer.cancelled():
                if error is not None:
                    _log.error("%s: %s failed in a thread after it was cancelled", self._subject, name, exc_info=error)
            elif error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(value)

        self.running[ended] = name
        if self._guarded is not None:
            self._guarded[ended] = GuardedThread(f"{self._subject}: {name}", self._slot)
        try:
            self._check()
            Thread(target=body, name=f"{self._subject}: {name}", daemon=True).start()
        except Exception as error:
            end(None, error)
        return await answer

    async def join(self) -> None:
        """Wait until all threads have ended, whether or not the attempt is cancelled meanwhile."""
        if not self.running:
            return
        late = asyncio.get_running_loop().call_later(CLEANING_UP, self._log_late)
        while self.running:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(self.running)
        late.cancel()

    def _log_late(self) -> None:
        waiting = self._waiting if self._guarded is None else [*self._waiting, "the Lease"]
        named = " and ".join(filter(None, (", ".join(waiting[:-1]), waiting[-1])))
        verb = "wait" if len(waiting) > 1 else "waits"
        _log.error(
            "%s: %s still runs in a thread %g s after the end of the %s; %s %s for it",
            *(self._subject, ", ".join(self.running.values()), CLEANING_UP, self._what, named, verb),
        )
