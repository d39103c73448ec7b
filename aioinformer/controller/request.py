"""What a reconciler receives and returns: `Request` and `Result`, and the errors that decide about retries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias

import msgspec

from aioinformer.cache.lister import Lister
from aioinformer.cache.objects.record import Record
from aioinformer.cache.objects.views import View, view_class
from aioinformer.controller.answers import StatusAnswers
from aioinformer.controller.inputs.mapping import Input
from aioinformer.controller.proofs import Proofs
from aioinformer.errors import AioinformerError, DecodeError, OptionError, UsageError
from aioinformer.exports import lazy_type
from aioinformer.functions import function_name, plain_function
from aioinformer.resources.keys import ObjectName, metadata_field, metadata_of
from aioinformer.resources.references import ObjectReference
from aioinformer.resources.resource import Resource
from aioinformer.state import NO_STATE, State_co, Stated
from aioinformer.workqueue.requests.causes import LOW_PRIORITY as LOW_PRIORITY
from aioinformer.workqueue.requests.causes import NORMAL_PRIORITY as NORMAL_PRIORITY
from aioinformer.workqueue.requests.causes import Cause as Cause
from aioinformer.workqueue.requests.causes import Trigger as Trigger

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
    from aioinformer.client.client import Client
    from aioinformer.leaderelection.elector import Term
    from aioinformer.ring import SlotGrant
else:
    Client = lazy_type("aioinformer.client.client", "Client")
    Term = lazy_type("aioinformer.leaderelection.elector", "Term")
    SlotGrant = lazy_type("aioinformer.ring", "SlotGrant")
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Context(Protocol):
    """What a controller offers to its requests."""

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that adds the controller and the key to each line."""

    @property
    def status_answers(self) -> StatusAnswers:
        """What the server has answered to earlier writes of statuses."""

    @property
    def proofs(self) -> Proofs:
        """What earlier runs have proven about children."""

    def client(self, key: ObjectName) -> Client:
        """Return a client that records its writes for this key."""

    def lister(self, resource: Resource[R] | Input[R], *, owned: bool = False) -> Lister[R]:
        """Return the lister of an input of the controller; of several, the one in `owns` if `owned`."""

    def owned(self, owner: Any, resource: Resource[R]) -> list[R]:
        """Return the cached objects of an input that an object owns, by its uid, in the order of their keys."""

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        """Record an Event about an object."""

    def record(self, key: ObjectName) -> Record | None:
        """Return what the cache of the primary stores of an object."""

    def check_fresh(self) -> None:
        """Raise Stale if an input is staler than the controller allows."""

    async def observe(self, key: ObjectName) -> None:
        """Wait until the caches have the recorded writes of a key."""

    async def to_thread(self, call: Callable[[], R], name: str) -> R:
        """Call a function in a thread."""


