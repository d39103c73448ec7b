"""Who asks for a certificate: the server tells, whatever the request says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer.testing.access.rbac import User


def tell_requester(spec: dict[str, Any], user: User) -> None:
    """Writes into the specification of a request who made it.

    Args:
        spec: is changed.
    """
    told = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    for field, value in told.items():
        spec.pop(field, None)
        if value:
            spec[field] = value
