"""Validation of storage classes, CSI drivers and volume attachments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.tables import any_of, variants
from tests.contract.variations import existing, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

STORAGE = "/apis/storage.k8s.io/v1"
CLASSES = f"{STORAGE}/storageclasses"
ATTRIBUTES = f"{STORAGE}/volumeattributesclasses"
ATTACHMENTS = f"{STORAGE}/volumeattachments"
DRIVERS = f"{STORAGE}/csidrivers"
NODES = f"{STORAGE}/csinodes"
CAPACITIES = f"{STORAGE}/namespaces/{{ns}}/csistoragecapacities"
CLASS = {"provisioner": "example.com/p"}
ATTRIBUTE = {"driverName": "csi.example.com", "parameters": {"iops": "10"}}
ATTACHMENT = {"attacher": "csi.example.com", "source": {"persistentVolumeName": "v"}, "nodeName": "n"}
DRIVER = {"name": "csi.example.com", "nodeID": "n"}
CAPACITY = {"storageClassName": "slow", "capacity": "1Gi"}
Variants = list[dict[str, Any]]


def at(*keys: str, values: Any = ("a",)) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key in keys]}


WRONG: dict[str, tuple[str, Variants]] = {
    "class": (CLASSES, [CLASS | each for each in any_of(
        {"provisioner": ""}, {"provisioner": "a b"}, {"reclaimPolicy": "Recycle"}, {"volumeBindingMode": "Wrong"},
        {"volumeBindingMode": ""}, {"reclaimPolicy": "A", "volumeBindingMode": "B", "provisioner": "/"},
        {"parameters": {"": "a"}}, {"parameters": {f"p{n}": "a" for n in range(513)}},
        {"parameters": {"a": 256 * 1024 * "b"}},
    )]),
    "topologies": (CLASSES, [CLASS | {"allowedTopologies": each} for each in any_of(
        [at("a", values=[])], [at("a b")], [at("a", "a")], [at("a", values=["b", "b"])], [at("a"), at("a")],
    )]),
    "attributes": (ATTRIBUTES, [ATTRIBUTE | each for each in any_of(
        {"driverName": ""}, {"driverName": "a b"}, {"parameters": {}}, {"parameters": {"": "a"}},
        {"parameters": {f"p{n}": "a" for n in range(513)}},
    )]),
    "attachment": (ATTACHMENTS, [{"spec": ATTACHMENT | each} for each in any_of(
        {"attacher": ""}, {"attacher": "a_b"}, {"attacher": 64 * "a"}, {"source": {}}, {"nodeName": ""},
        {"nodeName": "A"}, {"source": {"persistentVolumeName": ""}}, {"source": {"persistentVolumeName": "A"}},
        {"source": {"persistentVolumeName": "a", "inlineVolumeSpec": {"csi": {"driver": "d", "volumeHandle": "h"}}}},
    )]),
    "driver": (DRIVERS, [{"spec": each} for each in any_of(
        {"fsGroupPolicy": "Wrong"}, {"volumeLifecycleModes": ["Wrong", "Ephemeral"]},
        {"nodeAllocatableUpdatePeriodSeconds": 9}, {"serviceAccountTokenInSecrets": True},
        {"tokenRequests": [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]},
        {"tokenRequests": [{"audience": "a", "expirationSeconds": 1}, {"expirationSeconds": 2**33}]},
    )]),
    "node": (NODES, [{"spec": {"drivers": each}} for each in any_of(
        [{"name": "", "nodeID": ""}], [DRIVER | {"name": "a_b"}], [DRIVER, DRIVER], [DRIVER | {"nodeID": 257 * "a"}],
        [DRIVER | {"topologyKeys": ["a b", "c", "c", ""]}], [DRIVER | {"allocatable": {"count": -1}}],
    )]),
    "capacity": (CAPACITIES, [CAPACITY | each for each in any_of(
        {"storageClassName": ""}, {"storageClassName": "A"}, {"capacity": "-1"},
        {"nodeTopology": {"matchLabels": {"a b": "c"}}}, {"maximumVolumeSize": "-1", "storageClassName": "/"},
    )]),
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, wrong: tuple[str, Variants]) -> None:
    where, objects = wrong
    for obj in objects:
        answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
        assert answer.status == 422, obj


CHANGES: dict[str, tuple[str, dict[str, Any], Variants]] = {
    "class": (CLASSES, CLASS | {"parameters": {"a": "b"}}, [
        {}, {"parameters": {"a": "c"}}, {"provisioner": "other"}, {"reclaimPolicy": "Retain"},
        {"volumeBindingMode": "WaitForFirstConsumer"}, {"provisioner": "", "reclaimPolicy": "Wrong"},
        {"allowVolumeExpansion": True, "mountOptions": ["ro"], "allowedTopologies": [at("a")]}, {"parameters": None},
    ]),
    "attributes": (ATTRIBUTES, ATTRIBUTE, [
        {}, {"driverName": "other"}, {"parameters": {"a": "b"}}, {"parameters": {}},
    ]),
    "attachment": (ATTACHMENTS, {"spec": ATTACHMENT}, [
        {"spec": ATTACHMENT | {"nodeName": "other"}},
        {"spec": ATTACHMENT | {"source": {"persistentVolumeName": "A"}, "attacher": ""}},
    ]),
    "driver": (DRIVERS, {"spec": {}}, [
        {"spec": {"attachRequired": False}}, {"spec": {"volumeLifecycleModes": ["Ephemeral"]}},
        {"spec": {"podInfoOnMount": True, "storageCapacity": True, "fsGroupPolicy": "File"}},
        {"spec": {"fsGroupPolicy": "Wrong", "attachRequired": False}},
    ]),
    "node": (NODES, {"spec": {"drivers": [DRIVER]}}, [
        {"spec": {"drivers": [DRIVER | {"nodeID": "m"}]}}, {"spec": {"drivers": [DRIVER | {"topologyKeys": ["a"]}]}},
        {"spec": {"drivers": [DRIVER | {"allocatable": {"count": 3}}]}}, {"spec": {"drivers": []}},
    ]),
    "capacity": (CAPACITIES, CAPACITY, [
        {"capacity": "2Gi"}, {"storageClassName": "fast"}, {"nodeTopology": {"matchLabels": {"a": "b"}}},
        {"capacity": "-1"},
    ]),
}  # fmt: skip


@variants("change", CHANGES)
async def test_immutable_fields(api: Conversation, change: tuple[str, dict[str, Any], Variants]) -> None:
    where, obj, changes = change
    async with existing(api, where, obj) as (item, known):
        await api("PUT", f"{item}?dryRun=All", manifest(obj, api.namespace))
        answers = [await api("PUT", f"{item}?dryRun=All", obj | each | known) for each in changes]
    assert 422 in [answer.status for answer in answers]


GOOD = {
    "class": (CLASSES, CLASS | {
        "parameters": {"type": "ssd"}, "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer",
        "mountOptions": ["ro"], "allowVolumeExpansion": True, "allowedTopologies": [at("a", values=["b", "c"])],
    }),
    "attributes": (ATTRIBUTES, ATTRIBUTE),
    "attachment": (ATTACHMENTS, {"spec": ATTACHMENT}),
    "driver": (DRIVERS, {"spec": {
        "attachRequired": False, "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        "tokenRequests": [{"audience": "a", "expirationSeconds": 600}], "serviceAccountTokenInSecrets": False,
        "nodeAllocatableUpdatePeriodSeconds": 10,
    }}),
    "node": (NODES, {"spec": {"drivers": [DRIVER | {"topologyKeys": ["a"], "allocatable": {"count": 0}}]}}),
    "capacity": (CAPACITIES, CAPACITY | {"nodeTopology": {"matchLabels": {"a": "b"}}, "maximumVolumeSize": "1Gi"}),
}  # fmt: skip


@variants("right", GOOD)
async def test_valid_objects_are_accepted(api: Conversation, right: tuple[str, dict[str, Any]]) -> None:
    where, obj = right
    answer = await api("POST", f"{where}?dryRun=All", {"metadata": {"name": api.namespace}} | obj)
    assert answer.status == 201
