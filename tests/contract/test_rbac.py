"""Roles and bindings: validation, escalation, default roles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.conversation import APPLY, MERGE_PATCH, PATIENCE
from tests.contract.paths import CONFIGMAPS
from tests.contract.test_access import BINDINGS, CORE, RBAC, ROLES, grant, wait_until_allowed

if TYPE_CHECKING:
    from tests.contract.conversation import Answer, Conversation

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
CLUSTER_BINDINGS = f"{RBAC}/clusterrolebindings"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
ROLE = f"{ROLES}/more"
KEEPER = {"apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch", "get"]}
WIDE = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}
_BETWEEN_QUESTIONS = 0.02


def rule(groups: str = "", resources: str = "", verbs: str = "get", **others: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **others}


def role(*rules: dict[str, Any], name: str = "more") -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str = "Role", name: str = "more", user: str = "joe") -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    return {"metadata": {"name": "given"}, "subjects": [{"kind": "User", "name": user}], "roleRef": reference}


async def grant_cluster_wide(api: Conversation, *rules: dict[str, Any]) -> str:
    """Grant rules cluster-wide to a user of this row, and return its name."""
    name = user = f"jane-{api.namespace}"
    await api.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "User", "name": user}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    await api.create(CLUSTER_BINDINGS, {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference})
    await wait_until_allowed(api, subject, rules[0])
    return user


async def delete_roles(api: Conversation, *roles: str) -> None:
    """Delete cluster roles and their bindings."""
    for name in (f"jane-{api.namespace}", *roles):
        for path in (CLUSTER_BINDINGS, CLUSTER_ROLES):
            await api("DELETE", f"{path}/{name}", recorded=False)


async def wait_for_role(api: Conversation, name: str, holds: Any) -> Answer:
    """Wait until the aggregation controller has updated a cluster role."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await api("GET", f"{CLUSTER_ROLES}/{name}", recorded=False)
            if holds(answer.body):
                return await api("GET", f"{CLUSTER_ROLES}/{name}")
            await asyncio.sleep(_BETWEEN_QUESTIONS)


GIVEN: dict[str, list[dict[str, Any]]] = {
    "same": [CORE],
    "nothing": [],
    "some": [CORE | {"resourceNames": ["a"]}],
    "verb": [rule("", "configmaps", "get,delete")],
    "verbs": [rule("", "configmaps", "*")],
    "resource": [WIDE],
    "resources": [rule("", "configmaps,secrets,pods", "list,get")],
    "group": [rule("apps", "deployments", "get")],
    "groups": [rule(",apps", "configmaps", "get")],
    "all": [rule("*", "*", "*")],
    "names": [WIDE | {"resourceNames": ["a", "b"]}],
    "subresource": [rule("", "pods/log")],
    "twice": [WIDE, WIDE],
    "several": [rule("batch", "jobs", "watch,create"), rule("", "secrets", "update"), CORE],
    "invalid": [{"verbs": ["get"]}],
    "no_verbs": [{"apiGroups": [""], "resources": ["secrets"], "verbs": []}],
    "paths": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
}


@pytest.mark.parametrize("case", GIVEN)
async def test_role_cannot_exceed_the_rights_of_its_creator(api: Conversation, case: str) -> None:
    await grant(api, KEEPER, CORE)
    answer = await api("POST", ROLES, role(*GIVEN[case]), user="jane")
    assert answer.status in (201, 403, 422)


@pytest.mark.parametrize("resource", ["pods/log", "pods/*", "*/log", "*"], ids=["one", "all_of", "of_all", "all"])
async def test_subresource_rights_match_by_name(api: Conversation, resource: str) -> None:
    await grant(api, KEEPER, rule("", resource))
    answer = await api("POST", ROLES, role(rule("", "pods/log")), user="jane")
    assert answer.status == (403 if resource == "pods/*" else 201)


