"""Authorization: whether a user may do what a request asks for.

Without RBAC every user may do everything. As in a real server this is decided before anything else is said about a
request, 404 and 405 included.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.attributes import attributes_of, is_stream, refusal
from aioinformer.testing.access.authn import ADMIN, Authenticator
from aioinformer.testing.access.rbac import EVERYTHING, Decision, RequestAttributes, RoleAuthorizer, User, aggregated
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster

# Outside of requests the program itself acts.
_USER: ContextVar[User] = ContextVar("user", default=ADMIN)
_KEPT = 4096


class Access:
    """Authenticates the sender of each request, and decides what users may do.

    Args:
        cluster: where roles and service accounts are.
        tokens: bearer tokens with the user's name, and the groups after commas; None to take every sender for the
            administrator.
        rbac: whether roles decide; else everything is allowed.

    Attributes:
        authn: identifies users.
    """

    def __init__(self, cluster: Cluster, tokens: Mapping[str, str] | None, *, rbac: bool) -> None:
        self.authn = Authenticator(cluster, tokens, rbac=rbac)
        self._cluster = cluster
        self._rbac = rbac
        self._roles = RoleAuthorizer(self._objects)
        if rbac:
            cluster.check_escalation = self._check_escalation

    def admit(self, request: web.BaseRequest, attributes: RequestAttributes) -> None:
        """Set the user of a request, and check what it asks for.

        Raises:
            StatusError: 400, 401 or 403.
        """
        try:
            user = self.authn.authenticated(request)
            if any(name.lower().startswith("impersonate-") for name in request.headers):
                from aioinformer.testing.access.impersonation import impersonated, wanted_user

                wanted = wanted_user(request.headers)
                if wanted is not None:
                    user = impersonated(user, wanted, attributes, self._check)
        except statuses.StatusError as error:
            error.queued = False
            raise
        _USER.set(user)
        try:
            self._check(user, attributes)
        except statuses.StatusError as error:
            error.queued = not is_stream(attributes)
            raise

    def user(self) -> User:
        """Return the user of the current request."""
        return _USER.get()

    def check_creation(self, request: web.BaseRequest) -> None:
        """Check that the sender of an update or a patch may create the object, too.

        Raises:
            StatusError: 403.
        """
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
        raise refusal(user, attributes, decision.reason)

    def _objects(self, plural: str, namespace: str) -> list[Mapping[str, Any]]:
        records = self._cluster.store.storage.collection(f"{plural}.rbac.authorization.k8s.io").records(namespace)
        return [_decoded(record.body) for record in records]

    def _check_escalation(
        self, served: Served, namespace: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        from aioinformer.testing.access.escalation import check_escalation

        check_escalation(self._roles, self.user(), served.resource, namespace, obj, old)


@lru_cache(_KEPT)
def _decoded(body: bytes) -> Mapping[str, Any]:
    """Return an object that must not be changed; it is cached, since each request reads all bindings."""
    obj: Mapping[str, Any] = decode(body)
    return obj
