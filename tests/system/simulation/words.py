"""JSON of an API server: lines of a watch, bookmarks, and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.system.simulation.collection import Stored


def line(kind: str, document: object) -> bytes:
    """Return a line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), msgspec.json.encode(document))


def failure(
    code: int, reason: str, message: str = "", seconds: float = 0, causes: tuple[str, ...] = ()
) -> dict[str, object]:
    """Return a Status."""
    details: dict[str, object] = {}
    if seconds:
        details["retryAfterSeconds"] = seconds
    if causes:
        details["causes"] = [{"reason": cause, "message": cause} for cause in causes]
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return status | {"message": message or reason, "details": details}


def bookmark(version: int, *, initial_events_end: bool = False, bare: bool = False) -> bytes:
    """Return a bookmark; a bare one has a version only."""
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if not bare:
        metadata["creationTimestamp"] = None
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    document: dict[str, object] = {"metadata": metadata}
    return line("BOOKMARK", document if bare else {"kind": "Pod", "apiVersion": "v1"} | document)


def added(obj: Stored) -> bytes:
    """Return the line of an initial event."""
    return b'{"type":"ADDED","object":%b}\n' % obj.body()


HTML = b"<!DOCTYPE html><html><body><h1>Please log in</h1></body></html>\n"
TOO_LARGE = failure(504, "Timeout", "Too large resource version", 1, ("ResourceVersionTooLarge",))
#: The body of each refusing fault; those that are no Status are empty.
REFUSALS: Mapping[str, dict[str, Any]] = {
    "throttle": failure(429, "TooManyRequests"),
    "unavailable": failure(503, "ServiceUnavailable"),
    "server_error": failure(500, "InternalError"),
    "server_error_text": {},
    "unauthorized": failure(401, "Unauthorized"),
    "forbidden": failure(403, "Forbidden"),
    "not_found": failure(404, "NotFound"),
    "not_allowed": failure(405, "MethodNotAllowed"),
    "html": {},
    "too_large": TOO_LARGE,
    "expired": failure(410, "Expired"),
}
