"""Authorization: impersonation, roles, bindings, tokens, reviews of tokens and of access."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, MERGE_PATCH, PATIENCE
from tests.real.contract.tables import ACCOUNTS, CONFIGMAPS, DEPLOYMENTS, PODS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation


A = f"{CONFIGMAPS}/a"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/{{ns}}/roles"
BINDINGS = f"{RBAC}/namespaces/{{ns}}/rolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1"
_BETWEEN_QUESTIONS = 0.02
CORE: dict[str, Any] = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}


async def grant(api: Conversation, *rules: dict[str, Any], user: str = "jane", **subject: str) -> None:
    """Grant rules to a user in the namespace."""
    await api.create(ROLES, {"metadata": {"name": "role"}, "rules": list(rules)})
    subject = subject or {"kind": "User", "name": user}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "role"}
    await api.create(BINDINGS, {"metadata": {"name": "binding"}, "subjects": [subject], "roleRef": role})
    await wait_until_allowed(api, subject, rules[0])


async def wait_until_allowed(api: Conversation, subject: dict[str, str], rule: dict[str, Any]) -> None:
    """Wait until the server's authorizer allows a rule."""
    name = subject["name"]
    who: dict[str, Any] = {"user": name}
    if subject["kind"] == "ServiceAccount":
        who = {"user": f"system:serviceaccount:{subject['namespace']}:{name}"}
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {
        "namespace": api.namespace,
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {"spec": {**who, "resourceAttributes": attributes}}
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await api("POST", f"{REVIEWS}/subjectaccessreviews", review, recorded=False)
            if answer.body["status"]["allowed"]:
                return
            await asyncio.sleep(_BETWEEN_QUESTIONS)


async def test_user_without_roles_is_forbidden(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, user="jane")
    assert answer.status == 403


FORBIDDEN: dict[str, tuple[str, str]] = {
    "get": ("GET", A),
    "list": ("GET", CONFIGMAPS),
    "watch": ("GET", f"{CONFIGMAPS}?watch=true"),
    "create": ("POST", CONFIGMAPS),
    "update": ("PUT", A),
    "patch": ("PATCH", A),
    "delete": ("DELETE", A),
    "group": ("GET", DEPLOYMENTS),
    "scale": ("GET", f"{DEPLOYMENTS}/a/scale"),
    "log": ("GET", f"{PODS}/a/log"),
    "token": ("POST", f"{ACCOUNTS}/a/token"),
}


@pytest.mark.parametrize("case", FORBIDDEN)
async def test_forbidden_requests_name_user_verb_and_resource(api: Conversation, case: str) -> None:
    method, path = FORBIDDEN[case]
    body = {"metadata": {"name": "a"}} if method in ("POST", "PUT", "PATCH") else None
    answer = await api(method, path, body, content_type=MERGE_PATCH, user="jane")
    assert answer.status == 403


@pytest.mark.parametrize("path", ["version", "api", "healthz"])
async def test_every_user_may_discover(api: Conversation, path: str) -> None:
    answer = await api("GET", f"/{path}", user="jane", recorded=False)
    assert answer.status == 200


async def test_role_allows_only_its_verbs(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    await grant(api, CORE)
    await api("GET", A, user="jane")
    await api("GET", CONFIGMAPS, user="jane")
    answer = await api("DELETE", A, user="jane")
    assert answer.status == 403


async def test_role_is_limited_to_resource_names(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    await grant(api, CORE | {"resourceNames": ["a"], "verbs": ["get", "list", "watch"]})
    await api("GET", A, user="jane")
    await api("GET", f"{CONFIGMAPS}/b", user="jane")
    await api("GET", CONFIGMAPS, user="jane")
    await api("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Da", user="jane")


async def test_cluster_role_is_bound_cluster_wide(api: Conversation) -> None:
    name = f"{api.namespace}-role"
    rules = [CORE, {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}]
    user = f"jane-{api.namespace}"
    await api.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "User", "name": user}
    await api.create(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    )
    await wait_until_allowed(api, subject, rules[0])
    await api("GET", A, user=user)
    answer = await api("GET", "/api/v1/namespaces/default/configmaps/a", user=user)
    assert answer.status == 404
    await api("DELETE", f"{RBAC}/clusterrolebindings/{name}", recorded=False)
    await api("DELETE", f"{RBAC}/clusterroles/{name}", recorded=False)


async def test_list_verb_does_not_allow_watch(api: Conversation) -> None:
    await grant(api, CORE | {"verbs": ["list"]})
    await api("GET", f"{CONFIGMAPS}?watch=true", user="jane")
    answer = await api("GET", A, user="jane")
    assert answer.status == 403


async def test_deleted_binding_revokes_rights(api: Conversation) -> None:
    await grant(api, CORE)
    await api("DELETE", f"{BINDINGS}/binding", recorded=False)
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await api("GET", A, user="jane", recorded=False)
            if answer.status == 403:
                break
            await asyncio.sleep(_BETWEEN_QUESTIONS)
    answer = await api("GET", A, user="jane")
    assert answer.status == 403


async def test_apply_that_creates_needs_create_and_patch(api: Conversation) -> None:
    await grant(api, CORE | {"verbs": ["patch"]})
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = await api("PATCH", f"{A}?fieldManager=one", obj, content_type=APPLY, user="jane")
    assert answer.status == 403


async def test_impersonation_needs_the_impersonate_verb(api: Conversation) -> None:
    await grant(api, CORE)
    token = await token_of(api, "robot")
    headers = {"Authorization": f"Bearer {token}", "Impersonate-User": "joe"}
    answer = await api("GET", A, headers=headers)
    assert answer.status == 403


async def token_of(api: Conversation, account: str, **spec: Any) -> str:
    """Return a token of a new service account."""
    await api.create(ACCOUNTS, {"metadata": {"name": account}})
    answer = await api("POST", f"{ACCOUNTS}/{account}/token", {"spec": spec}, recorded=False)
    token: str = answer.body["status"]["token"]
    return token


async def test_token_identifies_its_service_account(api: Conversation) -> None:
    headers = {"Authorization": f"Bearer {await token_of(api, 'robot')}"}
    answer = await api("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    assert answer.body["status"]["userInfo"]["username"] == f"system:serviceaccount:{api.namespace}:robot"


async def test_token_has_the_rights_of_its_account(api: Conversation) -> None:
    headers = {"Authorization": f"Bearer {await token_of(api, 'robot')}"}
    await api("GET", A, headers=headers)
    await grant(api, CORE, kind="ServiceAccount", name="robot", namespace=api.namespace)
    answer = await api("GET", A, headers=headers)
    assert answer.status == 404


async def test_deleted_account_invalidates_its_token(api: Conversation) -> None:
    headers = {"Authorization": f"Bearer {await token_of(api, 'robot')}"}
    await api("DELETE", f"{ACCOUNTS}/robot", recorded=False)
    answer = await api("GET", A, headers=headers)
    assert answer.status == 401


GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
WIDE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}


def rule(groups: str = "", resources: str = "", verbs: str = "get", **others: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **others}


def role(*rules: dict[str, Any], name: str = "more") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str = "Role", name: str = "more", user: str = "joe") -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": "given"}, "subjects": [{"kind": "User", "name": user}], "roleRef": reference}


async def test_role_ref_is_immutable(api: Conversation) -> None:
    await api.create(BINDINGS, binding())
    other = binding(name="other")
    await api("PUT", f"{BINDINGS}/given", other)
    answer = await api("PATCH", f"{BINDINGS}/given", {"roleRef": {"name": "x"}}, content_type=MERGE_PATCH)
    assert answer.status == 422


@pytest.mark.parametrize("name", ["cluster-admin", "admin", "edit", "view", "system:aggregate-to-view"])
async def test_default_cluster_roles_exist(api: Conversation, name: str) -> None:
    await api("GET", f"{CLUSTER_ROLES}/{name}", shown=without_managed_fields)


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without managed fields: their managers differ between clusters."""
    metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
    return obj | {"metadata": metadata}


@pytest.mark.parametrize("name", ["view", "edit", "admin"])
async def test_default_roles_grant_user_rights(api: Conversation, name: str) -> None:
    await api.create(BINDINGS, binding("ClusterRole", name, "jane"))
    await wait_until_allowed(api, {"kind": "User", "name": "jane"}, CORE)
    await api("GET", CONFIGMAPS, user="jane")
    await api("GET", SECRETS, user="jane")
    await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, user="jane")
    await api("GET", "/api/v1/namespaces/{ns}", user="jane")
    await api("GET", "/api/v1/nodes", user="jane")
    await api("POST", ROLES, role(WIDE), user="jane")
    await api("POST", ROLES, role(rule(GROUP, "roles", "escalate"), name="most"), user="jane")
    body = binding("ClusterRole", "view") | {"metadata": {"name": "others"}}
    answer = await api("POST", BINDINGS, body, user="jane")
    assert answer.status == (201 if name == "admin" else 403)


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


@pytest.mark.parametrize("user", ["jane", "joe"])
async def test_subject_access_review_of_another_user(api: Conversation, user: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": user}})
    assert answer.body["status"]["allowed"] == (user == "jane")


def sorted_rules(body: dict[str, Any]) -> dict[str, Any]:
    """Return a review with sorted rules: their order varies."""
    status = body["status"]
    listed = {name: sorted(value, key=str) if isinstance(value, list) else value for name, value in status.items()}
    return body | {"status": listed}


GRANTED: dict[str, list[dict[str, Any]]] = {
    "one": [CORE],
    "two": [CORE, {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]}],
    "everything": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}


@pytest.mark.parametrize("case", GRANTED)
async def test_rules_review_lists_all_rules(api: Conversation, case: str) -> None:
    await grant(api, *GRANTED[case])
    answer = await api("POST", RULES, {"spec": {"namespace": api.namespace}}, user="jane", shown=sorted_rules)
    assert not answer.body["status"]["incomplete"]


TOKEN = f"{ACCOUNTS}/robot/token"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
API = "https://kubernetes.default.svc.cluster.local"

_ATTEMPTS = 30


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
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_token_requests(api: Conversation, case: str) -> None:
    await create_robot(api)
    await api("POST", TOKEN, REQUESTS[case])


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


@pytest.mark.parametrize("audiences", [["a"], ["b", "a"], ["c"]], ids=range(3))
async def test_token_review_by_audience(api: Conversation, audiences: list[str]) -> None:
    token = await token_of(api, "robot", audiences=["a", "b"])
    answer = await api("POST", REVIEW, {"spec": {"token": token, "audiences": audiences}})
    assert answer.status == 201
