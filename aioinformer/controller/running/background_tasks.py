"""`BackgroundTasks`: the background tasks of a manager in one of its runs.

Each of them has an owner, a task of the session that begins a run, waits for it, and begins another one after an error.
If the owner is cancelled, it cancels the run and waits for its end. A run that ignores its cancellation may write no
more, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.backoff import Backoff
from aioinformer.concurrency import create_task
from aioinformer.controller.background import BackgroundRun
from aioinformer.controller.report import BackgroundSnapshot
from aioinformer.controller.running.attached import CLEANING_UP
from aioinformer.controller.running.cancellation import cancel_within
from aioinformer.controller.running.permits import deletes
from aioinformer.controller.running.threads import Threads
from aioinformer.controller.scrubbing import scrubbed
from aioinformer.controller.writes import defaults
from aioinformer.controller.writes.own_writes import OwnWrites
from aioinformer.controller.writes.permits import Permit
from aioinformer.controller.writes.sender import WritePolicy
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.functions import described, function_name
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.resources.keys import ObjectName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping

    from aioinformer.controller.background import BackgroundTask
    from aioinformer.controller.running.settings import Services
    from aioinformer.controller.writes.permits import Leaving
    from aioinformer.leaderelection.elector import Term

_log = get_logger("aioinformer.controller")

#: Seconds for which a task runs after an error until it counts as well again.
_WELL: Final = 10.0
#: How many errors of a task within a minute are logged after the first, without a traceback.
_LINES: Final = 10


class TaskLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the name of a background task to each line."""

    def __init__(self, name: str) -> None:
        super().__init__(_log, {"task": name})
        self._name = name

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the line with its prefix, and the arguments with the attribute `task`."""
        extra = {"task": self._name, **(kwargs.get("extra") or {})}
        return f"{self._name}: {msg}", {**kwargs, "extra": extra}


class _Right(msgspec.Struct, eq=False):
    """The right of one run to act.

    Attributes:
        name: of the task.
        term: that the run needs; None if it needs none.
        over: whether the run was cancelled and has not ended in time.
        ended: whether the function has ended; the run goes on until its threads have ended.
    """

    name: str
    term: Term | None
    over: bool = False
    ended: bool = False

    def before_write(self) -> float | None:
        """Check that the run may write; return after how many seconds to ask again, None for never.

        Raises:
            LeadershipLost: the term is over.
            UsageError: the run goes on after its cancellation.
        """
        self._check("write")
        return None if self.term is None else self.term.remaining

    def before_thread(self) -> None:
        """Check that the run may begin a thread.

        Raises:
            LeadershipLost: the term is over.
            UsageError: the run goes on after its cancellation, or has ended.
        """
        self._check("begin a thread")
        if self.ended:
            raise UsageError(f"the run of background task {self.name} has ended: await its threads in it")

    def _check(self, what: str) -> None:
        if self.term is not None:
            self.term.check()
        if self.over:
            raise UsageError(f"background task {self.name} goes on after its cancellation, and may not {what}")


class _RunPermit(Permit):
    """Permits the writes of a run as long as it has the right, and its deletes while no cache is stale."""

    def __init__(self, right: _Right, services: Services, check_fresh: Callable[[], None]) -> None:
        super().__init__(right.before_write, services.unanswered)
        self._check_fresh = check_fresh

    def check(self, write: Leaving) -> float | None:
        if deletes(write):
            self._check_fresh()
        return self.check_right(write)


class SupervisedTask:
    """One background task of a running manager, and its restarts.

    Args:
        declared: its declaration.
        services: of the manager.
        check_fresh: raises `Stale` if a cache of the manager is.
        hurry: when it is done, runs are not awaited for long.

    Attributes:
        declared: as given.
        phase: see `BackgroundSnapshot`.
        abandoned: whether a run has ignored its cancellation.
    """

    def __init__(
        self,
        declared: BackgroundTask,
        services: Services,
        check_fresh: Callable[[], None],
        hurry: asyncio.Future[None],
    ) -> None:
        settings = services.settings
        self.declared = declared
        self.phase = "standby"
        self.abandoned = False
        self._services = services
        self._check_fresh = check_fresh
        self._hurry = hurry
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()
        self._attempt = 0
        self._restarts = 0
        self._failure = ""
        self._backoff = Backoff(settings.restart.backoff, random=random.random)
        self._errors = RepeatedErrors(_log)
        if settings.strict_writes is None:
            strict = defaults.strict_writes
        else:
            strict = settings.strict_writes
        policy = WritePolicy(declared.writes, strict=strict, dry_run=settings.dry_run, log=_log)
        # No run waits for its own writes: these are not about a key.
        self._writes = OwnWrites(lambda group, plural: (), services.client, field_manager=declared.name, policy=policy)

    async def run(self, term: Term | None = None) -> None:
        """Run the function until it returns, and again after each error. If cancelled, cancel it, and wait for it.

        Args:
            term: the term of leadership in which it runs; None if it needs none.
        """
        name = self.declared.name
        try:
            while (error := await self._once(term)) is not None:
                delay = self._backoff.next(self._clock())
                self._failure = scrubbed(described(error))
                self._enter("restarting")
                line = "background task %s has failed with %s: %s; restarting it in %.1f s, attempt %d"
                arguments = name, type(error).__name__, error, delay, self._attempt + 1
                self._errors.report(f"background task {name}", error, line, *arguments, lines=_LINES)
                await asyncio.sleep(delay)
                self._restarts += 1
            self._failure = ""
            self._enter("ended")
            if self.declared.elected and term is not None:
                again = "the next term"
            else:
                again = "the next start of the manager"
            _log.info("background task %s has returned: it does not run before %s", name, again)
        finally:
            if self.phase != "ended":
                self._enter("stopped" if term is None else "standby")
            self._errors.close()

    def snapshot(self) -> BackgroundSnapshot:
        """Return the state of the task, as plain data. Thread-safe."""
        seconds = self._clock() - self._since
        is_well = self.phase != "restarting" and (self.phase != "running" or seconds >= _WELL)
        return {
            "name": self.declared.name,
            "elected": self.declared.elected,
            "phase": self.phase,
            "seconds": seconds,
            "restarts": self._restarts,
            "failure": "" if is_well else self._failure,
        }

    async def _once(self, term: Term | None) -> BaseException | None:
        """Call the function; return its error, None if it has returned."""
        name = self.declared.name
        self._attempt = 1 if self._backoff.at_rest(self._clock()) else self._attempt + 1
        self._enter("running")
        right = _Right(name, term)
        log = TaskLog(name)
        permit = _RunPermit(right, self._services, self._check_fresh)
        guarded = None if term is None else self._services.guarded_threads
        threads = Threads(f"background task {name}", right.before_thread, guarded, None, "run", ["the next run"])
        run: BackgroundRun[Any] = BackgroundRun(
            name,
            self._writes.client(ObjectName("", name), permit=permit, log=log),
            log=log,
            term=term,
            attempt=self._attempt,
            dry_run=self._services.settings.dry_run,
            state=self._services.state,
            threads=threads,
        )
        task = create_task(
            self._call(run, right, threads), name=f"background task {name}: {function_name(self.declared.function)}"
        )
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await self._end(task, right, threads)
            raise
        if task.cancelled():
            return UsageError("it raised CancelledError, and nothing had cancelled it")
        error = task.exception()
        if error is not None and not isinstance(error, USER_ERRORS):
            raise error
        return error

    async def _call(self, run: BackgroundRun[Any], right: _Right, threads: Threads) -> None:
        try:
            await self.declared.function(run)
        finally:
            right.ended = True
            await threads.join()

    async def _end(self, task: asyncio.Task[None], right: _Right, threads: Threads) -> None:
        name = self.declared.name
        if not await cancel_within(task, CLEANING_UP, self._hurry):
            right.over = True
            self.abandoned = True
            self._services.unanswered.abort_refused()
            if threads.running:
                threads.running.clear()  # the Lease waits for them; the task need not
                task.cancel()
            task.add_done_callback(self._ended_late)
            _log.error(
                "background task %s did not end within %g s of its cancellation: it is abandoned", name, CLEANING_UP
            )
        elif not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background task %s failed while it was cancelled", name, exc_info=error)

    def _ended_late(self, task: asyncio.Task[None]) -> None:
        self.abandoned = False
        error = None if task.cancelled() else task.exception()
        _log.warning("background task %s has ended after it was abandoned", self.declared.name, exc_info=error)

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self._since = self._clock()


class BackgroundTasks:
    """The background tasks of one run of a manager. Call `add`, `open`, and then `begin`.

    Attributes:
        tasks: by name.
    """

    def __init__(self) -> None:
        self.tasks: dict[str, SupervisedTask] = {}
        self._owners: dict[str, asyncio.Task[None]] = {}
        #: In which they run; None before `open` and after `close`.
        self._group: asyncio.TaskGroup | None = None

    def add(self, tasks: Iterable[SupervisedTask]) -> None:
        """Add tasks. They do not run before `begin`."""
        self.tasks.update({each.declared.name: each for each in tasks})

    def open(self, group: asyncio.TaskGroup) -> None:
        """Let `begin` run tasks in a group."""
        self._group = group

    def begin(self, *, elected: bool, term: Term | None = None) -> None:
        """Run those that need the leadership, or those that do not, unless the manager stops."""
        group = self._group
        if group is None:
            return
        for name, each in self.tasks.items():
            if each.declared.elected is elected:
                self._owners[name] = group.create_task(each.run(term), name=f"owner of background task {name}")

    async def end(self, *, elected_only: bool = False) -> None:
        """Cancel the tasks, and wait for their ends; or those alone that need the leadership."""
        chosen = {name for name, each in self.tasks.items() if each.declared.elected or not elected_only}
        owners = {name: self._owners[name] for name in chosen & self._owners.keys()}
        for task in owners.values():
            task.cancel()
        if owners:
            await asyncio.wait(owners.values())
        for name, task in owners.items():
            if self._owners.get(name) is task:
                del self._owners[name]

    async def close(self) -> None:
        """End all tasks; none begins any more."""
        self._group = None
        await self.end()

    def abandoned(self) -> tuple[str, ...]:
        """Return what has ignored its cancellation and still runs, for `StopReport.others`."""
        return tuple(f"background task {name}" for name, each in self.tasks.items() if each.abandoned)

    def snapshot(self) -> dict[str, BackgroundSnapshot]:
        """Return the states of the tasks, by name. Thread-safe."""
        return {name: each.snapshot() for name, each in self.tasks.items()}
