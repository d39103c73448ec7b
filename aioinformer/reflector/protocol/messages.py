"""The values that the list/watch protocol and the reflector exchange.

The protocol returns *steps*. The reflector carries them out and reports *answers*. The protocol draws *conclusions*
from them, which the reflector queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from aioinformer.cache.objects.record import Record
    from aioinformer.errors import ApiError, DecodeError, ProcessingError, TransportError
    from aioinformer.queue.deltas import Delta
    from aioinformer.reflector.options import ListOptions
    from aioinformer.reflector.watch_events import WatchEvent

# Steps: what the reflector does next.


class Send(msgspec.Struct, frozen=True):
    """Close any open response, send this request, and report `Accepted`, `Failed` or `Pending`.

    Attributes:
        options: a list, or a watch if `options.watch`.
        initial: the response belongs to a list (a page, or the initial events of a stream).
        patience: seconds after which `Pending` is reported, while the request continues; None for no limit.
    """

    options: ListOptions
    initial: bool = False
    patience: float | None = None


class Read(msgspec.Struct, frozen=True):
    """Read the response, and report `Listed`, `PageEnded`, `Watched`, `Ended`, `Failed`, `Idled` or `Elapsed`.

    If the head of the response has not come yet (`Pending`), wait for it, and report `Accepted` or `Failed`.

    Attributes:
        until: when `Elapsed` is reported, while the response continues; None for never.
        initial: the response belongs to a list.
        silence: seconds without a complete item or event after which `Idled` is reported; None for no limit.
    """

    until: float | None = None
    initial: bool = False
    silence: float | None = None


class Wait(msgspec.Struct, frozen=True):
    """Close any open response, wait until this time, and report `Elapsed`."""

    until: float


Step: TypeAlias = Send | Read | Wait

# Answers: the result of a step.


class Accepted(msgspec.Struct, frozen=True):
    """The server accepted the request; the body of the response follows."""


class Pending(msgspec.Struct, frozen=True):
    """The head of the response has not come within the patience of a `Send`; the request continues."""


class Listed(msgspec.Struct, frozen=True):
    """Items of a page, with an error in place of each item that cannot be decoded."""

    items: list[Record | DecodeError]


class PageEnded(msgspec.Struct, frozen=True):
    """The page is complete; `resource_version` is "" if the list has none, `remaining` None if it is not known."""

    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class Watched(msgspec.Struct, frozen=True):
    """Events of a watch, in the order of the response.

    Attributes:
        listed_bytes: how many bytes of a streaming list have been read so far.
    """

    events: list[WatchEvent]
    listed_bytes: int = 0


class Ended(msgspec.Struct, frozen=True):
    """The server ended the watch cleanly."""


class Failed(msgspec.Struct, frozen=True):
    """The server refused the request, was unreachable, cut the response, or sent a response that cannot be read."""

    error: ApiError | TransportError | DecodeError | ProcessingError


class Idled(msgspec.Struct, frozen=True):
    """No complete item or event came for this number of seconds: the `silence` of a `Read`."""

    seconds: float


class Elapsed(msgspec.Struct, frozen=True):
    """The time of a `Wait` or a `Read` is over.

    Attributes:
        listed_bytes: after a `Read` of a streaming list, how many bytes of it have been read so far.
    """

    listed_bytes: int = 0


Answer: TypeAlias = Accepted | Pending | Listed | PageEnded | Watched | Ended | Failed | Idled | Elapsed

# Conclusions: what has changed in the collection.


class Changed(msgspec.Struct, frozen=True):
    """Objects changed, one after the other; after that, the collection is at this version.

    Attributes:
        deltas: in the order of the watch; empty if only the version changed.
        version: "" if it is unknown.
    """

    deltas: list[Delta[Record]] = msgspec.field(default_factory=list)
    version: str = ""


class Replaced(msgspec.Struct, frozen=True):
    """The collection consists of these objects at this version; all other objects are gone.

    Attributes:
        records: by key, in the order of the list. The receiver owns the mapping.
        version: of the list; "" if it has none.
    """

    records: MutableMapping[str, Record]
    version: str


Conclusion: TypeAlias = Changed | Replaced
