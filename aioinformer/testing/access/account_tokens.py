"""Tokens of service accounts: JSON web tokens that this server signs, and whether they are still valid."""

from __future__ import annotations

import base64
import hashlib
import hmac
from calendar import timegm
from dataclasses import dataclass, field
from time import strptime
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.access.authn import ISSUER, TokenError
from aioinformer.testing.access.rbac import AUTHENTICATED, User
from aioinformer.testing.api.encoding import decode, encode_plain, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

_EXTRA = "authentication.kubernetes.io"
_HEAD = {"alg": "HS256", "typ": "JWT"}
# A token is accepted for so many seconds after it expires, and after a bound object is deleted.
_LEEWAY = 60
_PLURALS = {"secret": "secrets", "pod": "pods", "node": "nodes"}


class Bound(NamedTuple):
    """An object that a token is bound to.

    Attributes:
        name: of the object.
        uid: "" for a node that a pod names and that does not exist.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class AccountToken:
    """The claims of a token.

    Attributes:
        namespace: of the account.
        name: of the account.
        uid: of the account; the token ends with it.
        id: of the token.
        audiences: accept the token.
        issued: seconds since 1970.
        expires: seconds since 1970.
        bound: objects that end it besides the account, and the node of a pod, by "pod", "secret" or "node".
    """

    namespace: str
    name: str
    uid: str
    id: str
    audiences: tuple[str, ...]
    issued: int
    expires: int
    bound: Mapping[str, Bound] = field(default_factory=dict)

    @property
    def user(self) -> User:
        """The user that it authenticates."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", AUTHENTICATED)
        extra = {f"{_EXTRA}/credential-id": [f"JTI={self.id}"]}
        for kind in ("node", "pod"):
            if kind in self.bound:
                reference = {"name": self.bound[kind].name, "uid": self.bound[kind].uid}
                extra |= {f"{_EXTRA}/{kind}-{field}": [value] for field, value in reference.items() if value}
        return User(f"system:serviceaccount:{self.namespace}:{self.name}", self.uid, groups, extra)


def sign(token: AccountToken, key: bytes) -> str:
    """Return the token as it is sent."""
    account = {"name": token.name, "uid": token.uid}
    bound = {kind: reference._asdict() for kind, reference in token.bound.items()}
    claims = {
        "aud": token.audiences,
        "exp": token.expires,
        "iat": token.issued,
        "iss": ISSUER,
        "jti": token.id,
        "kubernetes.io": {"namespace": token.namespace, "serviceaccount": account, **bound},
        "nbf": token.issued,
        "sub": token.user.name,
    }
    signed = f"{_encoded(encode_plain(_HEAD))}.{_encoded(encode_plain(claims))}"
    return f"{signed}.{_signature(signed, key)}"


def read_token(text: str, key: bytes) -> AccountToken | None:
    """Return the claims of a token; None unless it was signed with the key."""
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
    )


def _claims(text: str) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def _signature(text: str, key: bytes) -> str:
    return _encoded(hmac.new(key, text.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def check_token(cluster: Cluster, token: AccountToken, audiences: Sequence[str]) -> None:
    """Check that a token that this server has signed is still valid.

    Args:
        cluster: where the account and the bound objects are.
        token: its claims.
        audiences: one of these must be among the token's.

    Raises:
        TokenError: it is not valid.
    """
    if set(audiences).isdisjoint(token.audiences):
        sets = " ".join(map(quote, token.audiences)), " ".join(map(quote, audiences))
        raise TokenError(f"token audiences [{sets[0]}] is invalid for the target audiences [{sets[1]}]")
    if token.expires + _LEEWAY <= cluster.clock():
        raise TokenError("service account token has expired")
    account = _record(cluster, "serviceaccounts", token.namespace, token.name)
    if account is None:
        raise TokenError(f'serviceaccounts "{token.name}" not found')
    if account.uid != token.uid:
        raise TokenError(f"service account UID ({account.uid}) does not match claim ({token.uid})")
    if _has_gone(cluster, account):
        raise TokenError(f"service account {token.namespace}/{token.name} has been deleted")
    for kind, reference in token.bound.items():
        if kind == "node" and "pod" in token.bound:
            continue
        record = _record(cluster, _PLURALS[kind], "" if kind == "node" else token.namespace, reference.name)
        if record is None or _has_gone(cluster, record):
            raise TokenError("service account token has been invalidated")
        if record.uid != reference.uid:
            own = f"service account {kind} ref claim ({reference.uid})"
            raise TokenError(f"{kind} UID ({record.uid}) does not match {own}")


def _record(cluster: Cluster, plural: str, namespace: str, name: str) -> Record | None:
    return cluster.store.storage.collection(plural).get(f"{namespace}/{name}" if namespace else name)


def _has_gone(cluster: Cluster, record: Record) -> bool:
    if b'"deletionTimestamp"' not in record.body:
        return False
    deleted: str = decode(record.body)["metadata"].get("deletionTimestamp", "")
    return bool(deleted) and timegm(strptime(deleted, "%Y-%m-%dT%H:%M:%SZ")) + _LEEWAY < cluster.clock()
