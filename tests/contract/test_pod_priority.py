"""Priorities of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.contract.talk import Talk

PODS = "/api/v1/namespaces/{ns}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CONTAINERS = [{"name": "c", "image": "i"}]


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": CONTAINERS} | spec}


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
async def test_system_priority_classes_exist(talk: Talk, name: str) -> None:
    answer = await talk("POST", PODS, pod(priorityClassName=name))
    assert answer.body["spec"]["priority"] >= 2_000_000_000


async def test_pod_gets_the_priority_of_its_class(talk: Talk) -> None:
    made = {"metadata": {"name": talk.namespace}, "value": 7, "preemptionPolicy": "Never"}
    await talk.made(CLASSES, made)
    answer = await talk("POST", PODS, pod(priorityClassName=talk.namespace))
    assert (answer.body["spec"]["priority"], answer.body["spec"]["preemptionPolicy"]) == (7, "Never")
    await talk("DELETE", f"{CLASSES}/{talk.namespace}")


async def test_pod_with_an_unknown_class_is_forbidden(talk: Talk) -> None:
    answer = await talk("POST", PODS, pod(priorityClassName="nope"))
    await talk("POST", PODS, {"metadata": {"generateName": "g-"}, "spec": pod(priorityClassName="nope")["spec"]})
    assert answer.status == 403


@pytest.mark.parametrize(
    "said",
    [{"priority": 5}, {"preemptionPolicy": "Never"}, {"priority": 5, "priorityClassName": "system-node-critical"}],
)
async def test_pod_cannot_set_its_own_priority(talk: Talk, said: dict[str, Any]) -> None:
    answer = await talk("POST", PODS, pod(**said))
    assert answer.status == 403


async def test_global_default_class(talk: Talk) -> None:
    name = talk.namespace
    await talk.made(CLASSES, {"metadata": {"name": name}, "value": 3, "globalDefault": True})
    try:
        second = await talk("POST", CLASSES, {"metadata": {"name": f"{name}-b"}, "value": 4, "globalDefault": True})
        answer = await talk("POST", PODS, pod())
    finally:
        await talk("DELETE", f"{CLASSES}/{name}")
    assert (second.status, answer.body["spec"]["priority"]) == (403, 3)
