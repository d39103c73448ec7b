"""Bounds of the writes of a run: they concern what the run is for, and reach no successor of its object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.targets import Target
    from aioinformer.transport import HttpRequest

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


class Bounds(msgspec.Struct, frozen=True):
    """What limits the writes of a run, beside its fence.

    Attributes:
        check: raises if the run may not write this, with this body, to the stored object; called when the bytes leave.
            The object is None if it was not read.
        must_read: returns whether the object must be read before a write, since nothing here says whose it is.
        uid_of: returns the uid that the object must have; "" if it may have any.
        outside: the fence of writes that the run makes outside of these bounds.
    """

    check: Callable[[Target, bytes | None, bytes | None], None]
    must_read: Callable[[Target, HttpRequest], bool]
    uid_of: Callable[[Target], str]
    outside: Callable[[], float | None]


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
