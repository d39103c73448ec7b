"""The scale subresource: reads and writes of a `Scale` change the replicas of another object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources.resource import Resource
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.served import Served
from aioinformer.testing.api.statuses import with_warnings
from aioinformer.testing.http.reading.responses import object_response
from aioinformer.testing.http.writing.bodies import name_configuration, read_configuration, read_object
from aioinformer.testing.http.writing.patching import checked_patch, patch_type, warned
from aioinformer.testing.http.writing.write_options import write_options
from aioinformer.testing.ownership.scale import apply_scale, read_scale, scale_owners, set_replicas
from aioinformer.testing.patches.media_types import APPLY_PATCH
from aioinformer.testing.schemas.field_checks import check_object
from aioinformer.testing.state.preconditions import check_name

if TYPE_CHECKING:
    from aiohttp import web

    from aioinformer.testing.api.negotiation import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.http.writing.write_options import WriteOptions
    from aioinformer.testing.state.cluster import Cluster

_SCALES: Resource[Any] = Resource(group="autoscaling", version="v1", plural="scales", kind="Scale", namespaced=True)
_SCALE = Served(_SCALES)


class Scaling:
    """Answer requests for the scale of an object.

    Args:
        cluster: the state of the server.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Read or change the number of replicas.

        Raises:
            StatusError: 400, 404, 409, 415, 422 or 500, as in the API.
        """
        if target.verb == "get":
            obj = decode(self._cluster.store.get(served, target.namespace, target.name).body)
            return self._scale_response(request, read_scale(served, obj, must_exist=True), wanted, target)
        content_type = request.headers.get("Content-Type", "")
        applies = target.verb == "patch" and patch_type(_SCALE, content_type) == APPLY_PATCH
        data = await request.read()
        kind = "UpdateOptions" if target.verb == "update" else "PatchOptions"
        options = write_options(request, target, served, kind, applies=applies)
        obj = decode(self._cluster.store.get(served, target.namespace, target.name).body)
        warnings: list[str] = []
        with warned(warnings):
            if applies:
                body = self._applied(target, served, data, options, warnings)
            else:
                scale = self._wanted(target, served, obj, data, content_type, options, warnings)
                _check_place(scale, target)
                changed = apply_scale(served, obj, scale)
                body = self._cluster.writer.update(
                    served, target.namespace, target.name, changed, by=options.by, dry_run=options.dry_run
                )
        scale = read_scale(served, decode(body))
        return with_warnings(self._scale_response(request, scale, wanted, target), warnings)

    def _scale_response(
        self, request: web.BaseRequest, scale: dict[str, Any], wanted: Wanted, target: Target
    ) -> web.Response:
        stored = encode_object(scale, custom=False)
        return object_response(request, _SCALE, stored, wanted, target.query, self._cluster)

    def _wanted(
        self,
        target: Target,
        served: Served,
        obj: dict[str, Any],
        data: bytes,
        content_type: str,
        options: WriteOptions,
        warnings: list[str],
    ) -> dict[str, Any]:
        if target.verb == "patch":
            scale = read_scale(served, obj)
            scale["metadata"]["managedFields"] = scale_owners(served, obj)
            return checked_patch(_SCALE, scale, data, content_type, options.directive, warnings)
        scale, repeated = read_object(_SCALE, data, content_type)
        warnings += check_object(_SCALE, scale, options.directive, repeated)
        return scale

    def _applied(
        self, target: Target, served: Served, data: bytes, options: WriteOptions, warnings: list[str]
    ) -> bytes:
        scale, repeated = read_configuration(_SCALE, data, options.directive)
        name_configuration(scale, target.name, exists=True)
        warnings += repeated
        resource = served.resource
        config = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": scale["metadata"]}
        replicas = (scale.get("spec") or {}).get("replicas")
        if replicas is not None:
            set_replicas(served, config, replicas)
        body, _ = self._cluster.writer.apply(
            served,
            target.namespace,
            target.name,
            config,
            options.by,
            force=options.force,
            dry_run=options.dry_run,
        )
        return body


def _check_place(scale: dict[str, Any], target: Target) -> None:
    metadata = scale.get("metadata") or {}
    check_name(metadata, target.name)
    if (metadata.get("namespace") or target.namespace) != target.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise statuses.bad_request(why)
