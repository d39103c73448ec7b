"""Authentication: which user sends a request.

Without tokens every sender is the administrator, except those who send the token of a service account.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.access.rbac import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain, quote

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

ISSUER = "https://kubernetes.default.svc.cluster.local"
ADMIN = User("admin", "admin", (MASTERS, AUTHENTICATED))
_ANONYMOUS = User(ANONYMOUS, "", (UNAUTHENTICATED,))
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


#: A token is accepted for so many seconds after it expires.
_LEEWAY = 60


class _AccountToken(NamedTuple):
    key: str
    audiences: tuple[str, ...]
    expires: int
    user: User


class TokenError(Exception):
    """A token is not valid; the text is what a review says of it, "" for nothing in particular."""


class Authenticator:
    """Identifies users by certificates and bearer tokens, and issues tokens.

    Args:
        tokens: bearer tokens with the user's name, and the groups after commas; None to take every sender for the
            administrator.
        rbac: whether roles decide: then a sender without credentials is anonymous.
    """

    def __init__(self, cluster: Cluster, tokens: Mapping[str, str] | None, *, rbac: bool) -> None:
        self._cluster = cluster
        self._tokens = tokens
        self._rbac = rbac
        self._issued: dict[str, _AccountToken] = {}
        self._given: dict[str, str] = {}

    def authenticated(self, request: web.BaseRequest) -> User:
        """Return the sender of a request, before impersonation."""
        if (certified := _certified_user(request.transport)) is not None:
            return certified
        header = request.headers.get("Authorization", "").strip()
        token = _bearer(header)
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
        """Return the user of a token.

        Raises:
            TokenError: the token is unknown, has expired or is for other audiences, or its account does not exist.
        """
        if known := self._given.get(token) or (self._tokens or {}).get(token):
            name, *groups = known.split(",")
            return User(name, "", (*groups, AUTHENTICATED))
        issued = self._issued.get(token)
        if issued is None:
            raise TokenError
        self._check(issued, audiences)
        return issued.user

    def _check(self, token: _AccountToken, audiences: Sequence[str]) -> None:
        """Raise `TokenError` if a token has expired, is for others, or its account does not exist any more."""
        if set(audiences).isdisjoint(token.audiences):
            own, wanted = (" ".join(map(quote, each)) for each in (token.audiences, audiences))
            raise TokenError(f"token audiences [{own}] is invalid for the target audiences [{wanted}]")
        if token.expires + _LEEWAY <= self._cluster.clock():
            raise TokenError("service account token has expired")
        account = self._cluster.store.storage.collection("serviceaccounts").get(token.key)
        if account is None or account.uid != token.user.uid:
            raise TokenError(f"service account {token.key} has been deleted")

    def token_of(self, user: str) -> str:
        """Return a new token for a user: the name and, after commas, the groups."""
        token = secrets.token_urlsafe(24)
        self._given[token] = user
        return token

    def issue(self, account: Record, audiences: Sequence[str], seconds: int) -> tuple[str, str]:
        """Return a token of a service account, which ends with the account, and when it expires."""
        expires = int(self._cluster.clock()) + seconds
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", AUTHENTICATED)
        name = f"system:serviceaccount:{account.namespace}:{account.name}"
        user = User(name, account.uid, groups, {_CREDENTIAL: [f"JTI={uuid.uuid4()}"]})
        claims = {"aud": audiences, "exp": expires, "iat": expires - seconds, "iss": ISSUER, "sub": name}
        token = _web_token(claims)
        key = f"{account.namespace}/{account.name}"
        self._issued[token] = _AccountToken(key, tuple(audiences), expires, user)
        return token, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))


def _web_token(claims: Mapping[str, Any]) -> str:
    """Return a JSON web token with a random signature: the server knows the tokens that it has issued."""
    parts = [encode_plain({"alg": "HS256", "typ": "JWT"}), encode_plain(claims), secrets.token_bytes(32)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def _certified_user(transport: asyncio.BaseTransport | None) -> User | None:
    """Return the user of a client certificate: its common name is the name, its organizations are the groups.

    None without a certificate, or without a common name in it.
    """
    connection = None if transport is None else transport.get_extra_info("ssl_object")
    if connection is None or not (data := connection.getpeercert(binary_form=True)):
        return None
    attributes = [pair for part in connection.getpeercert()["subject"] for pair in part]
    name = next((value for field, value in attributes if field == "commonName"), "")
    groups = [value for field, value in attributes if field == "organizationName"]
    known = {_CREDENTIAL: [f"X509SHA256={hashlib.sha256(data).hexdigest()}"]}
    return User(name, "", (*groups, AUTHENTICATED), known) if name else None


def _bearer(authorization: str) -> str:
    """Return the token of a header, "" if there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.partition(" ")[0] if scheme.lower() == "bearer" else ""
