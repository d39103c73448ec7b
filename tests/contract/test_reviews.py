"""Reviews: what one may ask about one's own rights, and about those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.test_access import CORE, REVIEWS, granted

if TYPE_CHECKING:
    from tests.contract.talk import Talk

SELF = f"{REVIEWS}/selfsubjectaccessreviews"
RULES = f"{REVIEWS}/selfsubjectrulesreviews"
OTHERS = f"{REVIEWS}/subjectaccessreviews"
LOCAL = f"{REVIEWS}/namespaces/{{ns}}/localsubjectaccessreviews"


def asked(talk: Talk, **attributes: str) -> dict[str, Any]:
    said = {"namespace": talk.namespace, "verb": "get", "resource": "configmaps", **attributes}
    return {"resourceAttributes": said}


async def test_who_am_i(talk: Talk) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "readers", "Impersonate-Extra-Scopes": "view"}
    answer = await talk("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers)
    assert answer.body["status"]["userInfo"]["username"] == "jane"


async def test_the_administrator_may_do_everything(talk: Talk) -> None:
    answer = await talk("POST", SELF, {"spec": asked(talk)})
    assert answer.body["status"]["allowed"]


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_a_user_asks_for_himself(talk: Talk, verb: str) -> None:
    await granted(talk, CORE)
    answer = await talk("POST", SELF, {"spec": asked(talk, verb=verb)}, user="jane")
    assert answer.body["status"]["allowed"] == (verb == "get")


@pytest.mark.parametrize("path", ["/api", "/metrics"], ids=["api", "metrics"])
async def test_a_user_asks_for_a_path(talk: Talk, path: str) -> None:
    spec = {"nonResourceAttributes": {"path": path, "verb": "get"}}
    answer = await talk("POST", SELF, {"spec": spec}, user="jane")
    assert answer.body["status"]["allowed"] == (path == "/api")


@pytest.mark.parametrize("spec", [{}, {"resourceAttributes": {}, "nonResourceAttributes": {}}], ids=["nothing", "both"])
async def test_a_question_is_about_one_thing(talk: Talk, spec: dict[str, Any]) -> None:
    answer = await talk("POST", SELF, {"spec": spec})
    assert answer.status == 422


async def test_a_user_lists_his_rules(talk: Talk) -> None:
    await granted(talk, CORE | {"resourceNames": ["a"]})
    # In which order they are told changes from one time to the next.
    answer = await talk("POST", RULES, {"spec": {"namespace": talk.namespace}}, user="jane", kept=False)
    assert CORE | {"resourceNames": ["a"]} in answer.body["status"]["resourceRules"]


async def test_rules_are_those_of_a_namespace(talk: Talk) -> None:
    answer = await talk("POST", RULES, {"spec": {}}, user="jane")
    assert answer.status == 400


@pytest.mark.parametrize("user", ["jane", "joe"])
async def test_the_administrator_asks_for_others(talk: Talk, user: str) -> None:
    await granted(talk, CORE)
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": user}})
    assert answer.body["status"]["allowed"] == (user == "jane")


async def test_others_are_somebody(talk: Talk) -> None:
    answer = await talk("POST", OTHERS, {"spec": asked(talk)})
    assert answer.status == 422


async def test_a_group_is_asked_for(talk: Talk) -> None:
    await granted(talk, CORE, kind="Group", name="readers")
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": "joe", "groups": ["readers"]}})
    assert answer.body["status"]["allowed"]


async def test_a_question_may_be_for_a_namespace_only(talk: Talk) -> None:
    await talk("POST", LOCAL, {"spec": {**asked(talk, namespace="other"), "user": "jane"}})
    answer = await talk(
        "POST", LOCAL, {"metadata": {"namespace": talk.namespace}, "spec": {**asked(talk), "user": "jane"}}
    )
    assert not answer.body["status"]["allowed"]


async def test_users_may_not_ask_for_others(talk: Talk) -> None:
    answer = await talk("POST", OTHERS, {"spec": {**asked(talk), "user": "joe"}}, user="jane")
    assert answer.status == 403
