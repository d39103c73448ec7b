"""`RunningLifespan`: the lifespan of a manager in one of its runs.

It is entered and left in a task of its own: what it enters may need that both happen in one task, and a lifespan that
does not end must not keep the manager from its end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.concurrency import create_task
from aioinformer.controller.running.attached import CLEANING_UP
from aioinformer.controller.running.cancellation import cancel_within
from aioinformer.errors import UsageError
from aioinformer.functions import function_name
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

_log = get_logger("aioinformer.controller")


class RunningLifespan:
    """Enters a lifespan, and leaves it.

    Args:
        lifespan: a function of the manager that returns an async context manager.
        manager: its argument.
        name: of the manager.
        grace: seconds to leave it.
        hurry: when it is done, leaving is cancelled.
        on_ended: is called when the lifespan ends by itself, because what runs in it has failed.

    Attributes:
        state: what it has yielded.
        phase: "entering", "entered", "leaving", or "" before and after that.
        abandoned: whether it has ignored its cancellation, and goes on.
    """

    def __init__(
        self,
        lifespan: Callable[[Any], Any],
        manager: Any,
        name: str,
        grace: float,
        hurry: asyncio.Future[None],
        on_ended: Callable[[], object],
    ) -> None:
        self.state: Any = None
        self.phase = ""
        self.abandoned = False
        self._lifespan = lifespan
        self._manager = manager
        self._grace = grace
        self._hurry = hurry
        self._on_ended = on_ended
        self._what = f"manager {name}: lifespan {function_name(lifespan)}"
        self._entered = asyncio.Event()
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self, ending: asyncio.Future[str]) -> bool:
        """Enter it; return whether it was entered, and not cancelled since the stop has begun meanwhile.

        Call `leave` in any case.

        Raises:
            Exception: the lifespan has raised it. It carries a note that names the lifespan.
        """
        self.phase = "entering"
        self._task = create_task(self._live(), name=self._what)
        entered = create_task(self._entered.wait(), name=f"{self._what}: entered")
        try:
            watched: set[asyncio.Future[Any]] = {self._task, entered, ending}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        finally:
            entered.cancel()
            await asyncio.wait({entered})
        if self._entered.is_set():
            self.phase = "entered"
            self._task.add_done_callback(self._ended)
            return True
        if self._task.done():
            task = self._task
            self._task = None  # nothing is left to leave
            self.phase = ""
            raise self._error_of(task, "entered") or UsageError(f"{self._what} has yielded nothing")
        _log.warning("%s is not entered: the manager stops", self._what)
        return False

    async def leave(self) -> None:
        """Leave it: within the grace, after which it is cancelled. If it is still being entered, cancel it.

        Raises:
            TimeoutError: it was not left in time.
            Exception: the lifespan has raised it. It carries a note that names the lifespan.
        """
        task = self._task
        if task is None:
            return
        task.remove_done_callback(self._ended)
        is_entered = self.phase == "entered"
        if is_entered and task.done():
            self.phase = ""
            raise self._error_of(task, "kept open") or UsageError(f"{self._what} has ended while the manager ran")
        self.phase = "leaving"
        self._leaving.set()
        if is_entered:
            try:
                await asyncio.wait({task, self._hurry}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                await cancel_within(task, CLEANING_UP, self._hurry)
                raise
        late = not task.done()
        if late:
            if is_entered:
                late_by = f"it was not left within {self._grace:g} s"
                reason = "the manager ends at once" if self._hurry.done() else late_by
                _log.error("%s is cancelled: %s", self._what, reason)
            if not await cancel_within(task, CLEANING_UP, self._hurry):
                self.abandoned = True
                task.add_done_callback(_retrieve)
                _log.error("%s did not end within %g s of its cancellation: it is abandoned", self._what, CLEANING_UP)
                return
        self.phase = ""
        error = self._error_of(task, "left" if is_entered else "entered")
        if late and is_entered and not self._hurry.done():
            raise TimeoutError(
                f"{self._what} was not left within {self._grace:g} s, the grace of the manager; let it end sooner, or "
                "raise grace"
            ) from error
        if error is not None and not late:
            raise error
        if error is not None:
            _log.error("%s failed while it was cancelled", self._what, exc_info=error)

    async def _live(self) -> None:
        made = self._lifespan(self._manager)
        if not hasattr(type(made), "__aenter__"):
            raise UsageError(
                f"{self._what} returned {type(made).__name__}, which is no async context manager; decorate an async "
                "generator function with @contextlib.asynccontextmanager"
            )
        async with made as self.state:
            self._entered.set()
            await self._leaving.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._on_ended()

    def _error_of(self, task: asyncio.Task[None], what: str) -> BaseException | None:
        """Return the error of the lifespan, with a note; None if it has ended well, or because it was cancelled."""
        if task.cancelled():
            return None
        error = task.exception()
        if error is not None and not isinstance(error, UsageError):
            error.add_note(f"{self._what}: it could not be {what}")
        return error


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of a task that nothing awaits any more."""
    if not task.cancelled():
        task.exception()
