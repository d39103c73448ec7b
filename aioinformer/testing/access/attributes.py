"""The attributes of a request for authorizers, read from its request line."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from aioinformer.testing.access.rbac import RequestAttributes
from aioinformer.testing.api import statuses
from aioinformer.testing.api.golike import quoted
from aioinformer.testing.api.selectors import read_field_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.access.rbac import User

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATHS = ("watch", "proxy")
_STREAMS = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class UnreadablePath(Exception):
    """A path begins like that of a resource, but names none."""


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> RequestAttributes:
    """Return the attributes of a request. Whether the resource exists does not matter.

    Args:
        method: HTTP method.
        path: as sent, percent-encoded.
        query: first value of each parameter, decoded.

    Raises:
        UnreadablePath: the path ends before the name of a resource.
    """
    parts = unquote(path).strip("/").split("/")
    depth = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not depth or len(parts) <= depth:
        return RequestAttributes(method.lower(), path=unquote(path))
    group, rest = "" if depth == 2 else parts[1], parts[depth:]
    verb = _VERBS.get(method, "")
    if rest[0] in _VERBS_IN_PATHS:
        if len(rest) == 1:
            raise UnreadablePath(f"unable to determine kind and namespace from url, {unquote(path)}")
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 and verb != "proxy" else ""
    if not name and verb == "get":
        verb = "watch" if query.get("watch", "0").lower() not in ("0", "false") else "list"
        name = _selected_name(query.get("fieldSelector", ""))
    if not name and verb == "delete":
        verb = "deletecollection"
    return RequestAttributes(verb, group, rest[0], subresource, namespace, name)


def is_stream(attributes: RequestAttributes) -> bool:
    """Return whether a request is long-running and, unlike a watch, is not queued by priority."""
    if attributes.verb == "proxy" or attributes.subresource in _STREAMS:
        return True
    return attributes.path.startswith("/debug/pprof/")


def _selected_name(selector: str) -> str:
    """Return the one name that a field selector requires, "" if there is none."""
    if "metadata.name" not in selector:
        return ""
    try:
        requirements = read_field_selector(selector).requirements
    except statuses.StatusError:
        return ""
    names = (each.value for each in requirements if each.path == "metadata.name" and not each.negated)
    name = next(names, "")
    return "" if "/" in name or "%" in name else name


def refusal(user: User, attributes: RequestAttributes, reason: str = "") -> statuses.StatusError:
    """Return the 403 error for a user who may not do something."""
    why = f'User "{user.name}" cannot {attributes}' + (f": {reason}" if reason else "")
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    subject = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    if attributes.name:
        subject = f"{subject} {quoted(attributes.name)}"
    message = f"{subject} is forbidden: {why}" if attributes.resource else f"forbidden: {why}"
    shown = {name: value for name, value in details.items() if value}
    return statuses.StatusError(403, "Forbidden", message, details=shown)
