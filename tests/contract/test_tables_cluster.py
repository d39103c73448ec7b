"""Table rows of nodes, events, storage, access and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.rows import Case, ago, row_of
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/{ns}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
QUOTAS = "/api/v1/namespaces/{ns}/resourcequotas"
STORAGE = "/apis/storage.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def micro(time: str) -> str:
    return time.replace("Z", ".000000Z")


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


INFO = {
    "machineID": "m",
    "systemUUID": "s",
    "bootID": "b",
    "kernelVersion": "6.1.0",
    "osImage": "Debian 12",
    "containerRuntimeVersion": "containerd://2.0",
    "kubeletVersion": "v1.36.4",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "arm64",
}
ABOUT = {"kind": "Pod", "name": "p", "namespace": "{ns}", "apiVersion": "v1"}
EVENT = {"involvedObject": ABOUT, "reason": "Started", "type": "Normal", "message": "  Started container\n"}
HOURS, DAYS = ago(hours=9), ago(days=10)
SERIES = {
    "eventTime": micro(DAYS),
    "reportingComponent": "example.com/c",
    "reportingInstance": "c-1",
    "action": "Start",
}
CAPACITY = {
    "capacity": {"storage": "5Gi"},
    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
    "hostPath": {"path": "/"},
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SUBJECTS = [
    {"kind": "User", "apiGroup": RBAC, "name": "u"},
    {"kind": "User", "apiGroup": RBAC, "name": "v"},
    {"kind": "Group", "apiGroup": RBAC, "name": "g"},
    {"kind": "ServiceAccount", "name": "a", "namespace": "elsewhere"},
]
ROLE = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [],
}
MATCHED = {
    "resourceRules": [
        {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
    ]
}
POLICY = {"matchConstraints": MATCHED, "validations": [{"expression": "true"}]}

THINGS: dict[str, Case] = {
    "node-unknown": (NODES, {}, {}),
    "node": (
        NODES,
        {
            "metadata": {
                "labels": {
                    "node-role.kubernetes.io/worker": "",
                    "node-role.kubernetes.io/control-plane": "",
                    "kubernetes.io/role": "gpu",
                }
            }
        },
        {
            "conditions": [condition("Ready")],
            "nodeInfo": INFO,
            "addresses": [
                {"type": "Hostname", "address": "h"},
                {"type": "ExternalIP", "address": "192.0.2.1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ],
        },
    ),
    "node-not-ready": (
        NODES,
        {"spec": {"unschedulable": True}},
        {"conditions": [condition("MemoryPressure", "False"), condition("Ready", "Unknown")]},
    ),
    "event": (
        EVENTS,
        EVENT
        | {"source": {"component": "kubelet", "host": "n"}, "firstTimestamp": DAYS, "lastTimestamp": HOURS, "count": 4},
        {},
    ),
    "event-once": (EVENTS, EVENT | {"firstTimestamp": DAYS, "source": {"component": "kubelet"}}, {}),
    "event-of-a-field": (
        EVENTS,
        EVENT | {"involvedObject": ABOUT | {"fieldPath": "spec.containers{a}"}, "lastTimestamp": HOURS},
        {},
    ),
    "event-of-no-name": (EVENTS, {"involvedObject": {"namespace": "{ns}", "kind": "Pod"}}, {}),
    "event-of-a-series": (
        EVENTS,
        EVENT | SERIES | {"series": {"count": 3, "lastObservedTime": micro(HOURS)}},
        {},
    ),
    "new-event": (
        NEW_EVENTS,
        {
            "regarding": ABOUT,
            "reason": "Started",
            "type": "Warning",
            "note": "it started",
            "action": "Start",
            "eventTime": micro(DAYS),
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
        },
        {},
    ),
    "new-event-of-a-series": (
        NEW_EVENTS,
        {
            "regarding": ABOUT,
            "reason": "Started",
            "type": "Normal",
            "action": "Start",
            "eventTime": micro(DAYS),
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
            "series": {"count": 3, "lastObservedTime": micro(HOURS)},
        },
        {},
    ),
    "volume": (VOLUMES, {"spec": CAPACITY | {"persistentVolumeReclaimPolicy": "Delete"}}, {"phase": "Available"}),
    "volume-bound": (
        VOLUMES,
        {
            "spec": CAPACITY
            | {
                "claimRef": {"namespace": "{ns}", "name": "c"},
                "storageClassName": "fast",
                "volumeMode": "Block",
            }
        },
        {"phase": "Failed", "reason": "Because"},
    ),
    "volume-of-an-old-class": (
        VOLUMES,
        {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": CAPACITY},
        {},
    ),
    "claim": (CLAIMS, {"spec": CLAIM | {"storageClassName": "fast"}}, {}),
    "claim-bound": (
        CLAIMS,
        {"spec": CLAIM | {"volumeName": "v", "volumeMode": "Block", "volumeAttributesClassName": "gold"}},
        {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
    ),
    "claim-lost": (CLAIMS, {"spec": CLAIM | {"volumeName": "v"}}, {"phase": "Lost"}),
    "storageclass": (
        f"{STORAGE}/storageclasses",
        {
            "metadata": {"annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}},
            "provisioner": "example.com/p",
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
        },
        {},
    ),
    "storageclass-of-little": (f"{STORAGE}/storageclasses", {"provisioner": "example.com/p"}, {}),
    "driver": (
        f"{STORAGE}/csidrivers",
        {
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": True,
                "tokenRequests": [{"audience": "a"}, {"audience": "b", "expirationSeconds": 3600}],
                "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                "requiresRepublish": True,
            }
        },
        {},
    ),
    "driver-of-little": (f"{STORAGE}/csidrivers", {"spec": {}}, {}),
    "node-drivers": (f"{STORAGE}/csinodes", {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}}, {}),
    "attachment": (
        f"{STORAGE}/volumeattachments",
        {"spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        {"attached": True},
    ),
    "attributes": (
        f"{STORAGE}/volumeattributesclasses",
        {"driverName": "d.example.com", "parameters": {"iops": "1"}},
        {},
    ),
    "quota": (
        QUOTAS,
        {"spec": {"hard": {"pods": "10", "limits.cpu": "5", "requests.cpu": "2", "limits.memory": "1Gi"}}},
        {
            "hard": {"pods": "10", "limits.cpu": "5", "requests.cpu": "2", "limits.memory": "1Gi"},
            "used": {"pods": "2", "requests.cpu": "500m"},
        },
    ),
    "quota-that-nobody-counts": (QUOTAS, {"spec": {"hard": {"pods": "10"}}}, {}),
    "secret": (
        "/api/v1/namespaces/{ns}/secrets",
        {"type": "kubernetes.io/basic-auth", "stringData": {"username": "u", "password": "p"}},
        {},
    ),
    "account": ("/api/v1/namespaces/{ns}/serviceaccounts", {"secrets": [{"name": "a"}, {"name": "b"}]}, {}),
    "namespace": ("/api/v1/namespaces", {"metadata": {"name": "{ns}-more"}}, {}),
    "priority": (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"value": 1000, "preemptionPolicy": "Never", "description": "d"},
        {},
    ),
    "runtime": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "runc"}, {}),
    "clusterrole": (f"/apis/{RBAC}/v1/clusterroles", {"rules": []}, {}),
    "clusterbinding": (f"/apis/{RBAC}/v1/clusterrolebindings", {"roleRef": ROLE, "subjects": SUBJECTS}, {}),
    "binding-of-nobody": (f"/apis/{RBAC}/v1/namespaces/{{ns}}/rolebindings", {"roleRef": ROLE}, {}),
    "lease-of-nobody": ("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", {"spec": {}}, {}),
    "hooks": (f"{ADMISSION}/validatingwebhookconfigurations", {"webhooks": [WEBHOOK]}, {}),
    "changing-hooks": (f"{ADMISSION}/mutatingwebhookconfigurations", {"webhooks": [WEBHOOK]}, {}),
    "policy": (f"{ADMISSION}/validatingadmissionpolicies", {"spec": POLICY}, {}),
    "policy-of-parameters": (
        f"{ADMISSION}/validatingadmissionpolicies",
        {"spec": POLICY | {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}},
        {},
    ),
    "policy-binding": (
        f"{ADMISSION}/validatingadmissionpolicybindings",
        {
            "spec": {
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"name": "x", "parameterNotFoundAction": "Allow"},
            }
        },
        {},
    ),
    "policy-binding-by-labels": (
        f"{ADMISSION}/validatingadmissionpolicybindings",
        {
            "spec": {
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"},
            }
        },
        {},
    ),
    "level": (
        f"{FLOW}/prioritylevelconfigurations",
        {
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 7,
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 5},
                    },
                },
            }
        },
        {},
    ),
    "level-without-queues": (
        f"{FLOW}/prioritylevelconfigurations",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
        {},
    ),
    "device-class": ("/apis/resource.k8s.io/v1/deviceclasses", {"spec": {}}, {}),
    "device-claim": (
        "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c.example.com"}}]}}},
        {},
    ),
    "device-template": (
        "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates",
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c.example.com"}}]}}}},
        {},
    ),
    "slice": (
        "/apis/resource.k8s.io/v1/resourceslices",
        {
            "spec": {
                "driver": "d.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "n",
                "devices": [],
            }
        },
        {},
    ),
}


@variants("case", THINGS)
async def test_row_of_each_kind(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 2
