"""Requests for tokens of service accounts (`kubectl create token`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources import Resource
from aioinformer.testing.access.account_tokens import ISSUER
from aioinformer.testing.api import statuses
from aioinformer.testing.api.answers import json_answer
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.served import Served
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.http.bodies import read_object
from aioinformer.testing.http.write_options import write_options
from aioinformer.testing.http.writes import with_warnings
from aioinformer.testing.kinds.field_checks import check_object
from aioinformer.testing.ownership.writing import track

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.access.doorkeeper import Access
    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.state.cluster import Cluster

_REQUESTS: Resource[Any] = Resource(
    group="authentication.k8s.io", version="v1", plural="tokenrequests", kind="TokenRequest", namespaced=True
)
_REQUEST = Served(_REQUESTS)
_DEFAULT_SECONDS = 3600
_LEAST_SECONDS = 600
_MOST_SECONDS = 2**32


class TokenRequests:
    """Answers them.

    Args:
        cluster: where the accounts are.
        access: who issues the tokens.
    """

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Issues a token.

        Raises:
            StatusError: 400, 404 or 422, as the API has it; 501 for tokens that are bound to other objects.
        """
        options = write_options(request, target, _REQUEST, "CreateOptions")
        obj, repeated = read_object(_REQUEST, await request.read(), request.headers.get("Content-Type", ""))
        warnings = check_object(_REQUEST, obj, options.directive, repeated)
        account = self._cluster.ledger.get(served, target.namespace, target.name)
        spec = obj.setdefault("spec", {})
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _DEFAULT_SECONDS
        seconds = spec["expirationSeconds"]
        _check_seconds(seconds)
        if spec.get("boundObjectRef"):
            why = "this server does not bind tokens to other objects: leave spec.boundObjectRef out"
            raise statuses.StatusError(501, "NotImplemented", why)
        obj["kind"], obj["apiVersion"] = _REQUESTS.kind, _REQUESTS.api_version
        obj["metadata"] = {}
        track(_REQUEST, None, obj, options.by, self._cluster.now())
        obj["metadata"] |= {
            "name": target.name,
            "namespace": target.namespace,
            "uid": account.uid,
            "creationTimestamp": self._cluster.now(),
        }
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        spec["boundObjectRef"] = None
        token, expires = self._access.issue(target.namespace, target.name, account.uid, spec["audiences"], seconds)
        obj["status"] = {"token": token, "expirationTimestamp": expires}
        ordered = {field: obj[field] for field in ("kind", "apiVersion", "metadata", "spec", "status")}
        return with_warnings(json_answer(request, encode_plain(ordered), status=201, wanted=wanted), warnings)


def _check_seconds(seconds: int) -> None:
    why = ""
    if seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 10 minutes"
    if seconds > _MOST_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        cause = Cause.invalid("spec.expirationSeconds", str(seconds), why)
        raise statuses.invalid("TokenRequest", "authentication.k8s.io", "", [cause])
