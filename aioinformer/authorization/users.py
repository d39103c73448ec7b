"""Users, what streams and pages ask about them, and the errors of refusals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from aioinformer.errors import AioinformerError
from aioinformer.resources.resource import Resource

#: How many namespaces one request may name: each of them is a review for each user and resource.
NAMESPACES_AT_MOST: Final = 20
#: The group of all users who have proven who they are, which RBAC binds the rights of everybody to.
AUTHENTICATED: Final = "system:authenticated"


class User(msgspec.Struct, frozen=True):
    """Who sends a request, as the API server describes users. Two users are equal only if all of this is equal.

    Attributes:
        name: "jane", or "system:serviceaccount:shop:web".
        uid: the user's unique ID, "" if it is not known.
        groups: the names of the user's groups.
        extra: what else the authentication stated.
    """

    name: str = msgspec.field(name="username", default="")
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    def __hash__(self) -> int:
        return hash((self.name, self.uid, self.groups))


class Unauthenticated(AioinformerError):
    """A request does not prove who sends it. The text says which proof is missing, and never quotes a credential.

    Attributes:
        status: of the HTTP response.
        headers: for the HTTP response.
    """

    status = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}


class ReviewUnavailable(Unauthenticated):
    """Nothing can be said about a request now: the API server does not answer, or there are too many reviews."""

    status = 503
    headers: Mapping[str, str] = {"Retry-After": "1"}


class AccessDenied(AioinformerError):
    """A user may not do what a request asks for, or a page of another site sent the request.

    Attributes:
        status: of the HTTP response.
        headers: for the HTTP response.
    """

    status = 403
    headers: Mapping[str, str] = {}


@runtime_checkable
class Who(Protocol):
    """Decides who sends a request, and what that user may see. `Rbac` is one; you may write another.

    Attributes:
        ttl: seconds within which a right that was taken away has no effect any more. A stream asks again after half of
            this time, so answers must not be kept for longer than half of it.
    """

    ttl: float

    async def authenticate(self, headers: Mapping[str, str], peer: str | None) -> User:
        """Return the user who sends a request.

        Args:
            headers: their names are in lower case. Values of a header that was sent several times are separated by
                line feeds, which a value cannot contain.
            peer: the address of the other end of the connection, None if it is not known.

        Raises:
            Unauthenticated: the request does not prove it.
            AccessDenied: a page of another site sent the request.
        """
        ...

    async def allows(self, user: User, verb: str, resource: Resource[Any], namespace: str | None) -> bool:
        """Return whether a user may do something with all objects of a resource. What cannot be found out is False.

        Args:
            verb: "list", "watch", "get".
            namespace: None for all namespaces, and for cluster-scoped resources.
        """
        ...

    async def allows_path(self, user: User, verb: str, path: str) -> bool:
        """Return whether a user may request a URL that belongs to no resource. What cannot be found out is False.

        Args:
            verb: the HTTP method in lower case: "get".
            path: "/metrics".
        """
        ...


class _Everybody:
    """Lets everybody see everything. The user of all requests is "system:anonymous"."""

    ttl = 3600.0

    async def authenticate(self, headers: Mapping[str, str], peer: str | None) -> User:
        return User("system:anonymous", groups=("system:unauthenticated",))

    async def allows(self, user: User, verb: str, resource: Resource[Any], namespace: str | None) -> bool:
        return True

    async def allows_path(self, user: User, verb: str, path: str) -> bool:
        return True

    def __repr__(self) -> str:
        return "EVERYBODY"


#: Lets everybody see everything: `who=` for what is public. The user of all requests is "system:anonymous".
EVERYBODY: Final[Who] = _Everybody()


async def permitted(
    who: Who,
    user: User,
    resources: Collection[Resource[Any]],
    namespaces: Collection[str] = (),
    verbs: Collection[str] = ("list", "watch"),
) -> None:
    """Return if a user may do something with all objects of some resources, in some namespaces.

    A resource takes one question a verb for all namespaces. Only if `namespaces` names some, each of them is asked for.

    Args:
        namespaces: their names, at most 20; () for all namespaces. Cluster-scoped resources ignore them.
        verbs: what the user must be allowed to do.

    Raises:
        AccessDenied: the user may not. The text names the first refusal, and `namespace=` if that is the remedy.
    """
    if len(namespaces) > NAMESPACES_AT_MOST:
        raise AccessDenied(f"namespace: {len(namespaces)} are named, and at most {NAMESPACES_AT_MOST} may be")
    for resource in resources:
        within: Collection[str | None] = namespaces if resource.namespaced and namespaces else (None,)
        for namespace in within:
            for verb in verbs:
                if not await who.allows(user, verb, resource, namespace):
                    raise AccessDenied(_refusal(user, verb, resource, namespace))


async def permitted_path(who: Who, headers: Mapping[str, str], peer: str, method: str, path: str) -> User:
    """Return the user who sends a request for a URL that belongs to no resource, if that user may.

    Upstream: filters.WithAuthenticationAndAuthorization in controller-runtime asks the same.

    Args:
        headers: see `Who.authenticate`.
        peer: the address of the other end, "" if it is not known.
        method: "GET"; HEAD counts as "GET".
        path: "/metrics".

    Raises:
        Unauthenticated: the request does not prove who sends it.
        AccessDenied: the user may not. The text names the rule of a ClusterRole that allows it.
    """
    user = await who.authenticate(headers, peer or None)
    verb = "get" if method == "HEAD" else method.lower()
    if not await who.allows_path(user, verb, path):
        rule = f'nonResourceURLs: ["{path}"], verbs: ["{verb}"]'
        raise AccessDenied(f"user {user.name!r} may not {verb} {path}: a ClusterRole must have the rule {rule}")
    return user


def _refusal(user: User, verb: str, resource: Resource[Any], namespace: str | None) -> str:
    what = f"user {user.name!r} may not {verb} {resource.group_resource}"
    if namespace is not None:
        return f"{what} in namespace {namespace!r}"
    if not resource.namespaced:
        return what
    return f"{what} in all namespaces: name those to see, at most {NAMESPACES_AT_MOST}, as ?namespace=NAME"
