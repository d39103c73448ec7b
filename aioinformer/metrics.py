"""Where informers and work queues announce that they can be asked for their numbers.

Nobody is told of each event: whoever keeps metrics asks for them when it is asked itself, once for each scrape. What is
counted in between is counted once for each batch, list and watch, and only if somebody may ask. So a metric costs
nothing where there is none, and next to nothing where there are.

`aioinformer.prometheus` has a provider; one for anything else is a class with one method.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from weakref import WeakSet, WeakValueDictionary

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.resource import Resource


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of times.

    Attributes:
        count: how many there were.
        total: their sum in seconds.
        buckets: how many were at most as long as each of `bounds`.
        bounds: in seconds.
    """

    count: int
    total: float
    buckets: tuple[int, ...]
    bounds: tuple[float, ...]


class DurationCounter:
    """Counts times into a histogram.

    Args:
        bounds: upper bounds in seconds, the lowest first.
    """

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """What was counted so far."""
        below = tuple(accumulate(self._counts))
        return Durations(below[-1], self._total, below[:-1], self._bounds)


#: Upper bounds in seconds, those of client-go: 10 ns to 1000 s.
DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Numbers of one work queue; times in seconds.

    Attributes:
        name: of the queue, "" if it has none.
        depth: items that wait for a worker.
        processing: items that workers have.
        delayed: items that wait for their time.
        adds: items that were taken in, so far; what collapsed into one counts once.
        retries: items that were taken in with a delay, so far.
        waited: from the add to the worker.
        worked: from the worker to `done`.
        unfinished_work: the sum of how long each worker has had its item.
        longest_running: the longest of these. One that only grows is a worker that is stuck.
        shutting_down: it takes nothing in any more.
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


_log = get_logger("aioinformer.metrics")

#: Names in use. A name is free again once nothing refers to it.
_names: WeakValueDictionary[str, InformerName] = WeakValueDictionary()
_lock = threading.Lock()


class InformerName:
    """A name for the informers of one part of a program, such as a factory. To be released, or used as a block.

    Args:
        name: any but "", and none that is in use.

    Raises:
        UsageError: it is "", or in use.
    """

    def __init__(self, name: str) -> None:
        if not name:
            raise UsageError('name="": give informers a name that says what they are for')
        self.name = name
        self._released = False
        self._reserved: set[tuple[str, str]] = set()
        self._derived: WeakSet[InformerNameAndResource] = WeakSet()
        with _lock:
            if name in _names:
                raise UsageError(f"name={name!r} is in use: choose another, or release it where it is used")
            _names[name] = self

    @classmethod
    def unused(cls, name: str = "default") -> InformerName:
        """Return a name that is not in use: this one, or else the first of `name-2`, `name-3`, …"""
        number = 1
        while True:
            try:
                return cls(name if number == 1 else f"{name}-{number}")
            except UsageError:
                if not name:
                    raise
                number += 1

    def with_resource(self, resource: Resource[Any], scope: str = "") -> InformerNameAndResource:
        """The identity of an informer of a resource. The first one of each is reserved, and no other while it is.

        Args:
            resource: what the informer is of.
            scope: what part of the collection it follows, if that is not what all informers of the name do; for people.
        """
        key = (resource.gvr, scope)
        reserved = not self._released and key not in self._reserved
        if reserved:
            self._reserved.add(key)
        else:
            _log.warning("%s of %s is not reserved: it has no metrics", resource.gvr, self.name)
        identity = InformerNameAndResource(self, resource, reserved, scope)
        self._derived.add(identity)
        return identity

    def release(self) -> None:
        """Frees the name, and all identities derived from it: they are not reserved any more. May be repeated."""
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


def name_for(name: InformerName | str | None, metrics: object) -> InformerName | None:
    """Return the name of an owner of informers: as given, or one that is not in use.

    Args:
        name: as given; None for none.
        metrics: as given. With metrics and without a name it is `default`, or `default-2` and so on.
    """
    if isinstance(name, InformerName):
        return name
    if name is None:
        return InformerName.unused() if metrics is not None else None
    return InformerName.unused(name)


