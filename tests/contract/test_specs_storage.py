"""Validation of persistent volume claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SIZE = {"requests": {"storage": "1Gi"}}
CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": SIZE}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}


def sized(size: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"storage": size}}}


WRONG: dict[str, list[dict[str, Any]]] = {
    "access": [{"accessModes": modes} for modes in (
        None, [], ["ReadWrite"], ["ReadWriteOncePod", "ReadOnlyMany"], ["ReadWriteOncePod", "Wrong", "ReadWriteOnce"],
    )],
    "size": [
        {"resources": None}, {"resources": {"requests": {}}}, {"resources": {"requests": {"cpu": "1"}}},
        sized("0"), sized("-1Gi"), sized("-0.5"),
    ],
    "names": [
        {"storageClassName": "Wrong"}, {"storageClassName": "a_b"}, {"volumeAttributesClassName": "A"},
        {"volumeMode": "Files"}, {"volumeMode": ""},
    ],
    "selector": [
        {"selector": {"matchLabels": {"a b": "c"}}}, {"selector": {"matchLabels": {"a": "c d"}}},
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {"selector": {"matchExpressions": [{"key": "", "operator": "Exists", "values": ["a"]}]}},
    ],
    "sources": [
        {"dataSource": {"kind": "PersistentVolumeClaim", "name": ""}},
        {"dataSource": {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"},
         "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "s"}},
        {"dataSourceRef": {"kind": "", "name": ""}}, {"dataSourceRef": {"kind": "Pod", "name": "a"}},
        {"dataSourceRef": {"kind": "Pod", "name": "a", "apiGroup": "Not A Group"}},
    ],
    "nothing": [{"accessModes": None, "resources": None}],
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_claims_are_refused(api: Conversation, wrong: list[dict[str, Any]]) -> None:
    for spec in wrong:
        answer = await api("POST", f"{CLAIMS}?dryRun=All", {"metadata": {"name": "a"}, "spec": CLAIM | spec})
        assert answer.status == 422, spec


GOOD: dict[str, dict[str, Any]] = {
    "full": CLAIM | {
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"],
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
        "resources": {"requests": {"storage": "1024Mi"}, "limits": {"storage": "2Gi"}},
        "storageClassName": "fast.ssd",
        "volumeMode": "Block",
        "volumeName": "v",
        "volumeAttributesClassName": "gold",
    },
    "no-class": CLAIM | {"storageClassName": "", "volumeAttributesClassName": ""},
    "snapshot": CLAIM | {"dataSource": SNAPSHOT},
    "unknown-source": CLAIM | {"dataSource": {"kind": "Pod", "name": "a"}},
    "reference": CLAIM | {"dataSourceRef": {"apiGroup": "example.com", "kind": "Book", "name": "b"}},
    "elsewhere": CLAIM | {"dataSourceRef": SNAPSHOT | {"namespace": "other"}},
    "fraction": CLAIM | sized("500m"),
}  # fmt: skip


@variants("spec", GOOD)
async def test_valid_claims_are_accepted(api: Conversation, spec: dict[str, Any]) -> None:
    answer = await api("POST", CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    assert answer.status == 201


CHANGES: dict[str, list[dict[str, Any]]] = {
    "access": [{"accessModes": ["ReadOnlyMany"]}],
    "size": [sized("2Gi"), sized("1Mi")],
    "names": [{"storageClassName": "other"}, {"storageClassName": None}, {"volumeName": "v"}, {"volumeName": None}],
    "mode": [{"volumeMode": "Block"}, {"volumeMode": "Wrong"}, {"volumeAttributesClassName": "gold"}],
    "selector": [{"selector": {"matchLabels": {"a": "b"}}}],
    "sources": [{"dataSource": SNAPSHOT}, {"dataSourceRef": SNAPSHOT}],
}


@variants("changes", CHANGES)
async def test_claim_spec_is_immutable(api: Conversation, changes: list[dict[str, Any]]) -> None:
    full = CLAIM | {"storageClassName": "slow", "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}
    await api.create(CLAIMS, {"metadata": {"name": "a"}, "spec": full})
    for spec in changes:
        await api("PATCH", f"{CLAIMS}/a", {"spec": spec}, content_type=MERGE_PATCH)
    assert (await api("GET", f"{CLAIMS}/a")).status == 200


async def test_bound_claim_grows_if_its_class_allows(api: Conversation) -> None:
    for grows in (True, False):
        name = f"{api.namespace}-{grows}".lower()
        kind = {"metadata": {"name": name}, "provisioner": "example.com/p", "allowVolumeExpansion": grows}
        await api.create(CLASSES, kind)
        await api.create(CLAIMS, {"metadata": {"name": name}, "spec": CLAIM | {"storageClassName": name}})
        bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        await api("PATCH", f"{CLAIMS}/{name}/status", bound, content_type=MERGE_PATCH)
        for spec in (sized("3Gi"), sized("2Gi"), sized("512Mi"), {"volumeAttributesClassName": "gold"}):
            answer = await api("PATCH", f"{CLAIMS}/{name}", {"spec": spec}, content_type=MERGE_PATCH)
        await api("DELETE", f"{CLASSES}/{name}", recorded=False)
    assert answer.status == 200


async def test_storage_class_of_a_claim_can_be_set_later(api: Conversation) -> None:
    await api.create(CLAIMS, {"metadata": {"name": "a"}, "spec": CLAIM})
    for change in (
        {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}}},
        {"spec": {"storageClassName": "slow"}},
        {"spec": {"storageClassName": "fast"}},
    ):
        answer = await api("PATCH", f"{CLAIMS}/a", change, content_type=MERGE_PATCH)
    assert answer.status == 422
