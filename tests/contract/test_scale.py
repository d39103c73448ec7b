"""The scale subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import DEPLOYMENTS, PODS
from tests.contract.talk import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.contract.test_writes import DEPLOYMENT

if TYPE_CHECKING:
    from tests.contract.talk import Talk

A = f"{DEPLOYMENTS}/a"
SCALE = f"{A}/scale"


def scale(replicas: Any, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "spec": {"replicas": replicas}}


async def test_get_scale(talk: Talk) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    answer = await talk("GET", SCALE)
    assert answer.body["spec"] == {"replicas": 1}


@pytest.mark.parametrize("plural", ["replicasets", "statefulsets"])
async def test_put_scale_of_replica_and_stateful_sets(talk: Talk, plural: str) -> None:
    path = f"/apis/apps/v1/namespaces/{{ns}}/{plural}"
    await talk.made(path, DEPLOYMENT)
    answer = await talk("PUT", f"{path}/a/scale", scale(4))
    assert answer.body["spec"] == {"replicas": 4}


async def test_get_scale_of_a_replication_controller(talk: Talk) -> None:
    path = "/api/v1/namespaces/{ns}/replicationcontrollers"
    spec = DEPLOYMENT["spec"] | {"selector": {"a": "b"}}
    await talk.made(path, DEPLOYMENT | {"spec": spec})
    answer = await talk("GET", f"{path}/a/scale")
    assert answer.body["status"]["selector"] == "a=b"


async def test_scale_shows_the_selector_as_text(talk: Talk) -> None:
    selector = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "x", "operator": "NotIn", "values": ["z", "y"]},
            {"key": "a", "operator": "Exists"},
        ],
    }
    await talk.made(DEPLOYMENTS, DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"selector": selector}})
    answer = await talk("GET", SCALE)
    assert answer.status == 200


async def test_put_sets_replicas(talk: Talk) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    await talk("PUT", SCALE, scale(3))
    answer = await talk("GET", A)
    assert answer.body["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    "content_type", [MERGE_PATCH, JSON_PATCH, STRATEGIC, APPLY], ids=["merge", "json", "strategic", "apply"]
)
async def test_patch_sets_replicas(talk: Talk, content_type: str) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    body: Any = {"spec": {"replicas": 5}}
    if content_type == JSON_PATCH:
        body = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    if content_type == APPLY:
        body |= {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    query = "?fieldManager=one&force=true" if content_type == APPLY else ""
    await talk("PATCH", SCALE + query, body, content_type=content_type)
    answer = await talk("GET", A)
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
async def test_scale_is_validated(talk: Talk, case: str) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    answer = await talk("PUT", SCALE, BODIES[case])
    assert answer.status in (200, 400, 409, 422)


async def test_negative_replicas_in_a_patch_are_refused(talk: Talk) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    answer = await talk("PATCH", SCALE, {"spec": {"replicas": -1}}, content_type=MERGE_PATCH)
    assert answer.status == 422


async def test_dry_run_does_not_scale(talk: Talk) -> None:
    await talk.made(DEPLOYMENTS, DEPLOYMENT)
    await talk("PUT", f"{SCALE}?dryRun=All", scale(3))
    answer = await talk("GET", SCALE)
    assert answer.body["spec"] == {"replicas": 1}


async def test_scale_of_a_missing_object_is_404(talk: Talk) -> None:
    await talk("GET", SCALE)
    answer = await talk("PUT", SCALE, scale(3))
    assert answer.status == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_create_and_delete_are_405(talk: Talk, method: str) -> None:
    answer = await talk(method, SCALE, scale(3))
    assert answer.status == 405


async def test_pod_has_no_scale(talk: Talk) -> None:
    answer = await talk("GET", f"{PODS}/a/scale")
    assert answer.status == 404
