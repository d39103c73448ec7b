"""Roles and bindings: validation, escalation, default roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH
from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.test_access import BINDINGS, CORE, RBAC, ROLES, grant, wait_until_allowed

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
CLUSTER_BINDINGS = f"{RBAC}/clusterrolebindings"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
KEEPER = {"apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch", "get"]}
WIDE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}


def rule(groups: str = "", resources: str = "", verbs: str = "get", **others: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **others}


def role(*rules: dict[str, Any], name: str = "more") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str = "Role", name: str = "more", user: str = "joe") -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": "given"}, "subjects": [{"kind": "User", "name": user}], "roleRef": reference}


async def test_escalate_verb_allows_any_rule(api: Conversation) -> None:
    await grant(api, rule(GROUP, "roles", "escalate"), KEEPER)
    answer = await api("POST", ROLES, role(rule("*", "*", "*")), user="jane")
    assert answer.status == 201


async def test_wildcard_rights_allow_any_role_in_the_namespace(api: Conversation) -> None:
    await grant(api, rule("*", "*", "*"))
    await api("POST", ROLES, role(WIDE), user="jane")
    answer = await api("POST", BINDINGS, binding("ClusterRole", "cluster-admin"), user="jane")
    assert answer.status == 201


async def test_role_ref_is_immutable(api: Conversation) -> None:
    await api.create(BINDINGS, binding())
    other = binding(name="other")
    await api("PUT", f"{BINDINGS}/given", other)
    answer = await api("PATCH", f"{BINDINGS}/given", {"roleRef": {"name": "x"}}, content_type=MERGE_PATCH)
    assert answer.status == 422


@pytest.mark.parametrize("name", ["system:a", "A_b", "a.b:c*", "a b", "a/b", "a%"], ids=range(6))
async def test_role_names(api: Conversation, name: str) -> None:
    answer = await api("POST", ROLES, role(name=name))
    assert answer.status in (201, 422)


@pytest.mark.parametrize("name", ["cluster-admin", "admin", "edit", "view", "system:aggregate-to-view"])
async def test_default_cluster_roles_exist(api: Conversation, name: str) -> None:
    answer = await api("GET", f"{CLUSTER_ROLES}/{name}", shown=without_managed_fields)
    assert answer.status == 200


@pytest.mark.parametrize(
    "name", ["cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer"]
)
async def test_default_cluster_role_bindings_exist(api: Conversation, name: str) -> None:
    answer = await api("GET", f"{CLUSTER_BINDINGS}/{name}", shown=without_managed_fields)
    assert answer.status == 200


@pytest.mark.parametrize("kind", ["clusterroles", "clusterrolebindings", "roles", "rolebindings"])
async def test_bootstrap_roles_are_labelled(api: Conversation, kind: str) -> None:
    selector = "labelSelector=kubernetes.io/bootstrapping=rbac-defaults"
    answer = await api("GET", f"{RBAC}/{kind}?{selector}", shown=lambda body: sorted(map(name_of, body["items"])))
    assert answer.status == 200


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without managed fields: their managers differ between clusters."""
    metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
    return obj | {"metadata": metadata}


def name_of(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


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
