"""The requester of a certificate: the server sets it and ignores the client's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer.testing.access.rbac import User


def set_requester(spec: dict[str, Any], user: User) -> None:
    """Set the user who sent a certificate signing request.

    Args:
        spec: is changed.
    """
    requester = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    for field, value in requester.items():
        spec.pop(field, None)
        if value:
            spec[field] = value
