"""Routing: what a request is about, from its method, path and query, as in the real server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Registry, Served

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_PARTS_OF_NAMESPACES = ("status", "finalize")
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class UnknownPath(Exception):
    """Nothing is served at this path; the API answers with plain text."""


@dataclass(frozen=True, slots=True)
class Target:
    """What one request is about.

    Attributes:
        query: first value of each parameter.
        verb: "list", "watch", "get", "create", "update", "patch", "delete", "deletecollection", "discovery" or "other".
        served: the resource, None if the request is about none.
        namespace: "" if the path has none.
        name: "" for a collection; also set for the watch of one object by path.
        subresource: "" for the object itself.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    verb: str = "other"
    served: Served | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(registry: Registry, method: str, path: str, query: Mapping[str, str]) -> Target:
    """Return what a request is about.

    Args:
        path: as sent, percent-encoded.
        query: first value of each parameter, decoded.

    Raises:
        UnknownPath: nothing is served in that group and version.
        StatusError: 404 for a resource that the version lacks, 405 for a method that the resource lacks.
    """
    parts = unquote(path).removeprefix("/").removesuffix("/").split("/")
    if parts[0] not in ("api", "apis"):
        return Target(method, path, query)
    depth = 2 if parts[0] == "api" else 3
    if "" in parts and not _has_empty_namespace(parts[depth:]):
        raise statuses.resource_not_found()
    if len(parts) <= depth:
        return Target(method, path, query, "discovery")
    group = "" if parts[0] == "api" else parts[1]
    version = parts[depth - 1]
    rest = parts[depth:]
    if version not in registry.versions(group):
        if any(not each.custom for each in registry if each.resource.group == group):
            raise statuses.resource_not_found()
        raise UnknownPath(path)
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    all_namespaces = True
    if rest[:2] == ["namespaces", ""]:
        if rest[2] in _PARTS_OF_NAMESPACES:
            if method not in ("GET", "PUT", "PATCH"):
                raise statuses.method_not_allowed()
            raise statuses.bad_request("name must be provided")
        all_namespaces = False
        rest = rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _PARTS_OF_NAMESPACES:
        namespace = rest[1]
        rest = rest[2:]
    served = registry.find(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    if served is None or (subresource and subresource not in served.subresources and not served.custom):
        raise statuses.resource_not_found()
    if not served.resource.namespaced and namespace:
        raise statuses.resource_not_found()
    if served.resource.namespaced and name and not namespace and all_namespaces and not watch:
        raise statuses.resource_not_found()
    if subresource and subresource not in served.subresources:
        raise statuses.not_found(served.resource, name)
    if watch:
        if method != "GET":
            raise statuses.method_not_allowed()
        return Target(method, path, {**query, "watch": "true"}, "watch", served, namespace, name)
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method, "")
    if subresource:
        allowed = next(row["verbs"] for row in served.entries if row["name"] == f"{rest[0]}/{subresource}")
        verb = "create" if method == "POST" else verb
    else:
        allowed = served.entries[0]["verbs"]
        if verb in ("create", "deletecollection") and served.resource.namespaced and not namespace and all_namespaces:
            verb = ""
    if verb not in allowed:
        raise statuses.method_not_allowed()
    if name and not all_namespaces and not namespace:
        raise statuses.bad_request("Namespace parameter required.")
    if verb == "list" and "watch" in query and query["watch"].lower() not in ("0", "false"):
        verb = "watch"
    return Target(method, path, query, verb, served, namespace, name, subresource)


def _has_empty_namespace(rest: list[str]) -> bool:
    """Return whether only the name of the namespace is missing, as in paths of clients without a namespace.

    A request for a collection then covers all namespaces.
    """
    rest = rest[1:] if rest[:1] == ["watch"] else rest
    return rest[:2] == ["namespaces", ""] and len(rest) > 2 and "" not in rest[2:]


def check_name(name: str) -> None:
    """Refuse names that cannot be part of a path."""
    if name in (".", "..") or "%" in name:
        why = "may not contain '%'" if "%" in name else f"may not be '{name}'"
        raise statuses.bad_request(f"Name parameter invalid: {quote(name)}: {why}")
