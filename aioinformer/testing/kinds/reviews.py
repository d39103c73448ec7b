"""Reviews: create requests whose response is the object with a status; nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.authn import ISSUER, TokenError
from aioinformer.testing.access.rbac import RequestAttributes, User
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain, quote
from aioinformer.testing.api.responses import json_response
from aioinformer.testing.api.statuses import Cause, with_warnings
from aioinformer.testing.http.writing.bodies import read_object, write_options
from aioinformer.testing.ownership.managers import track
from aioinformer.testing.schemas.field_checks import check_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager
    from aioinformer.testing.state.cluster import Cluster

_GROUP = "authorization.k8s.io"
_SELF = f"selfsubjectaccessreviews.{_GROUP}"
_LOCAL = f"localsubjectaccessreviews.{_GROUP}"


async def review_response(
    request: web.BaseRequest, target: Target, served: Served, wanted: Wanted, cluster: Cluster, access: Access
) -> web.Response:
    """Answer a review."""
    options = write_options(request, target, served, "CreateOptions")
    obj, repeated = read_object(served, await request.read(), request.headers.get("Content-Type", ""))
    warnings = check_object(served, obj, options.directive, repeated)
    review = _reviewed(served, target.namespace, obj, access.user(), access, options.by, cluster.now())
    return with_warnings(json_response(request, encode_plain(review), status=201), warnings)


def _reviewed(
    served: Served, namespace: str, obj: Mapping[str, Any], user: User, access: Access, by: Manager, now: str
) -> dict[str, Any]:
    """Return a review with its status."""
    resource = served.resource
    spec = _without_empty(obj.get("spec") or {})
    for field in ("resourceAttributes", "nonResourceAttributes"):
        if field in spec:
            spec[field] = _without_empty(spec[field])
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
            place = metadata | ({"namespace": namespace} if namespace else {})
            status = _access_status(resource.group_resource, place, spec, user, access)
    answer["spec"] = spec
    track(served, None, answer, by, now)
    return answer | {"status": status}


def _access_status(
    group_resource: str, metadata: Mapping[str, Any], spec: Mapping[str, Any], user: User, access: Access
) -> dict[str, Any]:
    others = group_resource != _SELF
    local = group_resource == _LOCAL
    if causes := list(_question_causes(spec, metadata, others=others, local=local)):
        raise statuses.invalid("", _GROUP, "", causes)
    wanted = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if others:
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), spec.get("extra") or {})
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    attributes = RequestAttributes(**{name: str((wanted or {}).get(name) or "") for name in fields})
    if path is not None:
        attributes = RequestAttributes(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    decision = access.decide(user, attributes)
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _question_causes(
    spec: Mapping[str, Any], metadata: Mapping[str, Any], *, others: bool, local: bool
) -> Iterator[Cause]:
    """Yield what is wrong with an access review.

    Args:
        metadata: of the review, with the namespace of the request.
        others: whether the review may be about another user.
        local: whether the review is about one namespace.
    """
    wanted = spec.get("resourceAttributes")
    path = spec.get("nonResourceAttributes")
    if wanted is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield Cause.invalid("spec.nonResourceAttributes", quote(path), why)
    if wanted is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield Cause.invalid("spec.resourceAttributes", "null", why)
    if others and not spec.get("user") and not spec.get("groups"):
        yield Cause.invalid("spec.user", '""', "at least one of user or group must be specified")
    if {field for field in metadata if not (local and field == "namespace")}:
        yield Cause.invalid("metadata", quote(metadata), "must be empty, except for the namespace of a local review")
    if local and wanted is not None and wanted.get("namespace", "") != metadata.get("namespace", ""):
        why = "must match metadata.namespace"
        yield Cause.invalid("spec.resourceAttributes.namespace", quote(wanted.get("namespace", "")), why)
    if local and path is not None:
        yield Cause.invalid("spec.nonResourceAttributes", quote(path), "disallowed on this kind of request")


def _without_empty(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not empty; the API omits empty ones."""
    return {field: each for field, each in value.items() if each not in ("", [], None)}


def _rules_status(spec: Mapping[str, Any], user: User, access: Access) -> dict[str, Any]:
    if not spec.get("namespace"):
        raise statuses.bad_request("no namespace on request")
    rules, error = access.rules(user, spec["namespace"])
    status: dict[str, Any] = {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    return status | ({"evaluationError": error} if error else {})


def _token_status(spec: Mapping[str, Any], access: Access) -> dict[str, Any]:
    if not spec.get("token"):
        raise statuses.bad_request("token is required for TokenReview in authentication")
    audiences = spec.get("audiences") or [ISSUER]
    try:
        user = access.authn.holder(spec["token"], audiences)
    except TokenError as error:
        text = f"[invalid bearer token, {error}]" if str(error) else "invalid bearer token"
        return {"user": {}, "error": text}
    return {"authenticated": True, "user": user.describe(), "audiences": audiences}
