"""Plain HTTP requests to an API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
            }
        ],
    },
}


class Api:
    """Send requests, and read the responses as JSON.

    Args:
        session: with the server as its base URL.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> tuple[int, Any]:
        """Return status and decoded body; a body that is not JSON is text."""
        headers = {"Accept": accept} if accept else {}
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        if data is not None:
            headers["Content-Type"] = content_type
        async with self.session.request(method, path, data=data, headers=headers) as response:
            text = await response.text()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

    async def create(self, name: str, *, labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
        """Create a ConfigMap."""
        obj = {"metadata": {"name": name, "labels": labels or {}, **metadata}}
        status, created = await self("POST", CONFIGMAPS, obj)
        assert status == 201, created
        result: dict[str, Any] = created
        return result

    async def events(self, query: str, path: str = CONFIGMAPS, *, accept: str = "") -> list[dict[str, Any]]:
        """Return all events of a watch with a timeout of one second."""
        headers = {"Accept": accept} if accept else {}
        async with self.session.get(f"{path}?watch=true&timeoutSeconds=1&{query}", headers=headers) as response:
            assert response.status == 200, await response.text()
            return [json.loads(line) async for line in response.content]


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return types and names of events."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]