@pytest.mark.parametrize("owned", ["names", "groups", "all"])
async def test_covering_rules_are_sufficient(api: Conversation, owned: str) -> None:
    rules = {"names": WIDE | {"resourceNames": ["a"]}, "groups": rule("apps", "*", "*"), "all": rule("*", "*", "*")}
    await grant(api, KEEPER, rules[owned])
    for wanted in (WIDE | {"resourceNames": ["a"]}, WIDE | {"resourceNames": ["a", "b"]}, WIDE):
        await api("POST", f"{ROLES}?dryRun=All", role(wanted), user="jane")
    answer = await api("POST", f"{ROLES}?dryRun=All", role(rule("apps", "deployments", "delete")), user="jane")
    assert answer.status == (403 if owned == "names" else 201)


async def test_escalation_error_names_the_groups(api: Conversation) -> None:
    await grant(api, KEEPER, kind="Group", name="keepers")
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "keepers"}
    answer = await api("POST", ROLES, role(WIDE), headers=headers)
    assert 'groups=["keepers" "system:authenticated"]' in answer.body["message"]


async def test_escalation_error_with_a_generated_name(api: Conversation) -> None:
    await grant(api, KEEPER)
    answer = await api("POST", ROLES, {"metadata": {"generateName": "r-"}, "rules": [WIDE]}, user="jane")
    assert answer.status == 403


async def test_escalation_error_names_missing_roles(api: Conversation) -> None:
    await grant(api, KEEPER)
    await api.create(BINDINGS, binding(name="missing", user="jane"))
    answer = await api("POST", ROLES, role(WIDE), user="jane")
    assert "resolution errors" in answer.body["message"]


async def test_escalate_verb_allows_any_rule(api: Conversation) -> None:
    await grant(api, rule(GROUP, "roles", "escalate"), KEEPER)
    answer = await api("POST", ROLES, role(rule("*", "*", "*")), user="jane")
    assert answer.status == 201


async def test_escalate_verb_for_named_roles(api: Conversation) -> None:
    await grant(api, rule(GROUP, "roles", "escalate", resourceNames=["more"]), KEEPER)
    await api("POST", ROLES, role(WIDE), user="jane")
    await api.create(ROLES, role(CORE))
    answer = await api("PATCH", ROLE, {"rules": [WIDE]}, content_type=MERGE_PATCH, user="jane")
    assert answer.status == 200


async def test_wildcard_rights_allow_any_role_in_the_namespace(api: Conversation) -> None:
    await grant(api, rule("*", "*", "*"))
    await api("POST", ROLES, role(WIDE), user="jane")
    answer = await api("POST", BINDINGS, binding("ClusterRole", "cluster-admin"), user="jane")
    assert answer.status == 201


@pytest.mark.parametrize("way", ["put", "merge", "apply"])
async def test_update_cannot_exceed_the_rights_of_its_author(api: Conversation, way: str) -> None:
    await grant(api, KEEPER, CORE)
    await api.create(ROLES, role(CORE))
    if way == "put":
        answer = await api("PUT", ROLE, role(CORE, WIDE), user="jane")
    elif way == "merge":
        answer = await api("PATCH", ROLE, {"rules": [WIDE]}, content_type=MERGE_PATCH, user="jane")
    else:
        answer = await api("PATCH", f"{ROLE}?fieldManager=one&force=true", role(WIDE), content_type=APPLY, user="jane")
    assert answer.status == 403


@pytest.mark.parametrize(
    "metadata",
    [{"labels": {"a": "b"}}, {"finalizers": ["example.com/f"]}, {"ownerReferences": None}],
    ids=["labels", "finalizers", "nothing"],
)
async def test_unchanged_rules_need_no_rights(api: Conversation, metadata: Any) -> None:
    await grant(api, KEEPER)
    await api.create(ROLES, role(WIDE))
    answer = await api("PATCH", ROLE, {"metadata": metadata}, content_type=MERGE_PATCH, user="jane")
    await api("PATCH", ROLE, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False)
    assert answer.status == (403 if "labels" in metadata else 200)


