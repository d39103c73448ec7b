"""The statistics that sources of metrics return: numbers at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from aioinformer.metrics.names import InformerNameAndResource


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
        watched: events of watches. They count when they arrive, so the watches that are open are included.
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
        ended: the replica does not take part any more.
    """

    name: str
    member: str
    owners: tuple[str, ...]
    unowned: float
    ended: bool = False


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
        parked: the keys that are parked now because of an error, by the kind of the reason: see `Parked`.
        waiting: the keys that wait for a change on purpose: `Result(parked=…)`.
        failing: the keys whose last attempt did not succeed.
        oldest: for how long the oldest key that is ready has waited for a worker; 0 for none.
        loops: how many runs have triggered themselves.
        braked: the keys whose runs are 1 to 30 s apart, because their own writes cause them in a loop.
        own_writes: keys with writes that the caches may not show yet.
        write_waits: durations for which keys have waited for their own writes.
        input_errors: exceptions of the functions of inputs, by input.
        lost_changes: objects for whose changes no keys were found in the end, by input.
        manager: the name of its manager.
        longest_failure: for how long the key that fails longest has had no successful run; 0 for none.
        longest_write_wait: for how long the key that waits longest for its own writes has waited; 0 for none.
    """

    name: str
    phase: str
    workers: int
    active: int
    results: Mapping[str, int]
    worked: Durations
    answered: Durations
    parked: Mapping[str, int]
    waiting: int
    failing: int
    oldest: float
    loops: int
    braked: int
    own_writes: int
    write_waits: Durations
    input_errors: Mapping[str, int]
    lost_changes: Mapping[str, int]
    manager: str = ""
    longest_failure: float = 0.0
    longest_write_wait: float = 0.0


class WebhookStatistics(msgspec.Struct, frozen=True):
    """The numbers of the admission functions at one path.

    Attributes:
        name: the path.
        answers: requests so far, by HTTP status; 200 is a decision.
        in_flight: requests that are not answered yet.
        panics: exceptions of the functions that are no refusal.
        latency: durations of requests, in seconds.
        manager: the name of the manager.
    """

    name: str
    answers: Mapping[str, int]
    in_flight: int
    panics: int
    latency: Durations
    manager: str = ""


class ManagerStatistics(msgspec.Struct, frozen=True):
    """The numbers of one manager and its controllers.

    Attributes:
        name: of the manager.
        ready: whether all checks of `Manager.ready` have passed.
        ended: whether it has stopped.
        controllers: its controllers.
        webhooks: its admission functions, by path.
        loop_delay: by how much a timer of each second was late, in seconds; None before the first one.
    """

    name: str
    ready: bool
    ended: bool
    controllers: tuple[ControllerStatistics, ...]
    webhooks: tuple[WebhookStatistics, ...] = ()
    loop_delay: Durations | None = None


class ElectorStatistics(msgspec.Struct, frozen=True):
    """The numbers of one elector.

    Attributes:
        name: namespace and name of the Lease.
        leading: whether this process leads.
        slow_paths: renewals so far that needed more than one request.
        ended: whether it does not compete any more.
        unheld: for how many seconds the Lease had had no holder when it was last read; 0 if it had one.
    """

    name: str
    leading: bool
    slow_paths: int
    ended: bool
    unheld: float = 0.0


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
