"""Decide which core/v1 Events are written, and how, as client-go's correlator does; without event loop or clock.

An Event passes three steps, in this order:

1. *Aggregation.* Events that differ only in their message are similar. From the tenth different message on, unless
   there were ten minutes without one, they are combined into one Event whose message says so.
2. *Counting.* A repeated Event keeps the name of the first one; its count grows, which is written as a patch.
3. *Spam filter.* Each source has a bucket of 25 Events for each object; one is added every five minutes. If the bucket
   is empty, the Event is not written. It is counted, and the next Event that is written includes it in its count.

Each step remembers up to 4096 entries, and forgets the least recently used one first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from aioinformer.events.event import Event
from aioinformer.workqueue.rate_limiters import TokenBucket

V = TypeVar("V")


class EventCorrelateResult(NamedTuple):
    """How to write an Event.

    Attributes:
        key: identifies the kind of Event; repetitions have the same key.
        event: the Event to create if its count is 1, otherwise the patch of the Event with its name.
        skip: whether to write nothing.
    """

    key: Hashable
    event: Event
    skip: bool = False


class Correlator(Protocol):
    """Decides how Events are written. Times are seconds on a monotonic clock."""

    #: How often to call `due`, in seconds; 0 for never.
    period: float

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """Decide how to write an Event that is recorded now."""

    def due(self, now: float) -> Sequence[EventCorrelateResult]:
        """Return the writes that are due now without a new Event."""

    def finish(self) -> Sequence[EventCorrelateResult]:
        """Return the writes that are left at the end."""


def event_key(event: Event) -> Hashable:
    """Return a key that is equal for repetitions of an Event."""
    return (*_source_and_object(event), event.regarding.field_path, event.type, event.reason, event.note)


def event_aggregator_by_reason(event: Event) -> tuple[Hashable, Hashable]:
    """Return a key that is equal for similar Events, and what distinguishes them: their message."""
    return (*_source_and_object(event), event.type, event.reason), event.note


def combined_message(event: Event) -> str:
    """Return the message of an Event that combines similar ones."""
    return f"(combined from similar events): {event.note}"


def spam_key(event: Event) -> Hashable:
    """Return a key that is equal for Events that share a bucket: those of one source about one object."""
    return _source_and_object(event)


def _source_and_object(event: Event) -> tuple[str, ...]:
    obj = event.regarding
    return (event.controller, event.instance, obj.kind, obj.namespace, obj.name, obj.uid, obj.api_version)


#: How many entries each step of a correlation remembers.
CACHE_SIZE: Final = 4096


@dataclass(frozen=True, slots=True)
class CorrelatorOptions:
    """The limits of the correlation; the defaults are client-go's.

    Attributes:
        burst_size: how many Events of one source about one object may be written at once.
        qps: how many Events are added to that burst each second.
        max_events: from this number of different messages on, similar Events are combined.
        max_interval: the count of similar Events restarts after this many seconds without one.
        spam_key_func: returns the key of the bucket that an Event belongs to.
    """

    burst_size: int = 25
    qps: float = 1 / 300
    max_events: int = 10
    max_interval: float = 600.0
    spam_key_func: Callable[[Event], Hashable] = spam_key

    def __post_init__(self) -> None:
        for name in ("burst_size", "max_events"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name in ("qps", "max_interval"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)!r}")


class LRUCache(Generic[V]):
    """A mapping with a limited size that forgets the least recently used entry first."""

    def __init__(self, size: int = CACHE_SIZE) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """Return the value and mark it as used; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        """Store a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def pop(self, key: Hashable) -> None:
        """Remove a value."""
        self._values.pop(key, None)

    def items(self) -> list[tuple[Hashable, V]]:
        """Return all entries, the least recently used first."""
        return list(self._values.items())

    def __len__(self) -> int:
        return len(self._values)


@dataclass(slots=True)
class _Similar:
    """The different messages of similar Events, and the time of the last Event."""

    last: float
    messages: set[Hashable] = field(default_factory=set)


class EventAggregator:
    """Combines similar Events into one."""

    def __init__(self, options: CorrelatorOptions) -> None:
        self._options = options
        self._seen: LRUCache[_Similar] = LRUCache()

    def event_aggregate(self, event: Event, now: float) -> tuple[Hashable, Event]:
        """Return the key to count the Event by, and the Event, or the combined one in its place."""
        options = self._options
        similar_key, local_key = event_aggregator_by_reason(event)
        similar = self._seen.get(similar_key)
        if similar is None or now - similar.last > options.max_interval:
            similar = _Similar(now)
            self._seen.put(similar_key, similar)
        similar.last = now
        if local_key in similar.messages or len(similar.messages) < options.max_events - 1:
            similar.messages.add(local_key)
            return event_key(event), event
        return ("combined", similar_key), replace(event, note=combined_message(event), annotations=None)


class EventLogger:
    """Counts the repetitions of each Event."""

    def __init__(self) -> None:
        self._first: LRUCache[Event] = LRUCache()

    def event_observe(self, event: Event, key: Hashable) -> Event:
        """Return the Event; a repetition gets the name of the first one and a higher count."""
        known = self._first.get(key)
        if known is not None:
            event = replace(event, name=known.name, first_time=known.first_time, count=known.count + 1)
        self._first.put(key, event)
        return event


class EventSourceObjectSpamFilter:
    """Limits how many Events a source writes about one object."""

    def __init__(self, options: CorrelatorOptions) -> None:
        self._options = options
        self._buckets: LRUCache[TokenBucket] = LRUCache()

    def filter(self, event: Event, now: float) -> bool:
        """Count the Event against its limit; return whether to skip it."""
        key = self._options.spam_key_func(event)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._options.qps, self._options.burst_size)
            self._buckets.put(key, bucket)
        return not bucket.try_take(now)


class EventCorrelator:
    """Aggregates, counts and filters Events."""

    period = 0.0

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        options = options or CorrelatorOptions()
        self._aggregator = EventAggregator(options)
        self._logger = EventLogger()
        self._spam_filter = EventSourceObjectSpamFilter(options)

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """Decide how to write an Event that is recorded now."""
        key, aggregated = self._aggregator.event_aggregate(event, now)
        observed = self._logger.event_observe(aggregated, key)
        return EventCorrelateResult(key, observed, self._spam_filter.filter(observed, now))

    def due(self, now: float) -> Sequence[EventCorrelateResult]:
        """Return nothing: each Event is written when it is recorded."""
        return ()

    def finish(self) -> Sequence[EventCorrelateResult]:
        """Return nothing: each Event is written when it is recorded."""
        return ()
