"""Watches without I/O: the lines that a watch sends, from which position, and when it is over.

A watch is a position in the history of its collection. The event for a change depends on its selection: an object that
leaves the selection is deleted for this watch, with its last matching state under the version of the change; an object
that enters it is added.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain, partial_body
from aioinformer.testing.state.storage import Change, Collection, Record

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.reading.list_options import Options

ObjectBody = Callable[[Record], bytes]
"""Returns the bytes of one object in the form that the client accepts."""

_TYPES = {name: b'{"type":"%s","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED")}
_END = b"}\n"
_CHANGES_AT_ONCE = 256
_LOOKED_AT_ONCE = 1_000
_BYTES_AT_ONCE = 256 * 1024


class Watch:
    """The data of one watch.

    Attributes:
        sent: the number of changes and initial objects that were returned.

    Raises:
        StatusError: 410, the version has expired.
    """

    def __init__(self, collection: Collection, options: Options, body: ObjectBody, current: int) -> None:
        self._collection = collection
        self._selection = options.selection
        self._body = body
        self._initial: list[Record] = []
        self.sent = 0
        self.started_at = current
        self._skip_until = options.version_number
        if options.starts_with_state:
            self._initial = collection.records(options.selection.namespace)
            self._initial.reverse()
            self._position = collection.position
        else:
            version = options.version_number or current
            if version < collection.floor:
                raise statuses.expired(f"too old resource version: {version} ({collection.floor})")
            self._position = collection.position_after(version)

    @property
    def behind(self) -> bool:
        """Whether there is something to send."""
        return bool(self._initial) or self._position < self._collection.position

    @property
    def backlog(self) -> int:
        """The number of changes of the resource that it has not processed."""
        return self._collection.position - self._position

    @property
    def position(self) -> int:
        """The position in the history of the next change to process."""
        return self._position

    def move(self, position: int, sent: int) -> None:
        """Skip changes that a broadcast has sent.

        Args:
            position: of the next change to process.
            sent: the number of lines that were sent.
        """
        self._position = position
        self.sent += sent

    def twin(self) -> Watch:
        """Return a watch at the same position that has sent all of its initial objects."""
        twin = copy(self)
        twin._initial = []
        return twin

    @property
    def has_initial(self) -> bool:
        """Whether initial objects are left to send."""
        return bool(self._initial)

    def bookmark_version(self, current: int) -> int | None:
        """Return the version up to which everything was sent; None while the watch has not caught up."""
        return None if self.behind or current < self._skip_until else current

    def upcoming(self) -> list[Record]:
        """Return the objects of which the next lines may be made."""
        if self._initial:
            return self._initial[-_LOOKED_AT_ONCE:]
        found = self._collection.changes(self._position, _CHANGES_AT_ONCE) or ()
        if self._selection.everything:
            return [change.record for change in found]
        return [each for change in found for each in (change.record, change.left) if each is not None]

    def next_lines(self, limit: int = 0) -> list[bytes] | None:
        """Return pieces of the next lines, some hundred KiB at most; None if the changes have left the history.

        Args:
            limit: lines at most, 0 for no limit.
        """
        parts: list[bytes] = []
        size = 0
        lines = 0
        looked_at = 0
        while self._initial and size < _BYTES_AT_ONCE and (not limit or lines < limit):
            record = self._initial.pop()
            if self._selection.everything or self._selection.matches(record):
                body = self._body(record)
                parts += (_TYPES["ADDED"], body, _END)
                size += len(body)
                lines += 1
            looked_at += 1
            if looked_at == _LOOKED_AT_ONCE:
                break
        if not looked_at:
            changes = self._collection.changes(self._position, _CHANGES_AT_ONCE)
            if changes is None:
                return None
            for change in changes:
                self._position += 1
                found = self._event(change)
                if found is not None:
                    kind, body = found
                    parts += (_TYPES[kind], body, _END)
                    size += len(body)
                    lines += 1
                if size >= _BYTES_AT_ONCE or (limit and lines >= limit):
                    break
        self.sent += lines
        return parts

    def _event(self, change: Change) -> tuple[str, bytes] | None:
        if change.version <= self._skip_until:
            return None
        selection = self._selection
        if selection.everything:
            if selection.namespace and change.record.namespace != selection.namespace:
                return None
            return change.type, self._body(change.record)
        before = change.previous is not None and selection.matches(change.previous)
        if change.type == "DELETED":
            return ("DELETED", self._body(change.record)) if before else None
        after = selection.matches(change.record)
        if after:
            return "MODIFIED" if before else "ADDED", self._body(change.record)
        if not before or change.left is None:
            return None
        return "DELETED", self._body(change.left)


def object_body(served: Served) -> ObjectBody:
    """Return the function that makes the bytes of whole objects in the requested version."""
    return served.form


def partial_form(served: Served, group_version: str) -> ObjectBody:
    """Return the function that makes the bytes of the object's `PartialObjectMetadata`."""
    if served.webhook is not None:
        return lambda record: partial_body(served.form(record), group_version)
    return metadata_body if group_version == "meta.k8s.io/v1" else beta_metadata_body


def metadata_body(record: Record) -> bytes:
    """Return the bytes of the object's `PartialObjectMetadata`; they are made once per record."""
    if record.partial is None:
        record.partial = partial_body(record.body)
    return record.partial


def beta_metadata_body(record: Record) -> bytes:
    """Return the same in the beta version."""
    return metadata_body(record).replace(b"meta.k8s.io/v1", b"meta.k8s.io/v1beta1", 1)


def bookmark_line(served: Served, version: int, *, initial_end: bool = False, partial: str = "") -> bytes:
    """Return a BOOKMARK event: a version, and the annotation that ends the initial events.

    Args:
        initial_end: whether it ends the initial events.
        partial: for a watch of `PartialObjectMetadata`: its group and version.
    """
    names: dict[str, object] = {"kind": served.resource.kind, "apiVersion": served.resource.api_version}
    if partial:
        names = {"kind": "PartialObjectMetadata", "apiVersion": partial}
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    if served.custom and not partial:
        names = dict(sorted(names.items()))
        metadata = dict(sorted(metadata.items()))
    return encode_plain({"type": "BOOKMARK", "object": {**names, "metadata": metadata}}) + b"\n"


def error_line(error: statuses.StatusError) -> bytes:
    """Return an ERROR event, which carries what a list would send with an HTTP status."""
    return encode_plain({"type": "ERROR", "object": error.body()}) + b"\n"
