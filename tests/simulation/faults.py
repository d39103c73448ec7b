"""What can go wrong between the model server and the informer, by name: a superset of `aioinformer.testing.FAULTS`.

Faults that *answer* stand in for what the server would have said; those that *transport* change how it is said; those
of *streams* strike a watch once it has brought a number of events; *acts* happen to the server as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: name -> what the server answers: a status, a body, and whether watches get it as an event.
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

#: They make versions go back; two at a time could not be told apart by anybody.
REWINDING = frozenset({"restore", "stale"})


@dataclass
class Fault:
    """One that is, or will be.

    Attributes:
        name: as in `FAULTS`.
        until: virtual time of its end.
        verbs: what it strikes: "list", "watch".
        share: of what it could strike, in (0, 1].
        times: it strikes so often at most, 0 for no limit.
        params: its own.
    """

    name: str
    until: float
    verbs: frozenset[str] = frozenset({"list", "watch"})
    share: float = 1.0
    times: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    strikes: int = 0

    def over(self, now: float) -> bool:
        """Whether it cannot strike any more."""
        return now >= self.until or (self.times > 0 and self.strikes >= self.times)

    def __str__(self) -> str:
        params = "".join(f", {name}={value}" for name, value in self.params.items())
        return f"{self.name} ({'/'.join(sorted(self.verbs))}, share {self.share:.1f}{params})"
