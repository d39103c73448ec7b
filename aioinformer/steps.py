"""The words in which the list/watch protocol and whoever does its work for it talk to each other.

The protocol says *steps*, is told *answers*, and draws *conclusions*, which are for the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from aioinformer.deltas import Delta
    from aioinformer.errors import ApiError, DecodeError, ProcessingError, TransportError
    from aioinformer.objects import Record
    from aioinformer.options import ListOptions
    from aioinformer.wire import WatchEvent

# Steps: what to do next.


@dataclass(frozen=True, slots=True)
class Send:
    """Let go of what is open, send this request, and report `Accepted` or `Failed`.

    Attributes:
        options: a list, or a watch if `options.watch`.
        initial: what comes belongs to a list (a page, or the initial events of a stream).
        compare: do not trust versions to tell what is unchanged.
    """

    options: ListOptions
    initial: bool = False
    compare: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read on in the answer, and report `Listed`, `PageEnded`, `Watched`, `Ended`, `Failed` or `Idled`.

    Attributes:
        until: when to report `Elapsed`, though the answer goes on; None for never.
        initial: what comes belongs to a list.
    """

    until: float | None = None
    initial: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Let go of what is open, do nothing until then, and report `Elapsed`."""

    until: float


Step: TypeAlias = Send | Read | Wait

# Answers: what came of it.


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server accepted the request: the answer's body is on its way."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Items of a page, and errors in place of those that do not decode."""

    items: list[Record | DecodeError]


@dataclass(frozen=True, slots=True)
class PageEnded:
    """The page is complete."""

    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """Events of a watch, in the order in which they came."""

    events: list[WatchEvent]


@dataclass(frozen=True, slots=True)
class Ended:
    """The server ended the watch cleanly."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The server refused, was not reached, broke off, or sent what cannot be read."""

    error: ApiError | TransportError | DecodeError | ProcessingError


@dataclass(frozen=True, slots=True)
class Idled:
    """Not a byte came for as long as is bearable."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time of a `Wait` or a `Read` is over."""


Answer: TypeAlias = Accepted | Listed | PageEnded | Watched | Ended | Failed | Idled | Elapsed

# Conclusions: what is now known.


@dataclass(frozen=True, slots=True)
class Changed:
    """Objects changed, one after the other; then the collection is at this version.

    Attributes:
        deltas: in the order of the watch; empty if only the version moved on.
        version: "" if nothing is known of it.
    """

    deltas: list[Delta[Record]] = field(default_factory=list)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """This is everything there is, at this version; what is not among it is gone.

    Attributes:
        records: by key, in the order of the list. They belong to whoever receives this.
        version: of the list.
    """

    records: MutableMapping[str, Record]
    version: str


Conclusion: TypeAlias = Changed | Replaced
