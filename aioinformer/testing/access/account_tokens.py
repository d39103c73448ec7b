"""Tokens of service accounts: JSON web tokens that this server signs, and that it alone accepts."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import AUTHENTICATED, User
from aioinformer.testing.api.encoding import decode, encode_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ISSUER = "https://kubernetes.default.svc.cluster.local"
_HEAD = {"alg": "HS256", "typ": "JWT"}


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
    """

    namespace: str
    name: str
    uid: str
    id: str
    audiences: tuple[str, ...]
    issued: int
    expires: int

    @property
    def user(self) -> User:
        """Whom it stands for."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", AUTHENTICATED)
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={self.id}"]}
        return User(f"system:serviceaccount:{self.namespace}:{self.name}", self.uid, groups, extra)


def sign(token: AccountToken, key: bytes) -> str:
    """The token as it is sent."""
    account = {"name": token.name, "uid": token.uid}
    claims = {
        "aud": token.audiences,
        "exp": token.expires,
        "iat": token.issued,
        "iss": ISSUER,
        "jti": token.id,
        "kubernetes.io": {"namespace": token.namespace, "serviceaccount": account},
        "nbf": token.issued,
        "sub": token.user.name,
    }
    signed = f"{_encoded(encode_plain(_HEAD))}.{_encoded(encode_plain(claims))}"
    return f"{signed}.{_signature(signed, key)}"


def read_token(text: str, key: bytes, audiences: Sequence[str], now: float) -> AccountToken | None:
    """What a token says; None unless it was signed with the key, is for one of the audiences, and has not expired.

    Args:
        now: seconds since 1970.
    """
    signed, _, signature = text.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _signature(signed, key).encode()):
        return None
    claims = _claims(signed.partition(".")[2])
    own = claims["kubernetes.io"]
    account = own["serviceaccount"]
    token = AccountToken(
        own["namespace"],
        account["name"],
        account["uid"],
        claims["jti"],
        tuple(claims["aud"]),
        claims["iat"],
        claims["exp"],
    )
    return token if token.expires > now and not set(audiences).isdisjoint(token.audiences) else None


def _claims(text: str) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def _signature(text: str, key: bytes) -> str:
    return _encoded(hmac.new(key, text.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
