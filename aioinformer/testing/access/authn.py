"""The doorkeeper: who sends a request, on whose behalf, and whether he may.

Without tokens everybody is the administrator, unless he shows the token of a service account; without roles everybody
may do everything. As in a real server all of this comes before anything else is said about a request, 404 and 405
included.
"""

from __future__ import annotations

import secrets
import time
import uuid
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.account_tokens import ISSUER, AccountToken, read_token, sign
from aioinformer.testing.access.attributes import deed_of, is_stream, refusal
from aioinformer.testing.access.certificates import certified_user
from aioinformer.testing.access.escalation import check_grant
from aioinformer.testing.access.impersonation import ANONYMOUS, impersonated, wanted_user
from aioinformer.testing.access.rbac import (
    AUTHENTICATED,
    EVERYTHING,
    MASTERS,
    UNAUTHENTICATED,
    Decision,
    Deed,
    RoleAuthorizer,
    User,
    aggregated,
)
from aioinformer.testing.access.token_checks import TokenError, check_token
from aioinformer.testing.api import statuses
from aioinformer.testing.api.answers import DEPRECATED
from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.access.account_tokens import Bound
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

ADMIN = User("admin", "admin", (MASTERS, AUTHENTICATED))
_ANONYMOUS = User(ANONYMOUS, "", (UNAUTHENTICATED,))
# Outside of requests it is the program itself that acts.
_USER: ContextVar[User] = ContextVar("user", default=ADMIN)
_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
# What kubelets ask for. Programs that never read their token again are to be spared: it holds for a year instead.
_OF_PODS, _A_YEAR = 3607, 365 * 24 * 3600
_KEPT = 4096


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

    def admit(self, request: web.BaseRequest, deed: Deed) -> None:
        """Finds out who asks, and whether he may do it.

        Raises:
            StatusError: 400, 401 or 403.
        """
        try:
            user = self.authenticated(request)
            wanted = wanted_user(request.headers)
            if wanted is not None:
                user = impersonated(user, wanted, deed, self._check)
        except statuses.StatusError as error:
            error.queued = False
            raise
        _USER.set(user)
        try:
            self._check(user, deed)
        except statuses.StatusError as error:
            error.queued = not is_stream(deed)
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
        if (certified := certified_user(request.transport)) is not None:
            return certified
        said = request.headers.get("Authorization", "").strip()
        token = _bearer(said)
        if not token and said.lower().startswith("bearer  "):
            request[DEPRECATED] = _EXTRA_SPACE
        if token:
            try:
                return self.holder(token)
            except TokenError:
                if self._tokens is not None or self._rbac:
                    raise statuses.unauthorized() from None
        if self._tokens is None:
            return ADMIN
        if self._rbac:
            return _ANONYMOUS
        raise statuses.unauthorized()

    def holder(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User:
        """Whom a token stands for.

        Raises:
            TokenError: it is not accepted.
        """
        if known := self._given.get(token) or (self._tokens or {}).get(token):
            name, *groups = known.split(",")
            return User(name, "", (*groups, AUTHENTICATED))
        said = read_token(token, self._key)
        if said is None:
            raise TokenError
        check_token(self._cluster, said, audiences)
        return said.user

    def token_of(self, user: str) -> str:
        """A token for a user: his name and, after commas, his groups."""
        token = secrets.token_urlsafe(24)
        self._given[token] = user
        return token

    def issue(
        self, account: Record, audiences: Sequence[str], seconds: int, bound: Mapping[str, Bound]
    ) -> tuple[str, str]:
        """A token of a service account, and when it expires.

        Args:
            account: whose.
            audiences: who is to accept it.
            seconds: how long it holds.
            bound: what it ends with, beside the account.
        """
        now = int(self._cluster.clock())
        who = (account.namespace, account.name, account.uid)
        ends, warns = now + seconds, 0
        if seconds == _OF_PODS and "pod" in bound and set(audiences) == {ISSUER}:
            ends, warns = now + _A_YEAR, ends
        token = AccountToken(*who, str(uuid.uuid4()), tuple(audiences), now, ends, bound, warns)
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + seconds))
        return sign(token, self._key), expires

    def decide(self, user: User, deed: Deed) -> Decision:
        """Whether a user may do something."""
        return self._roles.decide(user, deed) if self._rbac else Decision(True)

    def rules(self, user: User, namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """What a user may do in a namespace, and what went wrong in finding out."""
        if not self._rbac:
            return EVERYTHING, ""
        missing = self._roles.missing(user, namespace)
        return self._roles.rules(user, namespace), aggregated(missing) if missing else ""

    def _check(self, user: User, deed: Deed) -> None:
        decision = self.decide(user, deed)
        if decision.allowed:
            return
        raise refusal(user, deed, decision.reason)

    def _objects(self, plural: str, namespace: str) -> list[Mapping[str, Any]]:
        records = self._cluster.ledger.storage.collection(f"{plural}.rbac.authorization.k8s.io").records(namespace)
        return [_decoded(record.body) for record in records]

    def _check_grant(
        self, served: Served, namespace: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        check_grant(self._roles, self.user(), served.resource, namespace, obj, old)


def _bearer(authorization: str) -> str:
    """The token of a header, "" if there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.partition(" ")[0] if scheme.lower() == "bearer" else ""


@lru_cache(_KEPT)
def _decoded(body: bytes) -> Mapping[str, Any]:
    """An object that is not to be changed: each request reads all bindings."""
    obj: Mapping[str, Any] = decode(body)
    return obj
