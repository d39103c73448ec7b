"""The state of an informer, in the terms of probes, logs and people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from aioinformer.logs import visible


class Phase(StrEnum):
    """Where an informer stands; all but `STOPPED` go over into others by themselves."""

    #: Not started yet.
    NEW = "new"
    #: The first list is being fetched, and nothing has failed.
    SYNCING = "syncing"
    #: The cache follows the server.
    WATCHING = "watching"
    #: No watch is served: the collection is listed again and again, and the cache is as fresh as the last list.
    POLLING = "polling"
    #: The cache follows the server, but for objects that cannot be decoded: the reason counts and names them.
    DEGRADED = "degraded"
    #: Something failed and will be tried again; the reason says what.
    BACKING_OFF = "backing_off"
    #: The server does not know who is asking (401).
    UNAUTHORIZED = "unauthorized"
    #: Whoever is asking may not list or watch this (403).
    FORBIDDEN = "forbidden"
    #: The resource does not exist, or not yet (404).
    NOT_FOUND = "not_found"
    #: The resource cannot be listed or watched (405).
    NOT_ALLOWED = "not_allowed"
    #: Stopped, for good.
    STOPPED = "stopped"


#: Phases in which the cache follows the server, with every object in it.
HEALTHY = frozenset({Phase.WATCHING, Phase.POLLING})


@dataclass(frozen=True, slots=True)
class InformerState:
    """A snapshot of what an informer is doing.

    Attributes:
        phase: where it stands.
        reason: why, for people; "" if all is well. One line without control characters, object content or credentials.
        since: when this phase began for this reason, in seconds since the epoch.
        last_event: when the server last sent anything, in seconds since the epoch; None if it never did.
    """

    phase: Phase
    reason: str
    since: float
    last_event: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", visible(self.reason))

    @property
    def healthy(self) -> bool:
        """Whether the cache follows the server, and no object is left out because it cannot be decoded."""
        return self.phase in HEALTHY

    def __str__(self) -> str:
        return f"{self.phase}: {self.reason}" if self.reason else str(self.phase)
