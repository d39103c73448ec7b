"""Requests to the scale subresource: they read and write a `Scale`, and change the object behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources import Resource
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.negotiation import media_type
from aioinformer.testing.api.served import Served
from aioinformer.testing.http.bodies import read_object
from aioinformer.testing.http.object_answers import object_answer
from aioinformer.testing.http.patching import APPLY, checked_patch, read_configuration
from aioinformer.testing.http.writes import dry_run_of, with_warnings, writer
from aioinformer.testing.kinds.field_checks import check_object, validation_directive
from aioinformer.testing.kinds.scale import read_scale, scaled, set_replicas
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.state.preconditions import check_name

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.state.cluster import Cluster

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_SCALES: Resource[Any] = Resource(group="autoscaling", version="v1", plural="scales", kind="Scale", namespaced=True)
_SCALE = Served(_SCALES)


class Scaling:
    """Answers requests for the scale of something.

    Args:
        cluster: where that is.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Reads or changes the number of replicas.

        Raises:
            StatusError: 400, 404, 409, 415, 422 or 500, as the API has it.
        """
        if target.verb == "get":
            obj = decode(self._cluster.ledger.get(served, target.namespace, target.name).body)
            return self._scale_answer(request, read_scale(served, obj, must_exist=True), wanted, target)
        data, content_type = await request.read(), request.headers.get("Content-Type", "")
        obj = decode(self._cluster.ledger.get(served, target.namespace, target.name).body)
        options = "UpdateOptions" if target.verb == "update" else "PatchOptions"
        dry_run, by = dry_run_of(target.query, options), writer(request, target, served, options)
        warnings: list[str] = []
        if target.verb == "patch" and media_type(content_type) == APPLY:
            body = self._applied(target, served, data, dry_run=dry_run)
        else:
            if target.verb == "update":
                scale, repeated = read_object(_SCALE, data, content_type)
                warnings = check_object(_SCALE, scale, validation_directive(target.query, options), repeated)
                _check_place(scale, target)
            else:
                scale, warnings = checked_patch(
                    _SCALE, read_scale(served, obj), data, content_type, validation_directive(target.query, options)
                )
            changed = scaled(served, obj, scale)
            body = self._cluster.update(served, target.namespace, target.name, changed, by=by, dry_run=dry_run)
        scale = read_scale(served, decode(body))
        return with_warnings(self._scale_answer(request, scale, wanted, target), warnings)

    def _scale_answer(
        self, request: web.BaseRequest, scale: dict[str, Any], wanted: Wanted, target: Target
    ) -> web.Response:
        stored = encode_object(scale, custom=False)
        return object_answer(request, _SCALE, stored, wanted, target.query, self._cluster.clock)

    def _applied(self, target: Target, served: Served, data: bytes, *, dry_run: bool) -> bytes:
        scale = read_configuration(_SCALE, target.name, data, target.query)
        resource = served.resource
        config = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": scale["metadata"]}
        replicas = (scale.get("spec") or {}).get("replicas")
        if replicas is not None:
            set_replicas(served, config, replicas)
        by = Manager(target.query["fieldManager"], "Apply", resource.api_version, "scale")
        force = target.query.get("force", "") in _TRUE
        body, _ = self._cluster.apply(served, target.namespace, target.name, config, by, force=force, dry_run=dry_run)
        return body


def _check_place(scale: dict[str, Any], target: Target) -> None:
    metadata = scale.get("metadata") or {}
    check_name(metadata, target.name)
    if (metadata.get("namespace") or target.namespace) != target.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise statuses.bad_request(why)
