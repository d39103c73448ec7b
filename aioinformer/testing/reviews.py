"""Reviews: requests that look like creations, and whose answer is the object with a status; nothing is stored.

The server has no authorization: whoever is let in may do everything, and is told so (`kubectl auth can-i`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioinformer.testing.served import Served

_USER = {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]}
_STATUSES: dict[str, dict[str, Any]] = {
    "localsubjectaccessreviews.authorization.k8s.io": {"allowed": True},
    "selfsubjectaccessreviews.authorization.k8s.io": {"allowed": True},
    "subjectaccessreviews.authorization.k8s.io": {"allowed": True},
    "selfsubjectrulesreviews.authorization.k8s.io": {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "selfsubjectreviews.authentication.k8s.io": {"userInfo": _USER},
    "tokenreviews.authentication.k8s.io": {"authenticated": True, "user": _USER},
}


def reviewed(served: Served, obj: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a review, None if the resource is none.

    Args:
        obj: as the client sent it.
    """
    status = _STATUSES.get(served.resource.group_resource)
    if status is None:
        return None
    resource = served.resource
    names = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": obj.get("metadata") or {}}
    return names | ({"spec": obj["spec"]} if "spec" in obj else {}) | {"status": status}
