"""`Manager`: runs controllers over shared informers, and stops them in order.

    manager = Manager("widgets", leader_election=LeaderElection("widgets"))

    @manager.controller(WIDGETS, owns=[core_v1.CONFIG_MAPS])
    async def widgets(request): ...

    if __name__ == "__main__":
        manager.main()

What a program needs while it runs, such as a session of HTTP, is its lifespan; loops beside the reconcilers are
background tasks:

    manager = Manager("widgets", lifespan=session)

    @manager.background(elected=True)
    async def sweep(run): ...

In a service that has an event loop already, write `async with manager:` instead of `main()`. There may be several
managers in a process: nothing is global.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeAlias, TypeVar, Unpack, overload

from aioinformer.authorization.users import Who
from aioinformer.controller.background import BackgroundFunction, BackgroundTask, checked_lifespan, declared_task
from aioinformer.controller.debug.access import Check
from aioinformer.controller.declaration import Controller, ControllerOptions, Writes, checked_list, controller
from aioinformer.controller.declared import Declared
from aioinformer.controller.health import STALE, Health, readiness
from aioinformer.controller.program import run_as_program, stopped_by_signals
from aioinformer.controller.report import ManagerSnapshot, idle_snapshot
from aioinformer.controller.request import NORMAL_PRIORITY, Cause, NotRunning, Request, Result
from aioinformer.controller.running.lifespan import RunningLifespan
from aioinformer.controller.running.session import ControllerFailed, Session
from aioinformer.controller.running.settings import Restart, Settings
from aioinformer.controller.scrubbing import scrubbed
from aioinformer.errors import UsageError
from aioinformer.exports import lazy_type
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.factory.pool import checked_namespaces
from aioinformer.handlers.resync import checked_period
from aioinformer.leaderelection.leadership import LeaderElection
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.reflector.options import check_seconds
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.ring.declaration import ControllerRing
from aioinformer.state import State
from aioinformer.transport import Transport
from aioinformer.transport.clients import ApiClient, Client, Connection
from aioinformer.webhooks.admission import Admission, Admitting
from aioinformer.webhooks.server import WebhookServer
from aioinformer.workqueue.requests.outcomes import Parked

if TYPE_CHECKING:
    from aioinformer.controller.debug.app import DebugApp
    from aioinformer.controller.report import StopReport
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.events import Recorder
else:
    DebugApp = lazy_type("aioinformer.controller.debug.app", "DebugApp")
    Recorder = lazy_type("aioinformer.events", "Recorder")

T = TypeVar("T")


class Manager(Admitting[State]):
    """Runs controllers: connection, informers, Events, leader election, probes, and an orderly stop.

    `async with manager:` runs it in a service, without signal handlers: it starts at once, and does not wait for
    caches. `await run()` runs it until `stop()`, or a controller that has failed for good. It stops at signals with
    `signals=True` only: without that, SIGTERM ends the process at once, and hands over neither Lease nor slots, which
    expire. `main()` is a whole program, which handles signals. After the stop, it may be started again.

    Args:
        name: for logs, metrics, and as the component of Events.
        controllers: its controllers; `controller` and `add` add others.

        client: a transport, a `Connection`, an `ApiClient` of kubernetes_asyncio, or the URL of the server. By default,
            `connect()` at the start.
        namespaces: of namespaced resources; none for all.
        leader_election: only the leader runs the controllers with `elected=True`; None: this process runs all.

        lifespan: a function of the manager that returns an async context manager, as FastAPI has it: usually an async
            generator function under `contextlib.asynccontextmanager`. It is entered before the informers start, also
            in a dry run, and is left after the last attempt, review and background task. What it yields is `state` of
            requests, reviews and runs. An error on entry ends the start; a stop meanwhile cancels it.

        ring: a `ControllerRing`, or the name of one: the replicas share the objects of the controllers with
            `elected=True`, and each reconciles those in its slots of the ring; instead of `leader_election`.

        health_port: the port of the probes `/livez` and `/readyz`, and of `/metrics`; None for no server.
        health_host: the address of that server; "" for all.
        debug_port: the port of the debug page, on the loopback interface; 0 for a free one, None for no page.
        webhooks: where the functions of `validate` and `default` are served; None for no server. In a dry run, none is.
        dry_run: reconcilers run, and their writes and Events are logged and not sent; there is no leader election, so
            it may run beside the leader. It cannot prevent calls of your code to other systems: see `Request.dry_run`.
        show_values: the log of a dry run has the values of the fields that a write would change, except those of
            Secrets. Otherwise, it names the fields.
        strict_writes: whether a write that `writes` of its controller does not declare raises; None: only in tests, for
            which the pytest plugin of this package sets it, in their process.
        failure_events: whether an object gets a Warning Event from its third failed attempt in a row on, and when its
            key is parked by an error, and a Normal one when it works again. There is one for a key and reason in ten
            minutes, and there are ten for a controller in a minute, then one with the count. Texts are scrubbed as on
            the debug page. A controller that has Events as an input records none.
        failure_condition: the type of a condition such as "Reconciled" in the status of the object, which says the same
            to programs: "False" with the reason, then "True". It is written by a field manager of its own,
            `<controller>-failures`, and its changes run no reconciler. None for no condition.

        grace: seconds that running attempts have to end at the stop, before they are cancelled; and seconds that the
            lifespan has to be left afterwards.
        restart: when a controller that has failed is restarted; its backoff is that of background tasks, too.
        resync_period: seconds between runs for all objects, for controllers without a source `Every`; 0 for never.
        max_staleness: seconds for which a cache may not have followed the server, until the manager is not ready, and
            controllers send no delete and begin no cleanup of `finalizing`; None for no limit. They begin when the loss
            is noticed: for a connection that has silently died, after `idle_timeout` (90 s) at the latest. If the
            server has sent bookmarks regularly, they begin with the last event or bookmark.
        sync_timeout: seconds after which this replica stands for the leadership, or for slots of the ring, although no
            controller has synced; and for which it leads although none is able to work. It stands at once when all
            controllers have synced, and after 10 s when at least one has.

        metrics: collects the metrics of informers and queues. None: `main` and `aioinformer run` export them to the
            registry of prometheus-client, if it is installed, and others collect none. False: none.
        metrics_check: who may read `/metrics` on `health_port`, such as an `Rbac`: users need the right to `get` the
            non-resource URL `/metrics`. None for everybody who reaches the port.
        factory: of the embedding service: its informers are shared, and it is neither stopped nor entered.
        recorder: records Events instead of the manager's own; not in a dry run, unless you call it yourself.

    Attributes:
        name, client, namespaces, leader_election, lifespan, ring, dry_run, show_values, grace, restart: as given.
        admission: the functions that `validate` and `default` declare; an ASGI application, too.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        name: str = "manager",
        controllers: Iterable[Controller[Any]] = (),
        *,
        # Server
        client: Transport | Connection | ApiClient | str | None = None,
        namespaces: Iterable[str] = (),
        leader_election: LeaderElection | None = None,
        ring: ControllerRing | str | None = None,
        # Program
        lifespan: Lifespan[State] | None = None,
        # Operation
        health_port: int | None = None,
        health_host: str = "",
        debug_port: int | None = None,
        webhooks: WebhookServer | None = None,
        dry_run: bool = False,
        show_values: bool = False,
        strict_writes: bool | None = None,
        failure_events: bool = True,
        failure_condition: str | None = None,
        grace: float = 10.0,
        restart: Restart = Restart(),  # noqa: B008 - immutable
        resync_period: float = 0.0,
        max_staleness: float | None = STALE,
        sync_timeout: float = 120.0,
        # Parts of the embedding service
        metrics: MetricsProvider | Literal[False] | None = None,
        metrics_check: Who | None = None,
        factory: SharedInformerFactory | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        if client is not None:
            Client(client)  # checks the type; a transport is made at the start
        if isinstance(controllers, Controller):
            raise UsageError(f"Manager: controllers must be a list, not {controllers!r}; write [{controllers.name}]")
        self.name = name
        self.client = client
        self.namespaces = checked_namespaces(namespaces)
        self.leader_election = leader_election
        self.lifespan: Lifespan[State] | None = checked_lifespan(lifespan)
        self.ring = ControllerRing(ring) if isinstance(ring, str) else ring
        self.health_port = health_port
        self.health_host = health_host
        self.debug_port = debug_port
        self.webhooks = webhooks
        self.dry_run = dry_run
        self.show_values = show_values
        self.strict_writes = strict_writes
        self.failure_events = failure_events
        self.failure_condition = failure_condition
        self.grace = grace
        self.restart = restart
        self.resync_period = checked_period(resync_period, "Manager: resync_period")
        self.max_staleness = max_staleness
        self.sync_timeout = sync_timeout
        self.metrics = metrics
        self.metrics_check = metrics_check
        self.factory = factory
        self.recorder = recorder
        self.stop_report: StopReport | None = None
        """How the last stop went; None before the first one."""
        self.admission = Admission(name)
        self._settings()
        self._declared = Declared(name, self.admission)
        self._session: Session | None = None
        self._debug: DebugApp | None = None
        for each in controllers:
            self._declared.add(each)

    def __repr__(self) -> str:
        runs = ", ".join(self._declared.controllers) or "no controllers"
        return f"<manager {self.name} of {runs}{'' if self._session is None else ', running'}>"

    # Controllers.

    @property
    def controllers(self) -> dict[str, Controller[Any]]:
        """The controllers by name: a copy."""
        return dict(self._declared.controllers)

    def controller(
        self, resource: Resource[T], *, name: str = "", **options: Unpack[ControllerOptions[Writes]]
    ) -> Callable[[Callable[[Request[T, State]], Coroutine[Any, Any, Result | None]]], Controller[T]]:
        """Return a decorator that makes a `Controller` of an async function, and adds it. Use it before the start.

        Type checkers compare the state of the request with that of the lifespan, which they do not for `add`.

        Args:
            resource: the primary resource.
            name: of the controller, instead of that of the function.
            options: see `Controller`.

        Raises:
            UsageError: an argument is invalid, or the name is taken.
        """
        declare = controller(resource, name=name, **options)

        def add(reconcile: Callable[[Request[T, State]], Coroutine[Any, Any, Result | None]]) -> Controller[T]:
            if self._session is not None:
                raise UsageError(f"manager {self.name} runs: use `await manager.add(controller)`")
            declared = declare(reconcile)
            self._declared.add(declared)
            return declared

        return add

    async def add(self, controller: Controller[Any]) -> None:
        """Add a controller. If the manager runs, start it; do not wait for its caches.

        Raises:
            UsageError: the name is taken, the controller runs in another manager, or an option of an informer
                contradicts another controller.
        """
        self._declared.add(controller)
        if self._session is not None:
            try:
                await self._session.add(controller)
            except BaseException:
                del self._declared.controllers[controller.name]
                raise

    async def remove(self, controller: Controller[Any]) -> None:
        """Remove a controller. If it runs, stop it as the manager would, and stop informers that no other one uses.

        Raises:
            UsageError: the manager does not have it; or it is called by a reconciler of this controller.
        """
        if self._declared.controllers.get(controller.name) is not controller:
            raise UsageError(f"manager {self.name} has no {controller!r}")
        if self._session is not None:
            await self._session.remove(controller.name)
        self._declared.controllers.pop(controller.name, None)

    @property
    def background_tasks(self) -> dict[str, BackgroundTask]:
        """The declarations of the background tasks by name: a copy."""
        return dict(self._declared.background)

    @overload
    def background(
        self,
        function: BackgroundFunction[State],
        /,
        *,
        name: str = "",
        elected: bool = False,
        writes: Mapping[Resource[Any], Iterable[str]] | None = None,
    ) -> BackgroundFunction[State]: ...

    @overload
    def background(
        self,
        function: None = None,
        /,
        *,
        name: str = "",
        elected: bool = False,
        writes: Mapping[Resource[Any], Iterable[str]] | None = None,
    ) -> Callable[[BackgroundFunction[State]], BackgroundFunction[State]]: ...

    def background(
        self,
        function: BackgroundFunction[State] | None = None,
        /,
        *,
        name: str = "",
        elected: bool = False,
        writes: Mapping[Resource[Any], Iterable[str]] | None = None,
    ) -> Any:
        """Run an async function of a `BackgroundRun` beside the reconcilers: a decorator. Use it before the start.

            @manager.background
            async def refresh(run: BackgroundRun[State]) -> None:
                while True:
                    await run.state.prices.refresh()
                    await asyncio.sleep(60)

        It begins with the controllers, without waiting for caches, or with each term of leadership. A return ends the
        task, until the next term or the next start of the manager. An error is logged, fails the readiness until the
        task has run for ten seconds again, and restarts it with the backoff of `restart`, without a limit. At the stop,
        the task is cancelled after the last attempt, and has ten seconds to end.

        Args:
            function: given by the decorator without parentheses.
            name: for logs, readiness, and as the field manager of its writes; by default, the name of the function.
            elected: whether only the leader runs it, as for controllers. It is cancelled when the term ends, before the
                Lease is released; `run.client` sends nothing after that. Without leader election, this process runs it.
            writes: what it may write, as for `Controller`.

        Raises:
            UsageError: an argument is invalid, the function has no name and none is given, the name is taken, or the
                manager runs or has a ring, which has no leader.
        """

        def add(function: BackgroundFunction[State]) -> BackgroundFunction[State]:
            if self._session is not None:
                raise UsageError(f"manager {self.name} runs: declare background tasks before the start")
            task = declared_task(self.name, function, name, elected, writes)
            self._declared.add_task(task, self.ring)
            return function

        return add if function is None else add(function)

    def enqueue(
        self, controller: Controller[Any], key: Any, cause: Cause | None = None, *, after: float = 0, priority: int = 0
    ) -> None:
        """Run the reconciler of a controller for a key, such as from a webhook's route. The call does not wait.

        Call it on the thread of the event loop. A restart of the controller after a failure keeps the request.

        Args:
            controller: one of this manager.
            key: `namespace/name`, or `name` if the resource is cluster-scoped; or an `ObjectName`, or an object.
            cause: why; by default, a cause with the trigger "requested".
            after: seconds before the run.
            priority: of the request.

        Raises:
            UsageError: the controller does not run in this manager, or the key does not fit the resource.
        """
        active = self._running(controller)
        name = controller.key_of(key)
        if cause is not None and not isinstance(cause, Cause):
            raise UsageError(f"controller {controller.name}: cause must be a Cause, not {cause!r}")
        check_seconds(after, f"controller {controller.name}: after")
        active.enqueue(name, cause or Cause("requested"), priority or NORMAL_PRIORITY, after=after)

    def parked(self, controller: Controller[Any]) -> dict[ObjectName, Parked]:
        """Return the parked keys of a controller, with the reason and the time.

        Raises:
            UsageError: the controller does not run in this manager.
        """
        return self._running(controller).queue.parked()

    def retry_parked(self, controller: Controller[Any], keys: Iterable[Any] | None = None) -> int:
        """Run parked keys of a controller again; return how many there were.

        Args:
            controller: one of this manager.
            keys: as for `enqueue`; None for all.

        Raises:
            UsageError: the controller does not run in this manager, or a key does not fit the resource.
        """
        queue = self._running(controller).queue
        argument = f"controller {controller.name}: retry_parked"
        if keys is not None:
            keys = [controller.key_of(key) for key in checked_list(keys, argument, "[key]")]
        return queue.retry_parked(keys)

    def _settings(self) -> Settings:
        """Return the attributes that a session needs, checked."""
        values = {name: getattr(self, name) for name in Settings.__struct_fields__}
        if self.metrics is False:
            values["metrics"] = None
        return Settings(**values)

    def _running(self, controller: Any) -> ActiveController:
        if not isinstance(controller, Controller):
            raise UsageError(f"manager {self.name}: expected a Controller, not {controller!r}")
        if self._session is None:
            supervised = None
        else:
            supervised = self._session.controllers.get(controller.name)
        if supervised is None or supervised.controller is not controller or supervised.ended:
            raise NotRunning(f"controller {controller.name} does not run in manager {self.name}; add it and start that")
        return supervised.active

    # Life.

    async def __aenter__(self) -> Self:
        await self._start(ends_on_failure=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop("the end of the block")

    async def run(self, *, signals: bool = False) -> None:
        """Run until `stop()` is called, a controller has failed for good, or the task is cancelled; then stop in order.

        Args:
            signals: also stop at SIGTERM and SIGINT. A second signal cancels at once what runs. Only in the main
                thread.

        Raises:
            ControllerFailed: a controller has failed for good.
            UsageError: the manager runs already, there is no cluster, or a controller is declared wrongly.
        """
        with stopped_by_signals(lambda: self._session) if signals else nullcontext():
            session = await self._start(ends_on_failure=True)
            try:
                await session.ending()
            finally:
                await self._stop("a cancellation")
        for name, failure in session.failed.items():
            raise ControllerFailed(f"controller {name} has failed: {failure}") from failure

    def stop(self, reason: str = "stop()") -> None:
        """Begin the stop, and return at once; a reconciler may call it. `run` returns when all has stopped.

        In `async with manager`, leave the block to wait for the end.
        """
        if self._session is not None:
            self._session.end(reason)

    def main(self, *, report_file: str = "") -> NoReturn:
        """Run as a program: until SIGTERM or SIGINT, and exit the process.

        The exit code is 0 after a signal or `stop()`, 1 if a controller has failed for good, and 2 if the manager is
        used or configured wrongly. A second signal ends the program at once. Without a configuration of logging, lines
        of level INFO go to stderr.

        At SIGUSR1, what `report` returns is written as JSON, into the log or, if it is given, into `report_file`. The
        soft limit of open files is raised as far as the hard limit allows, to 65,536 at most. Metrics are collected if
        prometheus-client is installed, unless `metrics` says otherwise.

        Raises:
            UsageError: an event loop runs in this thread.
        """
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        sys.exit(self.run_as_program(report_file=report_file))

    def run_as_program(
        self, connect: Callable[[], AbstractAsyncContextManager[Transport]] | None = None, *, report_file: str = ""
    ) -> int:
        """Run as `main` does, and return the exit code. If an attempt has been abandoned, exit the process instead.

        Args:
            connect: provides the transport instead of `client`.
            report_file: as for `main`.

        Raises:
            UsageError: an event loop runs in this thread.
        """
        return run_as_program(self, connect, report_file)

    def alive(self) -> Health:
        """Return whether all workers make progress, and no elected controller outlives the Lease: the liveness probe.

        Call it on the thread of the event loop. A manager that does not run is alive.
        """
        return Health() if self._session is None else self._session.alive()

    def ready(self) -> Health:
        """Return whether the controllers have synced, and their caches are fresh: the readiness probe.

        A standby that waits for the leadership is ready. With admission functions, it is true if they can answer;
        `reasons` has all that is wrong. Any thread may call this.
        """
        return readiness(self._state(), self.max_staleness)

    def snapshot(self) -> ManagerSnapshot:
        """Return the state of the manager, as plain data for `json.dumps`: names, counts and texts of errors.

        The texts are those of the log, without credentials and control characters. Any thread may call this.
        """
        state: ManagerSnapshot = scrubbed(self._state())
        return state

    def _state(self) -> ManagerSnapshot:
        session = self._session
        return idle_snapshot(self.name) if session is None else session.snapshot()

    def debug_app(
        self,
        *,
        check: Check | None = None,
        values: bool = False,
        retry: bool = False,
        memory: int = 16_000_000,
        docs: str = "",
    ) -> DebugApp:
        """Return the debug page of the manager: an ASGI application; its `aiohttp()` is one of aiohttp.

        Call it once, before the start or later. From then on, changes of the primary objects are recorded while the
        manager runs, and the last five of each key are shown as diffs with the field managers that wrote them.

        With `check`, only requests to which it consents are answered, on `debug_port`, too. Without it, the page in an
        application refuses every request, and on `debug_port`, requests from this machine are answered if they name a
        loopback address as their host and came through no proxy. Nothing that a Secret contains is shown, and no
        credential.

        Args:
            check: returns True for a `DebugRequest` that may be answered; may be async. It is asked for every request.
                Or an `Rbac`: users need the right to `get`, and for parked keys to `post`, the non-resource URLs
                `/debug/*`, wherever the page is mounted.
            values: whether diffs have the values of fields, those of Secrets never; otherwise, they name the fields.
            retry: whether the page may run parked keys again.
            memory: bytes for recorded states; the keys that changed longest ago are dropped first.
            docs: the URL of a page *Troubleshooting* of yours, for links; by default, they refer to the one that the
                debug page serves.

        Raises:
            UsageError: it was called before, or an argument is invalid.
        """
        from aioinformer.controller.debug.app import DebugApp

        if self._debug is not None:
            raise UsageError(f"manager {self.name} has a debug page already; keep what debug_app() has returned")
        self._debug = DebugApp(
            self.name, lambda: self._session, check=check, values=values, retry=retry, memory=memory, docs=docs
        )
        if self._session is not None:
            self._session.debug_with(self._debug)
        return self._debug

    @property
    def checks(self) -> list[Check]:
        """What decides who may read `/metrics` and the debug page, as far as it was given."""
        page = None if self._debug is None else self._debug.check
        return [each for each in (self.metrics_check, page) if each is not None]

    def report(self) -> dict[str, Any]:
        """Return what the debug page shows, as plain data for `json.dumps`: what is wrong first.

        Without a page, it lacks what only the page records. Call it on the thread of the event loop.
        """
        from aioinformer.controller.debug.report import report

        if self._debug is None:
            return report(self.name, self._session)
        return self._debug.report()

    async def _start(self, *, ends_on_failure: bool) -> Session:
        if self._session is not None:
            raise UsageError(f"manager {self.name} runs already; make another Manager to run two")
        if self.debug_port is not None and self._debug is None:
            self.debug_app()
        self._declared.check_leaders(self.ring)
        lifespan = checked_lifespan(self.lifespan)
        session = Session(
            self._settings(),
            self._declared.controllers.values(),
            ends_on_failure=ends_on_failure,
            background=self._declared.background.values(),
            lifespan=lifespan and partial(RunningLifespan, lifespan, self, self.name, self.grace),
            debug=self._debug,
        )
        self._session = session
        try:
            await session.start()
        except BaseException:
            self._session = None
            raise
        return session

    async def _stop(self, reason: str) -> None:
        if (session := self._session) is not None:
            try:
                await session.stop(reason)
            finally:
                self._session = None
                self.stop_report = session.report


#: What a program needs while it runs, for its reconcilers, admission functions and background tasks.
Lifespan: TypeAlias = Callable[[Manager[Any]], AbstractAsyncContextManager[State]]
