"""Tokens of service accounts: JSON web tokens that this server signs, and that it alone accepts."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.access.rbac import AUTHENTICATED, User
from aioinformer.testing.api.encoding import decode, encode_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

ISSUER = "https://kubernetes.default.svc.cluster.local"
_EXTRA = "authentication.kubernetes.io"
_HEAD = {"alg": "HS256", "typ": "JWT"}


class Bound(NamedTuple):
    """An object that a token names.

    Attributes:
        uid: "" for a node that a pod names and that is not there.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class AccountToken:
    """What a token says.

    Attributes:
        namespace: of the account.
        name: of the account.
        uid: of the account; the token ends with it.
        id: of the token.
        audiences: who is to accept it.
        issued: seconds since 1970.
        expires: seconds since 1970.
        bound: what it ends with beside the account, and for a pod its node, by "pod", "secret" or "node".
        warns: when whoever uses it still should have got another one, in seconds since 1970; 0 for never.
    """

    namespace: str
    name: str
    uid: str
    id: str
    audiences: tuple[str, ...]
    issued: int
    expires: int
    bound: Mapping[str, Bound] = field(default_factory=dict)
    warns: int = 0

    @property
    def user(self) -> User:
        """Whom it stands for."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", AUTHENTICATED)
        extra = {f"{_EXTRA}/credential-id": [f"JTI={self.id}"]}
        for kind in ("node", "pod"):
            if kind in self.bound:
                told = {"name": self.bound[kind].name, "uid": self.bound[kind].uid}
                extra |= {f"{_EXTRA}/{kind}-{field}": [value] for field, value in told.items() if value}
        return User(f"system:serviceaccount:{self.namespace}:{self.name}", self.uid, groups, extra)


def sign(token: AccountToken, key: bytes) -> str:
    """The token as it is sent."""
    account = {"name": token.name, "uid": token.uid}
    bound = {kind: reference._asdict() for kind, reference in token.bound.items()}
    warned = {"warnafter": token.warns} if token.warns else {}
    claims = {
        "aud": token.audiences,
        "exp": token.expires,
        "iat": token.issued,
        "iss": ISSUER,
        "jti": token.id,
        "kubernetes.io": {"namespace": token.namespace, "serviceaccount": account, **bound, **warned},
        "nbf": token.issued,
        "sub": token.user.name,
    }
    signed = f"{_encoded(encode_plain(_HEAD))}.{_encoded(encode_plain(claims))}"
    return f"{signed}.{_signature(signed, key)}"


def read_token(text: str, key: bytes) -> AccountToken | None:
    """What a token says; None unless it was signed with the key."""
    signed, _, signature = text.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _signature(signed, key).encode()):
        return None
    claims = _claims(signed.partition(".")[2])
    own = claims["kubernetes.io"]
    account = own["serviceaccount"]
    return AccountToken(
        own["namespace"],
        account["name"],
        account["uid"],
        claims["jti"],
        tuple(claims["aud"]),
        claims["iat"],
        claims["exp"],
        {kind: Bound(**own[kind]) for kind in ("pod", "secret", "node") if kind in own},
        own.get("warnafter", 0),
    )


def _claims(text: str) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def _signature(text: str, key: bytes) -> str:
    return _encoded(hmac.new(key, text.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
