"""Service account tokens: requests, bound objects, reviews."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.paths import CONFIGMAPS, PODS
from tests.real.contract.test_access import ACCOUNTS, CORE, grant, token_of
from tests.real.contract.test_rbac import rule

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation

A = f"{CONFIGMAPS}/a"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
NODES = "/api/v1/nodes"
TOKEN = f"{ACCOUNTS}/robot/token"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
API = "https://kubernetes.default.svc.cluster.local"

_ATTEMPTS = 30
_BETWEEN_QUESTIONS = 0.02


async def create_robot(api: Conversation) -> dict[str, Any]:
    return await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})


async def request_bound_token(api: Conversation, kind: str, name: str, **more: Any) -> Answer:
    reference = {"kind": kind, "apiVersion": "v1", "name": name, **more}
    return await api("POST", TOKEN, {"spec": {"boundObjectRef": reference}})


async def wait_until_token_ends(api: Conversation, kind: str, name: str, path: str) -> Answer:
    """Delete the bound object, and wait until the token is invalid: the server caches reviews for a while."""
    tokens = []
    for _ in range(_ATTEMPTS):
        body = {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}}}
        answer = await api("POST", TOKEN, body, recorded=False)
        tokens.append(answer.body["status"]["token"])
    await api("DELETE", f"{path}/{name}?gracePeriodSeconds=0", recorded=False)
    while len(tokens) > 1:
        answer = await api("POST", REVIEW, {"spec": {"token": tokens.pop()}}, recorded=False)
        if "authenticated" not in answer.body["status"]:
            break
        await asyncio.sleep(_BETWEEN_QUESTIONS)
    return await review_token(api, tokens.pop())


async def review_token(api: Conversation, token: str) -> Answer:
    """Read the user of a token, and review the token."""
    await api("POST", WHO, {}, headers={"Authorization": f"Bearer {token}"})
    return await api("POST", REVIEW, {"spec": {"token": token}})


def pod(account: str = "robot", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/main"}]
    spec |= {"serviceAccountName": account, "automountServiceAccountToken": False, "containers": containers}
    return {"metadata": {"name": "p"}, "spec": spec}


REQUESTS: dict[str, Any] = {
    "nothing": {},
    "null": {"spec": None},
    "no_audience": {"spec": {"audiences": []}},
    "audiences": {"spec": {"audiences": ["https://a.example.com", API]}},
    "empty_audience": {"spec": {"audiences": [""]}},
    "no_seconds": {"spec": {"expirationSeconds": None}},
    "zero": {"spec": {"expirationSeconds": 0}},
    "exactly": {"spec": {"expirationSeconds": 600}},
    "almost": {"spec": {"expirationSeconds": 599}},
    "most": {"spec": {"expirationSeconds": 2**32}},
    "name": {"metadata": {"name": "robot", "namespace": "{ns}"}},
    "other_name": {"metadata": {"name": "other"}},
    "other_namespace": {"metadata": {"namespace": "default"}},
    "other_uid": {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}},
    "labels": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
    "status": {"status": {"token": "mine"}},
    "unknown": {"spec": {"seconds": 1}},
    "kind": {"apiVersion": "v1", "kind": "Pod"},
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_token_requests(api: Conversation, case: str) -> None:
    await create_robot(api)
    body = REQUESTS[case]
    if case == "name":
        body = {"metadata": {"name": "robot", "namespace": api.namespace}}
    answer = await api("POST", TOKEN, body)
    assert answer.status in (201, 400, 409, 422)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_tokens_support_create_only(api: Conversation, method: str) -> None:
    await create_robot(api)
    answer = await api(method, TOKEN, {} if method in ("PUT", "PATCH") else None)
    assert answer.status == 405


async def test_token_request_dry_run(api: Conversation) -> None:
    await create_robot(api)
    answer = await api("POST", f"{TOKEN}?dryRun=All", {"spec": {}})
    assert answer.status == 201


async def test_account_may_request_its_own_token_by_role(api: Conversation) -> None:
    headers = {"Authorization": f"Bearer {await token_of(api, 'robot')}"}
    await api("POST", TOKEN, {"spec": {}}, headers=headers)
    await grant(
        api,
        rule("", "serviceaccounts/token", "create", resourceNames=["robot"]),
        kind="ServiceAccount",
        name="robot",
        namespace=api.namespace,
    )
    answer = await api("POST", TOKEN, {"spec": {}}, headers=headers)
    assert answer.status == 201


async def test_pod_bound_token_ends_with_the_pod(api: Conversation) -> None:
    await create_robot(api)
    await api.create(PODS, pod())
    token = (await request_bound_token(api, "Pod", "p")).body["status"]["token"]
    await review_token(api, token)
    answer = await wait_until_token_ends(api, "Pod", "p", PODS)
    assert "authenticated" not in answer.body["status"]


async def test_pod_bound_token_names_the_node(api: Conversation) -> None:
    await create_robot(api)
    await api.create(PODS, pod(nodeName=f"node-of-{api.namespace}"))
    token = (await request_bound_token(api, "Pod", "p")).body["status"]["token"]
    answer = await review_token(api, token)
    assert "authentication.kubernetes.io/node-name" in answer.body["status"]["user"]["extra"]


async def test_secret_bound_token_ends_with_the_secret(api: Conversation) -> None:
    await create_robot(api)
    await api.create(SECRETS, {"metadata": {"name": "s"}})
    token = (await request_bound_token(api, "Secret", "s")).body["status"]["token"]
    await review_token(api, token)
    answer = await wait_until_token_ends(api, "Secret", "s", SECRETS)
    assert "authenticated" not in answer.body["status"]


async def test_node_bound_token_ends_with_the_node(api: Conversation) -> None:
    await create_robot(api)
    name = f"node-of-{api.namespace}"
    await api.create(NODES, {"metadata": {"name": name}})
    token = (await request_bound_token(api, "Node", name)).body["status"]["token"]
    await review_token(api, token)
    answer = await wait_until_token_ends(api, "Node", name, NODES)
    assert "authenticated" not in answer.body["status"]


BOUND: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no_pod": ("Pod", "none", {}),
    "no_secret": ("Secret", "none", {}),
    "no_node": ("Node", "none", {}),
    "pod_of_another": ("Pod", "p", {}),
    "no_kind": ("", "p", {}),
    "config_map": ("ConfigMap", "none", {}),
    "deployment": ("Deployment", "none", {"apiVersion": "apps/v1"}),
    "other_uid": ("Secret", "s", {"uid": "00000000-0000-0000-0000-000000000000"}),
    "no_name": ("Pod", "", {}),
}


@pytest.mark.parametrize("case", BOUND)
async def test_bound_object_must_exist(api: Conversation, case: str) -> None:
    await create_robot(api)
    await api.create(ACCOUNTS, {"metadata": {"name": "other"}})
    await api.create(PODS, pod("other"))
    await api.create(SECRETS, {"metadata": {"name": "s"}})
    kind, name, more = BOUND[case]
    answer = await request_bound_token(api, kind, name, **more)
    assert answer.status in (400, 404, 409)


async def test_token_of_a_recreated_account_is_invalid(api: Conversation) -> None:
    token = await token_of(api, "robot")
    await api("DELETE", f"{ACCOUNTS}/robot", recorded=False)
    await api("POST", REVIEW, {"spec": {"token": token}})
    await create_robot(api)
    answer = await api("POST", REVIEW, {"spec": {"token": token}})
    assert "authenticated" not in answer.body["status"]


async def test_token_for_another_audience_is_401(api: Conversation) -> None:
    token = await token_of(api, "robot", audiences=["https://example.com"])
    answer = await api("GET", A, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 401


async def test_token_for_several_audiences_is_accepted(api: Conversation) -> None:
    token = await token_of(api, "robot", audiences=["https://example.com", API])
    answer = await api("GET", A, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 403


@pytest.mark.parametrize("audiences", [["a"], ["b", "a"], ["c"], [], [API], ["a", "b"]], ids=range(6))
async def test_token_review_by_audience(api: Conversation, audiences: list[str]) -> None:
    token = await token_of(api, "robot", audiences=["a", "b"])
    answer = await api("POST", REVIEW, {"spec": {"token": token, "audiences": audiences}})
    assert answer.status == 201


@pytest.mark.parametrize(
    "body",
    [{}, {"spec": {}}, {"spec": {"token": ""}}, {"spec": {"token": "a.b.c"}}, {"spec": {"token": "x", "more": 1}}],
    ids=range(5),
)
async def test_token_review_bodies(api: Conversation, body: Any) -> None:
    answer = await api("POST", REVIEW, body)
    assert answer.status in (201, 400)


async def test_token_review_needs_rights(api: Conversation) -> None:
    answer = await api("POST", REVIEW, {"spec": {"token": "x"}}, user="jane")
    assert answer.status == 403


@pytest.mark.parametrize(
    "said",
    ["", "Bearer", "Bearer ", "bearer none", "Bearer  none", "Bearer none more", "Basic YTpi", "none", "Bearer a.b.c"],
    ids=range(9),
)
async def test_malformed_authorization_is_anonymous_or_401(api: Conversation, said: str) -> None:
    headers = {"Authorization": said}
    await api("GET", "/version", headers=headers, recorded=False)
    await api("GET", "/api", headers=headers)
    answer = await api("GET", A, headers=headers)
    assert answer.status in (401, 403)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT"])
async def test_unauthenticated_writes_are_401(api: Conversation, method: str) -> None:
    headers = {"Authorization": "Bearer none"}
    answer = await api(method, A, {} if method != "DELETE" else None, headers=headers)
    assert answer.status == 401


@pytest.mark.parametrize("accept", ["application/yaml", "text/html", "*/*", ""], ids=range(4))
async def test_unauthorized_error_follows_the_accept_header(api: Conversation, accept: str) -> None:
    answer = await api("GET", A, headers={"Authorization": "Bearer none"}, accept=accept)
    assert answer.status == 401


async def test_unauthenticated_group_may_get_rights(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name="system:unauthenticated")
    answer = await api("GET", A, headers={"Authorization": ""})
    assert answer.status == 404


async def test_service_accounts_are_a_group(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name=f"system:serviceaccounts:{api.namespace}")
    token = await token_of(api, "robot")
    answer = await api("GET", A, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 404
