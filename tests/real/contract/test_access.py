"""Authorization: impersonation, roles, bindings, default roles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, MERGE_PATCH, PATIENCE
from tests.real.contract.tables import CONFIGMAPS, DEPLOYMENTS, PODS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


A = f"{CONFIGMAPS}/a"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/{{ns}}/roles"
BINDINGS = f"{RBAC}/namespaces/{{ns}}/rolebindings"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
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
    if subject["kind"] == "Group":
        who = {"groups": [name]}
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
    "list_all": ("GET", "/api/v1/configmaps"),
    "watch": ("GET", f"{CONFIGMAPS}?watch=true"),
    "create": ("POST", CONFIGMAPS),
    "update": ("PUT", A),
    "patch": ("PATCH", A),
    "delete": ("DELETE", A),
    "delete_all": ("DELETE", CONFIGMAPS),
    "group": ("GET", DEPLOYMENTS),
    "status": ("PUT", f"{DEPLOYMENTS}/a/status"),
    "scale": ("GET", f"{DEPLOYMENTS}/a/scale"),
    "log": ("GET", f"{PODS}/a/log"),
    "namespace": ("GET", "/api/v1/namespaces/{ns}"),
    "metrics": ("GET", "/metrics"),
    "token": ("POST", f"{ACCOUNTS}/a/token"),
    "evict": ("POST", f"{PODS}/a/eviction"),
}


@pytest.mark.parametrize("case", FORBIDDEN)
async def test_forbidden_requests_name_user_verb_and_resource(api: Conversation, case: str) -> None:
    method, path = FORBIDDEN[case]
    body = {"metadata": {"name": "a"}} if method in ("POST", "PUT", "PATCH") else None
    answer = await api(method, path, body, content_type=MERGE_PATCH, user="jane")
    assert answer.status == 403


@pytest.mark.parametrize(
    "path",
    ["version", "api", "apis", "apis/apps/v1", "openapi/v3", "healthz", "livez"],
    ids=lambda path: path.replace("/", "_"),
)
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
    answer = await api("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name%3Da", user="jane")
    assert answer.status == 200


@pytest.mark.parametrize(
    "resource", ["*", "deployments/scale", "*/scale", "deployments/*"], ids=["all", "one", "of_all", "all_of"]
)
async def test_rule_names_subresources(api: Conversation, resource: str) -> None:
    await grant(api, {"apiGroups": ["*"], "resources": [resource], "verbs": ["get"]})
    answer = await api("GET", f"{DEPLOYMENTS}/a/scale", user="jane", recorded=False)
    assert answer.status == (403 if resource == "deployments/*" else 404)


async def test_role_is_bound_to_a_group(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name="readers")
    headers = {"Impersonate-User": "joe", "Impersonate-Group": "readers"}
    answer = await api("GET", A, headers=headers)
    assert answer.status == 404


async def test_cluster_role_is_bound_in_one_namespace(api: Conversation) -> None:
    name = f"{api.namespace}-role"
    await api.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [CORE]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "User", "name": "jane"}
    await api.create(BINDINGS, {"metadata": {"name": "binding"}, "subjects": [subject], "roleRef": role})
    await wait_until_allowed(api, subject, CORE)
    await api("GET", A, user="jane")
    await api("GET", "/api/v1/namespaces/{ns}/secrets", user="jane")
    answer = await api("GET", "/api/v1/configmaps", user="jane")
    assert answer.status == 403
    await api("DELETE", f"{RBAC}/clusterroles/{name}", recorded=False)


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


async def test_put_that_creates_needs_create_and_update(api: Conversation) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    await grant(api, {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]})
    body = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    answer = await api("PUT", f"{leases}/a", body, user="jane")
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


async def test_impersonated_group_needs_a_user(api: Conversation) -> None:
    answer = await api("GET", A, headers={"Impersonate-Group": "readers"})
    assert answer.status == 400


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


async def test_token_review_of_a_valid_token(api: Conversation) -> None:
    token = await token_of(api, "robot")
    answer = await api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert answer.body["status"]["authenticated"]


async def test_token_review_of_an_invalid_token(api: Conversation) -> None:
    answer = await api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    assert "authenticated" not in answer.body["status"]


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
    answer = await api("GET", f"{CLUSTER_ROLES}/{name}", shown=without_managed_fields)
    assert answer.status == 200


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
