"""Permits: whether a write may leave. One object answers that for a run, before each write and when its bytes leave.

A write to the object of a run carries the uid of the object, so it cannot reach a successor. What has left and has no
answer is aborted once its permit refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from aioinformer.logs import without_values
from aioinformer.transport import SendCheck

if TYPE_CHECKING:
    from aioinformer.client.targets import Target
    from aioinformer.transport import HttpRequest

#: Raises if a write must not be sent; may return the number of seconds after which its answer is not awaited any more.
Fence: TypeAlias = Callable[[], float | None]

_JSON_PATCH: Final = "application/json-patch+json"
#: The subresources whose writes can carry the uid of the object.
WITH_UID: Final = (
    "",
    "status",
    "scale",
    "eviction",
    "binding",
    "resize",
    "ephemeralcontainers",
    "finalize",
    "approval",
)


class Leaving(NamedTuple):
    """A write that is about to leave.

    Attributes:
        target: what it is about; None if the path is that of no object.
        body: of the request.
        stored: the object that it is about; None if it was not read, or does not exist.
    """

    target: Target | None
    body: bytes | None = None
    stored: bytes | None = None

    def __repr__(self) -> str:
        return without_values(self)


class Permit:
    """Answers whether writes may leave. This one asks a fence; that of a run knows more, such as its slot of a ring.

    Args:
        fence: see `Fence`.
        unanswered: gets the writes that have left, until they have an answer.

    Attributes:
        unanswered: as given.
    """

    def __init__(self, fence: Fence, unanswered: UnansweredWrites | None = None) -> None:
        self.unanswered = unanswered or UnansweredWrites()
        self._fence = fence

    def check(self, write: Leaving) -> float | None:
        """Check that a write may leave now; return for how many seconds its answer is awaited, None for no limit.

        Raises:
            Exception: it may not.
        """
        return self.check_right(write)

    def check_right(self, write: Leaving) -> float | None:
        """Check that there still is a right to a write, which may have left before; return the same as `check`.

        Raises:
            Exception: the term, the slot or the attempt has ended.
        """
        return self._fence()

    def must_read(self, target: Target, request: HttpRequest) -> bool:
        """Return whether the object must be read before a write, since nothing here says whose it is."""
        return False

    def uid_of(self, target: Target) -> str:
        """Return the uid that the object must have; "" if it may have any."""
        return ""

    def outside_ring(self) -> Permit:
        """Return the permit of writes that need not belong to the ring."""
        return self


class PermittedWrite(SendCheck["float | None"]):
    """The check of one write, by a permit.

    Args:
        fresh: whether all of the permit is asked when the bytes leave, and not the right alone.
    """

    __slots__ = ("_permit", "_write")

    def __init__(self, permit: Permit, write: Leaving, *, fresh: bool) -> None:
        super().__init__(partial(permit.check if fresh else permit.check_right, write))
        self._permit = permit
        self._write = write

    def check_right(self) -> float | None:
        """Check that there still is a right to the write, as `Permit.check_right` does."""
        return self._permit.check_right(self._write)


class UnansweredWrites:
    """The writes that have left, or are about to, and have no answer."""

    def __init__(self) -> None:
        self._writes: set[PermittedWrite] = set()

    def add(self, write: PermittedWrite) -> None:
        """Add a write before it is sent."""
        self._writes.add(write)

    def discard(self, write: PermittedWrite) -> None:
        """Remove a write that has an answer, or was given up."""
        self._writes.discard(write)

    def abort_refused(self) -> None:
        """Abort the writes to which there is no right any more, and no others.

        Call it when a term, slots or attempts have ended. The kernel discards what it holds of these writes, and they
        fail with `WriteOutcomeUnknown`.
        """
        for write in list(self._writes):
            try:
                write.check_right()
            except Exception:
                write.abort()


def with_uid(request: HttpRequest, target: Target, uid: str) -> HttpRequest:
    """Return a request that the server refuses if the object has another uid, and was created again, for example.

    A body that names a uid already, or is not JSON, is not changed.
    """
    try:
        body: Any = msgspec.json.decode(request.body or b"{}")
    except msgspec.DecodeError:
        return request
    if target.subresource == "eviction" and isinstance(body, dict):
        options = body.get("deleteOptions") or {}
        body["deleteOptions"] = {**options, "preconditions": {"uid": uid, **(options.get("preconditions") or {})}}
    elif target.verb == "delete" and isinstance(body, dict):
        body.setdefault("preconditions", {}).setdefault("uid", uid)
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **body}
    elif request.headers.get("Content-Type") == _JSON_PATCH and isinstance(body, list):
        body.insert(0, {"op": "test", "path": "/metadata/uid", "value": uid})
    elif isinstance(body, dict) and isinstance(body.setdefault("metadata", {}), dict):
        body["metadata"].setdefault("uid", uid)
    return replace(request, body=msgspec.json.encode(body))
