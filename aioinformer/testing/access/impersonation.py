"""Impersonation (`Impersonate-User`, `-Uid`, `-Group`, `-Extra-…`), and who may impersonate.

There are two ways to be authorized, and one is enough. The old one is the verb `impersonate` on each claim: the user or
service account, each group, the uid, each value of an extra. The newer one is for one sort of users each (nodes,
service accounts, others): the verb `impersonate:<sort>` on the same claims, and `impersonate-on:<sort>:<verb>` for the
request itself. The error names what the first way lacks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from aioinformer.testing.access.attributes import refusal
from aioinformer.testing.access.rbac import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, RequestAttributes, User
from aioinformer.testing.api import statuses
from aioinformer.testing.api.golike import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from multidict import CIMultiDictProxy

    Check = Callable[[User, RequestAttributes], None]

_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_NODE = "system:node:"
_NODES = "system:nodes"
_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9][-a-z0-9]*):([a-z0-9][-a-z0-9.]*)")


def wanted_user(headers: CIMultiDictProxy[str]) -> User | None:
    """Return the impersonated user; None if the request impersonates nobody.

    Raises:
        StatusError: 400, groups, uid or extra are given without a name.
    """
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            extra.setdefault(unquote(header[len(_EXTRA) :].lower()), []).append(value)
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    if name:
        return User(name, uid, groups, extra)
    if not (uid or groups or extra):
        return None
    listed = ", ".join(f"{quoted(key)}:{_strings(values)}" for key, values in sorted(extra.items()))
    extras = f"map[string][]string{{{listed}}}" if extra else "map[string][]string(nil)"
    shown = f"Groups:{_strings(groups) if groups else '[]string(nil)'}, Extra:{extras}"
    what = f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, {shown}}}'
    raise statuses.bad_request(f"requested {what} without impersonating a user name")


def impersonated(requester: User, wanted: User, attributes: RequestAttributes, check: Check) -> User:
    """Return the user that a request acts as.

    Args:
        requester: the sender of the request.
        wanted: the user that `wanted_user` returned.
        attributes: of the request.
        check: raises if a user may not do something.

    Raises:
        StatusError: 403.
    """
    bare = not (wanted.uid or wanted.groups or wanted.extra)
    account, node = _ACCOUNT.fullmatch(wanted.name), wanted.name.startswith(_NODE)
    sorts = []
    if node and bare:
        sorts.append("arbitrary-node")
    if account and bare:
        sorts.append("serviceaccount")
    if not account and not node:
        sorts.append("user-info")
    first: statuses.StatusError | None = None
    for sort in (*sorts, ""):
        try:
            if sort:
                check(requester, replace(attributes, verb=f"impersonate-on:{sort}:{attributes.verb}"))
            for claim in _claims(wanted, account, sort):
                if sort and claim.resource == "groups" and claim.name == MASTERS:
                    raise refusal(requester, claim, f"impersonating the {MASTERS} group is not allowed")
                check(requester, claim)
            return _completed(wanted, account, node=sort == "arbitrary-node")
        except statuses.StatusError as error:
            first = first or error
    assert first is not None
    raise first


def _claims(wanted: User, account: re.Match[str] | None, sort: str) -> list[RequestAttributes]:
    """Return what a user must be allowed to do for the claims of a request."""
    verb, group = (f"impersonate:{sort}", _AUTHENTICATION) if sort else ("impersonate", "")
    user = RequestAttributes(verb, group, "users", name=wanted.name)
    if account:
        user = RequestAttributes(verb, group, "serviceaccounts", namespace=account[1], name=account[2])
    elif sort == "arbitrary-node":
        user = RequestAttributes(verb, group, "nodes", name=wanted.name.removeprefix(_NODE))
    return [
        user,
        *([RequestAttributes(verb, _AUTHENTICATION, "uids", name=wanted.uid)] if wanted.uid else []),
        *(RequestAttributes(verb, group, "groups", name=each) for each in wanted.groups),
        *(
            RequestAttributes(verb, _AUTHENTICATION, "userextras", key, name=value)
            for key, values in wanted.extra.items()
            for value in values
        ),
    ]


def _completed(wanted: User, account: re.Match[str] | None, *, node: bool) -> User:
    groups = wanted.groups
    if node:
        groups = (_NODES,)
    elif account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[1]}")
    own = UNAUTHENTICATED if wanted.name == ANONYMOUS else AUTHENTICATED
    if own not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, own)
    return replace(wanted, groups=groups)


def _strings(values: Sequence[str]) -> str:
    return f"[]string{{{', '.join(map(quoted, values))}}}"
