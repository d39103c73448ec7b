"""The words in which the list/watch protocol and whoever does its work for it talk to each other.

The protocol says *steps*, is told *answers*, and draws *conclusions*, which are for the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from aioinformer.cache.objects.record import Record
    from aioinformer.errors import ApiError, DecodeError, ProcessingError, TransportError
    from aioinformer.queue.deltas import Delta
    from aioinformer.reflector.options import ListOptions
    from aioinformer.reflector.watch_events import WatchEvent

# Steps: what to do next.


@dataclass(frozen=True, slots=True)
class Send:
    """Close any open response, send this request, and report `Accepted`, `Failed` or `Pending`.

    Attributes:
        options: a list, or a watch if `options.watch`.
        initial: what comes belongs to a list (a page, or the initial events of a stream).
        patience: seconds after which to report `Pending`, though the request goes on; None for never.
    """

    options: ListOptions
    initial: bool = False
    patience: float | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read on in the response, and report `Listed`, `PageEnded`, `Watched`, `Ended`, `Failed`, `Idled` or `Elapsed`.

    If its head has not come yet (`Pending`), wait for that, and report `Accepted` or `Failed`.

    Attributes:
        until: when to report `Elapsed`, though the response goes on; None for never.
        initial: what comes belongs to a list.
        silence: seconds without anything whole after which to report `Idled`; None for never.
    """

    until: float | None = None
    initial: bool = False
    silence: float | None = None


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
class Pending:
    """The head of the response has not come within the patience of a `Send`; the request is still under way."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Items of a page, and errors in place of those that do not decode."""

    items: list[Record | DecodeError]


@dataclass(frozen=True, slots=True)
class PageEnded:
    """The page is complete; `resource_version` is "" if the list has none."""

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
    """Nothing whole came for so many seconds: the `silence` of a `Read`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time of a `Wait` or a `Read` is over."""


Answer: TypeAlias = Accepted | Pending | Listed | PageEnded | Watched | Ended | Failed | Idled | Elapsed

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
        version: of the list; "" if it has none.
    """

    records: MutableMapping[str, Record]
    version: str


Conclusion: TypeAlias = Changed | Replaced
