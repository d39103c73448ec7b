"""Validation of persistent volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import any_of, variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

VOLUMES = "/api/v1/persistentvolumes"
BARE: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
VOLUME: dict[str, Any] = BARE | {"hostPath": {"path": "/data"}}
SECRET = {"name": "s", "namespace": "n"}
HERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}]}
ISCSI = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
CSI = {"driver": "csi.example.com", "volumeHandle": "1"}


def near(**wanted: Any) -> dict[str, Any]:
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [wanted]}}}


WRONG: dict[str, list[dict[str, Any]]] = {
    "access": [VOLUME | {"accessModes": modes} for modes in (None, ["Wrong"], ["ReadWriteOncePod", "ReadOnlyMany"])],
    "capacity": [VOLUME | {"capacity": each} for each in any_of(
        None, {"cpu": "1"}, {"storage": "0"}, {"storage": "-1Gi"}, {"storage": "1Gi", "cpu": "1"},
    )],
    "names": [VOLUME | each for each in any_of(
        {"persistentVolumeReclaimPolicy": "Wrong"}, {"storageClassName": "A"}, {"volumeMode": "Files"},
        {"volumeAttributesClassName": ""}, {"volumeAttributesClassName": "A"}, {"volumeAttributesClassName": "gold"},
        {"persistentVolumeReclaimPolicy": "Recycle", "hostPath": {"path": "//"}},
    )],
    "affinity": [VOLUME | each for each in any_of(
        {"nodeAffinity": {}}, {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}},
        near(matchExpressions=[{"key": "a b", "operator": "In", "values": ["c d"]}]),
        near(matchExpressions=[{"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}]),
        near(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["1", "2"]}, {"key": "", "operator": "Is"}]),
        near(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["A", "b"]}]),
        near(matchFields=[{"key": "metadata.uid", "operator": "Exists"}]),
    )],
    "sources": [BARE, *(VOLUME | each for each in any_of(
        {"hostPath": {"path": ""}}, {"hostPath": {"path": "/a/../b", "type": "Wrong"}},
        {"nfs": {"server": "s", "path": "/"}}, {"csi": CSI, "local": {"path": "/"}, "nfs": None, "cephfs": {}},
    ))],
    "nfs": [BARE | {"nfs": each} for each in any_of({}, {"server": "s", "path": "a"})],
    "local": [BARE | {"local": each} for each in any_of({}, {"path": "/a"}, {"path": "/a/.."})],
    "iscsi": [BARE | {"iscsi": each} for each in any_of(
        {}, ISCSI | {"iqn": "abc"}, ISCSI | {"iqn": "iqn.abc"}, ISCSI | {"iqn": "eui.1"}, ISCSI | {"lun": 256},
        ISCSI | {"chapAuthSession": True}, ISCSI | {"secretRef": {}}, ISCSI | {"initiatorName": "naa.1"},
        ISCSI | {"initiatorName": "iqn.2001-04.com.example:disk", "targetPortal": 64 * "a"},
    )],
    "csi": [BARE | {"csi": each} for each in any_of(
        {}, CSI | {"driver": "a_b"}, CSI | {"driver": 64 * "a"},
        CSI | {"controllerPublishSecretRef": {}, "nodeExpandSecretRef": {"name": "A", "namespace": "b.c"}},
    )],
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_volumes_are_refused(api: Conversation, wrong: list[dict[str, Any]]) -> None:
    for spec in wrong:
        obj = {"metadata": {"name": api.namespace}, "spec": spec}
        answer = await api("POST", f"{VOLUMES}?dryRun=All", obj)
        assert answer.status == 422, spec


GOOD: dict[str, dict[str, Any]] = {
    "host": VOLUME | {"persistentVolumeReclaimPolicy": "Delete", "mountOptions": ["ro"], "storageClassName": "slow"},
    "local": BARE | {
        "local": {"path": "/a", "fsType": "ext4"}, "nodeAffinity": {"required": HERE}, "volumeMode": "Block",
    },
    "csi": BARE | {
        "csi": CSI | {"nodeExpandSecretRef": SECRET, "volumeAttributes": {"a": "b"}, "fsType": "xfs", "readOnly": True},
        "volumeAttributesClassName": "gold",
        "claimRef": {"namespace": "n", "name": "c", "kind": "PersistentVolumeClaim", "apiVersion": "v1"},
    },
    "iscsi": BARE | {"iscsi": ISCSI | {"initiatorName": "eui.0123456789abcdef", "secretRef": SECRET}},
}  # fmt: skip


@variants("spec", GOOD)
async def test_valid_volumes_are_accepted(api: Conversation, spec: dict[str, Any]) -> None:
    answer = await api("POST", f"{VOLUMES}?dryRun=All", {"metadata": {"name": api.namespace}, "spec": spec})
    assert answer.status == 201


CHANGES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "host": (VOLUME, [{"hostPath": {"path": "/other"}}, {"hostPath": None}, {"nfs": {"server": "s", "path": "/"}}]),
    "local": (GOOD["local"], [
        {"local": {"path": "/b"}}, {"nodeAffinity": None}, {"volumeMode": "Filesystem"},
        near(matchExpressions=[{"key": "host", "operator": "Exists"}]), {"capacity": {"storage": "2Gi"}},
    ]),
    "csi": (GOOD["csi"], [
        {"csi": {"volumeHandle": "2"}}, {"csi": {"controllerExpandSecretRef": SECRET}},
        {"csi": {"controllerExpandSecretRef": SECRET | {"name": "t"}}},
        {"volumeAttributesClassName": None}, {"volumeAttributesClassName": "silver"}, {"claimRef": None},
    ]),
    "iscsi": (GOOD["iscsi"], [{"iscsi": {"lun": 1}}]),
}  # fmt: skip


@variants("change", CHANGES)
async def test_volume_source_is_immutable(
    api: Conversation, change: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    spec, changes = change
    await api.create(VOLUMES, {"metadata": {"name": api.namespace}, "spec": spec})
    try:
        for each in changes:
            patch = {"spec": each}
            await api("PATCH", f"{VOLUMES}/{api.namespace}", patch, content_type=MERGE_PATCH)
        answer = await api("GET", f"{VOLUMES}/{api.namespace}")
    finally:
        await api("DELETE", f"{VOLUMES}/{api.namespace}", recorded=False)
    assert answer.status == 200
