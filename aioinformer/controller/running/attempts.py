"""Attempts: one call of a reconciler, the request that it gets, and the steps that it takes."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from aioinformer.controller.helpers.objects import reconcile_undecodable
from aioinformer.controller.inputs.keys import uid_of
from aioinformer.controller.inputs.mapping import Input, Owns
from aioinformer.controller.request import Request, TerminalError
from aioinformer.controller.running.threads import Threads
from aioinformer.errors import DecodeError, UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, MutableMapping

    from aioinformer.cache.lister import Lister
    from aioinformer.cache.objects.record import Record
    from aioinformer.client.client import Client
    from aioinformer.concurrency import Root
    from aioinformer.controller.answers import StatusAnswers
    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.proofs import Proofs
    from aioinformer.controller.running.attached import Inputs
    from aioinformer.controller.running.settings import Services
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.controller.writes.permits import Permit
    from aioinformer.leaderelection.elector import Term
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource
    from aioinformer.ring import Membership, SlotGrant
    from aioinformer.workqueue.requests.outcomes import Run

R = TypeVar("R")

_log = get_logger("aioinformer.controller")


class RequestLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the controller and the key to each line, as a prefix and as attributes of the record."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the line with its prefix, and the arguments with the attributes `controller` and `key`."""
        subject = cast("Mapping[str, str]", self.extra)
        extra = {**subject, **(kwargs.get("extra") or {})}
        return f"{subject['controller']} {subject['key']}: {msg}", {**kwargs, "extra": extra}


class RequestContext(msgspec.Struct, eq=False):
    """The `Context` of an attempt.

    `name` is the controller's, `permit` makes what permits its writes, and `max_staleness` is that of its inputs.
    """

    attempt: Attempt
    inputs: Inputs
    own: OwnWrites
    services: Services
    name: str
    permit: Callable[[], Permit]
    proofs: Proofs
    max_staleness: float | None = None
    _log: RequestLog | None = None

    @property
    def log(self) -> RequestLog:
        if self._log is None:  # most attempts log nothing
            self._log = RequestLog(_log, subject_of(self.name, self.attempt.run.key))
        return self._log

    @property
    def status_answers(self) -> StatusAnswers:
        return self.services.status_answers

    def client(self, key: ObjectName) -> Client:
        """Return a client that records its writes for this key, and refuses those that the permit refuses."""
        return self.own.client(key, permit=self.permit(), log=self.log)

    def check_fresh(self) -> None:
        self.inputs.freshness(self.max_staleness)()

    def lister(self, resource: Resource[R] | Input[R], *, owned: bool = False) -> Lister[R]:
        lister: Lister[R] = self.inputs.of(resource, owned=owned).informer.lister()
        return lister

    def owned(self, owner: Any, resource: Resource[R]) -> list[R]:
        attached = self.inputs.of(resource, Owns)
        return cast("Owns[R]", attached.input).owned(attached.informer, uid_of(owner))

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.services.event(obj, type, reason, message)

    def record(self, key: ObjectName) -> Record | None:
        record: Record | None = self.inputs.primary.get_indexer().store.item(str(key))
        return record

    async def observe(self, key: ObjectName) -> None:
        await self.own.settle(key)

    async def to_thread(self, call: Callable[[], R], name: str) -> R:
        """Call a function in a thread, which the attempt does not outlive."""
        attempt = self.attempt
        if attempt.threads is None:
            subject = f"controller {self.name}: {attempt.run.key}"
            guarded = None if attempt.term is None else self.services.guarded_threads
            attempt.threads = Threads(subject, attempt.before_thread, guarded, attempt.slot)
        return await attempt.threads.run(call, name)


