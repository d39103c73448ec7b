"""Metrics: the protocols, the statistics, and the names of informers.

An informer, a queue, a manager, an elector or the requests of a transport register with a `MetricsProvider`, which
reads their statistics when it needs them, usually once a scrape. Between reads, counters change once a batch, list,
watch, run or request. So metrics cost next to nothing.

`aioinformer.prometheus` has a provider for Prometheus. A provider for another system is a class with one method.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias
from weakref import WeakSet, WeakValueDictionary

import msgspec

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.resource import Resource

_log = get_logger(__name__)

#: Upper bounds in seconds, those of client-go: 10 ns to 1000 s.
DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))
#: Upper bounds in seconds, those of client-go: 1 ms to 10 s.
PROCESSING_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Upper bounds in seconds, those of controller-runtime: 5 ms to a minute.
RUN_BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0),
    *(30.0, 40.0, 50.0, 60.0),
)
#: Both in one histogram, so that a run is counted once for two metrics.
WORK_BOUNDS: Final = tuple(sorted({*DURATION_BOUNDS, *RUN_BOUNDS}))
#: Upper bounds in seconds: from a change to the end of its run, or to the own writes in the caches.
DELAY_BOUNDS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
#: Upper bounds in seconds, those of client-go: 5 ms to a minute.
ANSWER_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
#: Upper bounds in seconds: lists take from milliseconds to minutes, and watches last as long as the server allows.
REQUEST_BOUNDS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)

#: Names in use. A name is free again once nothing refers to it.
_names: WeakValueDictionary[str, InformerName] = WeakValueDictionary()
#: The counters of requests by provider and server: transports for the same server share them.
_requests: WeakValueDictionary[tuple[int, str], RequestCounters] = WeakValueDictionary()
_lock = threading.Lock()


class MetricsProvider(Protocol):
    """Collects the metrics of informers, work queues, managers, electors and requests."""

    def register(self, source: MetricsSource) -> None:
        """Add a source, and read its statistics whenever metrics are needed.

        The provider must refer to the source weakly. Otherwise an informer or queue that has ended stays in memory.
        There may be more kinds of statistics in later versions: ignore those that you do not know.

        A source may be registered more than once, which has no further effect.

        Raises:
            UsageError: another source has the same name, and their metrics would mix.
        """


class MetricsSource(Protocol):
    """An informer, a work queue, a manager, an elector, the membership in a ring, or the requests to a server."""

    def statistics(self) -> Statistics:
        """Return its current numbers. Callable from any thread."""


class InformerStatistics(msgspec.Struct, frozen=True):
    """The numbers of one informer; times in seconds.

    Attributes:
        identity: which informer it is.
        objects: objects in the cache.
        resource_version: the resource version of the cache.
        queued: deltas that wait between reflector and cache.
        pending: notifications that wait for the slowest handler.
        processing: durations of batches, from the queue into cache and notifications.
        lists: durations of lists, from the first request to the end, failures included.
        listed: objects in these lists.
        watches: durations of the watches that have ended, from the first byte.
        short_watches: those of them that ended within a second and without an event.
        watched: events in these watches.
        phase: what the informer is doing, as in `InformerState`.
        healthy: whether the cache follows the server.
        handler_errors: exceptions that handlers raised.
        undecodable: objects whose latest version cannot be decoded or converted.
        skipped: how often such an object was skipped.
        last_event_age: seconds since the server last sent anything; None if it never did.
        relists: lists that became necessary, by reason; attempts of one relist count once.
        stale: seconds since the cache ceased to follow the server; 0 while it follows.
        longest_call: seconds since the call of a handler began that has not returned; the longest one.
    """

    identity: InformerNameAndResource
    objects: int
    resource_version: str
    queued: int
    pending: int
    processing: Durations
    lists: Durations
    listed: int
    watches: Durations
    short_watches: int
    watched: int
    phase: str = "new"
    healthy: bool = False
    handler_errors: int = 0
    undecodable: int = 0
    skipped: int = 0
    last_event_age: float | None = None
    relists: Mapping[str, int] = msgspec.field(default_factory=dict)
    stale: float = 0.0
    longest_call: float = 0.0

    @property
    def version_number(self) -> float | None:
        """The last 15 digits of the version, as many as a float can hold; None if it is not a number."""
        if not self.resource_version:
            return 0.0
        digits = self.resource_version
        return float(digits[-15:]) if digits.isascii() and digits.isdecimal() else None


class RingStatistics(msgspec.Struct, frozen=True):
    """The numbers of a ring as one replica sees it.

    Attributes:
        name: of the ring.
        member: the name of the replica.
        owners: the owner of each slot; "" for none.
        unowned: for how many seconds the slot that has waited longest has had no living owner; 0 for none.
    """

    name: str
    member: str
    owners: tuple[str, ...]
    unowned: float


class QueueStatistics(msgspec.Struct, frozen=True):
    """The numbers of one work queue; times in seconds.

    Attributes:
        name: the name of the queue, "" if it has none.
        depth: items that wait for a worker.
        processing: items that workers are processing.
        delayed: items whose delay is not over.
        adds: items added so far; equal items that wait at the same time count once.
        retries: items added with a delay so far.
        waited: durations from the add until a worker gets the item.
        worked: durations from then until `done`.
        unfinished_work: the sum of the times since each worker got its item.
        longest_running: the longest of these times. If it only grows, a worker hangs.
        shutting_down: the queue accepts no more items.
    """

    name: str
    depth: int
    processing: int
    delayed: int
    adds: int
    retries: int
    waited: Durations
    worked: Durations
    unfinished_work: float
    longest_running: float
    shutting_down: bool = False


class ControllerStatistics(msgspec.Struct, frozen=True):
    """The numbers of one controller; times in seconds.

    Attributes:
        name: of the controller.
        phase: as in `ControllerSnapshot`.
        workers: how many keys are reconciled at a time.
        active: the attempts that run.
        results: the attempts so far, by result.
        worked: durations of the attempts.
        answered: durations from a change to the end of the run that answers it, retries included.
        parked: the keys that are parked now, by the kind of the reason: see `Parked`.
        failing: the keys whose last attempt did not succeed.
        oldest: for how long the oldest key that is ready has waited for a worker; 0 for none.
        loops: how many runs have triggered themselves.
        own_writes: keys with writes that the caches may not show yet.
        write_waits: durations for which keys have waited for their own writes.
        input_errors: exceptions of the functions of inputs, by input.
        lost_changes: objects for whose changes no keys were found in the end, by input.
    """

    name: str
    phase: str
    workers: int
    active: int
    results: Mapping[str, int]
    worked: Durations
    answered: Durations
    parked: Mapping[str, int]
    failing: int
    oldest: float
    loops: int
    own_writes: int
    write_waits: Durations
    input_errors: Mapping[str, int]
    lost_changes: Mapping[str, int]


class ManagerStatistics(msgspec.Struct, frozen=True):
    """The numbers of one manager and its controllers.

    Attributes:
        name: of the manager.
        ready: the result of `Manager.ready`.
        ended: whether it has stopped.
        controllers: its controllers.
    """

    name: str
    ready: bool
    ended: bool
    controllers: tuple[ControllerStatistics, ...]


class ElectorStatistics(msgspec.Struct, frozen=True):
    """The numbers of one elector.

    Attributes:
        name: namespace and name of the Lease.
        leading: whether this process leads.
        slow_paths: renewals so far that needed more than one request.
        ended: whether it does not compete any more.
    """

    name: str
    leading: bool
    slow_paths: int
    ended: bool


class RequestStatistics(msgspec.Struct, frozen=True):
    """The requests to one server; times in seconds.

    Attributes:
        host: address and port of the server.
        answers: the number of requests, by method and status; the status is "<error>" if there was no answer.
        durations: by method: from sending a request to the head of its answer. Watches are left out.
    """

    host: str
    answers: Mapping[tuple[str, str], int]
    durations: Mapping[str, Durations]


Statistics: TypeAlias = (
    InformerStatistics | QueueStatistics | ManagerStatistics | ElectorStatistics | RequestStatistics | RingStatistics
)


class Durations(msgspec.Struct, frozen=True):
    """A histogram of durations.

    Attributes:
        count: the number of durations.
        total: their sum in seconds.
        buckets: for each bound, the number of durations that are not longer.
        bounds: upper bounds in seconds, the lowest first.
    """

    count: int
    total: float
    buckets: tuple[int, ...]
    bounds: tuple[float, ...]

    def within(self, bounds: Sequence[float]) -> Durations:
        """Return the histogram with some of its bounds."""
        counts = dict(zip(self.bounds, self.buckets, strict=True))
        return Durations(self.count, self.total, tuple(counts[bound] for bound in bounds), tuple(bounds))


class InformerName:
    """A name for the informers of one part of a program, such as a factory. No two are equal at the same time.

    Release the name at the end, or use it as a context manager.

    Args:
        name: any text but "" and names in use.

    Raises:
        UsageError: the name is "" or in use.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise UsageError('name="": give the informers a name that says what they are for')
        self.name = name
        self._released = False
        self._reserved: set[tuple[str, str]] = set()
        self._derived: WeakSet[InformerNameAndResource] = WeakSet()
        with _lock:
            if name in _names:
                raise UsageError(f"name={name!r} is in use: choose another, or release the one that has it")
            _names[name] = self

    @classmethod
    def unused(cls, name: str = "default") -> InformerName:
        """Return a name that is not in use: `name` itself, or the first free one of `name-2`, `name-3`, …"""
        number = 1
        while True:
            try:
                return cls(name if number == 1 else f"{name}-{number}")
            except UsageError:
                if not name:
                    raise
                number += 1

    def with_resource(self, resource: Resource[Any], scope: str = "") -> InformerNameAndResource:
        """Return the identity of an informer of a resource.

        The first identity of each resource and scope is reserved. Later identities are not reserved while the first one
        exists. Their informers have no metrics.

        Args:
            resource: the resource of the informer.
            scope: the part of the collection that it watches, for people; "" for the part that all informers of this
                name watch.
        """
        key = (resource.gvr, scope)
        reserved = not self._released and key not in self._reserved
        if reserved:
            self._reserved.add(key)
        else:
            _log.warning(
                "%s of %s has no metrics: another informer of this name and resource has them", resource.gvr, self.name
            )
        identity = InformerNameAndResource(self, resource, reserved, scope)
        self._derived.add(identity)
        return identity

    def release(self) -> None:
        """Release the name and all identities that were made from it. May be repeated."""
        if not self._released:
            self._released = True
            with _lock:
                if _names.get(self.name) is self:
                    del _names[self.name]
        for identity in self._derived:
            identity.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<InformerName {self.name}>"