async def test_creating_apply_cannot_exceed_rights(api: Conversation) -> None:
    await grant(api, KEEPER)
    answer = await api("PATCH", f"{ROLE}?fieldManager=one", role(WIDE), content_type=APPLY, user="jane")
    assert answer.status == 403


@pytest.mark.parametrize("name", ["more", "same", "missing"])
async def test_binding_cannot_exceed_the_rights_of_its_creator(api: Conversation, name: str) -> None:
    await grant(api, KEEPER, CORE)
    await api.create(ROLES, role(WIDE))
    await api.create(ROLES, role(CORE, name="same"))
    answer = await api("POST", BINDINGS, binding(name=name), user="jane")
    assert answer.status == {"more": 403, "same": 201, "missing": 404}[name]


async def test_bind_verb_allows_binding_a_role(api: Conversation) -> None:
    await grant(api, rule(GROUP, "roles", "bind", resourceNames=["more"]), KEEPER)
    await api.create(ROLES, role(WIDE))
    await api.create(ROLES, role(WIDE, name="other"))
    await api("POST", BINDINGS, binding(name="other"), user="jane")
    answer = await api("POST", BINDINGS, binding(), user="jane")
    assert answer.status == 201


async def test_bind_verb_allows_binding_a_cluster_role(api: Conversation) -> None:
    await grant(api, rule(GROUP, "clusterroles", "bind", resourceNames=["view"]), KEEPER)
    await api("POST", BINDINGS, binding("ClusterRole", "none"), user="jane")
    answer = await api("POST", BINDINGS, binding("ClusterRole", "view"), user="jane")
    assert answer.status == 201


async def test_binding_update_is_checked_like_create(api: Conversation) -> None:
    await grant(api, KEEPER)
    await api.create(ROLES, role(WIDE))
    await api.create(BINDINGS, binding())
    path = f"{BINDINGS}/given"
    await api("PATCH", path, {"subjects": []}, content_type=MERGE_PATCH, user="jane")
    answer = await api("PATCH", path, {"metadata": {"finalizers": []}}, content_type=MERGE_PATCH, user="jane")
    assert answer.status == 200


async def test_non_resource_rules_are_checked(api: Conversation) -> None:
    user = await grant_cluster_wide(
        api, rule(GROUP, "clusterroles", "create"), {"nonResourceURLs": ["/logs/*", "/metrics"], "verbs": ["get"]}
    )
    for path in ("/metrics", "/logs/a", "/logs/*", "/logs", "*"):
        body = {"metadata": {"name": api.namespace}, "rules": [{"nonResourceURLs": [path], "verbs": ["get"]}]}
        answer = await api("POST", f"{CLUSTER_ROLES}?dryRun=All", body, user=user)
    await delete_roles(api)
    assert answer.status == 403


async def test_aggregation_rule_needs_full_rights(api: Conversation) -> None:
    user = await grant_cluster_wide(api, rule(GROUP, "clusterroles", "create,update"))
    body = {
        "metadata": {"name": api.namespace},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": api.namespace}}]},
    }
    answer = await api("POST", CLUSTER_ROLES, body, user=user)
    await delete_roles(api)
    assert "cluster-admin" in answer.body["message"]


async def test_cluster_role_binding_needs_the_rights_of_its_role(api: Conversation) -> None:
    user = await grant_cluster_wide(api, rule(GROUP, "clusterrolebindings", "create"), CORE)
    for name in (f"jane-{api.namespace}", "cluster-admin", f"{api.namespace}-none"):
        body = binding("ClusterRole", name) | {"metadata": {"name": api.namespace}}
        await api("POST", f"{CLUSTER_BINDINGS}?dryRun=All", body, user=user)
    answer = await api("POST", ROLES, role(CORE), user=user)
    await delete_roles(api)
    assert answer.status == 403


