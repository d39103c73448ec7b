"""Configurations of webhooks, and a server that plays them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from aioinformer import Resource

if TYPE_CHECKING:
    import ssl


class Hooks:
    """A server of webhooks: notes each review, and answers it as `answers` says for its path.

    Args:
        context: for TLS, without which kube-apiserver calls no webhook.

    Attributes:
        seen: path and request of each review.
        answers: members of the response, by path; an int is a status without a decision.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.url = ""
        app = web.Application()
        app.router.add_post("/{path:.*}", self.answer)
        self._server = TestServer(app, scheme="https" if context else "http")
        self._context = context

    async def __aenter__(self) -> Self:
        await self._server.start_server(ssl=self._context)
        self.url = str(self._server.make_url("")).rstrip("/")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]

    async def answer(self, request: web.Request) -> web.Response:
        sent = (await request.json())["request"]
        self.seen.append((request.path, sent))
        found = self.answers.get(request.path, {})
        if callable(found):
            found = await found(sent)
        if isinstance(found, int):
            return web.Response(status=found, text="no decision")
        response = {"uid": sent["uid"], "allowed": True, **found}
        answer = web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        )
        answer.force_close()  # a connection that stays open outlives the event loop
        return answer

    def webhook(self, path: str, **others: Any) -> dict[str, Any]:
        return webhook(path, {"url": f"{self.url}/{path}"}, **others)


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a response with a patch."""
    return {"patch": base64.b64encode(json.dumps(operations).encode()).decode(), "patchType": "JSONPatch"}


def webhook(name: str, config: dict[str, Any], **others: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": ["example.com"],
        "apiVersions": ["v1"],
        "resources": ["widgets"],
        "operations": ["CREATE", "UPDATE"],
    }
    required = {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return {"name": f"{name}.example.com", "clientConfig": config, "rules": [rule], **required, **others}


def configuration(kind: str, *webhooks: dict[str, Any], name: str = "widgets.shop") -> dict[str, Any]:
    api_version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "webhooks": list(webhooks)}


KINDS = {"default": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}


def resource_of(kind: str) -> Resource[Any]:
    return Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
