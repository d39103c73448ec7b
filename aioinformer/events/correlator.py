"""Which of many Events are written, and as what: client-go's correlation for core/v1, without loop or clock.

An Event goes through three steps, in this order (EV-04):

1. *Aggregation.* Events that differ in nothing but their message are similar. From the tenth different message on,
   without ten minutes of silence in between, they become one Event that says that it stands for several (EV-05).
2. *Counting.* An Event that was seen before is no new one: it keeps the name of the first, and its count goes up, which
   is a patch (EV-06).
3. *The spam filter.* Each source has a bucket of 25 Events for each object, refilled with one in five minutes. What
   finds it empty is not written; it has been counted all the same, and the next that is written says so (EV-07).

Each step remembers 4096 things, the least recently used of which is forgotten first (EV-08).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from aioinformer.workqueue.rate_limiters import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from aioinformer.events.event import Event

V = TypeVar("V")


class EventCorrelateResult(NamedTuple):
    """What becomes of an Event.

    Attributes:
        key: the same for all that is written to one Event on the server, and for the Events of that sort after it.
        event: what to write: a new Event if its count is 1, or else a patch of the one that has its name.
        skip: write nothing.
    """

    key: Hashable
    event: Event
    skip: bool = False


class Correlator(Protocol):
    """Decides what is written; times are seconds on any clock that does not go back."""

    #: How often `due` wants to be asked, in seconds; 0 for never.
    period: float

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """What becomes of an Event that happens now."""
        ...

    def due(self, now: float) -> Sequence[EventCorrelateResult]:
        """What is to be written by now although nothing happened."""
        ...

    def finish(self) -> Sequence[EventCorrelateResult]:
        """What is to be written before the end."""
        ...


def event_key(event: Event) -> Hashable:
    """The same for Events that say the same of the same object."""
    return (*_about(event), event.regarding.field_path, event.type, event.reason, event.note)


def event_aggregator_by_reason(event: Event) -> tuple[Hashable, Hashable]:
    """The same for Events that are similar, and what tells them from each other: their message."""
    return (*_about(event), event.type, event.reason), event.note


def combined_message(event: Event) -> str:
    """What an Event says that stands for several."""
    return f"(combined from similar events): {event.note}"


def spam_key(event: Event) -> Hashable:
    """The same for Events that share a bucket: those of one source about one object."""
    return _about(event)


def _about(event: Event) -> tuple[str, ...]:
    about = event.regarding
    return (
        event.controller,
        event.instance,
        about.kind,
        about.namespace,
        about.name,
        about.uid,
        about.api_version,
    )


@dataclass(frozen=True, slots=True)
class CorrelatorOptions:
    """The numbers and functions of the correlation; the defaults are client-go's.

    Attributes:
        lru_cache_size: so many things each of the three steps remembers.
        burst_size: so many Events of one source about one object may be written at once.
        qps: so many more in a second.
        max_events: with so many different messages, similar Events become one.
        max_interval: unless there was silence for longer than this, in seconds.
        key_func: Event -> what is similar, and what tells the similar ones from each other.
        message_func: Event -> what the one that stands for several says.
        spam_key_func: Event -> which bucket it takes from.
    """

    lru_cache_size: int = 4096
    burst_size: int = 25
    qps: float = 1 / 300
    max_events: int = 10
    max_interval: float = 600.0
    key_func: Callable[[Event], tuple[Hashable, Hashable]] = event_aggregator_by_reason
    message_func: Callable[[Event], str] = combined_message
    spam_key_func: Callable[[Event], Hashable] = spam_key

    def __post_init__(self) -> None:
        for name in ("lru_cache_size", "burst_size", "max_events"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name in ("qps", "max_interval"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)!r}")


class LRUCache(Generic[V]):
    """Remembers so many values by key, and forgets the least recently used first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value, which has been used now; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        """Remembers a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def pop(self, key: Hashable) -> None:
        """Forgets a value."""
        self._values.pop(key, None)

    def items(self) -> list[tuple[Hashable, V]]:
        """Everything, the least recently used first."""
        return list(self._values.items())

    def __len__(self) -> int:
        return len(self._values)


@dataclass(slots=True)
class _Similar:
    """The different messages of similar Events, and when the last one came."""

    last: float
    messages: set[Hashable] = field(default_factory=set)


class EventAggregator:
    """Makes one Event of many similar ones."""

    def __init__(self, options: CorrelatorOptions) -> None:
        self._options = options
        self._seen: LRUCache[_Similar] = LRUCache(options.lru_cache_size)

    def event_aggregate(self, event: Event, now: float) -> tuple[Hashable, Event]:
        """The Event, or the one that stands for it and others; and by which key it is counted."""
        options = self._options
        similar_key, local_key = options.key_func(event)
        similar = self._seen.get(similar_key)
        if similar is None or now - similar.last > options.max_interval:
            similar = _Similar(now)
            self._seen.put(similar_key, similar)
        similar.last = now
        if local_key in similar.messages or len(similar.messages) < options.max_events - 1:
            similar.messages.add(local_key)
            return event_key(event), event
        return ("combined", similar_key), replace(event, note=options.message_func(event), annotations=None)


class EventLogger:
    """Counts how often each Event happened."""

    def __init__(self, options: CorrelatorOptions) -> None:
        self._first: LRUCache[Event] = LRUCache(options.lru_cache_size)

    def event_observe(self, event: Event, key: Hashable) -> Event:
        """The Event; if it is known, with the name of the first one, and counted."""
        known = self._first.get(key)
        if known is not None:
            event = replace(event, name=known.name, first_time=known.first_time, count=known.count + 1)
        self._first.put(key, event)
        return event


class EventSourceObjectSpamFilter:
    """Holds back who says too much of one object."""

    def __init__(self, options: CorrelatorOptions) -> None:
        self._options = options
        self._buckets: LRUCache[TokenBucket] = LRUCache(options.lru_cache_size)

    def filter(self, event: Event, now: float) -> bool:
        """Whether the Event is too much."""
        key = self._options.spam_key_func(event)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._options.qps, self._options.burst_size)
            self._buckets.put(key, bucket)
        return not bucket.try_take(now)


class EventCorrelator:
    """Aggregates, counts and filters.

    Args:
        options: numbers and functions.
    """

    period = 0.0

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        options = options or CorrelatorOptions()
        self._aggregator = EventAggregator(options)
        self._logger = EventLogger(options)
        self._spam_filter = EventSourceObjectSpamFilter(options)

    def event_correlate(self, event: Event, now: float) -> EventCorrelateResult:
        """What becomes of an Event that happens now."""
        key, aggregated = self._aggregator.event_aggregate(event, now)
        observed = self._logger.event_observe(aggregated, key)
        return EventCorrelateResult(key, observed, self._spam_filter.filter(observed, now))

    def due(self, now: float) -> Sequence[EventCorrelateResult]:
        """Nothing: what happened was written when it happened."""
        return ()

    def finish(self) -> Sequence[EventCorrelateResult]:
        """Nothing: what happened was written when it happened."""
        return ()
