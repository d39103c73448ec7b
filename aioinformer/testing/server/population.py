"""Realistic pods in large numbers, for tests and benchmarks."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.server.api_server import ApiServer

_AT_ONCE = 20
_PODS_IN_NAMESPACE = 500
_APPS = 97
_STARTED = "2026-01-01T00:00:00Z"
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


async def populate(server: ApiServer, pods: int, *, namespaces: int = 0, nodes: int = 50) -> None:
    """Fill a server with running pods of about 5.8 KB each, in small steps.

    Args:
        server: to fill; nodes, namespaces and the owners of the pods are created, too.
        pods: how many.
        namespaces: how many the pods are spread over; 0 for one per 500 pods.
        nodes: how many they run on.
    """
    namespaces = namespaces or -(-pods // _PODS_IN_NAMESPACE)
    names = [f"team-{index:03d}" for index in range(namespaces)]
    server.load("namespaces", ({"metadata": {"name": name}, "status": {"phase": "Active"}} for name in names))
    server.load("nodes", (_node(index) for index in range(nodes)))
    # The garbage collector would delete pods without their owner.
    owners = sorted({(names[index % namespaces], index % _APPS) for index in range(pods)})
    await _load(server, "replicasets.apps", (_replica_set(namespace, app) for namespace, app in owners))
    await _load(server, "pods", make_pods(pods, names, nodes))


async def _load(server: ApiServer, resource: str, objects: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(objects, _AT_ONCE)):
        server.load(resource, batch)
        await asyncio.sleep(0)


def make_pods(count: int, namespaces: list[str], nodes: int = 50) -> Iterator[dict[str, Any]]:
    """Yield running pods as a server lists them: managed fields, conditions, environment, volumes.

    Args:
        count: how many.
        namespaces: the pods are spread over these in turn; at least one.
        nodes: how many nodes they run on in turn.
    """
    for index in range(count):
        yield make_pod(namespaces[index % len(namespaces)], index, nodes)


def make_pod(namespace: str, index: int, nodes: int = 50) -> dict[str, Any]:
    """Return one running pod; the same arguments give the same pod."""
    owner = _replica_set(namespace, index % _APPS)["metadata"]
    app, labels = owner["labels"]["app.kubernetes.io/name"], owner["labels"]
    name = f"{owner['name']}-{index:05d}"
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    environment: list[dict[str, Any]] = [
        {"name": f"SETTING_{number:02d}", "value": f"value-of-{app}-{number:02d}"} for number in range(8)
    ]
    environment += [
        {
            "name": f"POD_{field.upper()}",
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{field}"}},
        }
        for field in ("name", "namespace", "uid")
    ]
    return {
        "metadata": {
            "name": name,
            "generateName": f"{owner['name']}-",
            "namespace": namespace,
            "generation": 1,
            "creationTimestamp": _STARTED,
            "labels": labels,
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9102",
                "checksum/config": f"{index * 2654435761 % 16**16:016x}" * 4,
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner["name"],
                    "uid": owner["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed_by_controller(labels, environment), _managed_by_kubelet(address)],
        },
        "spec": _spec(app, index, nodes, environment),
        "status": _status(app, index, address),
    }


def _replica_set(namespace: str, number: int) -> dict[str, Any]:
    """Return the owner of an application's pods in a namespace; the same arguments give the same one."""
    app, place = f"app-{number:02d}", crc32(namespace.encode())
    revision = f"{(place ^ number * 7919) % 16**9:09x}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-{namespace}",
        "app.kubernetes.io/part-of": "storefront",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": revision,
        "tier": ("frontend", "backend", "worker")[number % 3],
    }
    return {
        "metadata": {
            "name": f"{app}-{revision}",
            "namespace": namespace,
            "uid": f"{place:08x}-0000-4000-8000-{number:012x}",
            "creationTimestamp": _STARTED,
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": {"pod-template-hash": revision}},
            "template": {"metadata": {"labels": labels}},
        },
    }


def _spec(app: str, index: int, nodes: int, environment: list[dict[str, Any]]) -> dict[str, Any]:
    token = "kube-api-access-x7k2p"
    probe = {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1}
    container = {
        "name": app,
        "image": f"registry.example.com/storefront/{app}:1.{index % 40}.0",
        "args": ["--config=/etc/app/config.yaml", "--log-format=json", f"--shard={index % 16}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": environment,
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/app"},
            {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {**probe, "periodSeconds": 20, "successThreshold": 1, "failureThreshold": 3},
        "readinessProbe": {**probe, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
            {
                "name": token,
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {
                            "configMap": {
                                "name": "kube-root-ca.crt",
                                "items": [{"key": "ca.crt", "path": "ca.crt"}],
                            }
                        },
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "nodeName": f"node-{index % nodes:03d}",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(app: str, index: int, address: str) -> dict[str, Any]:
    image = f"registry.example.com/storefront/{app}"
    digest = f"{index % 97 * 11400714819323198485 % 16**16:016x}" * 4
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _STARTED}
            for kind in _CONDITIONS
        ],
        "hostIP": f"192.168.{index % 4}.{index % 50 + 10}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _STARTED,
        "containerStatuses": [
            {
                "name": app,
                "state": {"running": {"startedAt": _STARTED}},
                "lastState": {},
                "ready": True,
                "restartCount": index % 3,
                "image": f"{image}:1.{index % 40}.0",
                "imageID": f"{image}@sha256:{digest}",
                "containerID": f"containerd://{digest}",
                "started": True,
            }
        ],
        "qosClass": "Burstable",
    }


def _managed_by_controller(labels: dict[str, str], environment: list[dict[str, Any]]) -> dict[str, Any]:
    named: dict[str, Any] = {".": {}}
    for variable in environment:
        key = f'k:{{"name":"{variable["name"]}"}}'
        named[key] = {".": {}, "f:name": {}, "f:value" if "value" in variable else "f:valueFrom": {}}
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": _STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, **{f"f:{key}": {} for key in labels}}},
            "f:spec": {
                "f:containers": {"f:env": named, "f:image": {}, "f:resources": {".": {}, "f:limits": {}}},
                "f:restartPolicy": {},
                "f:volumes": {".": {}, 'k:{"name":"config"}': {".": {}, "f:configMap": {}, "f:name": {}}},
            },
        },
    }


def _managed_by_kubelet(address: str) -> dict[str, Any]:
    conditions: dict[str, Any] = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:status": {}, "f:type": {}} for kind in _CONDITIONS
    }
    return {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": _STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:conditions": conditions,
                "f:containerStatuses": {},
                "f:hostIP": {},
                "f:phase": {},
                "f:podIPs": {".": {}, f'k:{{"ip":"{address}"}}': {".": {}, "f:ip": {}}},
            }
        },
        "subresource": "status",
    }


def _node(index: int) -> dict[str, Any]:
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index:03d}", "labels": {"kubernetes.io/hostname": f"node-{index:03d}"}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        },
    }
