"""What an informer can tell of itself, as numbers at the moment of asking (MET-02, MET-04)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aioinformer.durations import DurationCounter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.durations import Durations
    from aioinformer.identity import InformerNameAndResource

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
