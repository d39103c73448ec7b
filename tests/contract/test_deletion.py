"""Deletion: finalizers, preconditions, garbage collection, namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import CONFIGMAPS, NAMESPACES, PODS
from tests.contract.tables import variants
from tests.contract.talk import JSON, MERGE_PATCH, YAML

if TYPE_CHECKING:
    from tests.contract.talk import Answer, Talk

A, B, C = (f"{CONFIGMAPS}/{name}" for name in "abc")
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
HELD = {"finalizers": ["example.com/hold"]}
FREE = {"metadata": {"finalizers": None}}


async def made(talk: Talk, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    said = {"name": name, **metadata}
    if owners:
        said["ownerReferences"] = list(owners)
    return await talk.made(CONFIGMAPS, {"metadata": said})


def reference(owner: dict[str, Any], *, blocking: bool = False) -> dict[str, Any]:
    metadata = owner["metadata"]
    said = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
    return said | {"blockOwnerDeletion": True} if blocking else said


def is_gone(answer: Answer) -> bool:
    return answer.status == 404


async def deleted(talk: Talk, path: str, **options: Any) -> Answer:
    return await talk("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})


async def test_delete_removes_the_object(talk: Talk) -> None:
    await made(talk, "a")
    await deleted(talk, A)
    assert is_gone(await talk("GET", A))


async def test_delete_of_a_missing_object_is_404(talk: Talk) -> None:
    assert is_gone(await deleted(talk, A))


async def test_finalizer_delays_deletion(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    answer = await deleted(talk, A)
    assert "deletionTimestamp" in answer.metadata


async def test_second_delete_changes_nothing(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    await deleted(talk, A)
    answer = await deleted(talk, A)
    assert answer.status == 200


async def test_removing_the_last_finalizer_deletes(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    await deleted(talk, A)
    await talk("PATCH", A, FREE, content_type=MERGE_PATCH)
    assert is_gone(await talk("GET", A))


async def test_terminating_object_can_be_updated(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    await deleted(talk, A)
    answer = await talk("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    assert answer.body["data"] == {"k": "v"}


async def test_terminating_object_rejects_new_finalizers(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    await deleted(talk, A)
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    answer = await talk("PATCH", A, more, content_type=MERGE_PATCH)
    assert answer.status == 422


async def test_terminating_object_keeps_its_name(talk: Talk) -> None:
    await made(talk, "a", **HELD)
    await deleted(talk, A)
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
    assert answer.status == 409


async def test_uid_precondition_mismatch_is_409(talk: Talk) -> None:
    await made(talk, "a")
    answer = await deleted(talk, A, preconditions={"uid": "00000000-0000-4000-8000-000000000000"})
    assert answer.status == 409


async def test_version_precondition_mismatch_is_409(talk: Talk) -> None:
    obj = await made(talk, "a")
    await talk("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH, kept=False)
    answer = await deleted(talk, A, preconditions={"resourceVersion": obj["metadata"]["resourceVersion"]})
    assert answer.status == 409


async def test_matching_preconditions_allow_deletion(talk: Talk) -> None:
    metadata = (await made(talk, "a"))["metadata"]
    asked = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    answer = await deleted(talk, A, preconditions=asked)
    assert answer.status == 200


async def test_dry_run_deletes_nothing(talk: Talk) -> None:
    await made(talk, "a")
    await talk("DELETE", f"{A}?dryRun=All")
    assert (await talk("GET", A)).status == 200


async def test_unknown_propagation_policy_is_422(talk: Talk) -> None:
    await made(talk, "a")
    answer = await deleted(talk, A, propagationPolicy="Foregone")
    assert answer.status == 422


async def test_orphan_dependents_excludes_propagation_policy(talk: Talk) -> None:
    await made(talk, "a")
    answer = await deleted(talk, A, propagationPolicy="Orphan", orphanDependents=True)
    assert answer.status == 422


@pytest.mark.parametrize("policy", ["", "Background"])
async def test_background_deletion_deletes_dependents(talk: Talk, policy: str) -> None:
    owner = await made(talk, "a")
    await made(talk, "b", reference(owner))
    await (deleted(talk, A, propagationPolicy=policy) if policy else deleted(talk, A))
    answer = await talk.until(B, is_gone)
    assert is_gone(answer)


async def test_foreground_deletion_waits_for_blocking_dependents(talk: Talk) -> None:
    owner = await made(talk, "a")
    await made(talk, "b", reference(owner, blocking=True), **HELD)
    await deleted(talk, A, propagationPolicy="Foreground")
    await talk.until(B, lambda answer: "deletionTimestamp" in answer.metadata)
    assert (await talk("GET", A)).metadata["finalizers"] == ["foregroundDeletion"]
    await talk("PATCH", B, FREE, content_type=MERGE_PATCH, kept=False)
    await talk.until(A, is_gone)


async def test_foreground_deletion_skips_nonblocking_dependents(talk: Talk) -> None:
    owner = await made(talk, "a")
    await made(talk, "b", reference(owner), **HELD)
    await deleted(talk, A, propagationPolicy="Foreground")
    assert is_gone(await talk.until(A, is_gone))
    await talk.until(B, lambda answer: "deletionTimestamp" in answer.metadata)
    await talk("PATCH", B, FREE, content_type=MERGE_PATCH, kept=False)


@pytest.mark.parametrize("how", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}], ids=["policy", "old"])
async def test_orphaned_dependents_lose_the_owner_reference(talk: Talk, how: dict[str, Any]) -> None:
    owner = await made(talk, "a")
    await made(talk, "b", reference(owner))
    await deleted(talk, A, **how)
    await talk.until(A, is_gone)
    assert "ownerReferences" not in (await talk("GET", B)).metadata


async def test_object_lives_while_one_owner_lives(talk: Talk) -> None:
    first, second = await made(talk, "a"), await made(talk, "b")
    await made(talk, "c", reference(first), reference(second))
    await deleted(talk, A)
    answer = await talk.until(C, lambda answer: len(answer.metadata["ownerReferences"]) == 1)
    assert answer.metadata["ownerReferences"][0]["name"] == "b"
    await deleted(talk, B)
    await talk.until(C, is_gone)


async def test_object_with_a_missing_owner_is_collected(talk: Talk) -> None:
    owner = {"metadata": {"name": "x", "uid": "00000000-0000-4000-8000-000000000000"}}
    await made(talk, "b", reference(owner))
    assert is_gone(await talk.until(B, is_gone))


async def test_deletion_cascades_over_several_levels(talk: Talk) -> None:
    owner = await made(talk, "a")
    middle = await made(talk, "b", reference(owner))
    await made(talk, "c", reference(middle))
    await deleted(talk, A)
    assert is_gone(await talk.until(C, is_gone))


async def test_job_deletion_warns_that_pods_are_orphaned(talk: Talk) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    await talk.made(JOBS, {"metadata": {"name": "a"}, "spec": spec})
    answer = await talk("DELETE", f"{JOBS}/a", kept=False)
    assert "child pods are preserved by default" in answer.headers["Warning"]


ENDS = {"default": None, "background": {"propagationPolicy": "Background"}, "none": {"orphanDependents": None}}


@variants("options", ENDS)
@pytest.mark.parametrize("count", [0, 2])
async def test_deletecollection_of_jobs_warns_once(talk: Talk, count: int, options: Any) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    for name in range(count):
        await talk.made(JOBS, {"metadata": {"name": f"a{name}"}, "spec": spec})
    answer = await talk("DELETE", JOBS, options, shown=_how_many)
    assert answer.status == 200


def _how_many(body: Any) -> Any:
    return len(body["items"])


BODIES = {
    "a_list": "[]",
    "a_full_list": '[{"kind":"DeleteOptions"}]',
    "a_text": '"x"',
    "a_number": "1",
    "null": "null",
    "words": "words",
    "yaml_list": "- a",
    "kind_is_a_number": '{"kind":1}',
    "another_kind": '{"kind":"ConfigMap","apiVersion":"v1"}',
    "field_of_another_type": '{"gracePeriodSeconds":"1"}',
    "fields_of_another_type": '{"preconditions":[],"dryRun":"All"}',
}


@variants("text", BODIES)
@pytest.mark.parametrize("where", ["object", "collection"])
async def test_delete_options_must_be_an_object(talk: Talk, where: str, text: str) -> None:
    await made(talk, "a")
    content_type = YAML if text.startswith("- ") else JSON
    answer = await talk("DELETE", A if where == "object" else CONFIGMAPS, text, content_type=content_type)
    assert answer.status == (200 if text == "null" else 400)


@variants("accept", {"text": "text/plain", "table_of_nothing": "application/json;as=Table;g=x;v=v1", "yaml": YAML})
@pytest.mark.parametrize("where", ["object", "collection"])
async def test_delete_response_follows_the_accept_header(talk: Talk, where: str, accept: str) -> None:
    await made(talk, "a")
    answer = await talk("DELETE", A if where == "object" else CONFIGMAPS, accept=accept)
    assert answer.status in (200, 406)


@pytest.mark.parametrize(
    "reference",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"},
        {"apiVersion": "v1", "kind": "ConfigMap", "uid": "u"},
        {"kind": "ConfigMap", "name": "x", "uid": "u"},
        {"apiVersion": "v1", "name": "x", "uid": "u"},
        {"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"},
    ],
    ids=["no_uid", "no_name", "no_version", "no_kind", "an_event"],
)
async def test_incomplete_owner_reference_is_422(talk: Talk, reference: dict[str, Any]) -> None:
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a", "ownerReferences": [reference]}})
    assert answer.status == 422


async def test_only_one_owner_may_be_controller(talk: Talk) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True} for name in ("x", "y")
    ]
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a", "ownerReferences": owners}})
    assert answer.status == 422


async def test_pod_deletion_without_grace_is_immediate(talk: Talk) -> None:
    await talk.made(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await deleted(talk, f"{PODS}/a", gracePeriodSeconds=0)
    assert is_gone(await talk("GET", f"{PODS}/a"))


async def test_deletecollection_by_label_selector(talk: Talk) -> None:
    await made(talk, "a", labels={"x": "1"})
    await made(talk, "b", labels={"x": "2"})
    await talk("DELETE", f"{CONFIGMAPS}?labelSelector=x%3D1")
    assert [item["metadata"]["name"] for item in (await talk("GET", CONFIGMAPS)).body["items"]] == ["b"]


async def test_deletecollection_stops_at_the_limit(talk: Talk) -> None:
    for name in "abc":
        await made(talk, name)
    await talk("DELETE", f"{CONFIGMAPS}?limit=2")
    assert [item["metadata"]["name"] for item in (await talk("GET", CONFIGMAPS)).body["items"]] == ["c"]


async def test_namespace_is_removed_after_its_contents(talk: Talk) -> None:
    name = f"{talk.namespace}-x"
    await talk.made(NAMESPACES, {"metadata": {"name": name}})
    await talk.made(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "a"}})
    await deleted(talk, f"{NAMESPACES}/{name}")
    await talk.until(f"{NAMESPACES}/{name}", is_gone)
    assert is_gone(await talk("GET", f"{NAMESPACES}/{name}/configmaps/a"))


async def test_terminating_namespace_rejects_creates(talk: Talk) -> None:
    name = f"{talk.namespace}-x"
    await talk.made(NAMESPACES, {"metadata": {"name": name}})
    held = f"{NAMESPACES}/{name}/configmaps"
    await talk.made(held, {"metadata": {"name": "a", **HELD}})
    await talk("DELETE", f"{NAMESPACES}/{name}", kept=False)
    answer = await talk("POST", held, {"metadata": {"name": "b"}})
    assert answer.status == 403
    await talk.until(f"{held}/a", lambda answer: "deletionTimestamp" in answer.metadata)
    await talk("PATCH", f"{held}/a", FREE, content_type=MERGE_PATCH, kept=False)


async def test_system_namespaces_cannot_be_deleted(talk: Talk) -> None:
    answer = await talk("DELETE", f"{NAMESPACES}/default")
    assert answer.status == 403
