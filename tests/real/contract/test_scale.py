"""The scale subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.real.contract.paths import DEPLOYMENTS, PODS
from tests.real.contract.test_writes import DEPLOYMENT

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

A = f"{DEPLOYMENTS}/a"
SCALE = f"{A}/scale"


def scale(replicas: Any, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "spec": {"replicas": replicas}}


async def test_get_scale(api: Conversation) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    answer = await api("GET", SCALE)
    assert answer.body["spec"] == {"replicas": 1}


@pytest.mark.parametrize("plural", ["replicasets", "statefulsets"])
async def test_put_scale_of_replica_and_stateful_sets(api: Conversation, plural: str) -> None:
    path = f"/apis/apps/v1/namespaces/{{ns}}/{plural}"
    await api.create(path, DEPLOYMENT)
    answer = await api("PUT", f"{path}/a/scale", scale(4))
    assert answer.body["spec"] == {"replicas": 4}


async def test_get_scale_of_a_replication_controller(api: Conversation) -> None:
    path = "/api/v1/namespaces/{ns}/replicationcontrollers"
    spec = DEPLOYMENT["spec"] | {"selector": {"a": "b"}}
    await api.create(path, DEPLOYMENT | {"spec": spec})
    answer = await api("GET", f"{path}/a/scale")
    assert answer.body["status"]["selector"] == "a=b"


async def test_scale_shows_the_selector_as_text(api: Conversation) -> None:
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "x", "operator": "NotIn", "values": ["z", "y"]},
            {"key": "a", "operator": "Exists"},
        ],
    }
    await api.create(DEPLOYMENTS, DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"selector": selector}})
    answer = await api("GET", SCALE)
    assert answer.status == 200


async def test_put_sets_replicas(api: Conversation) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    await api("PUT", SCALE, scale(3))
    answer = await api("GET", A)
    assert answer.body["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    "content_type", [MERGE_PATCH, JSON_PATCH, STRATEGIC, APPLY], ids=["merge", "json", "strategic", "apply"]
)
async def test_patch_sets_replicas(api: Conversation, content_type: str) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    body: Any = {"spec": {"replicas": 5}}
    if content_type == JSON_PATCH:
        body = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    if content_type == APPLY:
        body |= {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    query = "?fieldManager=one&force=true" if content_type == APPLY else ""
    await api("PATCH", SCALE + query, body, content_type=content_type)
    answer = await api("GET", A)
    assert answer.body["spec"]["replicas"] == 5


BODIES: dict[str, Any] = {
    "negative": scale(-1),
    "text": scale("3"),
    "fraction": scale(1.5),
    "too_many": scale(2**40),
    "no_number": scale(None),
    "no_spec": {"metadata": {"name": "a"}},
    "no_name": {"spec": {"replicas": 3}},
    "other_name": {"metadata": {"name": "b"}, "spec": {"replicas": 3}},
    "other_namespace": scale(3, namespace="other"),
    "other_kind": scale(3) | {"apiVersion": "apps/v1", "kind": "Deployment"},
    "other_uid": scale(3, uid="another"),
    "other_version": scale(3, resourceVersion="1"),
    "unknown_field": scale(3) | {"extra": 1},
}


@pytest.mark.parametrize("case", BODIES)
async def test_scale_is_validated(api: Conversation, case: str) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    answer = await api("PUT", SCALE, BODIES[case])
    assert answer.status in (200, 400, 409, 422)


async def test_negative_replicas_in_a_patch_are_refused(api: Conversation) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    answer = await api("PATCH", SCALE, {"spec": {"replicas": -1}}, content_type=MERGE_PATCH)
    assert answer.status == 422


async def test_dry_run_does_not_scale(api: Conversation) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    await api("PUT", f"{SCALE}?dryRun=All", scale(3))
    answer = await api("GET", SCALE)
    assert answer.body["spec"] == {"replicas": 1}


async def test_scale_of_a_missing_object_is_404(api: Conversation) -> None:
    await api("GET", SCALE)
    answer = await api("PUT", SCALE, scale(3))
    assert answer.status == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_create_and_delete_are_405(api: Conversation, method: str) -> None:
    answer = await api(method, SCALE, scale(3))
    assert answer.status == 405


async def test_pod_has_no_scale(api: Conversation) -> None:
    answer = await api("GET", f"{PODS}/a/scale")
    assert answer.status == 404
