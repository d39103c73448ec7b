"""Validation of certificate approvals, API services and RBAC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.tables import variants
from tests.contract.test_specs_cluster_runtime import REQUEST, REQUESTS, without_uid

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RIGHTS}/namespaces/{{ns}}/roles"
CLUSTER_ROLES = f"{RIGHTS}/clusterroles"
BINDINGS = f"{RIGHTS}/namespaces/{{ns}}/rolebindings"
CLUSTER_BINDINGS = f"{RIGHTS}/clusterrolebindings"
APPROVED = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
DENIED = APPROVED | {"type": "Denied"}
FAILED = APPROVED | {"type": "Failed"}
Variants = list[dict[str, Any]]


async def test_certificate_requests_are_approved_and_signed(api: Conversation) -> None:
    await api.create(REQUESTS, {"metadata": {"name": api.namespace}, "spec": REQUEST})
    item = f"{REQUESTS}/{api.namespace}"
    try:
        for part, status in (
            ("status", {"conditions": [APPROVED]}),
            ("approval", {"conditions": [APPROVED, DENIED]}),
            ("approval", {"conditions": [APPROVED | {"status": "False"}]}),
            ("approval", {"conditions": [{"type": "", "status": ""}]}),
            ("approval", {"conditions": [APPROVED], "certificate": "YQ=="}),
            ("approval", {"conditions": []}),
            ("status", {"conditions": [APPROVED | {"reason": "other"}, FAILED]}),
            ("status", {"conditions": [APPROVED, FAILED], "certificate": "YQ=="}),
        ):
            told: dict[str, Any] = {"metadata": {"name": api.namespace}, "spec": REQUEST, "status": status}
            answer = await api("PUT", f"{item}/{part}", told, shown=without_uid_if_told)
    finally:
        await api("DELETE", item, recorded=False)
    assert answer.status == 422


def without_uid_if_told(body: dict[str, Any]) -> dict[str, Any]:
    return without_uid(body) if "spec" in body else body


SERVICE: dict[str, Any] = {
    "group": "g.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
    "service": {"namespace": "n", "name": "s"},
}  # fmt: skip
WRONG_SERVICES = {
    "names": [{"version": "v2"}, {"group": ""}, {"group": "A", "version": "V"}],
    "priorities": [{"groupPriorityMinimum": 0}, {"groupPriorityMinimum": 20001, "versionPriority": 1001}],
    "service": [
        {"service": None, "insecureSkipTLSVerify": True}, {"service": {}},
        {"service": {"namespace": "n", "name": "s", "port": 65536}},
        {"insecureSkipTLSVerify": True, "caBundle": "YQ=="},
    ],
}  # fmt: skip


@variants("wrong", WRONG_SERVICES)
async def test_invalid_api_services_are_refused(api: Conversation, wrong: Variants) -> None:
    for spec in wrong:
        obj = {"metadata": {"name": "v1.g.example.com"}, "spec": SERVICE | spec}
        answer = await api("POST", f"{SERVICES}?dryRun=All", obj)
        assert answer.status == 422, spec


RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
LOOK = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
ROLE = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
USER = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
WRONG_RIGHTS: dict[str, tuple[str, Variants]] = {
    "role": (ROLES, [{"rules": [each]} for each in (
        {}, RULE | {"verbs": []}, RULE | {"apiGroups": []}, RULE | {"resources": []}, LOOK, LOOK | RULE,
    )]),
    "cluster-role": (CLUSTER_ROLES, [
        {"rules": [{}, LOOK | {"resourceNames": ["a"]}]}, {"aggregationRule": {}},
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a b": "c"}}]}},
        {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}},
    ]),
    "binding": (BINDINGS, [
        *({"roleRef": ROLE | each} for each in (
            {"name": ""}, {"name": "a/b"}, {"name": ".."}, {"kind": "Pod"}, {"apiGroup": "apps"},
        )),
        *({"roleRef": ROLE, "subjects": [USER | each]} for each in (
            {"name": ""}, {"kind": "Pod"}, {"kind": ""}, {"apiGroup": "apps"}, {"kind": "ServiceAccount"},
            {"kind": "ServiceAccount", "apiGroup": "", "name": "A_b"},
        )),
    ]),
    "cluster-binding": (CLUSTER_BINDINGS, [
        {"roleRef": ROLE | {"kind": "Role"}},
        {"roleRef": ROLE, "subjects": [{"kind": "ServiceAccount", "name": "a"}]},
        {"roleRef": ROLE, "subjects": [{"kind": "Group", "name": "", "apiGroup": "x"}]},
    ]),
}  # fmt: skip


@variants("wrong", WRONG_RIGHTS)
async def test_invalid_roles_and_bindings_are_refused(api: Conversation, wrong: tuple[str, Variants]) -> None:
    where, objects = wrong
    for obj in objects:
        answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
        assert answer.status in (404, 422), obj
