"""What a write is about, by its request."""

from __future__ import annotations

import pytest

from aioinformer.client.targets import target_of
from aioinformer.transport import Request


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("POST /api/v1/namespaces/shop/pods", "create pods in shop"),
        ("PATCH /api/v1/namespaces/shop/pods/web-0/status", "patch pods/status shop/web-0"),
        ("PUT /apis/apps/v1/namespaces/shop/deployments/web", "update deployments.apps shop/web"),
        ("DELETE /apis/apps/v1/namespaces/shop/deployments", "deletecollection deployments.apps in shop"),
        ("DELETE /api/v1/nodes/node-1", "delete nodes node-1"),
        ("POST /api/v1/namespaces", "create namespaces"),
        ("DELETE /api/v1/namespaces/shop", "delete namespaces shop"),
        ("PUT /api/v1/namespaces/shop/finalize", "update namespaces/finalize shop"),
        ("POST /apis/x.io/v1/namespaces/shop/status", "create status.x.io in shop"),
        (
            "PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
            "patch clusterroles.rbac.authorization.k8s.io a:b",
        ),
    ],
)
def test_target_has_verb_resource_and_name(request_line: str, expected: str) -> None:
    method, path = request_line.split()
    assert str(target_of(Request(path, method=method))) == expected


@pytest.mark.parametrize("path", ["/healthz", "/api/v1", "/apis/apps/v1"])
def test_path_of_no_resource_has_no_target(path: str) -> None:
    assert target_of(Request(path, method="POST")) is None
