"""Access reviews: own rights and rights of other subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.test_access import BINDINGS, CORE, REVIEWS, grant

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

SELF = f"{REVIEWS}/selfsubjectaccessreviews"
RULES = f"{REVIEWS}/selfsubjectrulesreviews"
OTHERS = f"{REVIEWS}/subjectaccessreviews"
LOCAL = f"{REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews"


def asked(api: Conversation, **attributes: str) -> dict[str, Any]:
    said = {"namespace": api.namespace, "verb": "get", "resource": "configmaps", **attributes}
    return {"resourceAttributes": said}


async def test_self_subject_review_returns_the_user(api: Conversation) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "readers", "Impersonate-Extra-Scopes": "view"}
    answer = await api("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    assert answer.body["status"]["userInfo"]["username"] == "jane"


async def test_administrator_is_allowed_everything(api: Conversation) -> None:
    answer = await api("POST", SELF, {"spec": asked(api)})
    assert answer.body["status"]["allowed"]


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


async def test_rules_review_lists_own_rules(api: Conversation) -> None:
    await grant(api, CORE | {"resourceNames": ["a"]})
    # The order of the rules varies.
    answer = await api("POST", RULES, {"spec": {"namespace": api.namespace}}, user="jane", recorded=False)
    assert CORE | {"resourceNames": ["a"]} in answer.body["status"]["resourceRules"]


async def test_rules_review_requires_a_namespace(api: Conversation) -> None:
    answer = await api("POST", RULES, {"spec": {}}, user="jane")
    assert answer.status == 400


@pytest.mark.parametrize("user", ["jane", "joe"])
async def test_subject_access_review_of_another_user(api: Conversation, user: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": user}})
    assert answer.body["status"]["allowed"] == (user == "jane")


async def test_subject_access_review_requires_a_subject(api: Conversation) -> None:
    answer = await api("POST", OTHERS, {"spec": asked(api)})
    assert answer.status == 422


async def test_subject_access_review_of_a_group(api: Conversation) -> None:
    await grant(api, CORE, kind="Group", name="readers")
    answer = await api("POST", OTHERS, {"spec": {**asked(api), "user": "joe", "groups": ["readers"]}})
    assert answer.body["status"]["allowed"]


async def test_local_review_must_match_its_namespace(api: Conversation) -> None:
    await api("POST", LOCAL, {"spec": {**asked(api, namespace="other"), "user": "jane"}})
    answer = await api(
        "POST", LOCAL, {"metadata": {"namespace": api.namespace}, "spec": {**asked(api), "user": "jane"}}
    )
    assert not answer.body["status"]["allowed"]


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


async def test_rules_review_reports_missing_roles(api: Conversation) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"}
    subject = {"kind": "User", "name": "jane"}
    await api.create(BINDINGS, {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": reference})
    answer = await api("POST", RULES, {"spec": {"namespace": api.namespace}}, user="jane", shown=sorted_rules)
    assert "not found" in answer.body["status"]["evaluationError"]


async def test_rules_review_of_an_anonymous_user(api: Conversation) -> None:
    spec = {"namespace": api.namespace}
    await api("POST", RULES, {"spec": spec}, headers={"Authorization": ""})
    answer = await api("POST", SELF, {"spec": asked(api)}, headers={"Authorization": ""})
    assert answer.status == 403


ASKED: dict[str, dict[str, Any]] = {
    "all_verbs": {"verb": "*"},
    "all_resources": {"resource": "*"},
    "no_verb": {"verb": ""},
    "no_resource": {"resource": ""},
    "name": {"name": "a"},
    "version": {"version": "v1"},
    "all_versions": {"version": "*"},
    "group": {"group": "apps"},
    "subresource": {"subresource": "status"},
    "elsewhere": {"namespace": "default"},
    "everywhere": {"namespace": ""},
    "unknown": {"verb": "fly", "resource": "gadgets", "group": "example.com"},
    "fields": {"verb": "list", "fieldSelector": {"rawSelector": "metadata.name=a"}},
    "labels": {"verb": "list", "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}},
    "no_labels": {"verb": "list", "labelSelector": {}},
    "both_selectors": {"labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}},
    "wrong_labels": {"labelSelector": {"requirements": [{"key": "a", "operator": "Is"}]}},
    "wrong_fields": {"fieldSelector": {"requirements": [{"key": "", "operator": "In", "values": []}]}},
}


@pytest.mark.parametrize("case", ASKED)
async def test_self_subject_access_review_attributes(api: Conversation, case: str) -> None:
    await grant(api, CORE)
    answer = await api("POST", SELF, {"spec": asked(api, **ASKED[case])}, user="jane")
    assert answer.status in (201, 422)


@pytest.mark.parametrize(
    "spec",
    [
        {"user": "jane", "uid": "17", "extra": {"scopes": ["view"]}},
        {"groups": ["system:masters"]},
        {"user": "system:admin", "groups": ["system:authenticated"]},
        {"user": "system:serviceaccount:default:robot"},
        {"user": "jane", "nonResourceAttributes": {"path": "/api", "verb": "get"}, "resourceAttributes": None},
        {"user": "system:anonymous", "groups": ["system:unauthenticated"]},
    ],
    ids=range(6),
)
async def test_subject_access_review_subjects(api: Conversation, spec: dict[str, Any]) -> None:
    answer = await api("POST", OTHERS, {"spec": {**asked(api), **spec}})
    assert answer.status == 201


LOCAL_QUESTIONS: dict[str, dict[str, Any]] = {
    "somebody": {"user": "jane"},
    "nobody": {},
    "group": {"groups": ["readers"]},
    "path": {"user": "jane", "nonResourceAttributes": {"path": "/api", "verb": "get"}, "resourceAttributes": None},
    "nothing": {"user": "jane", "resourceAttributes": None},
}


@pytest.mark.parametrize("case", LOCAL_QUESTIONS)
async def test_local_subject_access_review(api: Conversation, case: str) -> None:
    spec = {**asked(api), **LOCAL_QUESTIONS[case]}
    answer = await api("POST", LOCAL, {"metadata": {"namespace": api.namespace}, "spec": spec})
    assert answer.status in (201, 422)


@pytest.mark.parametrize(
    "path", [SELF, RULES, OTHERS, "/apis/authentication.k8s.io/v1/selfsubjectreviews"], ids=range(4)
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_reviews_support_create_only(api: Conversation, path: str, method: str) -> None:
    answer = await api(method, path, {} if method == "PUT" else None)
    assert answer.status == 405


@pytest.mark.parametrize(
    "body",
    [{}, {"spec": None}, {"metadata": {"name": "a"}}, {"kind": "Pod"}],
    ids=range(4),
)
async def test_empty_review(api: Conversation, body: Any) -> None:
    await api("POST", SELF, body, user="jane")
    await api("POST", RULES, body, user="jane")
    answer = await api("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, user="jane")
    assert answer.status in (201, 400, 422)


@pytest.mark.parametrize("path", [SELF, OTHERS], ids=["own", "others"])
async def test_review_dry_run(api: Conversation, path: str) -> None:
    spec = {**asked(api), "user": "jane"} if path == OTHERS else asked(api)
    answer = await api("POST", f"{path}?dryRun=All", {"spec": spec})
    assert answer.status == 201


async def test_field_validation_of_reviews(api: Conversation) -> None:
    for directive in ("Ignore", "Warn", "Strict"):
        answer = await api("POST", f"{SELF}?fieldValidation={directive}", {"spec": asked(api), "more": 1})
    assert answer.status == 400
