"""The events of a watch as values, and how their objects become records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.cache.objects.record import Decode, Record, decode_in_steps, decode_record
from aioinformer.cache.objects.refusals import refusal
from aioinformer.errors import USER_ERRORS, ApiError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport.json_scanner import Steps

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

#: What marks the bookmark that ends the initial events of a streaming list.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, gc=False):
    """What one line of a watch says.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or whatever a newer server may send.
        record: the object of the first three; None if it does not decode.
        version: the resource version of a bookmark.
        initial_events_end: the bookmark says that the streaming list is complete.
        error: of an ERROR, what the server said; otherwise, why the object does not decode.
    """

    type: str
    record: Record | None = None
    version: str = ""
    initial_events_end: bool = False
    error: ApiError | DecodeError | None = None


class Refused(DecodeError):
    """The object decodes, but is not admitted."""

    def __init__(self, message: str, record: Record) -> None:
        super().__init__(message, key=record.key, version=record.resource_version)
        self.record = record


class Intake:
    """Makes records of the bytes of objects, the same way for lists and watches.

    A relist brings mostly what is cached already. Such an object is replaced by the cached record at once: no second
    copy of its body stays alive, and identity shows every later stage that nothing has changed. Equal versions alone do
    not prove that: a server that was upgraded may show the same version with another default, one that was restored
    from a backup gives versions out a second time, and some objects have no version at all.

    Args:
        on_arrival: looks at a new record before anyone else does (transform, user's model); may replace it; raises
            anything to refuse it.
        known: the cached record of a key, if there is one.
        decode: makes a record of an object's bytes.
    """

    def __init__(
        self,
        on_arrival: Callable[[Record], Record] | None = None,
        known: Callable[[str], Record | None] = lambda key: None,
        decode: Decode = decode_record,
    ) -> None:
        self._decode = decode
        self._decode_valid = partial(decode, valid=True)
        self._on_arrival = on_arrival
        self._known = known

    def admitted(self, record: Record) -> Record:
        """The record as it is to be cached.

        Raises:
            DecodeError: it was refused.
        """
        if self._on_arrival is None:
            return record
        try:
            return self._on_arrival(record)
        except DecodeError as error:
            reason = str(error)
        except MemoryError:  # which says nothing about the object
            raise
        except USER_ERRORS as error:
            reason = f"the object is refused: {refusal(error)} in transform or decoder"
        raise Refused(reason, record)  # outside the handler: the error of a model may quote what it refuses

    def listed(self, raw: bytes, *, valid: bool = False) -> Record:
        """Return the record of an object from a list; the cached one if both say the same.

        Args:
            raw: the object's own bytes.
            valid: do not read its managed fields.

        Raises:
            DecodeError: it does not decode, or is refused.
            Heavy: it does not decode at once: use `listed_in_steps`.
        """
        return self._as_cached(self._decode(raw, valid=valid))

    def listed_in_steps(self, raw: bytes) -> Steps[Record]:
        """As `listed`, for an object that is too heavy to be decoded at once."""
        record = yield from decode_in_steps(self._decode, raw)
        yield
        return self._as_cached(record)

    def _as_cached(self, record: Record) -> Record:
        cached = self._known(record.key)
        if cached is None or not cached.same_version(record):
            return self.admitted(record)
        if cached.same_bytes(record):
            return cached
        record = self.admitted(record)
        return cached if cached.same_content(record) else record

    @property
    def changed(self) -> Callable[[bytes], Record]:
        """Makes the record of an object from a watch; raises `DecodeError` if it does not decode, or is refused."""
        return self._decode_valid if self._on_arrival is None else self._changed

    def changed_in_steps(self, raw: bytes) -> Steps[Record]:
        """As `changed`, for an object that is too heavy to be decoded at once."""
        record = yield from decode_in_steps(self._decode, raw)
        yield
        return self.admitted(record)

    def _changed(self, raw: bytes) -> Record:
        return self.admitted(self._decode_valid(raw))
