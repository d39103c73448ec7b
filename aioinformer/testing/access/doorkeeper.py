"""The doorkeeper: who sends a request, on whose behalf, and whether he may.

Without tokens everybody is the administrator, unless he shows the token of a service account; without roles everybody
may do everything. Whoever may impersonate others says so in headers (`Impersonate-User`, `-Uid`, `-Group`, `-Extra-…`).
As in a real server all of this comes before anything else is said about a request, 404 and 405 included.
"""

from __future__ import annotations

import secrets
import time
import uuid
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aioinformer.testing.access.account_tokens import ISSUER, AccountToken, read_token, sign
from aioinformer.testing.access.deeds import deed_of
from aioinformer.testing.access.grants import check_grant
from aioinformer.testing.access.rbac import (
    AUTHENTICATED,
    EVERYTHING,
    MASTERS,
    UNAUTHENTICATED,
    Decision,
    Deed,
    RoleAuthorizer,
    User,
)
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster

ADMIN = User("admin", "admin", (MASTERS, AUTHENTICATED))
_ANONYMOUS = User("system:anonymous", "", (UNAUTHENTICATED,))
_EXTRA = "impersonate-extra-"
# Outside of requests it is the program itself that acts.
_USER: ContextVar[User] = ContextVar("user", default=ADMIN)
_KEPT = 4096
_NEVER_QUEUED = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class Access:
    """Knows users and what they may do.

    Args:
        cluster: where roles and service accounts are.
        tokens: bearer tokens with the user's name, and his groups after commas; None to take everybody for the
            administrator.
        rbac: whether roles decide; else everything is allowed.
    """

    def __init__(self, cluster: Cluster, tokens: Mapping[str, str] | None, *, rbac: bool) -> None:
        self._cluster = cluster
        self._tokens = tokens
        self._rbac = rbac
        self._key = secrets.token_bytes(32)
        self._given: dict[str, str] = {}
        self._roles = RoleAuthorizer(self._objects)
        if rbac:
            cluster.granting = self._check_grant

    def admit(self, request: web.BaseRequest) -> None:
        """Finds out who asks, and whether he may.

        Raises:
            StatusError: 400, 401 or 403.
        """
        deed = deed_of(request.method, request.rel_url.raw_path, dict(request.query))
        try:
            user = self.authenticated(request)
            if any(name.lower().startswith("impersonate-") for name in request.headers):
                user = self._impersonated(request, user, deed)
        except statuses.StatusError as error:
            error.queued = False
            raise
        _USER.set(user)
        try:
            self._check(user, deed)
        except statuses.StatusError as error:
            error.queued = deed.subresource not in _NEVER_QUEUED
            raise

    def user(self) -> User:
        """Who sent the request that is being answered."""
        return _USER.get()

    def check_creation(self, request: web.BaseRequest) -> None:
        """Whether the sender of another kind of write may create what it is for.

        Raises:
            StatusError: 403.
        """
        deed = deed_of(request.method, request.rel_url.raw_path, dict(request.query))
        self._check(self.user(), replace(deed, verb="create"))

    def authenticated(self, request: web.BaseRequest) -> User:
        """Who a request comes from, whomever it impersonates.

        Raises:
            StatusError: 401.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        if token and (user := self.holder(token)):
            return user
        if self._tokens is None and not (token and self._rbac):
            return ADMIN
        if self._rbac and not request.headers.get("Authorization"):
            return _ANONYMOUS
        raise statuses.unauthorized()

    def holder(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """Whom a token stands for, None for one that is not accepted."""
        if known := self._given.get(token) or (self._tokens or {}).get(token):
            name, *groups = known.split(",")
            return User(name, "", (*groups, AUTHENTICATED))
        said = read_token(token, self._key, audiences, self._cluster.clock())
        if said is None or said.uid != self._account_uid(said.namespace, said.name):
            return None
        return said.user

    def token_of(self, user: str) -> str:
        """A token for a user: his name and, after commas, his groups."""
        token = secrets.token_urlsafe(24)
        self._given[token] = user
        return token

    def issue(self, namespace: str, name: str, uid: str, audiences: Sequence[str], seconds: int) -> tuple[str, str]:
        """A token of a service account, and when it expires."""
        now = int(self._cluster.clock())
        token = AccountToken(namespace, name, uid, str(uuid.uuid4()), tuple(audiences), now, now + seconds)
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(token.expires))
        return sign(token, self._key), expires

    def decide(self, user: User, deed: Deed) -> Decision:
        """Whether a user may do something."""
        return self._roles.decide(user, deed) if self._rbac else Decision(True)

    def rules(self, user: User, namespace: str) -> list[Mapping[str, Any]]:
        """What a user may do in a namespace."""
        return self._roles.rules(user, namespace) if self._rbac else list(EVERYTHING)

    def _check(self, user: User, deed: Deed) -> None:
        decision = self.decide(user, deed)
        if decision.allowed:
            return
        why = f'User "{user.name}" cannot {deed}' + (f": {decision.reason}" if decision.reason else "")
        details = {"name": deed.name, "group": deed.group, "kind": deed.resource}
        subject = f"{deed.resource}.{deed.group}" if deed.group else deed.resource
        if deed.name:
            subject = f'{subject} "{deed.name}"'
        message = f"forbidden: {why}" if deed.path else f"{subject} is forbidden: {why}"
        shown = {name: value for name, value in details.items() if value}
        raise statuses.StatusError(403, "Forbidden", message, details=shown)

    def _impersonated(self, request: web.BaseRequest, user: User, deed: Deed) -> User:
        headers = request.headers
        name = headers.get("Impersonate-User", "")
        groups = tuple(headers.getall("Impersonate-Group", ()))
        extra: dict[str, list[str]] = {}
        for header, value in headers.items():
            if header.lower().startswith(_EXTRA):
                extra.setdefault(unquote(header[len(_EXTRA) :]).lower(), []).append(value)
        if not name:
            listed = "".join(f'"{group}", ' for group in groups).removesuffix(", ")
            shown = f"Groups:[]string{{{listed}}}" if groups else "Groups:[]string(nil)"
            raise statuses.bad_request(
                f'requested &user.DefaultInfo{{Name:"", UID:"{headers.get("Impersonate-Uid", "")}", {shown}, '
                "Extra:map[string][]string(nil)} without impersonating a user name"
            )
        self._check_impersonation(user, name, groups, deed)
        if not groups and name.startswith("system:serviceaccount:"):
            namespace = name.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        if name == _ANONYMOUS.name:
            groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
        elif AUTHENTICATED not in groups:
            groups = (*groups, AUTHENTICATED)
        return User(name, headers.get("Impersonate-Uid", ""), groups, extra)

    def _check_impersonation(self, user: User, name: str, groups: Sequence[str], deed: Deed) -> None:
        wanted = [Deed("impersonate", resource="users", name=name)]
        if name.startswith("system:serviceaccount:") and name.count(":") == 3:
            _, _, namespace, account = name.split(":")
            wanted = [Deed("impersonate", resource="serviceaccounts", namespace=namespace, name=account)]
        wanted += [Deed("impersonate", resource="groups", name=group) for group in groups]
        if not all(self.decide(user, each).allowed for each in wanted):
            self._check(user, replace(deed, verb=f"impersonate-on:user-info:{deed.verb}"))

    def _objects(self, plural: str, namespace: str) -> list[Mapping[str, Any]]:
        records = self._cluster.ledger.storage.collection(f"{plural}.rbac.authorization.k8s.io").records(namespace)
        return [_decoded(record.body) for record in records]

    def _check_grant(
        self, served: Served, namespace: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        check_grant(self._roles, self.user(), served.resource, namespace, obj, old)

    def _account_uid(self, namespace: str, name: str) -> str:
        record = self._cluster.ledger.storage.collection("serviceaccounts").get(f"{namespace}/{name}")
        return "" if record is None else record.uid


@lru_cache(_KEPT)
def _decoded(body: bytes) -> Mapping[str, Any]:
    """An object that is not to be changed: each request reads all bindings."""
    obj: Mapping[str, Any] = decode(body)
    return obj
