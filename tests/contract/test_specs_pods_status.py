"""Validation of pod status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.paths import PODS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

STATUS = f"{PODS}/a/status"
POD: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "restartPolicy": "OnFailure",
        "containers": [{"name": name, "image": "i"} for name in ("failed", "done")],
        "initContainers": [
            {"name": "first", "image": "i"},
            {"name": "beside", "image": "i", "restartPolicy": "Always"},
        ],
        "resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
    },
}


def container(name: str, **state: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": "i",
        "imageID": "x",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }


def terminated(name: str, code: int = 0) -> dict[str, Any]:
    return container(name, terminated={"exitCode": code})


def running(name: str) -> dict[str, Any]:
    return container(name, running={})


CONDITION = {"type": "Ready", "status": "True", "observedGeneration": 1}
FIRST: dict[str, Any] = {
    "phase": "Running",
    "conditions": [CONDITION],
    "observedGeneration": 1,
    "containerStatuses": [terminated("failed", 1), terminated("done"), terminated("gone")],
    "initContainerStatuses": [terminated("first"), terminated("beside")],
    "hostIP": "192.0.2.9",
    "hostIPs": [{"ip": "192.0.2.9"}],
    "podIP": "192.0.2.1",
    "podIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
}
REFUSED: dict[str, list[dict[str, Any]]] = {
    "conditions": [
        {"conditions": [{"type": "a b", "status": "True"}, {"type": "", "status": "True"}]},
        {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]},
        {"observedGeneration": -1},
    ],
    "class": [{"qosClass": "Guaranteed"}, {"qosClass": "Burstable"}],
    "nomination": [{"nominatedNodeName": "A"}],
    "restarts": [
        {"containerStatuses": [running("failed"), running("done")]},
        {"containerStatuses": [running("gone")]},
        {"initContainerStatuses": [running("beside"), running("first")]},
    ],
    "claims": [
        {"resourceClaimStatuses": [{"name": "d"}]},
        {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "A"}, {"name": "c"}]},
    ],
    "addresses": [
        {"podIP": "a", "podIPs": [{"ip": "a"}]},
        {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]},
        {"hostIPs": [{"ip": "192.0.2.8"}]},
        {"hostIP": "010.0.0.1", "hostIPs": [{"ip": "010.0.0.1"}]},
        {"hostIPs": [{"ip": "192.0.2.9"}, {"ip": "192.0.2.7"}]},
    ],
}
TAKEN: list[dict[str, Any]] = [
    {"phase": "Anything", "reason": "R", "message": "m"},
    {"containerStatuses": [running("failed"), terminated("done"), running("new")]},
    {"initContainerStatuses": [running("beside")]},
    {"nominatedNodeName": "n"},
    {"conditions": [CONDITION, {"type": "example.com/x", "status": "Unknown"}]},
    {"podIPs": None},
    {"podIP": "192.0.2.3"},
    {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "d"}]},
]


@variants("refused", REFUSED)
async def test_invalid_status_is_refused(api: Conversation, refused: list[dict[str, Any]]) -> None:
    await api.create(PODS, POD)
    await api("PATCH", STATUS, {"status": FIRST}, content_type=MERGE_PATCH, recorded=False)
    answers = [await api("PATCH", STATUS, {"status": each}, content_type=MERGE_PATCH) for each in refused]
    assert {answer.status for answer in answers} == {422}


async def test_status_transitions_are_accepted(api: Conversation) -> None:
    await api.create(PODS, POD)
    steps = [FIRST, *TAKEN]
    answers = [await api("PATCH", STATUS, {"status": each}, content_type=MERGE_PATCH) for each in steps]
    assert {answer.status for answer in answers} == {200}


async def test_fields_unknown_to_older_kubelets_are_kept(api: Conversation) -> None:
    await api.create(PODS, POD)
    older = {"conditions": [{"type": "Ready", "status": "False"}], "observedGeneration": None, "qosClass": None}
    for status in (FIRST, older):
        # The managed fields of kept values depend on timing.
        answer = await api(
            "PATCH", STATUS, {"status": status}, content_type=MERGE_PATCH, shown=lambda body: body["status"]
        )
        assert answer.status == 200


async def test_assigned_pod_rejects_a_nominated_node(api: Conversation) -> None:
    await api.create(PODS, POD | {"spec": POD["spec"] | {"nodeName": "n"}})
    answer = await api("PATCH", STATUS, {"status": {"nominatedNodeName": "m"}}, content_type=MERGE_PATCH)
    assert answer.status == 422
