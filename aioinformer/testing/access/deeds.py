"""What somebody wants to do, read from the first line of his request as the authorizers of the API do."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from aioinformer.testing.access.rbac import Deed
from aioinformer.testing.api import statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.access.rbac import User

_COLLECTION = {"GET": "list", "HEAD": "list", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def deed_of(method: str, path: str, query: Mapping[str, str]) -> Deed:
    """What a request wants to do, as far as its first line tells: whether there is such a thing does not matter.

    Args:
        path: as sent, percent-encoded.
        query: first value of each parameter, decoded.
    """
    parts = [unquote(part) for part in path.split("/") if part]
    depth = {"api": 2, "apis": 3}.get(parts[0], 0) if parts else 0
    if not depth or len(parts) <= depth:
        return Deed(method.lower(), path=unquote(path))
    group, rest = "" if depth == 2 else parts[1], parts[depth:]
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    selector = query.get("fieldSelector", "")
    if not name and selector.startswith("metadata.name=") and method in ("GET", "HEAD", "DELETE"):
        name = selector.removeprefix("metadata.name=").partition(",")[0]
    verb = "create" if method == "POST" else (_OBJECT if len(rest) > 1 else _COLLECTION).get(method, "")
    if watch or (verb == "list" and query.get("watch", "0").lower() not in ("0", "false")):
        verb = "watch"
    return Deed(verb, group, rest[0], "/".join(rest[2:]), namespace, name)


def refusal(user: User, deed: Deed, reason: str = "") -> statuses.StatusError:
    """403, as it is told to who may not do something."""
    why = f'User "{user.name}" cannot {deed}' + (f": {reason}" if reason else "")
    details = {"name": deed.name, "group": deed.group, "kind": deed.resource}
    subject = f"{deed.resource}.{deed.group}" if deed.group else deed.resource
    if deed.name:
        subject = f'{subject} "{deed.name}"'
    message = f"forbidden: {why}" if deed.path else f"{subject} is forbidden: {why}"
    shown = {name: value for name, value in details.items() if value}
    return statuses.StatusError(403, "Forbidden", message, details=shown)