def identity_for(
    name: InformerName | None, metrics: object, resource: Resource[Any], scope: str
) -> InformerNameAndResource | None:
    """Return the identity of an informer of an owner; None if nothing is counted.

    Args:
        name: of the owner.
        metrics: as the owner was given; without them nothing is counted.
        resource: what the informer is of.
        scope: as for `with_resource`.
    """
    return name.with_resource(resource, scope) if name is not None and metrics is not None else None


class InformerNameAndResource:
    """One informer among those of a name; made by `InformerName.with_resource`.

    Attributes:
        name: as it was given.
        resource: what the informer is of.
        reserved: whether it stands for this informer alone; what is told of others would mix with it.
        scope: what part of the collection it follows, "" for what all informers of the name do.
    """

    def __init__(self, owner: InformerName, resource: Resource[Any], reserved: bool, scope: str = "") -> None:
        self.name = owner.name
        self.resource = resource
        self.reserved = reserved
        self.scope = scope
        self._owner = owner

    def release(self) -> None:
        """Lets another informer of the name have the resource. May be repeated."""
        if self.reserved:
            self.reserved = False
            self._owner._reserved.discard((self.resource.gvr, self.scope))

    def release_name(self) -> None:
        """Release the name that this is derived from, and all that is derived from it."""
        self._owner.release()

    def __repr__(self) -> str:
        scope = f"?{self.scope}" if self.scope else ""
        return f"<{self.name}: {self.resource.gvr}{scope}{'' if self.reserved else ', not reserved'}>"


#: Upper bounds in seconds, those of client-go: 1 ms to 10 s.
PROCESSING_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Lists take from milliseconds to minutes, watches as long as the server wants.
REQUEST_BOUNDS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class InformerStatistics:
    """Numbers of one informer; times in seconds.

    Attributes:
        identity: whose they are.
        objects: in the cache.
        resource_version: of the cache.
        queued: what waits between reflector and cache.
        pending: notifications that wait for the handler that is behind most.
        processing: of batches on their way into cache and notifications.
        lists: from the first request to the end, however it ended.
        listed: objects in them.
        watches: from the first byte to the end; those that have ended.
        short_watches: of these, the ones that ended within a second, and brought nothing.
        watched: events in them.
        phase: what the informer is doing, as in `InformerState`.
        healthy: whether the cache follows the server.
        handler_errors: how often handlers raised.
        undecodable: objects whose last version cannot be decoded or shown.
        skipped: how often an object was skipped for that.
        last_event_age: seconds since the server last sent anything; None if it never did.
        relists: lists that became necessary, by reason; how many attempts they took does not matter.
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
    relists: Mapping[str, int] = field(default_factory=dict)

    @property
    def version_number(self) -> float | None:
        """The version as a number, of 15 digits at most: as many as a float can hold. None if it is none."""
        if not self.resource_version:
            return 0.0
        digits = self.resource_version
        return float(digits[-15:]) if digits.isascii() and digits.isdecimal() else None


class InformerCounters:
    """What is counted for it."""

    __slots__ = ("listed", "lists", "processing", "relists", "short_watches", "watched", "watches")

    def __init__(self) -> None:
        self.processing = DurationCounter(PROCESSING_BOUNDS)
        self.lists = DurationCounter(REQUEST_BOUNDS)
        self.listed = 0
        self.watches = DurationCounter(REQUEST_BOUNDS)
        self.short_watches = 0
        self.watched = 0
        #: By reason.
        self.relists: Counter[str] = Counter()


class MetricsSource(Protocol):
    """An informer or a work queue."""

    def statistics(self) -> InformerStatistics | QueueStatistics:
        """Its numbers now; may be called from any thread."""
        ...


class MetricsProvider(Protocol):
    """Keeps metrics."""

    def register(self, source: MetricsSource) -> None:
        """There is one more to ask. To be held weakly, or what has ended never leaves memory.

        Raises:
            UsageError: what it tells of itself would mix with what another one does.
        """
        ...