class Request(Stated[State_co], Generic[T_co, State_co]):
    """One run of a reconciler for one object.

    Attributes:
        key: namespace and name of the object.
        object: its cached state when the run began; None if the cache does not have it.
        context: what the controller offers to its requests, for helpers such as `apply_set`.
        causes: why the reconciler runs, in the order of their arrival; the first ones if there were many.
        causes_left_out: how many further causes were merged into this run.
        attempt: 1 for the first attempt; it grows with each failed attempt, until one succeeds.
        enqueued: when the first cause arrived, in seconds of the event loop's clock.
        priority: of the request.
        term: the term of leadership, or the right to work in the slot of the object in a ring; None if the controller
            needs none.
        dry_run: whether writes and Events are logged and not sent. Ask it before your own calls to other systems.
        finalizer: the finalizer that this run uses; see `finalizing`.
        release: removes the finalizer, once the block of `finalizing` has cleaned up; None before.

    `Request[Website]` has a state of any type; in `Request[Website, State]`, it has the type that the lifespan of the
    manager yields.
    """

    __slots__ = (
        "_client",
        "_resource",
        "_whole",
        "attempt",
        "causes",
        "causes_left_out",
        "context",
        "dry_run",
        "enqueued",
        "finalizer",
        "key",
        "object",
        "priority",
        "release",
        "term",
    )

    def __init__(
        self,
        key: ObjectName,
        object: T_co | None,
        context: Context,
        *,
        causes: tuple[Cause, ...] = (),
        causes_left_out: int = 0,
        attempt: int = 1,
        enqueued: float = 0.0,
        priority: int = NORMAL_PRIORITY,
        term: Term | SlotGrant | None = None,
        resource: Resource[T_co] | None = None,
        dry_run: bool = False,
        state: State_co = NO_STATE,
    ) -> None:
        self._state = state  # not by `Stated`, whose call each run would pay for
        self.key = key
        self.object = object
        self.causes = causes
        self.causes_left_out = causes_left_out
        self.attempt = attempt
        self.enqueued = enqueued
        self.priority = priority
        self.term = term
        self.dry_run = dry_run
        self.finalizer = ""
        self.release: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._resource = resource
        self.context = context
        self._client: Client | None = None
        #: An object of the request, and the same with all that the cache has of it.
        self._whole: tuple[Any, Any] | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the object; "" if it is cluster-scoped."""
        return self.key.namespace

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.key.name

    @property
    def resource(self) -> Resource[T_co]:
        """The resource of the object.

        Raises:
            UsageError: the request was made without it, by a test for example.
        """
        if self._resource is None:
            raise UsageError(f"the request for {self.key} has no resource; pass resource=… to Request()")
        return self._resource

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that adds the controller and the key to each line."""
        return self.context.log

    @property
    def reference(self) -> ObjectReference:
        """A reference to the object, which need not exist any more: for `set_controller_reference`, for example."""
        if self.object is None:
            uid = ""
        else:
            uid = metadata_field(metadata_of(self.object), "uid", "uid") or ""
        return ObjectReference(self.resource.api_version, self.resource.kind, self.name, self.namespace, uid)

    @property
    def client(self) -> Client:
        """A client whose writes are recorded: the next run of this key waits until the caches have them.

        While an input is staler than `max_staleness` of the controller, deletes and evictions raise `Stale`, and are
        not sent.
        """
        if self._client is None:
            self._client = self.context.client(self.key)
        return self._client

    def lister(self, resource: Resource[R] | Input[R]) -> Lister[R]:
        """Return the lister of a resource that the controller has as an input.

        Args:
            resource: of the objects; or the declaration of the input, such as a `Watch`, if several inputs of the
                resource have different caches. That of the controller's own resource is `controller.primary()`.

        Raises:
            UsageError: the controller has no such input, since no read starts a watch; or several, which are named.
        """
        return self.context.lister(resource)

    def owned(self, resource: Resource[R]) -> list[R]:
        """Return the cached objects of a resource in `owns` whose owner is this object, by uid, in the order of keys.

        Raises:
            UsageError: the resource is not in `owns`.
        """
        return self.context.owned(self.object, resource) if self.object is not None else []

    def event(self, reason: str, message: str, *, type: str = "Normal", about: Any = None) -> None:
        """Record an Event. The call does not wait, and identical Events are merged.

        Args:
            reason: for machines: one word in UpperCamelCase.
            message: for people.
            type: "Normal" or "Warning".
            about: the object; by default, the object of the request.
        """
        self.context.event(self.reference if about is None else about, type, reason, message)

    def stored(self) -> Record | None:
        """Return what the cache stores of `object`; None if it has another version, or none. For helpers."""
        record = self.context.record(self.key)
        metadata = metadata_of(self.object)
        if record is None or record.uid != metadata_field(metadata, "uid", "uid"):
            return None
        version = metadata_field(metadata, "resource_version", "resourceVersion")
        return record if version == record.resource_version else None

    def as_stored(self) -> Any:
        """Return `object` with all that the cache has of it, as a view; as it is if the cache has another. For helpers.

        A view knows whether it is a part. Objects of a class of the user, and of `storage="dict"`, do not.
        """
        obj = self.object
        if isinstance(obj, View):
            return obj
        if self._whole is not None and self._whole[0] is obj:  # several helpers ask for it
            return self._whole[1]
        record = self.stored()
        if record is None:
            return obj
        # A record of its own: the body of this view must not become that of the objects of the class.
        view = _stored_class(self.resource)(record.with_raw(record.json))
        self._whole = obj, view
        return view

    def check_fresh(self) -> None:
        """Check that no input is staler than `max_staleness` allows: before you delete something outside the cluster.

        `client` checks it itself before each delete and eviction, and `finalizing` before the cleanup.

        Raises:
            Stale: an input is staler. If the run ends with it, the key is retried, and this is not counted.
        """
        self.context.check_fresh()

    async def finish(self) -> None:
        """End a run that returned None: remove the finalizer if `finalizing` has cleaned up.

        The manager calls it, as a part of the attempt. Call it in a test that calls a reconciler without a manager.

        Raises:
            AioinformerError: the finalizer could not be removed.
        """
        if self.release is not None:
            await self.release()

    async def observe(self) -> None:
        """Wait until the caches have all writes that this request has made so far.

        Raises:
            StaleCache: they did not have them in time.
        """
        await self.context.observe(self.key)

    async def to_thread(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of a function that blocks, called in a thread with the context variables of the caller.

        The attempt does not outlive the thread. If it is cancelled, by its timeout for example, this call raises
        CancelledError at once, and the thread goes on: the key does not run again, the worker is not free, and the
        Lease is not released before the thread has ended. So let the function end soon: pass a timeout to it, or set
        a flag that it reads. Its result is then dropped, and its error is logged. An attempt has up to 8 threads at a
        time; further calls wait.

        A stop of the manager gives up such a thread after the grace and 10 s more, and reports it. The Lease is not
        released then, and expires. The thread ends with the process at the latest.

        Raises:
            Exception: the function raised it.
            LeadershipLost: the term of leadership is over; the function is not called.
            UsageError: the run has ended, or `function` is a coroutine function.
        """
        plain_function(function, "to_thread")
        return await self.context.to_thread(partial(function, *args, **kwargs), function_name(function))

    def __repr__(self) -> str:
        causes = "; ".join(map(str, self.causes))
        return f"<request for {self.key}, attempt {self.attempt}: {causes}>"


@cache
def _stored_class(resource: Resource[Any]) -> type[View]:
    return view_class(msgspec.structs.replace(resource, decoder=None))


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What follows a run that succeeded. Without a result, the key rests until its next cause.

    Attributes:
        after: run again after this many seconds, or earlier if there is another cause.
        at: run again at this time, which has a time zone; instead of `after`.
        priority: of that run; None keeps the priority.
        parked: do not run again before a change of an input or `retry_parked`, and show this reason.

    Raises:
        OptionError: a value is invalid, or several of `after`, `at` and `parked` are given.
    """

    after: float | None = None
    at: datetime | None = None
    priority: int | None = None
    parked: str = ""

    def __post_init__(self) -> None:
        if sum((self.after is not None, self.at is not None, bool(self.parked))) > 1:
            raise OptionError("Result: pass one of after, at and parked")
        if self.after is not None and not 0 <= self.after < float("inf"):
            raise OptionError(f"Result: after must be seconds, 0 or more, not {self.after!r}")
        if self.at is not None and self.at.tzinfo is None:
            raise OptionError(f"Result: at must have a time zone, not {self.at!r}; use datetime.now(UTC) + …")


#: Reconciles objects of a type: an async function of their requests.
Reconciler: TypeAlias = Callable[[Request[T]], Coroutine[Any, Any, Result | None]]
UndecodableHandler: TypeAlias = Callable[[Request[Any], DecodeError], Coroutine[Any, Any, Result | None]]


class TerminalError(AioinformerError):
    """The reconciler cannot succeed until an input changes: the key is parked with this reason."""


class Retry(AioinformerError):
    """An expected failure, such as that of another service: a failed attempt, which is retried with backoff.

    The log has its text in one line, without a traceback, and snapshots show it as the reason.

        raise Retry("dns answers 500")
    """


class RetryAfter(AioinformerError):
    """The reconciler needs another run later; this is no failure, and is not counted as an attempt.

    The log has the reason in one line, which is repeated for a key after a minute at the earliest.

    Args:
        seconds: after which the key runs again.
        reason: for people.

    Attributes:
        seconds: after which the key runs again.

    Raises:
        OptionError: the seconds are negative or infinite.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        if not 0 <= seconds < float("inf"):
            raise OptionError(f"RetryAfter: expected seconds, 0 or more, not {seconds!r}")
        super().__init__(reason or f"retry after {seconds:g} s")
        self.seconds = seconds


class NothingToDo(AioinformerError):
    """The run ends here, as if the reconciler had returned None: there is nothing to do for the object.

    `finalizing` raises it for an object that is gone, or that is being deleted and has no finalizer of the controller.
    """


class NotRunning(UsageError):
    """A controller that does not run was called. It may run later: a reconciler that raises this is retried."""


class ReconcileTimeout(AioinformerError):
    """A run took longer than the controller's `timeout`, and was cancelled. A TimeoutError of the user is another."""