async def test_cluster_role_aggregates_others(api: Conversation) -> None:
    label = {"example.com/part-of": api.namespace}
    total, first, second = (f"{api.namespace}-{name}" for name in ("sum", "first", "second"))
    for name, said in ((first, CORE), (second, WIDE)):
        await api.create(CLUSTER_ROLES, {"metadata": {"name": name, "labels": label}, "rules": [said, CORE]})
    sum_of = {"clusterRoleSelectors": [{"matchLabels": label}]}
    await api("POST", CLUSTER_ROLES, {"metadata": {"name": total}, "aggregationRule": sum_of})
    await wait_for_role(api, total, lambda body: len(body["rules"] or ()) == 2)
    more = {"rules": [rule("apps", "deployments"), WIDE]}
    await api("PATCH", f"{CLUSTER_ROLES}/{second}", more, content_type=MERGE_PATCH, recorded=False)
    await wait_for_role(api, total, lambda body: len(body["rules"]) == 3)
    await api("DELETE", f"{CLUSTER_ROLES}/{first}", recorded=False)
    await wait_for_role(api, total, lambda body: len(body["rules"]) == 2)
    none = {"metadata": {"labels": None}}
    await api("PATCH", f"{CLUSTER_ROLES}/{second}", none, content_type=MERGE_PATCH, recorded=False)
    answer = await wait_for_role(api, total, lambda body: not body.get("rules"))
    await delete_roles(api, total, second)
    assert answer.status == 200


async def test_rules_written_to_an_aggregate_are_overwritten(api: Conversation) -> None:
    label = {"example.com/part-of": api.namespace}
    total, part = f"{api.namespace}-sum", f"{api.namespace}-part"
    await api.create(CLUSTER_ROLES, {"metadata": {"name": part, "labels": label}, "rules": [CORE]})
    sum_of = {"clusterRoleSelectors": [{"matchLabels": label}]}
    await api.create(CLUSTER_ROLES, {"metadata": {"name": total}, "rules": [WIDE], "aggregationRule": sum_of})
    answer = await wait_for_role(api, total, lambda body: body["rules"] == [CORE])
    await delete_roles(api, total, part)
    assert answer.status == 200


RULES: dict[str, Any] = {
    "empty": {},
    "null": None,
    "no_verbs": {"apiGroups": [""], "resources": ["pods"]},
    "no_groups": {"resources": ["pods"], "verbs": ["get"]},
    "no_resources": {"apiGroups": [""], "verbs": ["get"]},
    "paths": {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    "both": {"nonResourceURLs": ["/metrics"], "verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    "unknown": {"apiGroups": ["none"], "resources": ["gadgets", ""], "verbs": ["fly"], "resourceNames": [""]},
    "text": {"apiGroups": "", "resources": ["pods"], "verbs": ["get"]},
}


@pytest.mark.parametrize("case", RULES)
async def test_role_rules_are_validated(api: Conversation, case: str) -> None:
    answer = await api("POST", ROLES, role(CORE, RULES[case]))
    assert answer.status in (201, 400, 422)


@pytest.mark.parametrize("case", RULES)
async def test_cluster_role_rules_are_validated(api: Conversation, case: str) -> None:
    body = {"metadata": {"name": api.namespace}, "rules": [RULES[case]]}
    answer = await api("POST", f"{CLUSTER_ROLES}?dryRun=All", body)
    assert answer.status in (201, 400, 422)


SUMS: dict[str, Any] = {
    "empty": {},
    "none": {"clusterRoleSelectors": []},
    "everything": {"clusterRoleSelectors": [{}]},
    "wrong": {"clusterRoleSelectors": [{"matchLabels": {"a": "b c"}}]},
    "operator": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]},
    "values": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}]},
}


@pytest.mark.parametrize("case", SUMS)
async def test_aggregation_rule_is_validated(api: Conversation, case: str) -> None:
    body = {"metadata": {"name": api.namespace}, "aggregationRule": SUMS[case]}
    answer = await api("POST", f"{CLUSTER_ROLES}?dryRun=All", body)
    assert answer.status in (201, 422)


