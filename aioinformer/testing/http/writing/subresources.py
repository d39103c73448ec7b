"""The subresources `scale`, which changes the replicas of another object, and `token` of service accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources.resource import Resource
from aioinformer.testing.access.authn import ISSUER
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object, encode_plain, ordered_metadata
from aioinformer.testing.api.responses import json_response
from aioinformer.testing.api.served import Served
from aioinformer.testing.api.statuses import Cause, with_warnings
from aioinformer.testing.http.reading.reads import object_response
from aioinformer.testing.http.writing.bodies import name_configuration, read_configuration, read_object, write_options
from aioinformer.testing.http.writing.patching import checked_patch, patch_type, warned
from aioinformer.testing.ownership.managers import track
from aioinformer.testing.ownership.scale import apply_scale, read_scale, scale_owners, set_replicas
from aioinformer.testing.patches.media_types import APPLY_PATCH
from aioinformer.testing.schemas.field_checks import check_object
from aioinformer.testing.state.preconditions import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.responses import Wanted
    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.http.writing.bodies import WriteOptions
    from aioinformer.testing.http.writing.webhooks import Webhooks
    from aioinformer.testing.state.cluster import Cluster

_SCALES: Resource[Any] = Resource(group="autoscaling", version="v1", plural="scales", kind="Scale", namespaced=True)
_SCALE = Served(_SCALES)
_REQUESTS: Resource[Any] = Resource(
    group="authentication.k8s.io", version="v1", plural="tokenrequests", kind="TokenRequest", namespaced=True
)
_REQUEST = Served(_REQUESTS)
_DEFAULT_SECONDS = 3600
_LEAST_SECONDS = 600
_MOST_SECONDS = 2**32
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Scaling:
    """Answer requests for the scale of an object."""

    def __init__(self, cluster: Cluster, webhooks: Webhooks) -> None:
        self._cluster = cluster
        self._webhooks = webhooks

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Read or change the number of replicas."""
        if target.verb == "get":
            obj = await self._webhooks.conversions.settle(lambda: self._object(served, target))
            return self._scale_response(request, read_scale(served, obj, must_exist=True), wanted, target)
        content_type = request.headers.get("Content-Type", "")
        applies = target.verb == "patch" and patch_type(_SCALE, content_type) == APPLY_PATCH
        data = await request.read()
        kind = "UpdateOptions" if target.verb == "update" else "PatchOptions"
        options = write_options(request, target, served, kind, applies=applies)
        warnings: list[str] = []

        def write(dry_run: bool) -> tuple[bytes, bool]:
            if applies:
                body = self._applied(target, served, data, options._replace(dry_run=dry_run), warnings)
                return _scale_of(served, served.body(body)), False
            obj = self._object(served, target)
            scale = self._wanted(target, served, obj, data, content_type, options, warnings)
            _check_place(scale.get("metadata") or {}, target)
            return store(scale, dry_run), False

        def store(scale: dict[str, Any], dry_run: bool) -> bytes:
            obj = self._object(served, target)
            changed = apply_scale(served, obj, scale)
            body = self._cluster.writer.update(
                served, target.namespace, target.name, changed, by=options.by, dry_run=dry_run
            )
            return _scale_of(served, served.body(body))

        with warned(warnings):
            body, _ = await self._webhooks.admit(
                served,
                target.namespace,
                target.name,
                options,
                write,
                subresource="scale",
                seen=lambda obj: read_scale(served, obj),
                changing=store,
            )
        answer = self._scale_response(request, decode(body), wanted, target)
        return with_warnings(answer, list(dict.fromkeys(warnings)))  # a webhook lets it be read again

    def _object(self, served: Served, target: Target) -> dict[str, Any]:
        obj: dict[str, Any] = decode(served.body(self._cluster.store.get(served, target.namespace, target.name).body))
        return obj

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


def _scale_of(served: Served, body: bytes) -> bytes:
    return encode_object(read_scale(served, decode(body)), custom=False)


def _check_place(metadata: Mapping[str, Any], target: Target) -> None:
    check_name(metadata, target.name)
    if (metadata.get("namespace") or target.namespace) != target.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise statuses.bad_request(why)


class TokenRequests:
    """Answer token requests."""

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access

    async def answer(
        self, request: web.BaseRequest, target: Target, served: Served, wanted: Wanted
    ) -> web.StreamResponse:
        """Issue a token."""
        options = write_options(request, target, _REQUEST, "CreateOptions")
        obj, repeated = read_object(_REQUEST, await request.read(), request.headers.get("Content-Type", ""))
        warnings = check_object(_REQUEST, obj, options.directive, repeated)
        metadata = obj.get("metadata") or {}
        _check_place({"name": target.name} | metadata, target)
        account = self._cluster.store.get(served, target.namespace, target.name)
        spec = dict(obj.get("spec") or {})
        obj["spec"] = spec
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _DEFAULT_SECONDS
        seconds = spec["expirationSeconds"]
        _check_seconds(seconds)
        self._check_bound(target.namespace, spec.get("boundObjectRef") or {})
        obj["kind"] = _REQUESTS.kind
        obj["apiVersion"] = _REQUESTS.api_version
        obj["metadata"] = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
        track(_REQUEST, None, obj, options.by, self._cluster.now())
        obj["metadata"] |= {
            "name": target.name,
            "namespace": target.namespace,
            "uid": account.uid,
            "creationTimestamp": self._cluster.now(),
        }
        obj["metadata"] = ordered_metadata(obj["metadata"])
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        spec.setdefault("boundObjectRef", None)
        token, expires = self._access.authn.issue(account, spec["audiences"], seconds)
        obj["status"] = {"token": token, "expirationTimestamp": expires}
        ordered = {field: obj[field] for field in ("kind", "apiVersion", "metadata", "spec", "status")}
        return with_warnings(json_response(request, encode_plain(ordered), status=201), warnings)

    def _check_bound(self, namespace: str, reference: Mapping[str, Any]) -> None:
        """Check that a token can be bound to an object, and that the object exists; the token does not end with it."""
        if not reference:
            return
        kind = str(reference.get("kind") or "")
        version = str(reference.get("apiVersion") or "")
        if "/" in version or kind not in _BINDABLE:
            shown = version if "/" in version else f"/{version}"
            raise statuses.bad_request(f"cannot bind token to object of type {shown}, Kind={kind}")
        served = self._cluster.store.registry.find("", "v1", _BINDABLE[kind])
        assert served is not None
        self._cluster.store.get(served, "" if kind == "Node" else namespace, str(reference.get("name") or ""))


def _check_seconds(seconds: int) -> None:
    why = ""
    if seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 10 minutes"
    if seconds > _MOST_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        cause = Cause.invalid("spec.expirationSeconds", str(seconds), why)
        raise statuses.invalid("TokenRequest", "authentication.k8s.io", "", [cause])
