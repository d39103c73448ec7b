"""Validation of updates of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.contract.paths import PODS
from tests.contract.tables import variants
from tests.contract.test_specs_pods import REQUIRED

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

A = f"{PODS}/a"
TOLERATED = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
EXISTS = {"key": "k", "operator": "Exists"}
OLD: dict[str, Any] = {
    "metadata": {"name": "a", "annotations": {"a": "b"}},
    "spec": {
        "activeDeadlineSeconds": 100,
        "initContainers": [{"name": "i", "image": "i:1"}],
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "command": ["a", "b<c"],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 80, "name": "http"}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
                "livenessProbe": {"httpGet": {"port": "http"}},
                "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "securityContext": {"runAsUser": 1, "capabilities": {"drop": ["ALL"]}},
            }
        ],
        "volumes": [
            {"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
            {"name": "w", "projected": {"sources": [{"secret": {"name": "s"}}]}},
        ],
        "tolerations": [TOLERATED],
        "nodeSelector": {"a": "b"},
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [EXISTS]}]}},
            "podAntiAffinity": {REQUIRED: [{"topologyKey": "k", "labelSelector": {"matchLabels": {"x": "y"}}}]},
        },
        "securityContext": {"fsGroup": 1, "seccompProfile": {"type": "RuntimeDefault"}},
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["h"]}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    },
}  # fmt: skip
GATED: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": OLD["spec"] | {"schedulingGates": [{"name": "g"}, {"name": "h"}]},
}
LATER = [
    TOLERATED | {"key": key, "tolerationSeconds": 7}
    for key in ("k", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
#: Strategic merge patches.
REFUSED: dict[str, list[dict[str, Any]]] = {
    "names": [{"nodeName": "n"}, {"hostname": "h"}, {"serviceAccountName": "other"}, {"schedulerName": "s"}],
    "life": [
        {"restartPolicy": "Never"},
        {"restartPolicy": "Sometimes"},
        {"terminationGracePeriodSeconds": 1},
        {"priority": 5},
        {"hostNetwork": True, "shareProcessNamespace": True},
    ],
    "deadline": [
        {"activeDeadlineSeconds": 101},
        {"activeDeadlineSeconds": None},
        {"activeDeadlineSeconds": 0},
        {"activeDeadlineSeconds": -1},
        {"activeDeadlineSeconds": 2147483648},
    ],
    "containers": [
        {"containers": [{"name": "d", "image": "i"}]},
        {"containers": [{"name": "c", "$patch": "delete"}]},
        {"initContainers": [{"name": "j", "image": "i"}]},
        {"containers": [{"name": "c", "image": " i"}]},
        {"containers": [{"name": "c", "image": ""}]},
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
    ],
    "fields-of-containers": [
        {"containers": [{"name": "c", "command": ["x"], "image": "j"}]},
        {"containers": [{"name": "c", "env": [{"name": "B", "value": "<&>"}]}]},
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]},
        {"containers": [{"name": "c", "livenessProbe": {"periodSeconds": 5}}]},
        {"containers": [{"name": "c", "securityContext": {"privileged": True}}], "initContainers": [
            {"name": "i", "tty": True},
        ]},
        {"containers": [{"name": "c", "volumeMounts": [{"name": "w", "mountPath": "/w"}]}]},
    ],
    "volumes": [
        {"volumes": [{"name": "x", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "configMap": {"name": "n"}}]},
        {"volumes": [{"name": "w", "$patch": "delete"}, {"name": "x", "hostPath": {"path": "/x"}}]},
    ],
    "placement": [
        {"tolerations": [TOLERATED | {"key": "other"}]},
        {"tolerations": [TOLERATED, {"key": "l", "operator": "Like"}]},
        {"nodeSelector": {"c": "d"}},
        {"affinity": None},
        {"topologySpreadConstraints": None},
        {"schedulingGates": [{"name": "x"}]},
    ],
    "others": [
        {"securityContext": {"fsGroup": 2}},
        {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["h", "i"]}]},
        {"dnsPolicy": "Default", "dnsConfig": {"options": [{"name": "x"}]}},
        {"imagePullSecrets": [{"name": "s"}], "readinessGates": [{"conditionType": "R"}]},
        {"os": {"name": "linux"}, "overhead": None, "runtimeClassName": None, "enableServiceLinks": False},
    ],
}  # fmt: skip
GATED_REFUSED: list[dict[str, Any]] = [
    {"schedulingGates": [{"name": "x"}]},
    {"nodeSelector": {"a": "c"}},
    {"nodeSelector": {"a": None, "z": "y", "b": "c"}},
    {"nodeName": "n"},
    {"affinity": {"nodeAffinity": None}},
    {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, {}]}}}},
    {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "l", "operator": "Exists"}]},
    ]}}}},
    {"affinity": {"podAntiAffinity": None}},
]  # fmt: skip
GATED_TAKEN: list[dict[str, Any]] = [
    {"nodeSelector": {"c": "d"}},
    {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
        {"matchExpressions": [EXISTS, EXISTS | {"key": "l"}]},
    ]}}}},
    {"schedulingGates": [{"$patch": "delete", "name": "g"}]},
    {"schedulingGates": None},
]  # fmt: skip
TAKEN: list[dict[str, Any]] = [
    {"spec": {"containers": [{"name": "c", "image": "j"}], "initContainers": [{"name": "i", "image": "j:2"}]}},
    {"spec": {"activeDeadlineSeconds": 99}},
    {"spec": {"tolerations": [{"operator": "Exists"}, *LATER]}},
    {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}},
]
ANNOTATIONS: list[dict[str, Any]] = [
    {"container.apparmor.security.beta.kubernetes.io/i": "unconfined"},
    {"kubernetes.io/config.mirror": "x"},
    {"controller.kubernetes.io/pod-deletion-cost": "x"},
]


@variants("refused", REFUSED)
async def test_immutable_fields(api: Conversation, refused: list[dict[str, Any]]) -> None:
    await api.create(PODS, OLD)
    answers = [await api("PATCH", A, {"spec": each}, content_type=STRATEGIC) for each in refused]
    assert {answer.status for answer in answers} == {422}


async def test_mutable_fields(api: Conversation) -> None:
    await api.create(PODS, OLD)
    answers = [await api("PATCH", A, each, content_type=STRATEGIC) for each in TAKEN]
    assert {answer.status for answer in answers} == {200}


async def test_well_known_annotations_are_immutable(api: Conversation) -> None:
    await api.create(PODS, OLD)
    patches = [{"metadata": {"annotations": each}} for each in ANNOTATIONS]
    answers = [await api("PATCH", A, each, content_type=MERGE_PATCH) for each in patches]
    assert {answer.status for answer in answers} == {422}


async def test_node_selection_of_a_gated_pod_only_narrows(api: Conversation) -> None:
    await api.create(PODS, GATED)
    answers = [await api("PATCH", A, {"spec": each}, content_type=MERGE_PATCH) for each in GATED_REFUSED]
    assert {answer.status for answer in answers} == {422}


async def test_scheduling_gates_are_removed_one_by_one(api: Conversation) -> None:
    await api.create(PODS, GATED)
    answers = [await api("PATCH", A, {"spec": each}, content_type=STRATEGIC) for each in GATED_TAKEN]
    assert {answer.status for answer in answers} == {200}


async def test_put_of_the_original_manifest_changes_nothing(api: Conversation) -> None:
    await api.create(PODS, OLD)
    answer = await api("PUT", A, OLD)
    assert (answer.status, answer.metadata["generation"]) == (200, 1)


async def test_deadline_can_be_set_and_grace_is_at_least_one_second(api: Conversation) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": -1}
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    patches = [
        [{"op": "replace", "path": "/spec/terminationGracePeriodSeconds", "value": 2}],
        [{"op": "replace", "path": "/spec/terminationGracePeriodSeconds", "value": 1}],
        [{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 7}],
    ]
    answers = [await api("PATCH", A, each, content_type=JSON_PATCH) for each in patches]
    assert [answer.status for answer in answers] == [422, 200, 200]
