"""Validation of the volumes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import PODS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

    Volumes = dict[str, Any] | list[dict[str, Any]]

TEMPLATES = "/api/v1/namespaces/{ns}/podtemplates"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TOKEN = {"serviceAccountToken": {"path": "t"}}


def keys(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"configMap": {"name": "m", "items": list(items)} | fields}


def secrets(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"secret": {"secretName": "m", "items": list(items)} | fields}


def iscsi(**fields: Any) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0} | fields}


def downward(**item: Any) -> dict[str, Any]:
    return {"downwardAPI": {"items": [{"path": "p"} | item]}}


def named(path: str, **fields: Any) -> dict[str, Any]:
    return downward(fieldRef={"fieldPath": path} | fields)


def used(resource: str, **fields: Any) -> dict[str, Any]:
    return downward(resourceFieldRef={"containerName": "c", "resource": resource} | fields)


def projected(*sources: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"projected": {"sources": list(sources)} | fields}


def claimed(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"ephemeral": {"volumeClaimTemplate": {"metadata": metadata or {}, "spec": CLAIM | spec}}}


KEY = {"key": "k", "path": "p"}
EMPTY: dict[str, Any] = {"emptyDir": {}}
SOME = {"fieldRef": {"fieldPath": "metadata.name"}}
WRONG: dict[str, list[Volumes]] = {
    "names": [
        [{"name": "", **EMPTY}],
        [{"name": "A_b", **EMPTY}],
        [{"name": "a.b", **EMPTY}],
        [{"name": "a" * 64, **EMPTY}],
        [{"name": "a", **EMPTY}, {"name": "a", **EMPTY}],
        [{"name": "a", **EMPTY}, {"name": "b", "nfs": {}}, {"name": "b", **EMPTY}],
        [{**EMPTY}, {**EMPTY}],
    ],
    "number-of-sources": [
        EMPTY | {"hostPath": {"path": "/x"}},
        EMPTY | {"configMap": {"name": "m"}, "secret": {"secretName": "m"}, "downwardAPI": {}, "cephfs": {}},
        {"nfs": {}, "persistentVolumeClaim": {"claimName": "c"}},
        {"csi": {"driver": "a.b"}, "image": {"reference": "r"}, "ephemeral": {}},
    ],
    "empty-dir": [{"emptyDir": {"sizeLimit": "-1"}}, {"emptyDir": {"sizeLimit": "-1Gi"}, "hostPath": {"path": "/x"}}],
    "host-path": [
        {"hostPath": {}},
        {"hostPath": {"path": "/x/../y"}},
        {"hostPath": {"path": "..", "type": "None"}},
        {"hostPath": {"path": "/x", "type": "dir"}},
    ],
    "git-repository": [{"gitRepo": {}}, {"gitRepo": {"repository": "r", "directory": "/x"}},
                       {"gitRepo": {"repository": "r", "directory": "a/../b"}}],
    "config-map": [
        {"configMap": {}},
        keys(defaultMode=512),
        keys(defaultMode=-1),
        keys({}),
        keys({"key": "k"}),
        keys(KEY | {"path": "/p"}),
        keys(KEY, KEY | {"path": "../p"}),
        keys(KEY | {"path": "a/.."}, KEY | {"path": "..p"}),
        keys(KEY | {"path": "/../p"}),
        keys(KEY | {"mode": 512}, KEY | {"mode": -1}),
    ],
    "secret": [
        {"secret": {}},
        secrets(defaultMode=512),
        secrets({}, KEY | {"path": "/p", "mode": 600}),
        secrets(KEY | {"path": ".."}, secretName=""),
    ],
    "fields": [
        {"downwardAPI": {"defaultMode": 1000}},
        downward(),
        downward(path="", **SOME),
        downward(path="/a", **SOME),
        downward(path="..", mode=1000),
        named(""),
        named("status.podIP"),
        named("spec.nodeName"),
        named("spec.host"),
        named("metadata.nowhere"),
        named("metadata.name", apiVersion="v2"),
        named("metadata.labels['']"),
        named("metadata.labels['a/b/c']"),
        named("metadata.annotations['A_']"),
        named("metadata.name['x']"),
    ],
    "resources": [
        used("limits.cpu", containerName=""),
        used(""),
        used("limits.gpu"),
        used("limits.cpu", divisor="1Mi"),
        used("requests.memory", divisor="2"),
        used("limits.ephemeral-storage", divisor="1m"),
        used("limits.hugepages-2Mi", divisor="3Mi"),
        downward(resourceFieldRef={"containerName": "c", "resource": "limits.cpu"}, **SOME),
    ],
    "projected": [
        projected(defaultMode=512),
        projected({"secret": {}}, {"configMap": {}}),
        projected({"secret": {"name": "s", "items": [{"key": "k"}]}}),
        projected({"configMap": {"name": "m", "items": [KEY | {"path": "..p", "mode": 512}]}}),
        projected({"downwardAPI": {"items": [{"path": "p"}]}}),
        projected({"secret": {"name": "s", "items": [KEY]}}, {"configMap": {"name": "m", "items": [KEY]}}),
        projected({"downwardAPI": {"items": [{"path": "p"} | SOME, {"path": "p"} | SOME]}}),
        projected({"secret": {"name": "s"}, "configMap": {"name": "m"}}),
    ],
    "tokens": [
        projected(TOKEN),
        projected({"serviceAccountToken": {}}),
        projected({"serviceAccountToken": {"path": "/t", "expirationSeconds": 599}}),
        projected({"serviceAccountToken": {"path": "../t", "expirationSeconds": 4294967297}}),
    ],
    "claims": [
        {"persistentVolumeClaim": {}},
        [{"name": "e"} | claimed(), {"name": "c", "persistentVolumeClaim": {"claimName": "a-e"}}],
    ],
    "drivers": [
        {"csi": {}},
        {"csi": {"driver": "a_b"}},
        {"csi": {"driver": "A." + "b" * 63}},
        {"csi": {"driver": "a.b", "nodePublishSecretRef": {}}},
        {"csi": {"driver": "a.b", "nodePublishSecretRef": {"name": "A"}}},
    ],
    "ephemeral": [
        {"ephemeral": {}},
        {"ephemeral": {"volumeClaimTemplate": {}}},
        claimed({"name": "x"}),
        claimed({"labels": {"-": "_"}, "annotations": {"-": ""}, "finalizers": ["a/b"]}),
        claimed(accessModes=["Sometimes"], volumeMode="Tape"),
        [{"name": "A"} | claimed()],
    ],
    "nfs": [{"nfs": {}}, {"nfs": {"server": "s", "path": "x"}}, {"nfs": {"path": "/x"}}],
    "iscsi": [
        {"iscsi": {"targetPortal": "", "iqn": "", "lun": -1}},
        iscsi(iqn="x"),
        iscsi(iqn="iqn.x"),
        iscsi(iqn="eui.0"),
        iscsi(iqn="naa.0"),
        iscsi(lun=256, chapAuthSession=True),
        iscsi(initiatorName=""),
        iscsi(initiatorName="iqn.x", chapAuthDiscovery=True),
        iscsi(initiatorName="eui.02004567A425678D", targetPortal="x" * 64),
    ],
    "image": [{"image": {}}, {"image": {"reference": "r", "pullPolicy": "Sometimes"}}],
    "fibre-channel": [
        {"fc": {}},
        {"fc": {"targetWWNs": ["a"]}},
        {"fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 300}},
    ],
    "of-old": [
        {"gcePersistentDisk": {"pdName": "", "partition": 256}},
        {"awsElasticBlockStore": {"volumeID": "", "partition": -1}},
        {"glusterfs": {"endpoints": "", "path": ""}},
        {"rbd": {"monitors": [], "image": ""}},
        {"cinder": {"volumeID": ""}},
        {"cephfs": {"monitors": []}},
        {"flexVolume": {"driver": ""}},
        {"azureFile": {"secretName": "", "shareName": ""}},
        {"vsphereVolume": {"volumePath": ""}},
        {"photonPersistentDisk": {"pdID": ""}},
        {"portworxVolume": {"volumeID": ""}},
        {"scaleIO": {"gateway": "", "system": "", "secretRef": None}},
    ],
}  # fmt: skip
RIGHT: list[dict[str, Any]] = [
    EMPTY,
    {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    {"hostPath": {"path": "/x", "type": "DirectoryOrCreate"}},
    keys(KEY | {"mode": 0o400}, defaultMode=0o777, optional=True),
    secrets(KEY, {"key": "l", "path": "a/b..c"}),
    named("metadata.labels['app.kubernetes.io/name']"),
    named("metadata.annotations['A/b']"),
    used("limits.cpu", divisor="1m"),
    used("requests.hugepages-2Mi", divisor="1Mi"),
    projected(
        {"secret": {"name": "s", "items": [KEY]}}, {"configMap": {"name": "m"}}, TOKEN,
        {"downwardAPI": {"items": [{"path": "q"} | SOME]}},
    ),
    {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
    {"csi": {"driver": "CSI.example.com", "nodePublishSecretRef": {"name": "s"}, "volumeAttributes": {"a": "b"}}},
    claimed({"labels": {"a": "b"}}, volumeMode="Block", storageClassName="fast"),
    {"nfs": {"server": "s", "path": "/x"}},
    iscsi(iqn="naa.62004567BA64678D0123456789ABCDEF", initiatorName="eui.02004567A425678D"),
    {"image": {"reference": "example.com/i:1"}},
    {"fc": {"targetWWNs": ["a"], "lun": 1}},
    {"awsElasticBlockStore": {"volumeID": "v"}},
    {"azureDisk": {"diskName": "d", "diskURI": "https://u"}},
]  # fmt: skip


def pod(volumes: Volumes, **spec: Any) -> dict[str, Any]:
    listed = [{"name": "v", **volumes}] if isinstance(volumes, dict) else volumes
    return {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": listed} | spec,
    }


@variants("wrong", WRONG)
async def test_invalid_volumes_are_refused(api: Conversation, wrong: list[Volumes]) -> None:
    answers = [await api("POST", f"{PODS}?dryRun=All", pod(each)) for each in wrong]
    assert {answer.status for answer in answers} == {422}


async def test_all_volume_sources_are_accepted(api: Conversation) -> None:
    volumes = [{"name": f"v{number}", **volume} for number, volume in enumerate(RIGHT)]
    answer = await api("POST", f"{PODS}?dryRun=All", pod(volumes, serviceAccountName="default"))
    assert answer.status == 201


async def test_volumes_of_templates_are_validated(api: Conversation) -> None:
    volumes = [{"name": "image", "image": {}}, {"name": "token", **projected(TOKEN)}, {"name": "other", "secret": {}}]
    obj = {"metadata": {"name": "a"}, "template": pod(volumes)}
    assert (await api("POST", f"{TEMPLATES}?dryRun=All", obj)).status == 422
