"""Reviews as an API server sends them, and what is in the answers."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer import Resource
from aioinformer.testing.patches.json_patches import json_patch

if TYPE_CHECKING:
    from aioinformer.webhooks import Admission


class Spec(msgspec.Struct, frozen=True):
    size: int = 1
    owner: str = ""


class Widget(msgspec.Struct, frozen=True, rename="camel"):
    metadata: dict[str, Any] = {}
    spec: Spec = Spec()
    api_version: str = "example.com/v1"
    kind: str = "Widget"


WIDGETS: Resource[Widget] = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)


def widget(name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "managedFields": [{"manager": "kubectl"}]}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def review(new: dict[str, Any] | None, old: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    given = new or old or {}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
            "name": given["metadata"].get("name", ""),
            "namespace": "shop",
            "operation": "DELETE" if new is None else "UPDATE" if old else "CREATE",
            "userInfo": {"username": "ann", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["a"]}},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **others,
        },
    }


async def response(admission: Admission, path: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Return the response of an answer, which must be a decision."""
    status, body = await admission.answer(path, json.dumps(sent).encode(), "10s")
    assert status == 200, body
    answer = json.loads(body)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == sent["request"]["uid"]
    found: dict[str, Any] = answer["response"]
    return found


def patched(sent: dict[str, Any], found: dict[str, Any]) -> Any:
    """Return the object of a review with the patch of its response."""
    if "patch" not in found:
        return sent["request"]["object"]
    assert found["patchType"] == "JSONPatch"
    return json_patch(sent["request"]["object"], json.loads(base64.b64decode(found["patch"])))
