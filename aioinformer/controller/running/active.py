"""`ActiveController`: one controller while it runs. It attaches the inputs, runs the reconciler, and settles results.

While the controller may work, one task, the *dispatcher*, takes requests from the queue, as long as fewer than
`workers` attempts are under way. Each attempt is a task, named after the controller and the key, with a context and a
timeout of its own: a cancellation, or what the reconciler leaves in its task, concerns one attempt, and an attempt that
ignores its cancellation delays nothing else. This object owns all these tasks.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from aioinformer.concurrency import Latch, create_task
from aioinformer.controller.inputs.loops import LoopDetector
from aioinformer.controller.proofs import Proofs
from aioinformer.controller.request import NORMAL_PRIORITY, NotRunning
from aioinformer.controller.running.attached import CLEANING_UP, Inputs
from aioinformer.controller.running.attempts import Attempt, Requests
from aioinformer.controller.running.cancellation import Cancellation
from aioinformer.controller.running.catching_up import CatchUp, OwnWritesGate
from aioinformer.controller.running.failure_condition import FailureCondition
from aioinformer.controller.running.failure_events import FailureEvents, clipped, failure_of
from aioinformer.controller.running.outcomes import ends_well, invalid_result, is_success, log_outcome, outcome_of
from aioinformer.controller.running.permits import Permits
from aioinformer.controller.running.share import Share
from aioinformer.controller.writes.own_writes import StaleCache
from aioinformer.errors import UsageError
from aioinformer.functions import function_name
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.stalls import Stalls, Steps
from aioinformer.logs import get_logger
from aioinformer.resources.references import ObjectReference
from aioinformer.workqueue.queue import QueueShutDown
from aioinformer.workqueue.requests.outcomes import Finished, Park, Unfinished
from aioinformer.workqueue.requests.request_queue import QueueSnapshot, RequestQueue
from aioinformer.workqueue.waiting import loop_time

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.report import ControllerReport
    from aioinformer.controller.request import Cause
    from aioinformer.controller.running.settings import Services
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.controller.writes.permits import Permit
    from aioinformer.leaderelection.elector import Term
    from aioinformer.resources.keys import ObjectName
    from aioinformer.ring import SlotGrant
    from aioinformer.workqueue.requests.outcomes import Outcome, Parked, Run

#: The names of controller and key, when the run ended and began, by the clock of the event loop, and its result.
EndedRun: TypeAlias = "tuple[str, ObjectName, float, float, str]"

#: The groups that serve Events.
_EVENTS: Final = ("", "events.k8s.io")

_log = get_logger("aioinformer.controller")


class ActiveController:
    """One controller while it runs.

    Args:
        controller: the declaration.
        own: the own writes of the controller, which outlive a restart of it.
        earlier: the queue before a restart, whose requests are taken over.

    Attributes:
        controller, name: the declaration, and its name.
        queue: its requests.
        inputs: its informers and sources.
        results: how many attempts there were, by result.
        synced: set when all objects of the first lists are in the queue.
        permitted: whether it may work: it needs no leadership, or has it.
        share: the part of the keys that this replica runs; None for all.
        attempts: those that run, by their tasks.
        own, gate, catch_up, loops, cancellation: its parts.
        proofs: what runs have proven about children.
        failure_events: shows failures on the objects.
        recent_runs: gets an entry of each run; None for none.
        on_failure: called with the key of a run that did not succeed, and with what follows; None for none.
    """

    def __init__(
        self, controller: Controller[Any], services: Services, own: OwnWrites, earlier: RequestQueue | None = None
    ) -> None:
        self.controller = controller
        self.name = controller.name
        queue = partial(RequestQueue, controller.name, controller.queue, metrics=services.settings.metrics)
        self.queue = queue() if earlier is None else earlier.hand_over(queue)
        self.loops = LoopDetector(controller.name, brake=controller.brake)
        self.inputs = Inputs(
            controller, services.informers, self._add, self.loops, services.settings.failure_condition or ""
        )
        self.results: Counter[str] = Counter()
        self.synced = Latch()
        self.permitted = False
        self.recent_runs: deque[EndedRun] | None = None
        self.on_failure: Callable[[ObjectName, Unfinished | Park], object] | None = None
        self._services = services
        self.cancellation = Cancellation(controller.name, controller.timeout, services.unanswered)
        self.attempts = self.cancellation.attempts
        self.share: Share | None = None
        if services.membership is not None and controller.elected:
            ring = services.membership
            self.share = Share(controller, ring, services, self.inputs, self.queue, own, self.cancellation)
            self.inputs.note_deleted = self.share.note_deleted
        staleness = controller.max_staleness
        staleness = services.settings.max_staleness if staleness is None else staleness
        permits = Permits(self.inputs, staleness, services.unanswered, self.share)
        self.proofs = Proofs()
        self._requests = Requests(controller, self.name, self.inputs, own, services, permits.of, self.proofs, staleness)
        self.own = own
        recorded = services.settings.failure_events and not _is_fed_by_events(controller)
        self.failure_events = FailureEvents(controller.name, services.event if recorded else None, _call_at)
        self.failure_condition: FailureCondition | None = None
        if (kind := services.settings.failure_condition) is not None:
            self.failure_condition = FailureCondition(controller, kind, services, own, self._record)
        #: Whether a success may concern the owner of an object: all that a run without failures looks at.
        self._shows_success: Any = self.failure_events.warned if self.failure_condition is None else True
        own.on_write = self.loops.wrote if controller.brake else None
        self._errors = RepeatedErrors(_log)
        self.gate = OwnWritesGate(controller, own, self.inputs.undecodable, self._errors)
        self._stalls = Stalls(controller.name, _log)
        self.catch_up = CatchUp(controller.name, self.inputs.informers, services.caches)
        self._dispatcher: asyncio.Task[None] | None = None
        #: Set when an attempt ends.
        self._worker_free = asyncio.Event()
        self._failed: asyncio.Future[None] | None = None
        self._crash: Exception | None = None
        self._term: Term | None = None
        self._was_permitted = False
        self._closing = False
        #: What the queue had when it was closed.
        self._left: QueueSnapshot | None = None
        self._context = contextvars.Context()

    def enqueue(self, key: ObjectName, cause: Cause, priority: int = NORMAL_PRIORITY, *, after: float = 0.0) -> None:
        """Request a run of a key.

        Raises:
            UsageError: no informer watches the namespace of the key.
            NotRunning: this replica does not own the slot of the key.
        """
        if not self.inputs.includes(key):
            raise UsageError(f"controller {self.name} does not watch the namespace of {key}")
        if self.share is not None and not self.share.admits(key):
            raise NotRunning(f"controller {self.name} does not run {key} in this replica: it does not own the slot")
        self.queue.add(key, cause, priority=priority, after=after)

    def _add(self, key: ObjectName, cause: Cause, priority: int) -> None:
        if self.share is not None and not self.share.admits(key):
            return
        if self.permitted:
            if self.loops.braked and key in self.loops.braked:
                after = self.loops.pause(key, cause, loop_time(), running=self.queue.runs(key))
                self.queue.add(key, cause, priority=priority, after=after)
            else:
                self.queue.add(key, cause, priority=priority)
        else:
            self._add_as_standby(key, cause, priority)

    def _add_as_standby(self, key: ObjectName, cause: Cause, priority: int) -> None:
        gone = not self.inputs.has(key)
        self.queue.add_as_standby(key, cause, priority=priority, gone=gone, seen=self._services.seen_by_leader())

    # Life.

    async def run(self) -> None:
        """Follow the inputs until cancelled, and work whenever that is permitted.

        Raises:
            Exception: an input failed with it, or this class itself.
        """
        self._context = contextvars.copy_context()
        self._failed = asyncio.get_running_loop().create_future()
        period = self._services.settings.resync_period
        following = create_task(self.inputs.follow(self._on_synced, period), name=f"controller {self.name}: inputs")
        writing: asyncio.Task[None] | None = None
        if self.failure_condition is not None:
            writing = create_task(self.failure_condition.run(), name=f"controller {self.name}: condition")
        try:
            await asyncio.wait({following, self._failed}, return_when=asyncio.FIRST_COMPLETED)
            if self._crash is not None:
                raise self._crash
            following.result()
        finally:
            self._closing = True
            if self.share is not None:
                await self.share.close()
            owned = [
                each
                for each in (following, writing, self._dispatcher, *self.gate.settling.values())
                if each is not None
            ]
            for task in owned:
                task.cancel()
            await asyncio.wait(owned)

    def _on_synced(self) -> None:
        self.synced.set()
        self._services.on_synced()
        self._begin_dispatcher()

    def permit(self, term: Term | None = None) -> None:
        """Let the controller work from now on, in a term of leadership if it needs one.

        In a new term, it begins once its caches have all that the server has now: the last writes of the former leader.
        """
        # If it led before, another process has led meanwhile, and has done some of the work that this one had planned.
        self.loops.clear()
        self.proofs.clear()
        self.queue.take_over(self.inputs.keys() if self._was_permitted else (), self._services.seen_by_leader())
        self._was_permitted = True
        self.permitted = True
        self._term = term
        if term is not None:
            self.catch_up.begin()
        self._begin_dispatcher()

    async def revoke(self) -> None:
        """Stop working because the leadership is lost: cancel the attempts, and wait until they have ended."""
        self.permitted = False
        self._term = None
        self.proofs.clear()
        dispatcher = self._dispatcher
        self._dispatcher = None
        if dispatcher is not None:
            dispatcher.cancel()
        await self.cancellation.cut(self.attempts, "the leadership is lost")
        for key, cause in self.queue.waiting():
            if not self.inputs.has(key):
                self._add_as_standby(key, cause, NORMAL_PRIORITY)
        if dispatcher is not None:
            await asyncio.wait({dispatcher}, timeout=CLEANING_UP)  # it may be closing the response to a list

    def change_share(self, gained: set[int], lost: set[int], ended: set[int]) -> None:
        """Work in other slots of the ring from now on, as `Share.change` describes."""
        self.proofs.forget_slots(lost | ended)
        if self.share is not None and not self._closing:
            self.share.change(gained, lost, ended, self.synced.wait)

    def busy(self) -> set[int]:
        """Return the slots of the ring in which attempts run that may still act."""
        running = self.attempts.values()
        return {each.slot for each in running if each.slot is not None and not each.abandoned}

    def close(self) -> None:
        """Hand out no further request. May be repeated."""
        if self._left is None:
            self._closing = True
            self._left = self.queue.snapshot()
            self.queue.shut_down()

    async def stop(self, grace: float, hurry: asyncio.Future[None]) -> ControllerReport:
        """Hand out no further request, and end the attempts, as `Cancellation.drain` does."""
        self.close()
        report = await self.cancellation.drain(grace, hurry)
        self._errors.close()
        self.failure_events.close()
        assert self._left is not None
        return replace(report, queued=self._left.ready + self._left.delayed, parked=len(self._left.parked))

    async def abandon(self, reason: str) -> None:
        """End everything after a failure, without grace. The queue still accepts requests, for `hand_over`."""
        self._closing = True
        await self.cancellation.cut(self.attempts, reason)
        self._errors.close()
        self.failure_events.close()
        await self.inputs.detach()

    def is_attempt(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether a task is an attempt of this controller."""
        return task in self.attempts

    # Work.

    def _begin_dispatcher(self) -> None:
        """Begin to hand out requests, if the controller may work and does not do so already."""
        may_work = self.synced and self.permitted and not self._closing
        if may_work and self._dispatcher is None:
            name = f"controller {self.name}: dispatcher"
            self._dispatcher = create_task(self._dispatch(), name=name, context=self._context.copy())
            self._dispatcher.add_done_callback(self._dispatcher_ended)

    async def _dispatch(self) -> None:
        """Begin an attempt for each request of the queue, once a worker is free.

        The next request is taken after the first step of the attempt, which may have stopped the controller.
        """
        await self.catch_up.wait()
        while True:
            while len(self.attempts) >= self.controller.workers:
                self._worker_free.clear()
                await self._worker_free.wait()
            try:
                run = await self.queue.get()
            except QueueShutDown:
                self._closing = True
                return
            self._begin(run)
            await asyncio.sleep(0)

    def _dispatcher_ended(self, task: asyncio.Task[None]) -> None:
        if task is self._dispatcher:
            self._dispatcher = None
        try:
            if not task.cancelled():
                task.result()
        except Exception as error:
            self._fail(error)
        else:
            self._begin_dispatcher()

    def _begin(self, run: Run) -> None:
        """Begin an attempt in a task of its own, unless the key must wait or belongs to another replica."""
        if self.gate.is_closed(run.key):  # an earlier wait has timed out
            self._settle(run, "settled", None)
            return
        term: Term | SlotGrant | None = self._term
        if self.share is not None:
            term = self.share.grant(run.key)
            if term is None:
                self.queue.finish(run, Finished())  # another replica runs the key
                return
        attempt = Attempt(run, term)
        steps = Steps(self._reconcile(attempt), self._stalls, partial(self._blocked, run.key))
        attempt.root = steps
        task = create_task(steps, name=f"controller {self.name}: {run.key}", context=self._context.copy())
        task.add_done_callback(self._ended)
        self.attempts[task] = attempt
        if self.controller.timeout is not None:
            at = run.started + self.controller.timeout
            attempt.timer = asyncio.get_running_loop().call_at(at, self.cancellation.expire, task)

    async def _reconcile(self, attempt: Attempt) -> Any:
        """Call the reconciler, wait for its threads, and release the finalizer if it succeeded. Return its result."""
        request, function = self._requests.make(attempt)
        result: Any = None
        try:
            coroutine = function(request)
            if not inspect.iscoroutine(coroutine):  # a decorator has replaced it
                raise invalid_result(coroutine)
            attempt.show(coroutine)
            result = await coroutine
        except BaseException as error:
            if not ends_well(error):
                raise
        finally:
            attempt.show(None)
            attempt.ended = True
            if attempt.threads is not None:
                await attempt.threads.join()
        # Exactly if the attempt succeeds, and nothing is planned: otherwise, the key would rest and keep its finalizer.
        if request.release is not None and is_success(result) and not (attempt.cut or attempt.expired):
            attempt.released = True
            await request.finish()
        return result

    def _blocked(self, key: ObjectName, seconds: float) -> None:
        self._stalls.report(f"controller {self.name}: {function_name(self.controller.reconcile)}", key, str, seconds)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        attempt = self.attempts.pop(task)
        attempt.root = None  # clients of the reconciler may outlive the controller, to which it refers
        self._worker_free.set()
        if attempt.timer is not None:
            attempt.timer.cancel()
        now = loop_time()
        try:
            name, outcome = outcome_of(attempt, task, now)
            self._conclude(attempt, now, name, outcome)
        except Exception as error:
            self._fail(error)
        if self.share is not None and attempt.slot not in self.share.membership.accepted:
            self.share.membership.wake()  # it may be handed over now

    def _conclude(self, attempt: Attempt, now: float, name: str, outcome: Outcome) -> None:
        run = attempt.run
        self.results[name] += 1
        if self.loops.ran(run.key, run.causes, now, wrote=attempt.wrote):
            self.queue.hasten(run.key)
        if self.recent_runs is not None:
            self.recent_runs.append((self.name, run.key, now, run.started, name))
        if not self._closing and self.gate.is_closed(run.key):
            self._settle(run, name, outcome)
        else:
            self._finish(run, name, outcome, now)

    def _settle(self, run: Run, name: str, outcome: Outcome | None) -> None:
        """Finish a run when the caches have its writes. The key is not handed out until then; the worker is free."""
        self.queue.release(run)
        # After an error, the backoff need not wait for the caches: the next run does.
        if isinstance(outcome, (Unfinished, Park)):
            on_late = None
        else:
            on_late = partial(self.results.update, ("stale",))
        self.gate.hold(run.key, on_late, partial(self._settled, run, name, outcome))

    def _settled(self, run: Run, name: str, outcome: Outcome | None) -> None:
        outcome = outcome or Unfinished(StaleCache("they were not in the caches"), 0.0, counted=False)
        try:
            self._finish(run, name, outcome, loop_time())
        except Exception as error:
            self._fail(error)

    def _finish(self, run: Run, name: str, outcome: Outcome, now: float) -> None:
        following = self.queue.finish(run, outcome, now)
        if name not in ("success", "again"):
            log_outcome(self.name, run, name, outcome, following, self._errors)
            self._show_failure(run, outcome, following, now)
            if self.on_failure is not None and isinstance(outcome, (Unfinished, Park)):
                self.on_failure(run.key, outcome)
        elif self._shows_success:
            self._show_success(run, now)

    def _show_failure(self, run: Run, outcome: Outcome, following: Parked | float | None, now: float) -> None:
        """Let the object show a failure that concerns its owner."""
        key = run.key
        failure = failure_of(outcome, following, self.queue.failing(key))
        about = None if failure is None else self._reference(key)
        if failure is None or about is None or not self._may_work(key):
            return
        reason, text = failure
        if str(key) not in self.inputs.undecodable:  # which has an Event of its own
            self.failure_events.failed(key, about, reason, text, now)
        if self.failure_condition is not None:
            self.failure_condition.failed(key, reason, clipped(text), self._permit_of(run))

    def _show_success(self, run: Run, now: float) -> None:
        """Let the object show that it works again, if it shows a failure."""
        if run.key in self.failure_events.warned:
            self.failure_events.succeeded(run.key, self._reference(run.key), now)
        if self.failure_condition is not None and self._may_work(run.key):
            self.failure_condition.succeeded(run.key, partial(self._permit_of, run))

    def _permit_of(self, run: Run) -> Permit:
        """Return a permit for what is written about a run after its end."""
        term = self._term if self.share is None else self.share.grant(run.key)
        return self._requests.permit(Attempt(run, term))()

    def _may_work(self, key: ObjectName) -> bool:
        """Return whether this replica reconciles a key now."""
        return self.permitted and (self.share is None or self.share.admits(key))

    def _record(self, key: ObjectName) -> Any:
        return self.inputs.primary.get_indexer().store.item(str(key))

    def _reference(self, key: ObjectName) -> ObjectReference | None:
        """Return a reference to the cached object of a key; None if there is none."""
        record = self._record(key)
        if record is None:
            return None
        resource = self.controller.resource
        return ObjectReference(resource.api_version, resource.kind, key.name, key.namespace, record.uid)

    def _fail(self, error: Exception) -> None:
        """End `run` with an error of this class itself: the controller must not hang silently."""
        self._crash = error
        if self._failed is not None and not self._failed.done():
            self._failed.set_result(None)

    @property
    def phase(self) -> str:
        """ "syncing", "standby", "catching up", "working" or "stopping"."""
        if self._closing:
            return "stopping"
        if not self.synced:
            return "syncing"
        if not self.permitted:
            return "standby"
        return "working" if self.catch_up.is_done else "catching up"


def _is_fed_by_events(controller: Controller[Any]) -> bool:
    """Return whether Events are inputs of a controller: its own ones would make it run."""
    inputs = (controller.primary(), *controller.owns, *controller.watches)
    return any(each.resource.plural == "events" and each.resource.group in _EVENTS for each in inputs)


def _call_at(when: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_at(when, call)