REFERENCES: dict[str, Any] = {
    "empty": {},
    "no_group": {"kind": "Role", "name": "r"},
    "no_kind": {"apiGroup": GROUP, "name": "r"},
    "no_name": {"apiGroup": GROUP, "kind": "Role"},
    "wrong_group": {"apiGroup": "apps", "kind": "Role", "name": "r"},
    "wrong_kind": {"apiGroup": GROUP, "kind": "User", "name": "r"},
    "wrong_name": {"apiGroup": GROUP, "kind": "Role", "name": "a/b%"},
    "role": {"apiGroup": GROUP, "kind": "Role", "name": "r"},
}


@pytest.mark.parametrize("case", REFERENCES)
async def test_role_ref_of_a_binding_is_validated(api: Conversation, case: str) -> None:
    answer = await api("POST", BINDINGS, {"metadata": {"name": "b"}, "roleRef": REFERENCES[case]})
    assert answer.status in (201, 422)


@pytest.mark.parametrize("case", REFERENCES)
async def test_role_ref_of_a_cluster_role_binding_is_validated(api: Conversation, case: str) -> None:
    body = {"metadata": {"name": api.namespace}, "roleRef": REFERENCES[case]}
    answer = await api("POST", f"{CLUSTER_BINDINGS}?dryRun=All", body)
    assert answer.status in (201, 422)


async def test_binding_requires_a_role_ref(api: Conversation) -> None:
    answer = await api("POST", BINDINGS, {"metadata": {"name": "b"}})
    assert answer.status == 422


SUBJECTS: dict[str, Any] = {
    "empty": {},
    "no_kind": {"name": "jane"},
    "wrong_kind": {"kind": "Robot", "name": "jane"},
    "no_name": {"kind": "User"},
    "user": {"kind": "User", "name": "jane"},
    "user_of_group": {"kind": "User", "name": "jane", "apiGroup": "apps"},
    "user_of_namespace": {"kind": "User", "name": "jane", "namespace": "default"},
    "group": {"kind": "Group", "name": "system:authenticated"},
    "account": {"kind": "ServiceAccount", "name": "robot"},
    "account_elsewhere": {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
    "account_of_group": {"kind": "ServiceAccount", "name": "robot", "namespace": "default", "apiGroup": GROUP},
    "account_by_no_name": {"kind": "ServiceAccount", "name": "Robot!", "namespace": "default"},
}


@pytest.mark.parametrize("case", SUBJECTS)
async def test_subjects_of_a_binding_are_validated(api: Conversation, case: str) -> None:
    answer = await api("POST", BINDINGS, binding() | {"subjects": [SUBJECTS[case]]})
    assert answer.status in (201, 422)


@pytest.mark.parametrize("case", SUBJECTS)
async def test_subjects_of_a_cluster_role_binding_are_validated(api: Conversation, case: str) -> None:
    body = binding("ClusterRole") | {"metadata": {"name": api.namespace}, "subjects": [SUBJECTS[case]]}
    answer = await api("POST", f"{CLUSTER_BINDINGS}?dryRun=All", body)
    assert answer.status in (201, 422)


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


async def test_default_role_is_extended_by_label(api: Conversation) -> None:
    name = f"{api.namespace}-widgets"
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    said = rule("example.com", f"widgets-{api.namespace}")
    await api.create(CLUSTER_ROLES, {"metadata": {"name": name, "labels": labels}, "rules": [said]})
    await api.create(BINDINGS, binding("ClusterRole", "admin", "jane"))
    await wait_until_allowed(api, {"kind": "User", "name": "jane"}, said)
    answer = await api("GET", f"/apis/example.com/v1/namespaces/{{ns}}/widgets-{api.namespace}/a", user="jane")
    await api("DELETE", f"{CLUSTER_ROLES}/{name}", recorded=False)
    assert answer.status == 404
