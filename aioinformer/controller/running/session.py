"""`Session`: one run of a manager, from the start to the stop.

It starts in stages: connection and servers, the lifespan, Events, caches, controllers, background tasks, leadership.
It stops in the reverse order, and each stage has a deadline. It runs in tasks of its own, so different tasks may start
and stop it, and a cancel scope around the caller does not cut the stop.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from aioinformer.authorization.rbac import Rbac
from aioinformer.client.changes.ownership import writes_as
from aioinformer.client.client import Client
from aioinformer.concurrency import Latch, TaskGroup, create_task, running_loop, shielded
from aioinformer.controller.health import STALLED, Health, HealthServer, Progress, Pulse, readiness
from aioinformer.controller.report import ManagerSnapshot, StopReport
from aioinformer.controller.running.background_tasks import BackgroundTasks, SupervisedTask
from aioinformer.controller.running.inspection import snapshot, statistics
from aioinformer.controller.running.office import Office
from aioinformer.controller.running.server_access import open_events, open_transport
from aioinformer.controller.running.settings import GuardedThread, Services, Settings
from aioinformer.controller.running.supervised import Supervised
from aioinformer.controller.writes.current import CurrentCaches
from aioinformer.controller.writes.permits import UnansweredWrites
from aioinformer.errors import AioinformerError, UsageError, collapsed
from aioinformer.factory.pool import InformerPool, SharedFactory
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import count_requests
from aioinformer.metrics.statistics import ManagerStatistics
from aioinformer.ring.informers import RingInformers
from aioinformer.state import NO_STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from aioinformer.controller.background import BackgroundTask
    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.running.lifespan import RunningLifespan
    from aioinformer.controller.running.replica import Replica
    from aioinformer.factory.pool import ControllerInformers
    from aioinformer.leaderelection.leadership import Leadership
    from aioinformer.listening import Port
    from aioinformer.webhooks import Admission

_log = get_logger("aioinformer.controller")


class ControllerFailed(AioinformerError):
    """A controller has failed, and is not restarted. The cause is chained."""


class Observer(Protocol):
    """What a debug page needs of a session."""

    def begin(self, client: Client) -> None: ...

    def follow(self, active: ActiveController) -> None: ...

    def end(self) -> None: ...

    def serve(self, port: int) -> AbstractAsyncContextManager[Any]: ...


class Session:
    """One run of a manager.

    Args:
        settings: of the manager.
        controllers: to run from the start; `add` adds others.
        ends_on_failure: whether a controller that has failed for good ends the session.
        background: the background tasks to run.
        lifespan: a function without arguments that returns a `RunningLifespan` for a `hurry` and an `on_ended`; None
            without a lifespan.
        debug: is shown each controller; None for no debug page.

    Attributes:
        controllers: the running controllers by name.
        background: the background tasks.
        failed: name -> error of the controllers that have failed for good.
        informers: where the informers come from; None before they exist.
        report: how the stop went; None before its end.
        pulse: measures how late the event loop is.
    """

    def __init__(
        self,
        settings: Settings,
        controllers: Iterable[Controller[Any]],
        *,
        ends_on_failure: bool,
        background: Iterable[BackgroundTask] = (),
        lifespan: Callable[[asyncio.Future[None], Callable[[], object]], RunningLifespan] | None = None,
        debug: Observer | None = None,
    ) -> None:
        self.controllers: dict[str, Supervised] = {}
        self.background = BackgroundTasks()
        self.failed: dict[str, BaseException] = {}
        self.informers: ControllerInformers | None = None
        self.report: StopReport | None = None
        self.pulse = Pulse()
        self._settings = settings
        self._declared = list(controllers)
        self._declared_background = list(background)
        self._ends_on_failure = ends_on_failure
        self._debug = debug
        self._client: Client | None = None
        self._progress = Progress(self._patience)
        loop = running_loop(f"manager {settings.name} starts")
        self._opened = Latch()
        self._ending: asyncio.Future[str] = loop.create_future()
        self._hurry: asyncio.Future[None] = loop.create_future()
        ended = partial(self.end, "the end of the lifespan")
        self._lifespan = None if lifespan is None else lifespan(self._hurry, ended)
        #: Whether this is one of several replicas that end: clients may reach its webhooks for a while.
        self._leaves = False
        self._services: Services | None = None
        self._guarded_threads: dict[asyncio.Future[None], GuardedThread] = {}
        self._unanswered = UnansweredWrites()
        held = self.controllers, self.background, self._guarded_threads, self._unanswered
        self._office = Office(settings, *held, lambda: self.report is not None)
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def leadership(self) -> Leadership | None:
        """The leadership; None without leader election."""
        return self._office.leadership

    @property
    def replica(self) -> Replica | None:
        """The replica of the ring; None without one."""
        return self._office.replica

    # Start and stop.

    async def start(self) -> None:
        """Start; return when the controllers follow their inputs, without waiting for their caches.

        Raises:
            Exception: the start has failed with it; nothing is left running.
        """
        self._task = create_task(self._run(), name=f"manager {self._settings.name}")
        try:
            await self._opened.wait()
        except BaseException:
            self._task.cancel()
            await self._patiently(self._task)
            if not self._task.cancelled():
                self._task.exception()  # the same error, or one that came later
            raise

    def end(self, reason: str) -> None:
        """Begin the stop: no further attempt begins. Does nothing if it has begun. The call does not wait."""
        if not self._ending.done():
            self._ending.set_result(reason)
            for each in self.controllers.values():
                each.active.close()

    def stop_at_signal(self, name: str) -> None:
        """Begin the stop because of a signal; if it has begun, cancel what still runs."""
        if self.is_ending():
            _log.warning("manager %s: %s again: cancelling what still runs", self._settings.name, name)
            self.hurry()
        else:
            _log.info("manager %s: %s: stopping within %g s", self._settings.name, name, self._settings.grace)
            self._leaves = name == "SIGTERM"
            self.end(f"signal {name}")

    def is_ending(self) -> bool:
        """Return whether the stop has begun."""
        return self._ending.done()

    def hurry(self) -> None:
        """Cancel the attempts that still run, now."""
        if not self._hurry.done():
            self._hurry.set_result(None)

    async def ending(self) -> None:
        """Wait until the stop begins."""
        await asyncio.wait({self._ending})

    async def stop(self, reason: str) -> None:
        """Stop, and wait for it. If the caller is cancelled meanwhile, the stop becomes a quick one.

        Raises:
            Exception: the session has failed with it.
        """
        self.end(reason)
        if self._task is not None:
            await self._patiently(self._task)
            if not self._task.cancelled():
                self._task.result()

    async def _patiently(self, task: asyncio.Task[None]) -> None:
        """Wait for a task that stops something. If the wait is cancelled, hurry, and go on."""
        cancelled: asyncio.CancelledError | None = None
        with shielded():
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError as error:
                    cancelled = error
                    self.hurry()
        if cancelled is not None:
            raise cancelled

    async def _run(self) -> None:
        settings = self._settings
        if settings.dry_run:
            _log.warning(
                "manager %s: this is a dry run: writes and Events are logged and not sent, and no Lease is taken. It "
                "cannot prevent calls of your own code to other systems, also in the lifespan and in background tasks: "
                "ask dry_run of the request, the run or the manager before them",
                settings.name,
            )
        try:
            async with AsyncExitStack() as stack:
                if not await self._open(stack):
                    self._opened.set()
                    return
                _log.info("manager %s runs %s", settings.name, ", ".join(self.controllers) or "no controllers yet")
                async with TaskGroup() as tasks:
                    self._tasks = tasks
                    for each in self.controllers.values():
                        each.start(tasks)
                    self.background.open(tasks)
                    self.background.begin(elected=False)
                    if self.leadership is None:
                        self.background.begin(elected=True)
                    competing = self._office.compete(tasks)
                    self._opened.set()
                    try:
                        await asyncio.wait({self._ending})
                    finally:
                        self.end("a cancellation")
                        self._tasks = None
                        await self._patiently(create_task(self._stop_controllers(), name="stop of controllers"))
                        for task in competing:
                            task.cancel()
                        if self.replica is not None:
                            await self._patiently(create_task(self.replica.leave(), name="leaving the ring"))
        except BaseException as error:
            cause = collapsed(error)
            was_cancelled = isinstance(cause, asyncio.CancelledError)
            self._opened.fail(ControllerFailed("the start was cancelled") if was_cancelled else cause)
            if cause is error:
                raise
            raise cause from cause.__cause__
        finally:
            for each in self.controllers.values():
                each.release_declaration()
            if self.report is not None:
                _log.info("manager %s: %s", settings.name, self.report)

    async def _open(self, stack: AsyncExitStack) -> bool:
        """Make all that the controllers need; return False if the stop has begun while the lifespan was entered."""
        settings = self._settings
        self.pulse.start()
        stack.callback(self.pulse.stop)
        if settings.health_port is not None:
            host = settings.health_host
            port = settings.health_port
            probes = self.alive, lambda: readiness(self.snapshot(), settings.max_staleness)
            options: Any = {"host": host, "port": port, "metrics": settings.metrics}
            options["metrics_check"] = settings.metrics_check
            server = HealthServer(*probes, late=lambda: self.pulse.late, **options)
            await stack.enter_async_context(server.serve())
        if self._debug is not None and settings.debug_port is not None:
            await stack.enter_async_context(self._debug.serve(settings.debug_port))
        transport = await open_transport(settings, stack)
        self._client = Client(transport)
        if isinstance(settings.metrics_check, Rbac):
            settings.metrics_check.bind(self._client)
        if self._lifespan is not None:
            stack.push_async_callback(self._leave_lifespan, self._lifespan)
            if not await self._lifespan.enter(self._ending):
                return False
        if settings.factory is not None:
            self.informers = SharedFactory(settings.factory)
        else:
            shared = None if settings.dry_run else settings.ring
            pool: Any = InformerPool if shared is None else partial(RingInformers, shared)
            self.informers = pool(transport, settings.namespaces, name=settings.name, metrics=settings.metrics)
        stack.push_async_callback(self.informers.stop)
        stack.callback(self._end_debug)
        if self._debug is not None:
            self._debug.begin(self._client)
        event = await open_events(settings, stack, transport)
        if settings.ring is not None and not settings.dry_run:
            from aioinformer.controller.running.replica import Replica

            parts = settings, self.controllers, self.informers, self._guarded_threads, self._unanswered
            self._office.replica = Replica(settings.ring, transport, event, *parts, self.is_ending)
        if settings.metrics is not None:
            count_requests(transport, settings.metrics)  # those of a shared factory, too
            settings.metrics.register(self)
        self._services = Services(
            settings=settings,
            client=self._client,
            informers=self.informers,
            event=event,
            caches=CurrentCaches(random.random),
            seen_by_leader=lambda: float("-inf") if self.leadership is None else self.leadership.seen(),
            membership=None if self.replica is None else self.replica.membership,
            select_slots=None if self.replica is None else self.replica.select_slots,
            guarded_threads=self._guarded_threads,
            unanswered=self._unanswered,
            on_synced=self._office.able_changed.set,
            state=NO_STATE if self._lifespan is None else self._lifespan.state,
        )
        services = self._services
        hurry = self._hurry
        self.background.add(
            SupervisedTask(each, services, self._check_fresh, hurry) for each in self._declared_background
        )
        if settings.leader_election is not None and not settings.dry_run:
            from aioinformer.leaderelection.leadership import Leadership

            self._office.leadership = Leadership(
                transport, settings.leader_election, metrics=settings.metrics, event=event
            )
        while self._declared:
            await self._attach(self._declared.pop(0))
        stack.push_async_callback(settings.admission.detach, self.informers)
        settings.admission.attach(self.informers, self._writes_as, self._services.state)
        self.informers.start()
        if settings.webhooks is not None and not settings.dry_run:
            from aioinformer.webhooks.server import serving

            client = Client(transport)
            served = serving(settings.webhooks, settings.admission, client, settings.grace)
            stack.push_async_callback(self._leave, await stack.enter_async_context(served))
        return True

    async def _leave_lifespan(self, lifespan: RunningLifespan) -> None:
        try:
            await lifespan.leave()
        finally:
            if lifespan.abandoned and self.report is not None:
                self.report = replace(self.report, others=(*self.report.others, "the lifespan"))

    def _check_fresh(self) -> None:
        """Raise `Stale` if a cache of a controller has not followed the server for longer than the manager allows."""
        for each in self.controllers.values():
            each.active.inputs.freshness(self._settings.max_staleness)()

    async def _leave(self, port: Port) -> None:
        """Answer reviews until the API server has noticed that this replica ends."""
        if self._leaves:
            _log.info("manager %s: reviews are answered until none comes any more", self._settings.name)
            leaving = create_task(port.leave(), name="last reviews")
            try:
                await asyncio.wait({leaving, self._hurry}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
                await asyncio.wait({leaving})

    def _writes_as(self, name: str) -> bool:
        """Return whether a field manager is that of a controller or a background task."""
        return any(writes_as(each, name) for each in (*self.controllers, *self.background.tasks))

    # Controllers.

    async def add(self, controller: Controller[Any]) -> None:
        """Run another controller."""
        refusal = UsageError(f"manager {self._settings.name} stops; add controllers before")
        if self._tasks is None or self._services is None:
            raise refusal
        supervised = await self._attach(controller)
        if self.is_ending():  # meanwhile
            del self.controllers[controller.name]
            await supervised.stop(self._hurry)
            raise refusal
        self._services.informers.start()
        supervised.start(self._tasks)

    async def remove(self, name: str) -> None:
        """Stop a controller, and wait for its end; its informers stop if no other controller uses them."""
        supervised = self.controllers.get(name)
        if supervised is not None:
            supervised.check_not_within()
            await supervised.stop(self._hurry)
            self.controllers.pop(name, None)
        self.failed.pop(name, None)

    async def _attach(self, controller: Controller[Any]) -> Supervised:
        assert self._services is not None
        supervised = Supervised(controller, self._services, permit=self._permit, on_failed=self._on_failed)
        try:
            await supervised.attach()
        except BaseException:
            supervised.release_declaration()
            raise
        self.controllers[controller.name] = supervised
        return supervised

    def debug_with(self, debug: Observer) -> None:
        """Show the controllers to a debug page that was made after the start."""
        self._debug = debug
        if self._client is None:
            return  # `_open` shows it all
        debug.begin(self._client)
        for each in self.controllers.values():
            debug.follow(each.active)

    def _end_debug(self) -> None:
        if self._debug is not None:
            self._debug.end()

    def _permit(self, active: ActiveController) -> None:
        if self._debug is not None:
            self._debug.follow(active)
        self._office.permit(active)

    def _on_failed(self, controller: Controller[Any], error: BaseException) -> None:
        self.failed[controller.name] = error
        if self._ends_on_failure:
            self.end(f"controller {controller.name} has failed")

    async def _stop_controllers(self) -> None:
        clock = asyncio.get_running_loop().time
        running = dict(self.controllers)  # `remove` may be under way
        began = clock()
        reports = await asyncio.gather(*(each.stop(self._hurry) for each in running.values()))
        await self.background.close()  # attempts may have waited for what they do
        by_name = dict(zip(running, reports, strict=True))
        self.report = StopReport(self._ending.result(), clock() - began, by_name, self.background.abandoned())

    # Inspection.

    def _reviews_wait_for(self) -> list[str] | None:
        """Return what the answers to reviews wait for; None if none is expected."""
        admission = self._settings.admission
        converts = self._settings.webhooks is not None and bool(admission.conversions.resources())
        return admission.waits_for() if converts or admission.hooks() else None

    @property
    def admission(self) -> Admission:
        """The admission functions."""
        return self._settings.admission

    def alive(self) -> Health:
        """Return whether all workers make progress, and no elected controller outlives the Lease."""
        snapshots = {name: snapshot(each.active) for name, each in self.controllers.items()}
        checks = self._progress.check(snapshots, asyncio.get_running_loop().time())
        if self.leadership is not None:
            checks["leadership"] = self.leadership.failure()
        if self.replica is not None:
            checks["ring"] = self.replica.membership.failure()
        return Health(checks)

    def _patience(self, name: str) -> float:
        """Return for how many seconds an attempt of a controller may run."""
        timeout = self.controllers[name].controller.timeout
        return float("inf") if timeout is None else max(STALLED, 2 * timeout)

    def snapshot(self) -> ManagerSnapshot:
        """Return the state of the manager and its controllers."""
        return {
            "name": self._settings.name,
            "running": not self.is_ending(),
            "leader": None if self.leadership is None else self.leadership.is_leader(),
            "election": "" if self.leadership is None else self.leadership.trouble() or self._office.unfit,
            "ring": None if self.replica is None else self.replica.membership.snapshot(),
            "controllers": {name: snapshot(each.active) for name, each in self.controllers.copy().items()},
            "failed": {
                **{name: each.restarting for name, each in self.controllers.copy().items() if each.restarting},
                **{name: str(error) for name, error in self.failed.copy().items()},
            },
            "lifespan": None if self._lifespan is None else self._lifespan.phase,
            "background": self.background.snapshot(),
            "webhooks": self._reviews_wait_for(),
            "informers": None if self.informers is None else self.informers.snapshot(),
        }

    def statistics(self) -> ManagerStatistics:
        """Return the numbers of the manager and its controllers for metrics. Any thread may call this."""
        now = self.snapshot()
        name = self._settings.name
        controllers = (statistics(each.active) for each in tuple(self.controllers.values()))
        return ManagerStatistics(
            name=name,
            ready=not readiness(now, self._settings.max_staleness).reasons,
            ended=self.report is not None,
            controllers=tuple(
                replace(each, manager=name, phase="failed" if each.name in now["failed"] else each.phase)
                for each in controllers
            ),
            webhooks=tuple(replace(each.statistics(), manager=name) for each in self._settings.admission.counters()),
            loop_delay=self.pulse.delays.snapshot(),
        )
