"""Server-side apply, and who owns which fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import CONFIGMAPS, DEPLOYMENTS, PODS, SERVICES
from tests.contract.talk import APPLY, JSON_PATCH, MERGE_PATCH

if TYPE_CHECKING:
    from tests.contract.talk import Answer, Talk

A = f"{CONFIGMAPS}/a"


def configmap(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return said if data is None else said | {"data": data}


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": list(ports)}}


async def applied(talk: Talk, path: str, obj: dict[str, Any], manager: str = "one", query: str = "") -> Answer:
    return await talk("PATCH", f"{path}?fieldManager={manager}{query}", obj, content_type=APPLY)


@pytest.mark.conformance("FK-05")
async def test_what_an_apply_creates_belongs_to_the_applier(talk: Talk) -> None:
    answer = await applied(talk, A, configmap({"k": "v"}, labels={"l": "m"}))
    assert answer.status == 201


async def test_an_apply_that_changes_nothing_is_no_change(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap({"k": "v"}))
    assert answer.status == 200


async def test_an_apply_needs_a_field_manager(talk: Talk) -> None:
    answer = await talk("PATCH", A, configmap({"k": "v"}), content_type=APPLY)
    assert answer.status == 422


async def test_an_apply_without_an_api_version_is_refused(talk: Talk) -> None:
    answer = await applied(talk, A, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert answer.status == 400


async def test_an_apply_of_another_kind_is_refused(talk: Talk) -> None:
    answer = await applied(talk, A, configmap() | {"kind": "Secret"})
    assert answer.status == 400


async def test_an_apply_under_another_name_is_refused(talk: Talk) -> None:
    answer = await applied(talk, A, configmap() | {"metadata": {"name": "b"}})
    assert answer.status == 400


async def test_an_apply_may_not_say_who_owns_what(talk: Talk) -> None:
    answer = await applied(talk, A, configmap(managedFields=[{"manager": "x", "operation": "Apply"}]))
    assert answer.status == 400


async def test_an_apply_of_a_field_that_is_none_is_refused(talk: Talk) -> None:
    answer = await applied(talk, A, configmap() | {"dta": {}})
    assert answer.status >= 400


async def test_two_appliers_may_own_different_fields(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap({"l": "w"}), "two")
    assert answer.body["data"] == {"k": "v", "l": "w"}


async def test_two_appliers_may_share_a_field_by_saying_the_same(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap({"k": "v"}), "two")
    assert answer.status == 200


@pytest.mark.conformance("FK-05")
async def test_to_change_the_field_of_another_is_a_conflict(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap({"k": "w"}), "two")
    assert answer.status == 409


async def test_conflicts_are_told_one_by_one(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}))
    answer = await applied(talk, A, configmap({"k": "w", "l": "w"}), "two")
    assert answer.status == 409


@pytest.mark.conformance("FK-05")
async def test_force_takes_a_field_from_its_owner(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}))
    answer = await applied(talk, A, configmap({"k": "w"}), "two", "&force=true")
    assert answer.body["data"] == {"k": "w", "l": "v"}


async def test_what_an_applier_does_not_say_any_more_is_removed(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}, labels={"x": "y"}))
    answer = await applied(talk, A, configmap({"k": "v"}))
    assert "labels" not in answer.metadata


async def test_what_another_applier_still_says_stays(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}))
    await applied(talk, A, configmap({"l": "v"}), "two")
    answer = await applied(talk, A, configmap({"k": "v"}))
    assert answer.body["data"] == {"k": "v", "l": "v"}


async def test_the_last_field_of_a_map_takes_the_map_with_it(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap())
    assert "data" not in answer.body


async def test_an_update_takes_what_it_changes(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}))
    answer = await talk("PUT", f"{A}?fieldManager=two", configmap({"k": "w", "l": "v"}))
    assert len(answer.metadata["managedFields"]) == 2


async def test_an_update_removes_what_it_does_not_say(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v", "l": "v"}))
    answer = await talk("PUT", f"{A}?fieldManager=two", configmap({"k": "v"}))
    assert len(answer.metadata["managedFields"]) == 1


async def test_a_patch_is_an_update(talk: Talk) -> None:
    await talk("POST", f"{CONFIGMAPS}?fieldManager=one", configmap({"k": "v"}))
    operations = [{"op": "add", "path": "/data/l", "value": "w"}]
    answer = await talk("PATCH", f"{A}?fieldManager=two", operations, content_type=JSON_PATCH)
    assert answer.body["data"] == {"k": "v", "l": "w"}


async def test_a_manager_without_a_name_is_called_by_its_user_agent(talk: Talk) -> None:
    answer = await talk("POST", CONFIGMAPS, configmap({"k": "v"}), headers={"User-Agent": "some-tool/v1.2 (linux)"})
    assert answer.metadata["managedFields"][0]["manager"] == "some-tool"


async def test_names_of_managers_have_an_end(talk: Talk) -> None:
    answer = await talk("POST", f"{CONFIGMAPS}?fieldManager={'x' * 129}", configmap())
    assert answer.status == 422


async def test_an_update_may_forget_all_owners(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await talk("PUT", f"{A}?fieldManager=two", configmap({"k": "w"}, managedFields=[{}]))
    assert answer.status == 200


async def test_what_was_there_before_the_first_apply_has_an_owner_of_that_name(talk: Talk) -> None:
    await talk("POST", f"{CONFIGMAPS}?fieldManager=old", configmap({"k": "v"}))
    await talk("PUT", f"{A}?fieldManager=old", configmap({"k": "v"}, managedFields=[{}]))
    answer = await applied(talk, A, configmap({"l": "w"}))
    assert answer.status == 200


async def test_elements_of_lists_are_owned_by_their_keys(talk: Talk) -> None:
    path = f"{SERVICES}/a"
    await applied(talk, path, service({"name": "x", "port": 80}))
    answer = await applied(talk, path, service({"name": "y", "port": 81}), "two")
    assert [each["name"] for each in answer.body["spec"]["ports"]] == ["x", "y"]


async def test_an_element_that_is_not_said_any_more_is_removed(talk: Talk) -> None:
    path = f"{SERVICES}/a"
    await applied(talk, path, service({"name": "x", "port": 80}, {"name": "y", "port": 81}))
    answer = await applied(talk, path, service({"name": "x", "port": 80}))
    assert [each["name"] for each in answer.body["spec"]["ports"]] == ["x"]


async def test_finalizers_are_owned_one_by_one(talk: Talk) -> None:
    await applied(talk, A, configmap(finalizers=["example.com/a"]))
    await applied(talk, A, configmap(finalizers=["example.com/b"]), "two")
    answer = await applied(talk, A, configmap(), "two")
    assert answer.metadata["finalizers"] == ["example.com/a"]
    await talk("PATCH", A, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, kept=False)


async def test_labels_are_owned_one_by_one(talk: Talk) -> None:
    await applied(talk, A, configmap(labels={"a": "1"}))
    answer = await applied(talk, A, configmap(labels={"b": "2"}), "two")
    assert answer.metadata["labels"] == {"a": "1", "b": "2"}


async def test_a_dry_run_of_an_apply_stores_nothing(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    await applied(talk, A, configmap({"k": "w"}), query="&dryRun=All")
    answer = await talk("GET", A)
    assert answer.body["data"] == {"k": "v"}


async def test_the_oldest_of_many_updaters_become_one(talk: Talk) -> None:
    await talk.made(f"{CONFIGMAPS}?fieldManager=m0", configmap({"k0": ""}))
    for index in range(1, 12):
        patch = {"data": {f"k{index}": ""}}
        await talk("PATCH", f"{A}?fieldManager=m{index:02}", patch, content_type=MERGE_PATCH, kept=False)
    answer = await talk("GET", A)
    assert len(answer.metadata["managedFields"]) == 10


async def test_yaml_is_applied(talk: Talk) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: 'true'\n"
    answer = await talk("PATCH", f"{A}?fieldManager=one", text, content_type=APPLY)
    assert answer.body["data"] == {"k": "true"}


async def test_broken_yaml_is_refused(talk: Talk) -> None:
    answer = await talk("PATCH", f"{A}?fieldManager=one", "a: [", content_type=APPLY)
    assert answer.status == 400


async def test_an_applied_version_must_be_the_current_one(talk: Talk) -> None:
    await applied(talk, A, configmap({"k": "v"}))
    answer = await applied(talk, A, configmap({"k": "w"}, resourceVersion="1"))
    assert answer.status == 409


async def test_an_apply_to_the_status_owns_the_status(talk: Talk) -> None:
    await talk.made(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"message": "m"}}
    answer = await talk("PATCH", f"{PODS}/a/status?fieldManager=two", status, content_type=APPLY)
    mine = [each for each in answer.metadata["managedFields"] if each["manager"] == "two"]
    assert mine[0]["subresource"] == "status"


async def test_a_scaled_number_of_replicas_belongs_to_who_scaled(talk: Talk) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 1}
    await talk.made(f"{DEPLOYMENTS}?fieldManager=one", {"metadata": {"name": "a"}, "spec": spec})
    await talk("PATCH", f"{DEPLOYMENTS}/a/scale?fieldManager=two", {"spec": {"replicas": 2}}, content_type=MERGE_PATCH)
    answer = await talk("GET", f"{DEPLOYMENTS}/a", kept=False)
    mine = [each for each in answer.metadata["managedFields"] if each["manager"] == "two"]
    assert mine[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
