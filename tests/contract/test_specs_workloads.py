"""Validation of workload controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import GONE, variant_statuses, with_changes

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

    Case = tuple[str, dict[str, Any], list[Changes]]

APPS = "/apis/apps/v1/namespaces/{ns}"
DEPLOYMENTS, REPLICA_SETS = f"{APPS}/deployments", f"{APPS}/replicasets"
STATEFUL_SETS, DAEMON_SETS = f"{APPS}/statefulsets", f"{APPS}/daemonsets"
REVISIONS = f"{APPS}/controllerrevisions"
CONTROLLERS = "/api/v1/namespaces/{ns}/replicationcontrollers"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
RIGHT = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
CONTROLLER = {"metadata": {"name": "a"}, "spec": {"selector": {"a": "b"}, "template": TEMPLATE}}
REVISION = {"metadata": {"name": "a"}, "data": {"a": 1}, "revision": 1}
CLAIM = {
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
STATEFUL = with_changes(
    RIGHT,
    {
        "spec.serviceName": "s",
        "spec.volumeClaimTemplates": [CLAIM],
        "spec.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": "/v"}],
    },
)
KINDS = {
    "deployment": (DEPLOYMENTS, RIGHT),
    "replica_set": (REPLICA_SETS, RIGHT),
    "stateful_set": (STATEFUL_SETS, STATEFUL),
    "daemon_set": (DAEMON_SETS, RIGHT),
    "controller": (CONTROLLERS, CONTROLLER),
}
SCALED = {kind: path for kind, (path, _) in KINDS.items() if kind != "daemon_set"}


@variants("kind", KINDS)
async def test_required_fields(api: Conversation, kind: tuple[str, dict[str, Any]]) -> None:
    wrong: list[Changes] = [
        {"spec": GONE},
        {"spec": {}},
        {"spec.selector": GONE, "spec.template.metadata": GONE},
        {"spec.template": GONE},
        {"spec.template.spec": GONE},
        {"spec.template.spec.containers": []},
        {"spec.template.metadata": GONE},
    ]
    assert await variant_statuses(api, *kind, wrong) == {422}


SELECTORS: list[Changes] = [
    {"spec.selector": {}},
    {"spec.selector": GONE},
    {"spec.selector": {"matchLabels": {}}},
    {"spec.selector.matchLabels": {"a": "c"}},
    {"spec.selector.matchLabels": {"-": "b"}},
    {"spec.selector.matchLabels": {"a": "-"}},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "In"}]},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
    {"spec.selector.matchExpressions": [{"key": "-", "operator": "Exists"}]},
    {"spec.selector.matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "-"]}]},
    {"spec.selector.matchExpressions": [{"operator": ""}]},
]


@variants("kind", {kind: case for kind, case in KINDS.items() if kind != "controller"})
async def test_selector_must_match_the_template(api: Conversation, kind: tuple[str, dict[str, Any]]) -> None:
    answered = await variant_statuses(api, *kind, SELECTORS)
    assert 422 in answered


@variants("kind", KINDS)
async def test_restart_policy_must_be_always(api: Conversation, kind: tuple[str, dict[str, Any]]) -> None:
    wrong: list[Changes] = [
        {"spec.template.spec.restartPolicy": "Never"},
        {"spec.template.spec.restartPolicy": "OnFailure"},
        {"spec.template.spec.activeDeadlineSeconds": 5},
        {"spec.template.spec.activeDeadlineSeconds": 5, "spec.template.spec.restartPolicy": "Never"},
        {"spec.template.metadata.labels": {"a": "b", "-": "x"}},
        {"spec.template.metadata.annotations": {"-": "x"}},
    ]
    assert await variant_statuses(api, *kind, wrong) == {422}


NUMBERS = {
    "deployment": ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
    "replica_set": ("replicas", "minReadySeconds"),
    "stateful_set": ("replicas", "minReadySeconds", "ordinals.start"),
    "daemon_set": ("minReadySeconds", "revisionHistoryLimit"),
    "controller": ("replicas", "minReadySeconds"),
}


@variants("case", {kind: (*KINDS[kind], names) for kind, names in NUMBERS.items()})
async def test_numbers_are_not_negative(api: Conversation, case: tuple[str, dict[str, Any], tuple[str, ...]]) -> None:
    path, obj, names = case
    wrong: list[Changes] = [{f"spec.{name}": -1} for name in names]
    assert await variant_statuses(api, path, obj, [*wrong, {f"spec.{name}": -2 for name in names}]) == {422}


ROLLING = "spec.strategy.rollingUpdate"
UPDATING = "spec.updateStrategy"
SURGE, UNAVAILABLE = f"{ROLLING}.maxSurge", f"{ROLLING}.maxUnavailable"
DAEMON_SURGE, DAEMON_UNAVAILABLE = (f"{UPDATING}.rollingUpdate.{name}" for name in ("maxSurge", "maxUnavailable"))
WRONG: dict[str, Case] = {
    "deployment_strategies": (DEPLOYMENTS, RIGHT, [
        {"spec.strategy.type": "Sometimes"},
        {"spec.strategy.type": "Sometimes", SURGE: 1},
        {"spec.strategy.type": "Recreate", SURGE: 1},
        {"spec.strategy": {"type": "Recreate", "rollingUpdate": {}}},
        {SURGE: -1},
        {SURGE: "x"},
        {SURGE: "5"},
        {SURGE: "-5%"},
        {UNAVAILABLE: "101%"},
        {UNAVAILABLE: -1, SURGE: "1.5%"},
        {UNAVAILABLE: 0, SURGE: 0},
        {UNAVAILABLE: "0%", SURGE: "0%"},
        {UNAVAILABLE: "", SURGE: ""},
    ]),
    "deployment_progress": (DEPLOYMENTS, RIGHT, [
        {"spec.progressDeadlineSeconds": 0},
        {"spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5},
        {"spec.minReadySeconds": 600},
        {"spec.progressDeadlineSeconds": -1, "spec.minReadySeconds": -1},
    ]),
    "several_at_once": (DEPLOYMENTS, RIGHT, [
        {"spec.replicas": -1, "spec.selector": {}, UNAVAILABLE: "x", "metadata.name": "A"},
    ]),
    "daemon_set_strategies": (DAEMON_SETS, RIGHT, [
        {f"{UPDATING}.type": "Sometimes"},
        {DAEMON_SURGE: 1},
        {DAEMON_SURGE: "10%", DAEMON_UNAVAILABLE: "10%"},
        {DAEMON_UNAVAILABLE: 0},
        {DAEMON_UNAVAILABLE: "0%", DAEMON_SURGE: "0%"},
        {DAEMON_UNAVAILABLE: -1},
        {DAEMON_UNAVAILABLE: "101%"},
        {DAEMON_SURGE: "101%", DAEMON_UNAVAILABLE: 0},
        {DAEMON_UNAVAILABLE: "x"},
        {DAEMON_SURGE: "x", DAEMON_UNAVAILABLE: 0},
        {DAEMON_SURGE: -1, DAEMON_UNAVAILABLE: "0%"},
    ]),
    "stateful_set_strategies": (STATEFUL_SETS, STATEFUL, [
        {f"{UPDATING}.type": "Sometimes"},
        {f"{UPDATING}.type": "Sometimes", f"{UPDATING}.rollingUpdate": {"partition": 1}},
        {f"{UPDATING}.type": "OnDelete", f"{UPDATING}.rollingUpdate": {"partition": 1}},
        {f"{UPDATING}.type": "OnDelete", f"{UPDATING}.rollingUpdate": {}},
        {f"{UPDATING}.rollingUpdate.partition": -1},
    ]),
    "stateful_set_fields": (STATEFUL_SETS, STATEFUL, [
        {"spec.podManagementPolicy": "Sometimes"},
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "x"}},
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "x"}},
        {"spec.ordinals.start": -1},
        {"spec.serviceName": "A_b"},
        {"spec.serviceName": "x" * 64},
        {"metadata.name": "a.b"},
        {"metadata.name": "x" * 64},
        {"metadata.name": "a.", "spec.replicas": -1},
        {"spec.template.spec.containers.0.volumeMounts.0.name": "w"},
        {"spec.volumeClaimTemplates.0.spec.accessModes": []},
        {"spec.volumeClaimTemplates.0.spec.accessModes": ["Sometimes"], "spec.replicas": -1},
        {"spec.volumeClaimTemplates.0.spec.resources": {}},
        {"spec.volumeClaimTemplates.0.spec": GONE},
    ]),
    "controller_fields": (CONTROLLERS, CONTROLLER, [
        {"spec.selector": {}, "spec.template.metadata.labels": {}},
        {"spec.selector": {"a": "c"}},
        {"spec.selector": {"a": "b", "c": "d"}},
        {"spec.replicas": -1, "spec.minReadySeconds": -1},
        {"metadata.name": "A"},
    ]),
    "revisions": (REVISIONS, REVISION, [
        {"revision": -1},
        {"data": GONE},
        {"data": None},
        {"data": "x"},
        {"data": [1]},
        {"data": 1},
        {"data": GONE, "revision": -1},
        {"metadata.name": "A"},
    ]),
}  # fmt: skip


@variants("case", WRONG)
async def test_invalid_workloads_are_refused(api: Conversation, case: Case) -> None:
    assert await variant_statuses(api, *case) == {422}


ACCEPTED: dict[str, Case] = {
    "deployment": (DEPLOYMENTS, RIGHT, [
        {
            "spec.replicas": 0, "spec.minReadySeconds": 5, "spec.revisionHistoryLimit": 0,
            "spec.progressDeadlineSeconds": 6, "spec.paused": True, SURGE: "200%", UNAVAILABLE: 300,
            "spec.selector.matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b", "c"]},
                {"key": "x", "operator": "NotIn", "values": ["y"]},
                {"key": "a", "operator": "Exists"},
                {"key": "z", "operator": "DoesNotExist"},
            ],
        },
        {"spec.strategy": {"type": "Recreate"}},
        {SURGE: 0, UNAVAILABLE: "1%"},
        {SURGE: "1%", UNAVAILABLE: 0},
    ]),
    "replica_set": (REPLICA_SETS, RIGHT, [{"spec.replicas": 0, "spec.minReadySeconds": 0}]),
    "stateful_set": (STATEFUL_SETS, STATEFUL, [
        {
            "spec.podManagementPolicy": "Parallel", "spec.ordinals": {"start": 3}, "spec.minReadySeconds": 7,
            "spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
            "spec.updateStrategy.rollingUpdate": {"partition": 3}, "spec.revisionHistoryLimit": -1,
        },
        {"spec.updateStrategy": {"type": "OnDelete"}, "spec.serviceName": GONE},
        {f"{UPDATING}.rollingUpdate.maxUnavailable": -1},
    ]),
    "daemon_set": (DAEMON_SETS, RIGHT, [
        {DAEMON_SURGE: "10%", DAEMON_UNAVAILABLE: 0, "spec.revisionHistoryLimit": 0},
        {f"{UPDATING}.type": "OnDelete"},
    ]),
    "controller": (CONTROLLERS, CONTROLLER, [{"spec.selector": GONE}, {"spec.replicas": 0}]),
    "revisions": (REVISIONS, REVISION, [{"data": {}}, {"revision": GONE}]),
}  # fmt: skip


@variants("case", ACCEPTED)
async def test_unusual_workloads_are_accepted(api: Conversation, case: Case) -> None:
    assert await variant_statuses(api, *case) == {201}


CHANGES: dict[str, tuple[str, dict[str, Any], list[Changes]]] = {
    "deployment": (DEPLOYMENTS, RIGHT, [
        {"spec.selector.matchLabels": {"c": "d"}},
        {"spec.selector.matchLabels": {"c": "d"}, "spec.template.metadata.labels": {"c": "d"}},
        {"spec.replicas": -1},
        {"spec.template.spec.containers": []},
    ]),
    "replica_set": (REPLICA_SETS, RIGHT, [
        {"spec.selector.matchLabels": {"c": "d"}, "spec.template.metadata.labels": {"c": "d"}},
        {"spec.replicas": -1},
    ]),
    "daemon_set": (DAEMON_SETS, RIGHT, [
        {"spec.selector.matchLabels": {"c": "d"}, "spec.template.metadata.labels": {"c": "d"}},
        {"spec.selector.matchLabels": {"c": "d"}, "spec.minReadySeconds": -1},
    ]),
    "stateful_set": (STATEFUL_SETS, STATEFUL, [
        {"spec.selector.matchLabels": {"c": "d"}, "spec.template.metadata.labels": {"c": "d"}},
        {"spec.serviceName": "t"},
        {"spec.serviceName": "T", "spec.replicas": -1},
        {"spec.podManagementPolicy": "Parallel"},
        {"spec.volumeClaimTemplates.0.spec.resources.requests.storage": "2Gi"},
        {"spec.volumeClaimTemplates": []},
        {"spec.template.spec.containers": []},
    ]),
    "revisions": (REVISIONS, REVISION, [{"data": {"a": 2}}, {"data": None}, {"revision": -1}]),
}  # fmt: skip


@variants("case", CHANGES)
async def test_immutable_fields(api: Conversation, case: Case) -> None:
    path, obj, changes = case
    await api.create(path, obj)
    answers = [await api("PUT", f"{path}/a?dryRun=All", with_changes(obj, each)) for each in changes]
    assert {answer.status for answer in answers} == {422}


async def test_mutable_fields_of_a_stateful_set(api: Conversation) -> None:
    await api.create(STATEFUL_SETS, STATEFUL)
    change = {
        "spec": {
            "replicas": 2,
            "ordinals": {"start": 1},
            "template": {"metadata": {"labels": {"c": "d"}}},
            "updateStrategy": {"type": "OnDelete", "rollingUpdate": None},
            "revisionHistoryLimit": 3,
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "minReadySeconds": 4,
        }
    }
    answer = await api("PATCH", f"{STATEFUL_SETS}/a", change, content_type=MERGE_PATCH)
    assert answer.status == 200


async def test_replication_controller_selector_is_mutable(api: Conversation) -> None:
    await api.create(CONTROLLERS, CONTROLLER)
    other = with_changes(CONTROLLER, {"spec.selector": {"c": "d"}, "spec.template.metadata.labels": {"c": "d"}})
    answer = await api("PUT", f"{CONTROLLERS}/a", other)
    assert answer.status == 200


@variants("path", SCALED)
async def test_negative_scale_is_refused(api: Conversation, path: str) -> None:
    obj = next(obj for known, obj in KINDS.values() if known == path)
    await api.create(path, obj)
    scale = {"metadata": {"name": "a"}, "spec": {"replicas": -1}}
    answers = [
        await api("PUT", f"{path}/a/scale", scale),
        await api("PATCH", f"{path}/a/scale", {"spec": {"replicas": -2}}, content_type=MERGE_PATCH),
    ]
    assert {answer.status for answer in answers} == {422}
