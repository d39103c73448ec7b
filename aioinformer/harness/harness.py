"""`Harness`: a manager, an API server and the network between them, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from aioinformer.concurrency import create_task
from aioinformer.controller import Manager
from aioinformer.controller.writes.ledger import Ledger
from aioinformer.errors import UsageError
from aioinformer.harness.checker import Checker, HarnessFailure, NotConverged, idle_writes
from aioinformer.harness.loop import PROCESS, Scheduler, VirtualTimeLoop
from aioinformer.harness.plan import Dice, Plan
from aioinformer.harness.process import ACTOR, UNCOUNTED, Process, Write
from aioinformer.harness.serving import InProcessServer
from aioinformer.harness.story import Story, content, key_of
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from aioinformer.testing.state.storage import Change


#: Virtual seconds in which all managers must stop at the end of a run.
_STOP = 600.0
_MOST_STEPS = 20_000
_GARBAGE_COLLECTOR = "garbage collector"

AnyResource: TypeAlias = str | Resource[Any]


class Converged(NamedTuple):
    """Virtual seconds since the call of `settle`; steps and writes of the run so far, without Leases and Events."""

    seconds: float
    steps: int
    writes: int


class Harness:
    """Runs a manager step by step against an API server in memory, in virtual time. `explore` and `run` make it.

    Args:
        make_manager: returns a new manager, with `client=harness.transport`. It is called for each new process.
        plan: the order of events, and the faults.
        objects: what exists before the first manager starts, such as a CustomResourceDefinition.
        quiet: seconds without a change after which the controller has converged.
        patience: seconds after which `settle` gives up.

    Attributes:
        transport: the connection of the process that starts.
        server: the API server, with the methods of `ApiServer`.
        world: what is outside of the cluster, such as the disks of a cloud. It survives crashes.
        writes: what processes have written, without Leases and Events.
        story: what has happened; `str(harness.story)` is its end.

    Raises:
        UsageError: the event loop has no virtual time.
    """

    transport: Process

    def __init__(
        self,
        make_manager: MakeManager,
        plan: Plan | None = None,
        *,
        objects: Iterable[Mapping[str, Any]] = (),
        quiet: float = 30.0,
        patience: float = 3600.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            raise UsageError("a Harness needs virtual time: pass an async function to explore(…) or run(…)")
        self.plan = plan or Plan()
        self.world: dict[str, Any] = {}
        self.writes: list[Write] = []
        self.sent = 0
        self.expired: set[str] = set()  # paths whose next watch finds its version expired
        self.tasks: set[asyncio.Task[None]] = set()  # of the server
        self.dice = Dice(self.plan)
        self.story = Story(loop.time)
        self.checker = Checker()
        self.scheduler = Scheduler(loop, self.dice, self.story)
        context = copy_context()
        context.run(ACTOR.set, _GARBAGE_COLLECTOR)
        self.server = context.run(InProcessServer, self.plan.seed or 0, self._on_change, self._on_cleanup)
        self._loop = loop
        self._make_manager = make_manager
        self._quiet = quiet
        self._patience = patience
        self._checks: list[Callable[[Harness], object]] = []
        self._checked = 0
        self._process: Process | None = None
        self._ended: list[Process] = []
        for obj in objects:
            self.server.create(self.server.resource_of(obj), obj)

    async def stop(self) -> None:
        """Stop all managers, crashed ones included, and the server."""
        self._loop.thaw()
        tasks = [process.task for process in (self._process, *self._ended) if process is not None]
        self._process = None
        for task in tasks:
            task.cancel()
        async with asyncio.timeout(_STOP):
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in self.tasks:
            task.cancel()
        await self.server.stop()

    # What users do. With a seed, some steps may happen before. If the API refuses it, a StatusError is raised.

    async def create(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, and return it.

        Raises:
            StatusError: the server would refuse the object.
        """
        await self._before(f"creates {obj['kind']} {key_of(obj['metadata'])}")
        return self.server.create(self.server.resource_of(obj), obj)

    async def patch(
        self, resource: AnyResource, key: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> dict[str, Any]:
        """Merge a patch into an object, and return it."""
        await self._before(f"patches {resource} {key}: {msgspec.json.encode(patch).decode()}")
        namespace, _, name = key.rpartition("/")
        return self.server.patch(resource, name, patch, namespace, subresource=subresource)

    async def delete(self, resource: AnyResource, key: str, *, propagation_policy: str = "") -> None:
        """Delete an object, or mark it for deletion if it has finalizers."""
        await self._before(f"deletes {resource} {key}")
        namespace, _, name = key.rpartition("/")
        self.server.delete(resource, name, namespace, propagation_policy=propagation_policy)

    async def restart(self) -> None:
        """Stop the manager as SIGTERM does, and start a new one."""
        process = self._process
        self._process = None
        if process is not None:
            self._ended.append(process)
            self.story.tell(process.name, "stops")
            process.task.cancel()
            await asyncio.gather(process.task, return_exceptions=True)
            process.close()
        self.start()

    async def _before(self, action: str) -> None:
        for _ in range(self.dice.choice("pause", (0, 0, 0, 1, 2, 5, 12))):
            if self.scheduler.is_busy():
                await self.step()
        self.story.tell("user", action)

    # Steps.

    async def step(self) -> None:
        """Let one event happen, or time pass until one can; then run all tasks until none is ready, and all checks.

        Raises:
            HarnessFailure: a check failed, or the process has ended.
        """
        await self.scheduler.step()
        self.scheduler.until = float("inf")
        if self._process is not None and self._process.task.done():
            raise HarnessFailure(f"{self._process.name} has ended") from self._process.task.exception()
        if self._checked != self.checker.changes:
            self._checked = self.checker.changes
            for check in self._checks:
                check(self)

    async def settle(self) -> Converged:
        """Let steps happen until nothing is left to happen, and no object has changed for some time.

        Raises:
            NotConverged: an object oscillates, requests go on without end, or a key is not reconciled.
        """
        quiet = self._quiet
        scheduler = self.scheduler
        begin = self._loop.time()
        steps = self.scheduler.steps
        changes = self.checker.changes
        since = begin
        trouble = ""
        while True:
            scheduler.until = float("inf") if trouble else since + quiet
            await self.step()
            now = self._loop.time()
            if scheduler.is_busy() or self.checker.changes != changes:
                changes = self.checker.changes
                since = now
            if self.checker.problem:
                raise NotConverged(self.checker.problem)
            if now >= since + quiet and not (trouble := self._trouble()):
                if problem := idle_writes(self.writes, now - quiet):
                    raise NotConverged(problem)
                return Converged(now - begin, scheduler.steps, len(self.writes))
            if now > begin + self._patience or scheduler.steps > steps + _MOST_STEPS:
                taken = f"after {now - begin:.0f} s and {scheduler.steps - steps} steps"
                problem = idle_writes(self.writes, now - 2 * quiet) or self._trouble()
                raise NotConverged(f"{taken}: {problem or 'events go on without end'}")

    async def wait_for(
        self,
        resource: AnyResource,
        key: str,
        predicate: Callable[[Any], Any] | None = None,
        timeout: float = 600.0,  # noqa: ASYNC109 - virtual seconds
    ) -> Any:
        """Let steps happen until an object satisfies a condition, as `ApiServer.wait_for` does, in virtual seconds.

        Raises:
            NotConverged: the condition was not satisfied in time. The message has the last state.
        """
        end = self._loop.time() + timeout
        steps = self.scheduler.steps
        while missing := self.server.missing(resource, key, predicate):
            if self._loop.time() >= end or self.scheduler.steps > steps + _MOST_STEPS:
                raise NotConverged(f"after {timeout:g} s, {missing}")
            self.scheduler.until = end
            await self.step()
        return await self.server.wait_for(resource, key, predicate)

    def _trouble(self) -> str:
        """Return why the manager does not rest; "" if it does."""
        if (process := self._process) is None:
            return "no manager runs"
        if closed := [path for path, is_open in process.watches.items() if not is_open]:
            return f"{process.name} does not watch {', '.join(closed)}"
        if waits := [str(each) for each in process.calls if not each.result.done() and not each.background]:
            return f"{process.name} waits for answers to {', '.join(waits)}"
        snapshot = process.manager.snapshot()
        for name, task in snapshot["background"].items():
            if task["failure"]:
                return f"background task {name} fails: {task['failure']}"
        for name, each in snapshot["controllers"].items():
            busy = each["running"] or each["ready"] or each["settling"] or each["failing"]
            if each["phase"] != "working" or busy:
                return f"controller {name} does not rest: {each}"
        return ""

    def always(self, check: Callable[[Harness], object]) -> None:
        """Call a function after each step in which an object changed. An error of it fails the run."""
        self._checks.append(check)

    def objects(self, resource: AnyResource, namespace: str = "") -> list[dict[str, Any]]:
        """Return copies of the objects in the server, of one namespace or of all."""
        return self.server.list(resource, namespace)

    def ends(self) -> dict[str, Any]:
        """Return what `explore` compares: all objects but Leases and Events, without times, uids, generated names."""
        found: dict[str, Any] = {}
        for collection, obj in self.server.contents():
            if collection.partition(".")[0] not in UNCOUNTED:
                if "generateName" in obj["metadata"]:
                    del obj["metadata"]["name"]
                found.setdefault(f"{collection} {key_of(obj['metadata'])}", []).append(content(obj, normal=True))
        return {key: sorted(objects, key=msgspec.json.encode) for key, objects in found.items()}

    def start(self) -> None:
        """Start a manager in a new process, unless one runs."""
        if self._process is not None:
            return
        name = f"manager {len(self._ended) + 1}"
        self.story.tell(name, "starts")
        process = Process(self, name)
        self._process = process
        self.transport = process
        context = copy_context()
        context.run(PROCESS.set, name)
        process.task = create_task(self._live(process), name=name, context=context)

    async def _live(self, process: Process) -> None:
        process.manager = self._make_manager(self)
        async with process.manager:
            await self._loop.create_future()

    def crash(self, process: Process, text: str) -> None:
        """End a process without further ado, and start a new one a little later."""
        self.story.tell(process.name, text)
        self._process = None
        self._ended.append(process)
        self._loop.crash(process.name)
        process.close()
        for controller in process.manager.controllers.values():
            controller.ledger = Ledger()  # the next manager is in another process
        self.scheduler.add("kubelet", "starts a new manager", self.start, self.dice.choice("restart", (0.0, 0.5, 3.0)))

    def _on_change(self, collection: str, change: Change) -> None:
        late = any(event.at > self._loop.time() and event.sort == "watch" for event in self.scheduler.pending)
        watches = self._process.watches.values() if self._process is not None else ()
        self.checker.note(collection, change, fresh=all(watches) and not late)

    def _on_cleanup(self, wake: Callable[[], None]) -> None:
        if all(event.actor != _GARBAGE_COLLECTOR for event in self.scheduler.pending):
            self.scheduler.add(_GARBAGE_COLLECTOR, "runs", wake, self.dice.delay())


MakeManager: TypeAlias = Callable[[Harness], Manager]
