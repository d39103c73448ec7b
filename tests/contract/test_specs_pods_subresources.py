"""Ephemeral containers and resizing of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH, STRATEGIC
from tests.contract.paths import PODS

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

EPHEMERAL = f"{PODS}/a/ephemeralcontainers"
RESIZE = f"{PODS}/a/resize"
POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"a": "b"}},
    "spec": {
        "containers": [
            {"name": name, "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            for name in ("c", "d")
        ],
        "initContainers": [
            {"name": "first", "image": "i"},
            {"name": "beside", "image": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}},
        ],
    },
}
DEBUGGER = {"name": "e", "image": "i", "targetContainerName": "c"}
WRONG_DEBUGGERS: list[dict[str, Any]] = [
    {"name": "", "image": "i"},
    {"name": "c", "image": "i"},
    {"name": "f"},
    {"name": "f", "image": "i", "targetContainerName": "x"},
    {"name": "f", "image": "i", "ports": [{"containerPort": 80}]},
    {"name": "e", "image": "j", "tty": True},
]
SIZES_REFUSED: list[dict[str, Any]] = [
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}]},
    {"containers": [{"name": "c", "resources": {"requests": {"ephemeral-storage": "1Gi"}}}]},
    {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m"}}}]},
    {"containers": [{"name": "x", "image": "i"}]},
    {"containers": [{"name": "c", "$patch": "delete"}]},
    {"initContainers": [{"name": "first", "resources": {"limits": {"ephemeral-storage": "1"}}}]},
    {"initContainers": [{"name": "beside", "resources": {"limits": {"cpu": None}}}]},
]
SIZES_TAKEN: list[dict[str, Any]] = [
    {"containers": [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}]},
    {"containers": [{"name": "c", "resources": {"limits": {"memory": "2Gi"}}}], "nodeName": "n"},
    {"initContainers": [{"name": "beside", "resources": {"limits": {"cpu": "2"}}}]},
    {"initContainers": [{"name": "first", "resources": {"limits": {"cpu": "1"}}}]},
]


def without_owners(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object without managed fields: kube-apiserver records owners of fields that it drops."""
    metadata = {name: value for name, value in body.get("metadata", {}).items() if name != "managedFields"}
    return body | {"metadata": metadata}


async def test_ephemeral_containers_are_only_added(api: Conversation) -> None:
    await api.create(PODS, POD)
    added = {"spec": {"ephemeralContainers": [DEBUGGER], "nodeName": "n"}, "metadata": {"labels": {"x": "y"}}}
    answer = await api("PATCH", EPHEMERAL, added, content_type=STRATEGIC, shown=without_owners)
    assert answer.status == 200
    patches = [{"spec": {"ephemeralContainers": [each]}} for each in WRONG_DEBUGGERS]
    answers = [await api("PATCH", EPHEMERAL, each, content_type=STRATEGIC) for each in patches]
    answers.append(await api("PATCH", EPHEMERAL, {"spec": {"ephemeralContainers": []}}, content_type=MERGE_PATCH))
    assert {answer.status for answer in answers} == {422}


async def test_resize_within_limits(api: Conversation) -> None:
    await api.create(PODS, POD)
    refused = [await api("PATCH", RESIZE, {"spec": each}, content_type=STRATEGIC) for each in SIZES_REFUSED]
    taken = [
        await api("PATCH", RESIZE, {"spec": each}, content_type=STRATEGIC, shown=without_owners) for each in SIZES_TAKEN
    ]
    assert ({answer.status for answer in refused}, {answer.status for answer in taken}) == ({422}, {200})
