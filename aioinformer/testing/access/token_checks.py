"""Whether the token of a service account still holds: for whom it is, until when, and what it ends with."""

from __future__ import annotations

import json
from calendar import timegm
from time import strptime
from typing import TYPE_CHECKING

from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioinformer.testing.access.account_tokens import AccountToken
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

# A token holds for so many seconds beyond its end, and beyond the deletion of what it is bound to.
_LEEWAY = 60
_PLURALS = {"secret": "secrets", "pod": "pods", "node": "nodes"}


class TokenError(Exception):
    """A token does not hold; the text is what a review says of it, "" for nothing in particular."""


def check_token(cluster: Cluster, token: AccountToken, audiences: Sequence[str]) -> None:
    """Whether a token that this server has signed still holds.

    Args:
        cluster: where the account is, and what the token is bound to.
        token: what it says.
        audiences: who is to accept it; one is enough.

    Raises:
        TokenError: it does not.
    """
    if set(audiences).isdisjoint(token.audiences):
        wanted, own = _listed(audiences), _listed(token.audiences)
        raise TokenError(f"token audiences {own} is invalid for the target audiences {wanted}")
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
    return cluster.ledger.storage.collection(plural).get(f"{namespace}/{name}" if namespace else name)


def _has_gone(cluster: Cluster, record: Record) -> bool:
    if b'"deletionTimestamp"' not in record.body:
        return False
    deleted: str = decode(record.body)["metadata"].get("deletionTimestamp", "")
    return bool(deleted) and timegm(strptime(deleted, "%Y-%m-%dT%H:%M:%SZ")) + _LEEWAY < cluster.clock()


def _listed(audiences: Sequence[str]) -> str:
    return f"[{' '.join(json.dumps(each, ensure_ascii=False) for each in audiences)}]"