class InformerNameAndResource:
    """Identifies one of the informers of a name; made by `InformerName.with_resource`.

    Attributes:
        name: the text of the name.
        resource: the resource of the informer.
        reserved: whether no other informer has this identity. Metrics are kept only then.
        scope: the part of the collection that it watches, "" for the part that all informers of the name watch.
    """

    def __init__(self, owner: InformerName, resource: Resource[Any], reserved: bool, scope: str = "") -> None:
        self.name = owner.name
        self.resource = resource
        self.reserved = reserved
        self.scope = scope
        self._owner = owner

    def release(self) -> None:
        """Let another informer of this name reserve resource and scope. May be repeated."""
        if self.reserved:
            self.reserved = False
            self._owner._reserved.discard((self.resource.gvr, self.scope))

    def release_name(self) -> None:
        """Release the name that made this identity, and all its identities."""
        self._owner.release()

    def __repr__(self) -> str:
        scope = f"?{self.scope}" if self.scope else ""
        return f"<{self.name}: {self.resource.gvr}{scope}{'' if self.reserved else ', not reserved'}>"


def name_for(name: InformerName | str | None, metrics: object) -> InformerName | None:
    """Return the name for the informers of a factory, None if it needs none.

    Args:
        name: what the user passed. A text becomes a name that is not in use.
        metrics: what the user passed. With metrics and without a name, the name is `default`, `default-2`, …
    """
    if isinstance(name, InformerName):
        return name
    if name is None:
        return InformerName.unused() if metrics is not None else None
    return InformerName.unused(name)


