"""Managed fields after scale writes without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import JSON_PATCH, MERGE_PATCH
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

GROUP = "/apis/apps/v1/namespaces/{ns}"
KINDS = {name: name for name in ("deployments", "replicasets", "statefulsets")}
WRITES: dict[str, tuple[str, Any, str]] = {
    "put": ("PUT", {"metadata": {"name": "a"}, "spec": {"replicas": 2}}, "application/json"),
    "merge": ("PATCH", {"spec": {"replicas": 2}}, MERGE_PATCH),
    "merge-nothing": ("PATCH", {}, MERGE_PATCH),
    "json-nothing": ("PATCH", [], JSON_PATCH),
}


def scalable(replicas: int | None = 2) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "a"}, "spec": spec | ({} if replicas is None else {"replicas": replicas})}


@variants("write", WRITES)
async def test_unchanged_scale_write_updates_managed_fields(api: Conversation, write: tuple[str, Any, str]) -> None:
    await api.create(f"{GROUP}/deployments", scalable())
    method, body, content_type = write
    versions = []
    for manager in ("contract", "other", "contract"):
        where = f"{GROUP}/deployments/a/scale?fieldManager={manager}"
        answer = await api(method, where, body, content_type=content_type)
        assert answer.status == 200
        versions.append((await api("GET", f"{GROUP}/deployments/a")).metadata["resourceVersion"])
    assert len(set(versions)) == 2


@variants("kind", KINDS)
async def test_unowned_replicas_are_not_tracked(api: Conversation, kind: str) -> None:
    await api.create(f"{GROUP}/{kind}", scalable())
    for replicas in (2, 2, 3, 4):
        body = {"metadata": {"name": "a"}, "spec": {"replicas": replicas}}
        await api("PUT", f"{GROUP}/{kind}/a/scale?fieldManager=m", body)
        answer = await api("GET", f"{GROUP}/{kind}/a")
    assert all(entry["manager"] != "m" for entry in answer.metadata["managedFields"])


async def test_defaulted_replicas_are_owned(api: Conversation) -> None:
    await api.create(f"{GROUP}/deployments", scalable(None))
    for replicas in (1, 1, 2):
        body = {"metadata": {"name": "a"}, "spec": {"replicas": replicas}}
        answer = await api("PUT", f"{GROUP}/deployments/a/scale?fieldManager=m", body)
        await api("GET", f"{GROUP}/deployments/a")
    assert answer.body["spec"]["replicas"] == 2


async def test_unchanged_dry_run_records_no_owner(api: Conversation) -> None:
    made = await api.create(f"{GROUP}/deployments", scalable())
    body = {"metadata": {"name": "a"}, "spec": {"replicas": 2}}
    await api("PUT", f"{GROUP}/deployments/a/scale?dryRun=All", body)
    answer = await api("GET", f"{GROUP}/deployments/a")
    assert answer.metadata["resourceVersion"] == made["metadata"]["resourceVersion"]
