"""Patches: immutable metadata, preconditions, missing objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.contract.patched import setting
from tests.contract.paths import CONFIGMAPS, NAMESPACES, PODS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
EITHER = {"merge": MERGE_PATCH, "strategic": STRATEGIC}
IDENTITY: dict[str, tuple[str, Any]] = {
    "name": ("/metadata/name", "b"),
    "no_name": ("/metadata/name", None),
    "namespace": ("/metadata/namespace", "other"),
    "no_namespace": ("/metadata/namespace", None),
    "uid": ("/metadata/uid", "b1a0d1a8-0000-0000-0000-000000000000"),
    "no_uid": ("/metadata/uid", None),
    "version": ("/metadata/resourceVersion", "1"),
    "no_version": ("/metadata/resourceVersion", None),
    "empty_version": ("/metadata/resourceVersion", ""),
    "zero_version": ("/metadata/resourceVersion", "0"),
    "word_version": ("/metadata/resourceVersion", "x"),
    "number_version": ("/metadata/resourceVersion", 1),
    "kind": ("/kind", "Secret"),
    "no_kind": ("/kind", None),
    "empty_kind": ("/kind", ""),
    "api_version": ("/apiVersion", "apps/v1"),
    "no_api_version": ("/apiVersion", None),
    "malformed_api_version": ("/apiVersion", "a/b/c"),
    "created": ("/metadata/creationTimestamp", "2020-01-01T00:00:00Z"),
    "not_created": ("/metadata/creationTimestamp", None),
    "deleted": ("/metadata/deletionTimestamp", "2020-01-01T00:00:00Z"),
    "generation": ("/metadata/generation", 7),
    "managers": ("/metadata/managedFields", []),
    "one_manager": ("/metadata/managedFields", [{}]),
    "self_link": ("/metadata/selfLink", "/x"),
    "prefix": ("/metadata/generateName", "x-"),
    "metadata": ("/metadata", None),
}


@variants("content_type", EITHER | {"json": JSON_PATCH})
@variants("case", {name: name for name in IDENTITY})
async def test_patch_cannot_change_identity(api: Conversation, case: str, content_type: str) -> None:
    made = await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    path, value = IDENTITY[case]
    body = setting(path, value, content_type)
    if content_type == JSON_PATCH and value is None:
        body = [{"op": "remove", "path": path}]
    answer = await api("PATCH", A, body, content_type=content_type)
    assert answer.status >= 400 or answer.metadata["uid"] == made["metadata"]["uid"]
    await api("GET", A)


@variants("content_type", EITHER | {"json": JSON_PATCH})
async def test_version_in_a_patch_is_a_precondition(api: Conversation, content_type: str) -> None:
    made = await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    version = made["metadata"]["resourceVersion"]
    said: Any = {"metadata": {"resourceVersion": version}, "data": {"k": "v"}}
    if content_type == JSON_PATCH:
        said = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/data", "value": {"k": "v"}},
        ]
    await api("PATCH", A, said, content_type=content_type)
    answer = await api("PATCH", A, said, content_type=content_type)
    assert answer.status == 409


@variants("content_type", EITHER)
async def test_uid_in_a_patch_is_a_precondition(api: Conversation, content_type: str) -> None:
    made = await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    said = {"metadata": {"uid": made["metadata"]["uid"]}, "data": {"k": "v"}}
    answer = await api("PATCH", A, said, content_type=content_type)
    assert answer.status == 200


@variants("content_type", EITHER | {"json": JSON_PATCH})
@variants(
    "path", {"configmap": A, "pod": f"{PODS}/a", "namespace": f"{NAMESPACES}/{{ns}}-none", "status": f"{PODS}/a/status"}
)
async def test_patch_of_a_missing_object_is_404(api: Conversation, path: str, content_type: str) -> None:
    answer = await api("PATCH", path, [] if content_type == JSON_PATCH else {}, content_type=content_type)
    assert answer.status == 404
