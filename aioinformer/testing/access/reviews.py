"""Reviews: requests that look like creations, and whose answer is the object with a status; nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.account_tokens import ISSUER
from aioinformer.testing.access.rbac import Deed, User
from aioinformer.testing.access.token_checks import TokenError
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.ownership.writing import track

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.access.doorkeeper import Access
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager

_GROUP = "authorization.k8s.io"
_SELF = f"selfsubjectaccessreviews.{_GROUP}"
_RULES = f"selfsubjectrulesreviews.{_GROUP}"
_LOCAL = f"localsubjectaccessreviews.{_GROUP}"
_OTHERS = f"subjectaccessreviews.{_GROUP}"
_WHO = "selfsubjectreviews.authentication.k8s.io"
_TOKENS = "tokenreviews.authentication.k8s.io"
_SHOWN = {"path": "Path", "verb": "Verb"}


def is_review(served: Served) -> bool:
    """Whether a resource is one that is only asked."""
    return served.resource.group_resource in (_SELF, _RULES, _LOCAL, _OTHERS, _WHO, _TOKENS)


def reviewed(
    served: Served, namespace: str, obj: Mapping[str, Any], user: User, access: Access, by: Manager, now: str
) -> dict[str, Any]:
    """The answer to a review.

    Args:
        namespace: of the URL.
        obj: as the client sent it.
        user: who asks.
        access: knows users and what they may do.
        by: the program that asks.
        now: as the API writes times.

    Raises:
        StatusError: 400 or 422, the question makes no sense.
    """
    resource = served.resource
    # What is empty is not said.
    spec = {field: value for field, value in (obj.get("spec") or {}).items() if value not in ([], None)}
    metadata = dict(obj.get("metadata") or {})
    answer: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    match resource.group_resource:
        case "selfsubjectreviews.authentication.k8s.io":
            answer["metadata"] = {"creationTimestamp": now}
            return answer | {"status": {"userInfo": user.describe()}}
        case "selfsubjectrulesreviews.authorization.k8s.io":
            return answer | {"spec": {}, "status": _rules_status(spec, user, access)}
        case "tokenreviews.authentication.k8s.io":
            status = _token_status(spec, access)
        case _:
            status = _access_status(resource.group_resource, namespace, spec, user, access)
    answer["spec"] = spec
    track(served, None, answer, by, now)
    return answer | {"status": status}


def _access_status(
    group_resource: str, namespace: str, spec: Mapping[str, Any], user: User, access: Access
) -> dict[str, Any]:
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes = []
    if wanted is not None and path is not None:
        shown = {name: path.get(field, "") for field, name in _SHOWN.items()}
        why = "cannot be specified in combination with resourceAttributes"
        causes.append(Cause.invalid("spec.nonResourceAttributes", encode_plain(shown).decode(), why))
    if wanted is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(Cause.invalid("spec.resourceAttributes", "null", why))
    if group_resource != _SELF:
        if not spec.get("user") and not spec.get("groups"):
            causes.append(Cause.invalid("spec.user", '""', "at least one of user or group must be specified"))
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), spec.get("extra") or {})
    if group_resource == _LOCAL and wanted is not None and wanted.get("namespace", "") != namespace:
        why = "must match metadata.namespace"
        causes.append(Cause.invalid("spec.resourceAttributes.namespace", f'"{wanted.get("namespace", "")}"', why))
    if causes:
        raise statuses.invalid("", _GROUP, "", causes)
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    deed = Deed(**{name: str((wanted or {}).get(name) or "") for name in fields})
    if path is not None:
        deed = Deed(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    decision = access.decide(user, deed)
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _rules_status(spec: Mapping[str, Any], user: User, access: Access) -> dict[str, Any]:
    if not spec.get("namespace"):
        raise statuses.bad_request("no namespace on request")
    rules = access.rules(user, spec["namespace"])
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


def _token_status(spec: Mapping[str, Any], access: Access) -> dict[str, Any]:
    if not spec.get("token"):
        raise statuses.bad_request("token is required for TokenReview in authentication")
    audiences = spec.get("audiences") or [ISSUER]
    try:
        user = access.holder(spec["token"], audiences)
    except TokenError as error:
        told = f"[invalid bearer token, {error}]" if str(error) else "invalid bearer token"
        return {"user": {}, "error": told}
    return {"authenticated": True, "user": user.describe(), "audiences": audiences}
