"""A conversion webhook for tests: it answers as it is told, also wrongly."""

from __future__ import annotations

import asyncio
import base64
import copy
import gc
import ssl
from typing import TYPE_CHECKING, Any, Self

import trustme
from aiohttp import web
from aiohttp.test_utils import TestServer

if TYPE_CHECKING:
    from collections.abc import Callable


class ConversionHooks:
    """Converts between v1, which has `replicas`, and v1alpha1, which has `size` for it.

    Attributes:
        seen: the reviews, as they were sent.
        change: changes an answer before it is sent; None for no change. It gets the answer and the review.
        status: of the HTTP answer.
        down: whether the connection is closed instead of an answer.
    """

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.change: Callable[[dict[str, Any], dict[str, Any]], None] | None = None
        self.status = 200
        self.down = False
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/convert", self._answer)
        self._server = TestServer(app, scheme="https")
        self._authority = trustme.CA()

    async def __aenter__(self) -> Self:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1").configure_cert(context)
        await self._server.start_server(ssl=context)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server.runner is not None
        servers = [site._server for site in self._server.runner.sites]
        await self._server.close()
        # kube-apiserver may have connections that it has not used, whose handshake is under way: aiohttp does not know
        # them, and they would outlive the event loop.
        for each in gc.get_objects():
            if isinstance(each, asyncio.Transport) and any(getattr(each, "_server", None) is one for one in servers):
                each.abort()
        await asyncio.sleep(0.1)

    @property
    def client_config(self) -> dict[str, Any]:
        trusted = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        return {"url": str(self._server.make_url("/convert")), "caBundle": trusted}

    async def _answer(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.seen.append(review)
        if self.down:
            assert request.transport is not None
            request.transport.close()
        sent = review["request"]
        converted = [convert(each, sent["desiredAPIVersion"]) for each in sent["objects"]]
        response = {"uid": sent["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
        answer = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        if self.change is not None:
            self.change(answer, review)
        found = web.json_response(answer, status=self.status)
        found.force_close()  # a connection that stays open outlives the event loop
        return found


def convert(document: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Return an object in another version."""
    found = copy.deepcopy(document)
    old, new = ("size", "replicas") if api_version.endswith("/v1") else ("replicas", "size")
    found["apiVersion"] = api_version
    for part in ("spec", "status"):
        place = found.get(part)
        if isinstance(place, dict) and old in place:
            place[new] = place.pop(old)
    return found


def definition(group: str, client_config: dict[str, Any], storage: str = "v1") -> dict[str, Any]:
    """Return the definition of gates in both versions."""
    versions = [_version(name, field, name == storage) for name, field in (("v1alpha1", "size"), ("v1", "replicas"))]
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client_config}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gates.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "gates", "kind": "Gate"},
            "scope": "Namespaced",
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def _version(name: str, field: str, storage: bool) -> dict[str, Any]:
    tier = {"type": "string", **({"default": "basic"} if name == "v1" else {})}
    fields = {field: {"type": "integer"}, "host": {"type": "string"}, "tier": tier}
    properties = {
        "spec": {"type": "object", "properties": fields},
        "status": {"type": "object", "properties": {field: {"type": "integer"}}},
    }
    scale = {"specReplicasPath": f".spec.{field}", "statusReplicasPath": f".status.{field}"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}, "scale": scale},
    }
