"""Patches of status and scale, and of cluster-scoped objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.real.contract.patched import deployment, named, pod_spec, setting
from tests.real.contract.paths import DEPLOYMENTS, NAMESPACES, PODS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

KINDS = {"merge": MERGE_PATCH, "strategic": STRATEGIC, "json": JSON_PATCH}

SUBRESOURCES: dict[str, tuple[str, str, Any]] = {
    "status": ("status", "/status/replicas", 3),
    "spec_by_status": ("status", "/spec/replicas", 3),
    "labels_by_status": ("status", "/metadata/labels", {"x": "y"}),
    "name_by_status": ("status", "/metadata/name", "b"),
    "unknown_by_status": ("status", "/status/frob", 1),
    "type_of_status": ("status", "/status/replicas", "x"),
    "scale": ("scale", "/spec/replicas", 3),
    "scale_to_nothing": ("scale", "/spec/replicas", 0),
    "scale_below": ("scale", "/spec/replicas", -1),
    "scale_status": ("scale", "/status/replicas", 3),
    "scale_unknown": ("scale", "/spec/frob", 3),
    "scale_type": ("scale", "/spec/replicas", "x"),
    "scale_name": ("scale", "/metadata/name", "b"),
    "scale_labels": ("scale", "/metadata/labels", {"x": "y"}),
    "scale_version": ("scale", "/metadata/resourceVersion", "1"),
    "scale_kind": ("scale", "/kind", "Deployment"),
}


@variants("content_type", KINDS)
@variants("case", {name: name for name in SUBRESOURCES})
async def test_patch_of_status_and_scale(api: Conversation, case: str, content_type: str) -> None:
    await api.create(DEPLOYMENTS, deployment())
    subresource, path, value = SUBRESOURCES[case]
    body = setting(path, value, content_type)
    answer = await api("PATCH", f"{DEPLOYMENTS}/a/{subresource}", body, content_type=content_type)
    assert answer.status < 500


CONDITION = {"type": "Ready", "status": "True"}
STATUSES: dict[str, Any] = {
    "conditions": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "No"}, {"type": "New", "status": "True"}]
    },
    "delete_condition": {"conditions": [{"type": "Ready", "$patch": "delete"}]},
    "order_of_conditions": {
        "$setElementOrder/conditions": [{"type": "New"}, {"type": "Ready"}],
        "conditions": [{"type": "New", "status": "True"}],
    },
    "addresses": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
    "containers": {"containerStatuses": [{"name": "c", "ready": True, "restartCount": 1, "image": "i", "imageID": ""}]},
    "phase": {"phase": "Running", "conditions": None},
}


@variants("status", STATUSES)
async def test_conditions_merge_by_type(api: Conversation, status: Any) -> None:
    await api.create(PODS, named() | {"spec": pod_spec()})
    first = {"status": {"conditions": [CONDITION], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}
    await api("PATCH", f"{PODS}/a/status", first, content_type=MERGE_PATCH, recorded=False)
    answer = await api("PATCH", f"{PODS}/a/status", {"status": status}, content_type=STRATEGIC)
    assert answer.status in (200, 422)


@variants("content_type", KINDS)
async def test_patch_of_a_namespace(api: Conversation, content_type: str) -> None:
    body = setting("/metadata/labels/x", "y", content_type)
    answer = await api("PATCH", f"{NAMESPACES}/{{ns}}", body, content_type=content_type)
    assert answer.metadata["labels"]["x"] == "y"
