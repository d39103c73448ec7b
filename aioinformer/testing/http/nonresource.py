"""Requests that are about no resource: discovery, OpenAPI documents, health and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_plain, pretty
from aioinformer.testing.api.responses import common_headers, json_response, text_response
from aioinformer.testing.api.routes import UnknownPath
from aioinformer.testing.http.discovery import VERSION, discovery_document, openapi_response

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from aioinformer.testing.api.served import Registry
    from aioinformer.testing.state.storage import Storage

_HOOKS = (
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/rbac/bootstrap-roles",
)
"""The slowest checks of a server that has just started; a real one has many more."""
_ALIVE = ("ping", "log", "etcd", *_HOOKS)
_CHECKS = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "informer-sync", *_HOOKS, "shutdown"),
}
_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_PATHS = ("/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version")
# Internals of a real server, and the keys of its tokens. This server does not publish its keys.
_MISSING = (
    "/.well-known/openid-configuration",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openid/v1/jwks",
    "/statusz",
)


def nonresource_response(
    request: web.BaseRequest, path: str, registry: Registry, storage: Storage, *, starting: bool = False
) -> web.StreamResponse:
    """Answer a request that is about no resource.

    Args:
        path: as sent.
        starting: whether parts of the server are not ready.

    Raises:
        UnknownPath: there is no such path.
        StatusError: 404, 405, 406; 501 for paths that only a real server has.
    """
    asked = request.query
    failing = _HOOKS if starting else ()
    report = _health_report(path, verbose="verbose" in asked, excluded=asked.getall("exclude", ()), failing=failing)
    if report is not None:
        return text_response(request, report[1], 200 if report[0] else 500)
    if path == "/":
        return json_response(request, encode_plain({"paths": sorted(_paths(registry))}))
    if path in _MISSING:
        raise statuses.StatusError(501, "NotImplemented", f"this server has no {path}")
    plain = path.rstrip("/")
    if plain == "/version":
        if request.method != "GET":
            raise statuses.method_not_allowed()
        return json_response(request, pretty(encode_plain(VERSION)))
    if plain.startswith("/openapi"):
        definitions = [decode(record.body) for record in storage.collection(_CRDS).records()]
        return openapi_response(request, plain, registry, definitions)
    if plain in ("/api", "/apis") or plain.startswith(("/api/", "/apis/")):
        return _discovered(request, plain, registry)
    raise UnknownPath(path)


def _health_report(
    path: str, *, verbose: bool, excluded: Collection[str], failing: Collection[str]
) -> tuple[bool, str] | None:
    """Return whether the checks at a path pass, and the report; None if there is no such check."""
    endpoint, _, check = path.removeprefix("/").partition("/")
    checks = _CHECKS.get(endpoint)
    if checks is None or (check and check not in checks) or path.endswith("/"):
        return None
    if check:
        if check in failing:
            return (False, "internal server error: not finished\n")
        return (True, "ok")
    failed = [name for name in checks if name in failing and name not in excluded]
    if not failed and not verbose:
        return True, "ok"
    lines = [f"[-]{name} failed: reason withheld\n" if name in failed else f"[+]{name} ok\n" for name in checks]
    return not failed, f"{''.join(lines)}{endpoint} check {'failed' if failed else 'passed'}\n"


def _discovered(request: web.BaseRequest, path: str, registry: Registry) -> web.Response:
    found = discovery_document(registry, path, request.headers.get("Accept", ""), request.host)
    if found is None:
        raise UnknownPath(path)
    document, headers = found
    if request.method != "GET" and document["kind"] in ("APIVersions", "APIResourceList"):
        raise statuses.method_not_allowed()
    if "ETag" in headers and headers["ETag"] == request.headers.get("If-None-Match"):
        kept = {name: value for name, value in headers.items() if name != "Content-Type"}
        return web.Response(status=304, headers=common_headers(request) | kept)
    return json_response(request, encode_plain(document), headers=headers)


def _paths(registry: Registry) -> Iterator[str]:
    yield from (*_PATHS, *_MISSING)
    for endpoint, checks in _CHECKS.items():
        yield from (f"/{endpoint}", *(f"/{endpoint}/{name}" for name in checks))
    for group in registry.groups():
        root = f"/apis/{group}" if group else "/api"
        if group:
            yield root
        yield from (f"{root}/{version}" for version in registry.versions(group))
