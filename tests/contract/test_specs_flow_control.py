"""Validation of flow schemas and priority levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.tables import any_of, variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
USER = {"kind": "User", "user": {"name": "u"}}
READS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["n"]}
LOOKS = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
RULE: dict[str, Any] = {"subjects": [USER], "resourceRules": [READS]}
FLOW: dict[str, Any] = {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 500, "rules": [RULE]}
QUEUES = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
LIMITED: dict[str, Any] = {"limitResponse": {"type": "Queue", "queuing": QUEUES}}
LEVEL: dict[str, Any] = {"type": "Limited", "limited": LIMITED}
Variants = list[dict[str, Any]]


def flows(*changes: dict[str, Any]) -> Variants:
    return [FLOW | {"rules": [RULE | each]} for each in changes]


WRONG: dict[str, tuple[str, Variants]] = {
    "flow": (FLOWS, [FLOW | each for each in any_of(
        {"matchingPrecedence": -1}, {"matchingPrecedence": 10001}, {"matchingPrecedence": 1},
        {"distinguisherMethod": {"type": "Wrong"}}, {"priorityLevelConfiguration": {"name": "A"}},
        {"priorityLevelConfiguration": {"name": ""}}, {"rules": [{}]},
    )]),
    "subjects": (FLOWS, flows(*({"subjects": [each]} for each in any_of(
        {"kind": "Wrong"}, {"kind": "User"}, {"kind": "User", "user": {"name": ""}}, {"kind": "Group"},
        {"kind": "Group", "group": {"name": "g"}, "user": {"name": "u"}}, {"kind": "ServiceAccount"},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "A", "namespace": "a.b"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "", "namespace": ""}, "group": {"name": "g"}},
    )))),
    "resources": (FLOWS, flows(*({"resourceRules": [READS | each]} for each in any_of(
        {"verbs": []}, {"verbs": ["*", "get"]}, {"verbs": ["read", "get"]}, {"apiGroups": []},
        {"apiGroups": ["*", ""]}, {"resources": []}, {"resources": ["*", "pods"]}, {"namespaces": []},
        {"namespaces": ["*", "n"]}, {"namespaces": ["A", "b.c"]},
    )))),
    "urls": (FLOWS, flows(*({"nonResourceRules": [LOOKS | each]} for each in any_of(
        {"verbs": []}, {"verbs": ["*", "get"]}, {"nonResourceURLs": []}, {"nonResourceURLs": ["*", "/"]},
        {"nonResourceURLs": ["", "a", "/a b", "//", "/*/a", "/a*"]},
    )))),
    "level": (LEVELS, [
        {}, {"type": "Wrong"}, {"type": "Exempt"}, {"type": "Exempt", "limited": LIMITED}, {"type": "Limited"},
        LEVEL | {"exempt": {}},
    ]),
    "limits": (LEVELS, [{"type": "Limited", "limited": LIMITED | each} for each in any_of(
        {"nominalConcurrencyShares": -1}, {"lendablePercent": 101}, {"lendablePercent": -1},
        {"borrowingLimitPercent": -1}, {"limitResponse": {}}, {"limitResponse": {"type": "Wrong"}},
        {"limitResponse": {"type": "Reject", "queuing": QUEUES}}, {"limitResponse": {"type": "Queue"}},
    )]),
    "queues": (LEVELS, [
        {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": QUEUES | each}}}
        for each in any_of(
            {"queues": -1}, {"queues": 10**7 + 1, "handSize": 1}, {"handSize": -1}, {"handSize": 65},
            {"queueLengthLimit": -1}, {"handSize": 11},
        )
    ]),
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_flow_control_objects_are_refused(api: Conversation, wrong: tuple[str, Variants]) -> None:
    where, specs = wrong
    for spec in specs:
        answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}, "spec": spec})
        assert answer.status == 422, spec


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "flow": (FLOWS, FLOW | {
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [RULE | {"nonResourceRules": [LOOKS | {"verbs": ["*"], "nonResourceURLs": ["/a/*", "/"]}]}],
    }),
    "level": (LEVELS, {"type": "Limited", "limited": LIMITED | {
        "nominalConcurrencyShares": 5, "lendablePercent": 50, "borrowingLimitPercent": 10,
    }}),
    "no-queue": (LEVELS, {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}),
}  # fmt: skip


@variants("right", GOOD)
async def test_valid_flow_control_objects_are_accepted(api: Conversation, right: tuple[str, dict[str, Any]]) -> None:
    where, spec = right
    answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}, "spec": spec})
    assert answer.status == 201
