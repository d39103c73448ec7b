"""Watch events as values, and the decoder that makes records of their objects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from aioinformer.cache.objects.record import Decode, Record, decode_deep, decode_record
from aioinformer.cache.objects.refusals import refusal
from aioinformer.errors import USER_ERRORS, ApiError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

#: The annotation of the bookmark that ends the initial events of a streaming list.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, gc=False):
    """One event of a watch.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or a type that a later server sends.
        record: the object of the first three types; None if it cannot be decoded.
        version: the resourceVersion of a bookmark.
        initial_events_end: the bookmark marks the end of a streaming list.
        error: of an ERROR, the failure that the server sent; otherwise, why the object cannot be decoded.
    """

    type: str
    record: Record | None = None
    version: str = ""
    initial_events_end: bool = False
    error: ApiError | DecodeError | None = None


class ObjectEvent(msgspec.Struct, Generic[T], frozen=True):
    """A change of an object.

    Attributes:
        type: "ADDED", "MODIFIED" or "DELETED".
        object: the object as informers deliver it; of a deletion, its last state.
    """

    type: str
    object: T


class ForeignObject(DecodeError):
    """The object is of another kind or namespace than those that the request asked for."""


#: How servers begin an event, up to its object.
_OPENING: Final = '{"type":"%s","object":'


class _TypeMeta(msgspec.Struct, gc=False):
    kind: str = ""


_decode_type = msgspec.json.Decoder(_TypeMeta).decode


class Expected:
    """What the objects of a watch must be. By default, anything.

    Servers write kind and apiVersion first. The first bytes of an event therefore show its type, and that its object is
    of the expected kind. Other forms of an object are decoded once more.

    Args:
        kinds: the kinds of the objects.
        api_version: of the objects, as servers usually write it; it is not checked.
        namespace: of the objects; "" for any.

    Attributes:
        openings: the first letter of a type -> the type, the offset of the object in an event, and the possible first
            bytes of the event.
        namespace: as given.
    """

    __slots__ = ("_kinds", "namespace", "openings")

    def __init__(self, kinds: tuple[str, ...] = ("",), api_version: str = "", namespace: str = "") -> None:
        self.namespace = namespace
        self._kinds = kinds if all(kinds) else ()
        forms = [b"{"]
        if self._kinds:
            version = "meta.k8s.io/v1" if kinds[-1] == "PartialObjectMetadata" else api_version
            names = b'"kind":"%b"' % kinds[-1].encode(), b'"apiVersion":"%b"' % version.encode()
            forms = [b"{%b,%b," % order for order in (names, names[::-1])]
        self.openings: dict[bytes, tuple[str, int, tuple[bytes, ...]]] = {}
        for kind in (ADDED, MODIFIED, DELETED):
            opening = (_OPENING % kind).encode()
            self.openings[kind[:1].encode()] = kind, len(opening), tuple(opening + form for form in forms)

    def check_kind(self, raw: bytes) -> None:
        """Check the kind of an object. Objects without a kind are accepted.

        Raises:
            ForeignObject: the object is of another kind.
        """
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the decoder of records reports it
            if self._kinds and (kind := _decode_type(raw).kind) and kind not in self._kinds:
                raise ForeignObject(f"the object is of kind {kind[:60]!r}, not {self._kinds[0]}")

    def check_namespace(self, record: Record) -> Record:
        """Return the record of an object.

        Raises:
            ForeignObject: the object is of another namespace.
        """
        if self.namespace and record.namespace != self.namespace:
            raise ForeignObject(f"the object is in namespace {record.namespace[:60]!r}, not {self.namespace!r}")
        return record


class Refused(DecodeError):
    """The object decodes, but the transform or the user's decoder refuses it."""

    def __init__(self, message: str, record: Record) -> None:
        super().__init__(message, key=record.key, version=record.resource_version)
        self.record = record


class RecordDecoder:
    """Make records of the bytes of objects, for lists and watches.

    A list consists mostly of objects that are cached already. Such an object is replaced by the cached record at once:
    the second copy of its body is freed, and later stages detect by identity that the object is unchanged. An equal
    resourceVersion alone does not prove this: a server that was upgraded may add a default without a new version, a
    server that was restored from a backup assigns versions a second time, and some objects have no version.

    Args:
        on_arrival: is called with each new record (transform, user's model). It may return another record, or raise to
            refuse the object.
        known: returns the cached record of a key, or None.
        decode: makes a record of the bytes of an object.
        expected: what the objects of watches must be; by default, anything.

    Attributes:
        runs_code: whether each object passes code that may take long.
    """

    __slots__ = ("_decode", "_known", "_on_arrival", "expected", "runs_code")

    def __init__(
        self,
        on_arrival: Callable[[Record], Record] | None = None,
        known: Callable[[str], Record | None] = lambda key: None,
        decode: Decode = decode_record,
        expected: Expected | None = None,
    ) -> None:
        self.expected = expected or Expected()
        self._decode = decode
        self._on_arrival = on_arrival
        self.runs_code = on_arrival is not None
        self._known = known

    def admit(self, record: Record) -> Record:
        """Pass a new record through `on_arrival`, and return the record to cache.

        Raises:
            DecodeError: the object was refused.
        """
        if self._on_arrival is None:
            return record
        try:
            return self._on_arrival(record)
        except DecodeError as error:
            reason = str(error)
        except MemoryError:  # is not the fault of the object
            raise
        except USER_ERRORS as error:
            reason = f"the object is refused: {refusal(error)} in transform or decoder"
        raise Refused(reason, record)  # outside the except clause: the error of a model may quote values of the object

    def from_list(self, raw: bytes) -> Record:
        """Return the record of an object in a list: the cached one if both are equal.

        Args:
            raw: the JSON of the object.

        Raises:
            DecodeError: the object cannot be decoded, or is refused.
            TooDeep: the object is nested too deeply; `deep_from_list` reads it once its end is certain.
        """
        return self._cached_if_equal(self._decode(raw))

    def deep_from_list(self, raw: bytes) -> Record:
        """Do the same as `from_list` for exactly one object that is nested too deeply for decoders."""
        return self._cached_if_equal(decode_deep(self._decode, raw))

    def _cached_if_equal(self, record: Record) -> Record:
        cached = self._known(record.key)
        if cached is None or not cached.same_version(record):
            return self.admit(record)
        if cached.same_bytes(record):
            return cached
        record = self.admit(record)
        return cached if cached.same_content(record) else record

    @property
    def from_watch(self) -> Callable[[bytes], Record]:
        """A function that returns the record of an object in a watch event. It raises what `from_list` does."""
        return self._decode if self._on_arrival is None else self._decode_and_admit

    def deep_from_watch(self, raw: bytes) -> Record:
        """Do the same as `from_watch` for exactly one object that is nested too deeply for decoders."""
        return self.admit(decode_deep(self._decode, raw))

    def _decode_and_admit(self, raw: bytes) -> Record:
        return self.admit(self._decode(raw))
