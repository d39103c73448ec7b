"""The state of an informer, for probes, logs and humans."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr

from aioinformer.logs import visible


class Phase(StrEnum):
    """The phase of an informer. Every phase except `STOPPED` is left without intervention."""

    #: Not started yet.
    NEW = "new"
    #: The first list is being read, and no request has failed.
    SYNCING = "syncing"
    #: The cache follows the server.
    WATCHING = "watching"
    #: No watch is served: the collection is listed repeatedly, and the cache is as fresh as the last list.
    POLLING = "polling"
    #: The cache follows the server, except for objects that cannot be decoded, or events of another kind or namespace
    #: were skipped: the reason counts them.
    DEGRADED = "degraded"
    #: A request failed and will be retried, or watches bring nothing although the server is expected to send something;
    #: the reason says which.
    BACKING_OFF = "backing_off"
    #: The server does not accept the credentials (401).
    UNAUTHORIZED = "unauthorized"
    #: The client has no permission to list or watch the resource (403).
    FORBIDDEN = "forbidden"
    #: The resource does not exist, or does not exist yet (404).
    NOT_FOUND = "not_found"
    #: The resource cannot be listed or watched (405).
    NOT_ALLOWED = "not_allowed"
    #: Stopped. A stopped informer cannot be started again.
    STOPPED = "stopped"


#: Phases in which the cache follows the server and contains all objects.
HEALTHY = frozenset({Phase.WATCHING, Phase.POLLING})


class InformerState(msgspec.Struct, frozen=True):
    """The state of an informer at one time.

    Attributes:
        phase: of the informer.
        reason: for the phase, for humans; "" for a healthy phase. One line without control characters, object contents
            or credentials.
        since: when this phase began for this reason, in seconds since the epoch.
        last_event: when the server last sent data, in seconds since the epoch; None if it has not sent any. In a quiet
            cluster, this may be long ago while the cache is fresh.
        stale_since: when the cache ceased to follow the server, in seconds since the epoch, whatever the reasons have
            been since; None while it follows.
    """

    phase: Phase
    reason: str
    since: float
    last_event: float | None = None
    stale_since: float | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "reason", visible(self.reason))

    @property
    def healthy(self) -> bool:
        """Whether the cache follows the server, and no object is missing because it cannot be decoded."""
        return self.phase in HEALTHY

    def __str__(self) -> str:
        return f"{self.phase}: {self.reason}" if self.reason else str(self.phase)
