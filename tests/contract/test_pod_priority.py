"""Priorities of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

PODS = "/api/v1/namespaces/{ns}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CONTAINERS = [{"name": "c", "image": "i"}]


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": CONTAINERS} | spec}


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
async def test_system_priority_classes_exist(api: Conversation, name: str) -> None:
    answer = await api("POST", PODS, pod(priorityClassName=name))
    assert answer.body["spec"]["priority"] >= 2_000_000_000


async def test_pod_gets_the_priority_of_its_class(api: Conversation) -> None:
    made = {"metadata": {"name": api.namespace}, "value": 7, "preemptionPolicy": "Never"}
    await api.create(CLASSES, made)
    answer = await api("POST", PODS, pod(priorityClassName=api.namespace))
    assert (answer.body["spec"]["priority"], answer.body["spec"]["preemptionPolicy"]) == (7, "Never")
    await api("DELETE", f"{CLASSES}/{api.namespace}")


async def test_pod_with_an_unknown_class_is_forbidden(api: Conversation) -> None:
    answer = await api("POST", PODS, pod(priorityClassName="nope"))
    await api("POST", PODS, {"metadata": {"generateName": "g-"}, "spec": pod(priorityClassName="nope")["spec"]})
    assert answer.status == 403


@pytest.mark.parametrize(
    "said",
    [{"priority": 5}, {"preemptionPolicy": "Never"}, {"priority": 5, "priorityClassName": "system-node-critical"}],
)
async def test_pod_cannot_set_its_own_priority(api: Conversation, said: dict[str, Any]) -> None:
    answer = await api("POST", PODS, pod(**said))
    assert answer.status == 403


async def test_global_default_class(api: Conversation) -> None:
    name = api.namespace
    await api.create(CLASSES, {"metadata": {"name": name}, "value": 3, "globalDefault": True})
    try:
        second = await api("POST", CLASSES, {"metadata": {"name": f"{name}-b"}, "value": 4, "globalDefault": True})
        answer = await api("POST", PODS, pod())
    finally:
        await api("DELETE", f"{CLASSES}/{name}")
    assert (second.status, answer.body["spec"]["priority"]) == (403, 3)
