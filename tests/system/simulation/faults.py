"""Faults between the model server and the informer, by name: a superset of `aioinformer.testing.FAULTS`.

*Answers* replace a response. *Transport* faults change how a response arrives. *Stream* faults affect a watch once it
has delivered a number of events. *Acts* affect the whole server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: name -> the response: status, body, and whether watches receive it as an event.
ANSWERS = (
    "refuse",
    "throttle",
    "unavailable",
    "server_error",
    "server_error_text",
    "unauthorized",
    "forbidden",
    "not_found",
    "not_allowed",
    "html",
    "too_large",
    "expired",
    "no_answer",
    "refuse_streams",
    "ignore_streams",
    "stale",
)
TRANSPORT = ("latency", "slow", "black_hole", "half_page", "no_bookmarks", "bits")
STREAMS = (
    "close",
    "cut",
    "end_in_line",
    "garbage",
    "unknown_type",
    "huge_line",
    "error_event",
    "expired_event",
    "bookmark_and_close",
    "double",
    "own_version",
)
ACTS = ("outage", "restart", "compaction", "restore")

FAULTS = (*ANSWERS, *TRANSPORT, *STREAMS, *ACTS)

#: Faults after which versions go back; two of them at a time cannot be distinguished.
REWINDING = frozenset({"restore", "stale"})


@dataclass
class Fault:
    """An active or future fault.

    Attributes:
        name: as in `FAULTS`.
        until: virtual time of its end.
        verbs: the affected requests: "list", "watch".
        share: of the affected requests, in (0, 1].
        times: how often it takes effect at most, 0 for no limit.
        params: its parameters.
    """

    name: str
    until: float
    verbs: frozenset[str] = frozenset({"list", "watch"})
    share: float = 1.0
    times: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    strikes: int = 0

    def over(self, now: float) -> bool:
        """Return whether it has ended."""
        return now >= self.until or (self.times > 0 and self.strikes >= self.times)

    def __str__(self) -> str:
        params = "".join(f", {name}={value}" for name, value in self.params.items())
        return f"{self.name} ({'/'.join(sorted(self.verbs))}, share {self.share:.1f}{params})"
