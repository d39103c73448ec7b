"""What pods are worth."""

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
async def test_the_classes_of_the_system_are_there_for_pods(talk: Talk, name: str) -> None:
    answer = await talk("POST", PODS, pod(priorityClassName=name))
    assert answer.body["spec"]["priority"] >= 2_000_000_000


async def test_a_pod_has_the_priority_of_its_class(talk: Talk) -> None:
    made = {"metadata": {"name": talk.namespace}, "value": 7, "preemptionPolicy": "Never"}
    await talk.made(CLASSES, made)
    answer = await talk("POST", PODS, pod(priorityClassName=talk.namespace))
    assert (answer.body["spec"]["priority"], answer.body["spec"]["preemptionPolicy"]) == (7, "Never")
    await talk("DELETE", f"{CLASSES}/{talk.namespace}")


async def test_a_pod_of_no_class_that_is_there_is_forbidden(talk: Talk) -> None:
    answer = await talk("POST", PODS, pod(priorityClassName="nope"))
    await talk("POST", PODS, {"metadata": {"generateName": "g-"}, "spec": pod(priorityClassName="nope")["spec"]})
    assert answer.status == 403


@pytest.mark.parametrize(
    "said",
    [{"priority": 5}, {"preemptionPolicy": "Never"}, {"priority": 5, "priorityClassName": "system-node-critical"}],
)
async def test_a_pod_does_not_say_what_it_is_worth(talk: Talk, said: dict[str, Any]) -> None:
    answer = await talk("POST", PODS, pod(**said))
    assert answer.status == 403


async def test_one_class_is_that_of_everybody(talk: Talk) -> None:
    name = talk.namespace
    await talk.made(CLASSES, {"metadata": {"name": name}, "value": 3, "globalDefault": True})
    try:
        second = await talk("POST", CLASSES, {"metadata": {"name": f"{name}-b"}, "value": 4, "globalDefault": True})
        answer = await talk("POST", PODS, pod())
    finally:
        await talk("DELETE", f"{CLASSES}/{name}")
    assert (second.status, answer.body["spec"]["priority"]) == (403, 3)
