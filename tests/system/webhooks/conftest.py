"""A server with the configurations of webhooks, and the client for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with HttpTransport(api_server.url) as transport:
        yield Client(transport, field_manager="widgets")


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