class Requests(msgspec.Struct, eq=False):
    """Makes the requests of a controller: what an attempt may read, and how far it may write.

    `permit` returns what makes the permit of an attempt. `max_staleness` is that of its inputs.
    """

    controller: Controller[Any]
    name: str
    inputs: Inputs
    own: OwnWrites
    services: Services
    permit: Callable[[Attempt], Callable[[], Permit]]
    proofs: Proofs
    max_staleness: float | None

    def make(self, attempt: Attempt) -> tuple[Request[Any], Callable[[Request[Any]], Any]]:
        """Return the request of an attempt, and the function to call with it.

        Raises:
            TerminalError: the object of the key exists, and cannot be decoded.
        """
        run = attempt.run
        key = str(run.key)
        primary = self.inputs.primary
        function = self.controller.reconcile
        resource = self.controller.resource
        obj = primary.get_indexer().get_by_key(key)
        if self.inputs.undecodable and key in self.inputs.undecodable:
            obj = None
            resource = replace(resource, decoder=msgspec.json.decode)
            function = partial(reconcile_undecodable, self.controller, *self.inputs.undecodable[key])
        elif obj is None:
            try:
                primary.check_absent(key)
            except DecodeError as error:
                raise TerminalError(str(error)) from None  # only another version of the object can help
        if obj is None:
            self.proofs.forget(run.key)
        permit = self.permit(attempt)
        context = RequestContext(
            attempt, self.inputs, self.own, self.services, self.name, permit, self.proofs, self.max_staleness
        )
        request: Request[Any] = Request(
            run.key,
            obj,
            context,
            causes=run.causes,
            causes_left_out=run.causes_left_out,
            attempt=run.attempt,
            enqueued=run.enqueued,
            priority=run.priority,
            term=attempt.term,
            resource=resource,
            dry_run=self.services.settings.dry_run,
            state=self.services.state,
        )
        return request, function


class Attempt(msgspec.Struct, eq=False):
    """One call of a reconciler.

    Attributes:
        run: of the queue.
        term: the term of leadership, or the right to work in a slot of a ring; None if the controller needs none.
        cut: why it was cancelled because its controller stops working; "" if it was not.
        expired: why it was cancelled because of the timeout; "" if it was not.
        abandoned: it has ignored its cancellation, and may not write any more.
        ended: its coroutine has ended; the attempt goes on until its threads have ended.
        released: the release of a finalizer has begun.
        wrote: whether a write was sent.
        threads: of `Request.to_thread`; None before the first.
        timer: of the timeout; None without one.
        root: the coroutine of its task, until that has ended.
    """

    run: Run
    term: Term | SlotGrant | None
    cut: str = ""
    expired: str = ""
    abandoned: bool = False
    ended: bool = False
    released: bool = False
    wrote: bool = False
    threads: Threads | None = None
    timer: asyncio.TimerHandle | None = None
    root: Root | None = None

    @property
    def slot(self) -> int | None:
        """The slot of the ring in which it works; None without a ring."""
        return getattr(self.term, "slot", None)

    def show(self, coroutine: Coroutine[Any, Any, Any] | None) -> None:
        """Let the stack of its task show where the reconciler waits, instead of the framework; None: the framework."""
        if self.root is not None:
            self.root.shown = coroutine

    def before_write(self, membership: Membership | None = None) -> float | None:
        """Check that the reconciler may write; return after how many seconds to ask again, None for never.

        With a membership, it is enough that this replica takes part in the ring, whichever slots it owns.

        Raises:
            LeadershipLost: the term is over or the slot is lost; with a membership, this replica is not in the ring.
            UsageError: the attempt was abandoned. The key may run again, at the same time.
        """
        self.wrote = True
        right = membership or self.term
        self.check("write", right)
        return None if right is None else right.remaining

    def before_thread(self) -> None:
        """Check that the reconciler may begin a thread.

        Raises:
            UsageError: the run has ended.
        """
        self.check("begin a thread", self.term)
        if self.ended:
            raise UsageError(f"the run for {self.run.key} has ended: await its threads in it")

    def check(self, what: str, right: Term | SlotGrant | Membership | None) -> None:
        """Check that the reconciler may act, by the right to it.

        Raises:
            LeadershipLost: the term is over, or the slot is lost.
            UsageError: the attempt was abandoned. The key may run again, at the same time.
        """
        if right is not None:
            right.check()
        if self.abandoned:
            raise UsageError(f"the reconciler of {self.run.key} goes on after its cancellation, and may not {what}")


def subject_of(controller: str, key: object) -> dict[str, str]:
    """Return the attributes of log records about a key."""
    return {"controller": controller, "key": str(key)}