def identity_for(
    name: InformerName | None, metrics: object, resource: Resource[Any], scope: str
) -> InformerNameAndResource | None:
    """Return the identity of an informer of a factory, None if it has no metrics.

    Args:
        metrics: what the factory was given; None for no metrics.
    """
    return name.with_resource(resource, scope) if name is not None and metrics is not None else None


class InformerCounters:
    """The counters of one informer."""

    __slots__ = ("listed", "lists", "processing", "relists", "short_watches", "watched", "watches")

    def __init__(self) -> None:
        self.processing = DurationCounter(PROCESSING_BOUNDS)
        self.lists = DurationCounter(REQUEST_BOUNDS)
        self.listed = 0
        self.watches = DurationCounter(REQUEST_BOUNDS)
        self.short_watches = 0
        self.watched = 0
        self.relists: Counter[str] = Counter()  # by reason


class DurationCounter:
    """Counts durations into a histogram.

    Args:
        bounds: upper bounds in seconds, the lowest first.
    """

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """Return the histogram as it is now."""
        below = tuple(accumulate(self._counts))
        return Durations(below[-1], self._total, below[:-1], self._bounds)


class RunDurations(DurationCounter):
    """Counts the durations of runs, and with the same call the time from a change to the end of its run.

    Attributes:
        answered: the latter.
    """

    __slots__ = ("answered",)

    def __init__(self) -> None:
        super().__init__(WORK_BOUNDS)
        self.answered = DurationCounter(DELAY_BOUNDS)

    def observe_run(self, worked: float, answered: float) -> None:
        """Count a run that has ended, and the change that it answers."""
        self._counts[bisect_left(WORK_BOUNDS, worked)] += 1
        self._total += worked
        other = self.answered
        other._counts[bisect_left(DELAY_BOUNDS, answered)] += 1
        other._total += answered


class RequestCounters:
    """Counts the requests to one server."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._answers: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, DurationCounter] = {}

    def count(self, method: str, code: str, seconds: float | None) -> None:
        """Count a request: its method, the status of the answer, and the time to its head, None for a watch."""
        self._answers[method, code] += 1
        if seconds is not None:
            if (durations := self._durations.get(method)) is None:
                durations = self._durations[method] = DurationCounter(ANSWER_BOUNDS)
            durations.observe(seconds)

    def statistics(self) -> RequestStatistics:
        """Return the numbers. Any thread may call this."""
        durations = {method: each.snapshot() for method, each in self._durations.copy().items()}
        return RequestStatistics(self._host, self._answers.copy(), durations)


def count_requests(transport: object, metrics: MetricsProvider) -> None:
    """Let a transport count its requests. Transports of the user do not count."""
    count = getattr(transport, "count_requests", None)
    if count is None:
        return

    def counters(host: str) -> RequestCounters:
        key = (id(metrics), host)
        if (known := _requests.get(key)) is None:
            known = _requests[key] = RequestCounters(host)
        return known

    try:
        metrics.register(count(counters))
    except Exception:
        _log.exception("the metrics provider raised, so metrics do not show the requests of %r", transport)
