"""Authorization: impersonation, roles, bindings, tokens of service accounts, reviews of access."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, MERGE_PATCH, PATIENCE
from tests.real.contract.tables import ACCOUNTS, CONFIGMAPS, DEPLOYMENTS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


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


FORBIDDEN: dict[str, tuple[str, str]] = {
    "list": ("GET", CONFIGMAPS),
    "watch": ("GET", f"{CONFIGMAPS}?watch=true"),
    "create": ("POST", CONFIGMAPS),
    "patch": ("PATCH", A),
    "scale": ("GET", f"{DEPLOYMENTS}/a/scale"),
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


GROUP = "rbac.authorization.k8s.io"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
WIDE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}


def rule(groups: str = "", resources: str = "", verbs: str = "get", **others: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **others}


def role(*rules: dict[str, Any], name: str = "more") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str = "Role", name: str = "more", user: str = "joe") -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": "given"}, "subjects": [{"kind": "User", "name": user}], "roleRef": reference}


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


def asked(api: Conversation, **attributes: str) -> dict[str, Any]:
    said = {"namespace": api.namespace, "verb": "get", "resource": "configmaps", **attributes}
    return {"resourceAttributes": said}


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_self_subject_access_review(api: Conversation, verb: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", SELF, {"spec": asked(api, verb=verb)}, user="jane")
    assert answer.body["status"]["allowed"] == (verb == "get")


def sorted_rules(body: dict[str, Any]) -> dict[str, Any]:
    """Return a review with sorted rules: their order varies."""
    status = body["status"]
    listed = {name: sorted(value, key=str) if isinstance(value, list) else value for name, value in status.items()}
    return body | {"status": listed}


async def test_rules_review_lists_all_rules(api: Conversation) -> None:
    scales = {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]}
    await grant(api, CORE, scales)
    answer = await api("POST", RULES, {"spec": {"namespace": api.namespace}}, user="jane", shown=sorted_rules)
    assert not answer.body["status"]["incomplete"]
