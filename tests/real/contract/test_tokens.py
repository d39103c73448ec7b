"""Service account tokens, and reviews of tokens and of access."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.tables import CONFIGMAPS, PODS
from tests.real.contract.test_access import ACCOUNTS, CORE, REVIEWS, grant, rule, token_of

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation


SELF = f"{REVIEWS}/selfsubjectaccessreviews"
RULES = f"{REVIEWS}/selfsubjectrulesreviews"
OTHERS = f"{REVIEWS}/subjectaccessreviews"


def asked(api: Conversation, **attributes: str) -> dict[str, Any]:
    said = {"namespace": api.namespace, "verb": "get", "resource": "configmaps", **attributes}
    return {"resourceAttributes": said}


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_self_subject_access_review(api: Conversation, verb: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", SELF, {"spec": asked(api, verb=verb)}, user="jane")
    assert answer.body["status"]["allowed"] == (verb == "get")


@pytest.mark.parametrize("path", ["/api", "/metrics"], ids=["api", "metrics"])
async def test_self_subject_access_review_of_a_path(api: Conversation, path: str) -> None:
    spec = {"nonResourceAttributes": {"path": path, "verb": "get"}}
    answer = await api("POST", SELF, {"spec": spec}, user="jane")
    assert answer.body["status"]["allowed"] == (path == "/api")


@pytest.mark.parametrize("spec", [{}, {"resourceAttributes": {}, "nonResourceAttributes": {}}], ids=["nothing", "both"])
async def test_access_review_needs_exactly_one_kind_of_attributes(api: Conversation, spec: dict[str, Any]) -> None:
    answer = await api("POST", SELF, {"spec": spec})
    assert answer.status == 422


@pytest.mark.parametrize("user", ["jane", "joe"])
async def test_subject_access_review_of_another_user(api: Conversation, user: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": user}})
    assert answer.body["status"]["allowed"] == (user == "jane")


async def test_subject_access_review_of_a_group(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name="readers")
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": "joe", "groups": ["readers"]}})
    assert answer.body["status"]["allowed"]


async def test_subject_access_review_needs_rights(api: Conversation) -> None:
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": "joe"}}, user="jane")
    assert answer.status == 403


def sorted_rules(body: dict[str, Any]) -> dict[str, Any]:
    """Return a review with sorted rules: their order varies."""
    status = body["status"]
    listed = {name: sorted(value, key=str) if isinstance(value, list) else value for name, value in status.items()}
    return body | {"status": listed}


GRANTED: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "one": [CORE],
    "names": [CORE | {"resourceNames": ["a", "b"]}],
    "two": [CORE, {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]}],
    "everything": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}


@pytest.mark.parametrize("case", GRANTED)
async def test_rules_review_lists_all_rules(api: Conversation, case: str) -> None:
    if GRANTED[case]:
        await grant(api, *GRANTED[case])
    answer = await api("POST", RULES, {"spec": {"namespace": api.namespace}}, user="jane", shown=sorted_rules)
    assert not answer.body["status"]["incomplete"]


A = f"{CONFIGMAPS}/a"
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
    "audiences": {"spec": {"audiences": ["https://a.example.com", API]}},
    "exactly": {"spec": {"expirationSeconds": 600}},
    "almost": {"spec": {"expirationSeconds": 599}},
    "most": {"spec": {"expirationSeconds": 2**32}},
    "name": {"metadata": {"name": "robot", "namespace": "{ns}"}},
    "other_name": {"metadata": {"name": "other"}},
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_token_requests(api: Conversation, case: str) -> None:
    await create_robot(api)
    body = REQUESTS[case]
    if case == "name":
        body = {"metadata": {"name": "robot", "namespace": api.namespace}}
    answer = await api("POST", TOKEN, body)
    assert answer.status in (201, 400, 409, 422)


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


async def test_token_of_a_recreated_account_is_invalid(api: Conversation) -> None:
    token = await token_of(api, "robot")
    await api("DELETE", f"{ACCOUNTS}/robot", recorded=False)
    await api("POST", REVIEW, {"spec": {"token": token}})
    await create_robot(api)
    answer = await api("POST", REVIEW, {"spec": {"token": token}})
    assert "authenticated" not in answer.body["status"]


@pytest.mark.parametrize("audiences", [["a"], ["b", "a"], ["c"], [], [API], ["a", "b"]], ids=range(6))
async def test_token_review_by_audience(api: Conversation, audiences: list[str]) -> None:
    token = await token_of(api, "robot", audiences=["a", "b"])
    answer = await api("POST", REVIEW, {"spec": {"token": token, "audiences": audiences}})
    assert answer.status == 201


async def test_token_review_needs_rights(api: Conversation) -> None:
    answer = await api("POST", REVIEW, {"spec": {"token": "x"}}, user="jane")
    assert answer.status == 403


async def test_service_accounts_are_a_group(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name=f"system:serviceaccounts:{api.namespace}")
    token = await token_of(api, "robot")
    answer = await api("GET", A, headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 404
