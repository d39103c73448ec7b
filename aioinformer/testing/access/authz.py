"""Authorization: whether a user may do what a request asks for.

Without RBAC every user may do everything. As in a real server this is decided before anything else is said about a
request, 404 and 405 included. Impersonation (`Impersonate-User`, `-Uid`, `-Group`, `-Extra-…`) needs the verb
`impersonate` on each claim; the verbs for one sort of users (`impersonate:user-info` …) are not known.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aioinformer.testing.access.authn import ADMIN, Authenticator
from aioinformer.testing.access.rbac import (
    ANONYMOUS,
    AUTHENTICATED,
    EVERYTHING,
    UNAUTHENTICATED,
    Decision,
    RequestAttributes,
    RoleAuthorizer,
    User,
    aggregated,
)
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, quote
from aioinformer.testing.api.selectors import read_field_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from aiohttp import web
    from multidict import CIMultiDictProxy

    from aioinformer.testing.state.cluster import Cluster

# Outside of requests the program itself acts.
_USER: ContextVar[User] = ContextVar("user", default=ADMIN)
_KEPT = 4096
_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9][-a-z0-9]*):([a-z0-9][-a-z0-9.]*)")
_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_IN_PATHS = ("watch", "proxy")


class Access:
    """Authenticates the sender of each request, and decides what users may do.

    Args:
        rbac: whether roles decide; else everything is allowed.
    """

    def __init__(self, cluster: Cluster, tokens: Mapping[str, str] | None, *, rbac: bool) -> None:
        self.authn = Authenticator(cluster, tokens, rbac=rbac)
        self._cluster = cluster
        self._rbac = rbac
        self._roles = RoleAuthorizer(self._objects)

    def admit(self, request: web.BaseRequest, attributes: RequestAttributes) -> None:
        """Set the user of a request, and check what it asks for."""
        user = self.authn.authenticated(request)
        if any(name.lower().startswith("impersonate-") for name in request.headers):
            wanted = _wanted_user(request.headers)
            if wanted is not None:
                user = _impersonated(user, wanted, self._check)
        _USER.set(user)
        self._check(user, attributes)

    def user(self) -> User:
        """Return the user of the current request."""
        return _USER.get()

    def check_creation(self, request: web.BaseRequest) -> None:
        """Check that the sender of an update or a patch may create the object, too."""
        attributes = attributes_of(request.method, request.rel_url.raw_path, dict(request.query))
        self._check(self.user(), replace(attributes, verb="create"))

    def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        """Decide whether a user may do something."""
        return self._roles.decide(user, attributes) if self._rbac else Decision(True)

    def rules(self, user: User, namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """Return what a user may do in a namespace, and what went wrong in finding out."""
        if not self._rbac:
            return EVERYTHING, ""
        missing = self._roles.missing(user, namespace)
        return self._roles.rules(user, namespace), aggregated(missing) if missing else ""

    def _check(self, user: User, attributes: RequestAttributes) -> None:
        decision = self.decide(user, attributes)
        if decision.allowed:
            return
        raise _refusal(user, attributes, decision.reason)

    def _objects(self, plural: str, namespace: str) -> list[Mapping[str, Any]]:
        records = self._cluster.store.storage.collection(f"{plural}.rbac.authorization.k8s.io").records(namespace)
        return [_decoded(record.body) for record in records]


@lru_cache(_KEPT)
def _decoded(body: bytes) -> Mapping[str, Any]:
    """Return an object that must not be changed; it is cached, since each request reads all bindings."""
    obj: Mapping[str, Any] = decode(body)
    return obj


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> RequestAttributes:
    """Return the attributes of a request. Whether the resource exists does not matter.

    Args:
        path: as sent, percent-encoded.
        query: first value of each parameter, decoded.
    """
    parts = unquote(path).strip("/").split("/")
    depth = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not depth or len(parts) <= depth:
        return RequestAttributes(method.lower(), path=unquote(path))
    group = "" if depth == 2 else parts[1]
    rest = parts[depth:]
    verb = _VERBS.get(method, "")
    if rest[0] in _VERBS_IN_PATHS and len(rest) > 1:
        verb = rest[0]
        rest = rest[1:]
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


def _refusal(user: User, attributes: RequestAttributes, reason: str = "") -> statuses.StatusError:
    """Return the 403 error for a user who may not do something."""
    why = f'User "{user.name}" cannot {attributes}' + (f": {reason}" if reason else "")
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    if attributes.group:
        subject = f"{attributes.resource}.{attributes.group}"
    else:
        subject = attributes.resource
    if attributes.name:
        subject = f"{subject} {quote(attributes.name)}"
    message = f"{subject} is forbidden: {why}" if attributes.resource else f"forbidden: {why}"
    shown = {name: value for name, value in details.items() if value}
    return statuses.StatusError(403, "Forbidden", message, details=shown)


def _wanted_user(headers: CIMultiDictProxy[str]) -> User | None:
    """Return the impersonated user, or None if the request is not impersonated.

    Raises:
        StatusError: 400, groups, uid or extra are given without a name.
    """
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            extra.setdefault(unquote(header[len(_EXTRA) :].lower()), []).append(value)
    name = headers.get("Impersonate-User", "")
    uid = headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    if name:
        return User(name, uid, groups, extra)
    if not (uid or groups or extra):
        return None
    raise statuses.bad_request("requested groups, uid or extra without impersonating a user name")


def _impersonated(requester: User, wanted: User, check: Callable[[User, RequestAttributes], None]) -> User:
    """Return the user that a request acts as."""
    account = _ACCOUNT.fullmatch(wanted.name)
    for claim in _claims(wanted, account):
        check(requester, claim)
    groups = wanted.groups
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[1]}")
    own = UNAUTHENTICATED if wanted.name == ANONYMOUS else AUTHENTICATED
    if own not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, own)
    return replace(wanted, groups=groups)


def _claims(wanted: User, account: re.Match[str] | None) -> Iterator[RequestAttributes]:
    """Yield what a user must be allowed to do for the claims of a request."""
    verb = "impersonate"
    if account:
        yield RequestAttributes(verb, "", "serviceaccounts", namespace=account[1], name=account[2])
    else:
        yield RequestAttributes(verb, "", "users", name=wanted.name)
    if wanted.uid:
        yield RequestAttributes(verb, _AUTHENTICATION, "uids", name=wanted.uid)
    for group in wanted.groups:
        yield RequestAttributes(verb, "", "groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield RequestAttributes(verb, _AUTHENTICATION, "userextras", key, name=value)
