"""Lifetimes of tokens that kubelets request."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
POD = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
REQUESTS: dict[str, dict[str, Any]] = {
    "of-a-pod": {"expirationSeconds": 3607, "boundObjectRef": POD},
    "of-a-pod-for-another-time": {"expirationSeconds": 3608, "boundObjectRef": POD},
    "of-a-pod-for-others": {"expirationSeconds": 3607, "boundObjectRef": POD, "audiences": ["vault"]},
    "of-a-secret": {"expirationSeconds": 3607, "boundObjectRef": SECRET},
    "of-nothing": {"expirationSeconds": 3607},
}


def lengths(body: Any) -> Any:
    """Return the lifetime of a token, and the time after which kubelets renew it."""
    claims = body["status"]["token"].split(".")[1]
    told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    warns = told["kubernetes.io"].get("warnafter")
    return {"holds": told["exp"] - told["iat"], "warns": warns and warns - told["iat"], "spec": body["spec"]}


@variants("spec", REQUESTS)
async def test_kubelet_token_has_an_extended_lifetime(api: Conversation, spec: dict[str, Any]) -> None:
    await api.create(ACCOUNTS, {"metadata": {"name": "a"}})
    await api.create("/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}})
    containers = [{"name": "c", "image": "i"}]
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "a", "containers": containers}}
    await api.create("/api/v1/namespaces/{ns}/pods", pod)
    answer = await api("POST", f"{ACCOUNTS}/a/token", {"spec": spec}, shown=lengths)
    assert answer.status == 201
