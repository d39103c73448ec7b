"""Access reviews: own rights and rights of other subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.test_access import BINDINGS, CORE, REVIEWS, granted

if TYPE_CHECKING:
    from tests.contract.talk import Talk

SELF = f"{REVIEWS}/selfsubjectaccessreviews"
RULES = f"{REVIEWS}/selfsubjectrulesreviews"
OTHERS = f"{REVIEWS}/subjectaccessreviews"
LOCAL = f"{REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews"


def asked(talk: Talk, **attributes: str) -> dict[str, Any]:
    said = {"namespace": talk.namespace, "verb": "get", "resource": "configmaps", **attributes}
    return {"resourceAttributes": said}


async def test_self_subject_review_returns_the_user(talk: Talk) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "readers", "Impersonate-Extra-Scopes": "view"}
    answer = await talk("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    assert answer.body["status"]["userInfo"]["username"] == "jane"


async def test_administrator_is_allowed_everything(talk: Talk) -> None:
    answer = await talk("POST", SELF, {"spec": asked(talk)})
    assert answer.body["status"]["allowed"]


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_self_subject_access_review(talk: Talk, verb: str) -> None:
    await granted(talk, CORE)
    answer = await talk("POST", SELF, {"spec": asked(talk, verb=verb)}, user="jane")
    assert answer.body["status"]["allowed"] == (verb == "get")


@pytest.mark.parametrize("path", ["/api", "/metrics"], ids=["api", "metrics"])
async def test_self_subject_access_review_of_a_path(talk: Talk, path: str) -> None:
    spec = {"nonResourceAttributes": {"path": path, "verb": "get"}}
    answer = await talk("POST", SELF, {"spec": spec}, user="jane")
    assert answer.body["status"]["allowed"] == (path == "/api")


@pytest.mark.parametrize("spec", [{}, {"resourceAttributes": {}, "nonResourceAttributes": {}}], ids=["nothing", "both"])
async def test_access_review_needs_exactly_one_kind_of_attributes(talk: Talk, spec: dict[str, Any]) -> None:
    answer = await talk("POST", SELF, {"spec": spec})
    assert answer.status == 422


async def test_rules_review_lists_own_rules(talk: Talk) -> None:
    await granted(talk, CORE | {"resourceNames": ["a"]})
    # In which order they are told changes from one time to the next.
    answer = await talk("POST", RULES, {"spec": {"namespace": talk.namespace}}, user="jane", kept=False)
    assert CORE | {"resourceNames": ["a"]} in answer.body["status"]["resourceRules"]


async def test_rules_review_requires_a_namespace(talk: Talk) -> None:
    answer = await talk("POST", RULES, {"spec": {}}, user="jane")
    assert answer.status == 400


@pytest.mark.parametrize("user", ["jane", "joe"])
async def test_subject_access_review_of_another_user(talk: Talk, user: str) -> None:
    await granted(talk, CORE)
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": user}})
    assert answer.body["status"]["allowed"] == (user == "jane")


async def test_subject_access_review_requires_a_subject(talk: Talk) -> None:
    answer = await talk("POST", OTHERS, {"spec": asked(talk)})
    assert answer.status == 422


async def test_subject_access_review_of_a_group(talk: Talk) -> None:
    await granted(talk, CORE, kind="Group", name="readers")
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": "joe", "groups": ["readers"]}})
    assert answer.body["status"]["allowed"]


async def test_local_review_must_match_its_namespace(talk: Talk) -> None:
    await talk("POST", LOCAL, {"spec": {**asked(talk, namespace="other"), "user": "jane"}})
    answer = await talk(
        "POST", LOCAL, {"metadata": {"namespace": talk.namespace}, "spec": {**asked(talk), "user": "jane"}}
    )
    assert not answer.body["status"]["allowed"]


async def test_subject_access_review_needs_rights(talk: Talk) -> None:
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": "joe"}}, user="jane")
    assert answer.status == 403


def sorted_rules(body: dict[str, Any]) -> dict[str, Any]:
    """In which order rules are told changes from one time to the next."""
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
async def test_rules_review_lists_all_rules(talk: Talk, case: str) -> None:
    if GRANTED[case]:
        await granted(talk, *GRANTED[case])
    answer = await talk("POST", RULES, {"spec": {"namespace": talk.namespace}}, user="jane", shown=sorted_rules)
    assert not answer.body["status"]["incomplete"]


async def test_rules_review_reports_missing_roles(talk: Talk) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"}
    subject = {"kind": "User", "name": "jane"}
    await talk.made(BINDINGS, {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": reference})
    answer = await talk("POST", RULES, {"spec": {"namespace": talk.namespace}}, user="jane", shown=sorted_rules)
    assert "not found" in answer.body["status"]["evaluationError"]


async def test_rules_review_of_an_anonymous_user(talk: Talk) -> None:
    spec = {"namespace": talk.namespace}
    await talk("POST", RULES, {"spec": spec}, headers={"Authorization": ""})
    answer = await talk("POST", SELF, {"spec": asked(talk)}, headers={"Authorization": ""})
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
async def test_self_subject_access_review_attributes(talk: Talk, case: str) -> None:
    await granted(talk, CORE)
    answer = await talk("POST", SELF, {"spec": asked(talk, **ASKED[case])}, user="jane")
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
async def test_subject_access_review_subjects(talk: Talk, spec: dict[str, Any]) -> None:
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), **spec}})
    assert answer.status == 201


LOCAL_QUESTIONS: dict[str, dict[str, Any]] = {
    "somebody": {"user": "jane"},
    "nobody": {},
    "group": {"groups": ["readers"]},
    "path": {"user": "jane", "nonResourceAttributes": {"path": "/api", "verb": "get"}, "resourceAttributes": None},
    "nothing": {"user": "jane", "resourceAttributes": None},
}


@pytest.mark.parametrize("case", LOCAL_QUESTIONS)
async def test_local_subject_access_review(talk: Talk, case: str) -> None:
    spec = {**asked(talk), **LOCAL_QUESTIONS[case]}
    answer = await talk("POST", LOCAL, {"metadata": {"namespace": talk.namespace}, "spec": spec})
    assert answer.status in (201, 422)


@pytest.mark.parametrize(
    "path", [SELF, RULES, OTHERS, "/apis/authentication.k8s.io/v1/selfsubjectreviews"], ids=range(4)
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_reviews_support_create_only(talk: Talk, path: str, method: str) -> None:
    answer = await talk(method, path, {} if method == "PUT" else None)
    assert answer.status == 405


@pytest.mark.parametrize(
    "body",
    [{}, {"spec": None}, {"metadata": {"name": "a"}}, {"kind": "Pod"}],
    ids=range(4),
)
async def test_empty_review(talk: Talk, body: Any) -> None:
    await talk("POST", SELF, body, user="jane")
    await talk("POST", RULES, body, user="jane")
    answer = await talk("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, user="jane")
    assert answer.status in (201, 400, 422)


@pytest.mark.parametrize("path", [SELF, OTHERS], ids=["own", "others"])
async def test_review_dry_run(talk: Talk, path: str) -> None:
    spec = {**asked(talk), "user": "jane"} if path == OTHERS else asked(talk)
    answer = await talk("POST", f"{path}?dryRun=All", {"spec": spec})
    assert answer.status == 201


async def test_field_validation_of_reviews(talk: Talk) -> None:
    for directive in ("Ignore", "Warn", "Strict"):
        answer = await talk("POST", f"{SELF}?fieldValidation={directive}", {"spec": asked(talk), "more": 1})
    assert answer.status == 400
