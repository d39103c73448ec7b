"""Deletion: options, finalizers, preconditions, garbage collection, namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH
from tests.real.contract.tables import CONFIGMAPS, NAMESPACES, PODS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation


A, B = (f"{CONFIGMAPS}/{name}" for name in "ab")
HELD = {"finalizers": ["example.com/hold"]}
FREE = {"metadata": {"finalizers": None}}


async def create(api: Conversation, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    said = {"name": name, **metadata}
    if owners:
        said["ownerReferences"] = list(owners)
    return await api.create(CONFIGMAPS, {"metadata": said})


def reference(owner: dict[str, Any], *, blocking: bool = False) -> dict[str, Any]:
    metadata = owner["metadata"]
    said = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
    return said | {"blockOwnerDeletion": True} if blocking else said


def is_gone(answer: Answer) -> bool:
    return answer.status == 404


async def delete(api: Conversation, path: str, **options: Any) -> Answer:
    return await api("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})


async def test_delete_of_a_missing_object_is_404(api: Conversation) -> None:
    assert is_gone(await delete(api, A))


async def test_finalizer_delays_deletion(api: Conversation) -> None:
    await create(api, "a", **HELD)
    answer = await delete(api, A)
    assert "deletionTimestamp" in answer.metadata


async def test_removing_the_last_finalizer_deletes(api: Conversation) -> None:
    await create(api, "a", **HELD)
    await delete(api, A)
    await api("PATCH", A, FREE, content_type=MERGE_PATCH)
    assert is_gone(await api("GET", A))


async def test_terminating_object_can_be_updated(api: Conversation) -> None:
    await create(api, "a", **HELD)
    await delete(api, A)
    answer = await api("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH)
    assert answer.body["data"] == {"k": "v"}


async def test_terminating_object_rejects_new_finalizers(api: Conversation) -> None:
    await create(api, "a", **HELD)
    await delete(api, A)
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    answer = await api("PATCH", A, more, content_type=MERGE_PATCH)
    assert answer.status == 422


async def test_uid_precondition_mismatch_is_409(api: Conversation) -> None:
    await create(api, "a")
    answer = await delete(api, A, preconditions={"uid": "00000000-0000-4000-8000-000000000000"})
    assert answer.status == 409


async def test_version_precondition_mismatch_is_409(api: Conversation) -> None:
    obj = await create(api, "a")
    await api("PATCH", A, {"data": {"k": "v"}}, content_type=MERGE_PATCH, recorded=False)
    answer = await delete(api, A, preconditions={"resourceVersion": obj["metadata"]["resourceVersion"]})
    assert answer.status == 409


async def test_matching_preconditions_allow_deletion(api: Conversation) -> None:
    metadata = (await create(api, "a"))["metadata"]
    asked = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    answer = await delete(api, A, preconditions=asked)
    assert answer.status == 200


async def test_dry_run_deletes_nothing(api: Conversation) -> None:
    await create(api, "a")
    await api("DELETE", f"{A}?dryRun=All")
    assert (await api("GET", A)).status == 200


@pytest.mark.parametrize("policy", ["", "Background"])
async def test_background_deletion_deletes_dependents(api: Conversation, policy: str) -> None:
    owner = await create(api, "a")
    await create(api, "b", reference(owner))
    await (delete(api, A, propagationPolicy=policy) if policy else delete(api, A))
    answer = await api.poll(B, is_gone)
    assert is_gone(answer)


async def test_foreground_deletion_waits_for_blocking_dependents(api: Conversation) -> None:
    owner = await create(api, "a")
    await create(api, "b", reference(owner, blocking=True), **HELD)
    await delete(api, A, propagationPolicy="Foreground")
    await api.poll(B, lambda answer: "deletionTimestamp" in answer.metadata)
    assert (await api("GET", A)).metadata["finalizers"] == ["foregroundDeletion"]
    await api("PATCH", B, FREE, content_type=MERGE_PATCH, recorded=False)
    await api.poll(A, is_gone)


async def test_orphaned_dependents_lose_the_owner_reference(api: Conversation) -> None:
    owner = await create(api, "a")
    await create(api, "b", reference(owner))
    await delete(api, A, propagationPolicy="Orphan")
    await api.poll(A, is_gone)
    assert "ownerReferences" not in (await api("GET", B)).metadata


async def test_object_with_a_missing_owner_is_collected(api: Conversation) -> None:
    owner = {"metadata": {"name": "x", "uid": "00000000-0000-4000-8000-000000000000"}}
    await create(api, "b", reference(owner))
    assert is_gone(await api.poll(B, is_gone))


async def test_pod_deletion_without_grace_is_immediate(api: Conversation) -> None:
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await delete(api, f"{PODS}/a", gracePeriodSeconds=0)
    assert is_gone(await api("GET", f"{PODS}/a"))


async def test_deletecollection_by_label_selector(api: Conversation) -> None:
    await create(api, "a", labels={"x": "1"})
    await create(api, "b", labels={"x": "2"})
    await api("DELETE", f"{CONFIGMAPS}?labelSelector=x%3D1")
    assert [item["metadata"]["name"] for item in (await api("GET", CONFIGMAPS)).body["items"]] == ["b"]


async def test_namespace_is_removed_after_its_contents(api: Conversation) -> None:
    name = f"{api.namespace}-x"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "a"}})
    await delete(api, f"{NAMESPACES}/{name}")
    await api.poll(f"{NAMESPACES}/{name}", is_gone)
    assert is_gone(await api("GET", f"{NAMESPACES}/{name}/configmaps/a"))


async def test_namespace_goes_with_the_last_finalizer_in_it(api: Conversation) -> None:
    name = f"{api.namespace}-x"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    held = f"{NAMESPACES}/{name}/configmaps/a"
    await api.create(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "a", **HELD}})
    await api("DELETE", f"{NAMESPACES}/{name}", recorded=False)
    await api.poll(held, lambda answer: "deletionTimestamp" in answer.metadata, recorded=False)
    await api("PATCH", held, FREE, content_type=MERGE_PATCH, recorded=False)
    await api.poll(f"{NAMESPACES}/{name}", is_gone, recorded=False)
    assert is_gone(await api("GET", held))


async def test_terminating_namespace_rejects_creates(api: Conversation) -> None:
    name = f"{api.namespace}-x"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    held = f"{NAMESPACES}/{name}/configmaps"
    await api.create(held, {"metadata": {"name": "a", **HELD}})
    await api("DELETE", f"{NAMESPACES}/{name}", recorded=False)
    answer = await api("POST", held, {"metadata": {"name": "b"}})
    assert answer.status == 403
    await api.poll(f"{held}/a", lambda answer: "deletionTimestamp" in answer.metadata)
    await api("PATCH", f"{held}/a", FREE, content_type=MERGE_PATCH, recorded=False)
