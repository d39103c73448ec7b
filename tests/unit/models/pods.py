"""A typical pod: two containers, probes, volumes, a status, and managed fields of two writers."""

from __future__ import annotations

import json
from typing import Any


def pod_as_in_clusters() -> dict[str, Any]:
    """Return the pod as plain data, about 6 KB as JSON."""
    containers = [_container("web", 8080), _container("metrics", 9090)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "storefront-6d5f8b7c9d-x2x4q",
            "generateName": "storefront-6d5f8b7c9d-",
            "namespace": "shop",
            "uid": "5a1f9d1e-70e4-4b3c-9d5c-6a0c8c1d2e3f",
            "resourceVersion": "48213377",
            "creationTimestamp": "2026-03-04T05:06:07Z",
            "labels": {"app": "storefront", "pod-template-hash": "6d5f8b7c9d", "tier": "frontend"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "storefront-6d5f8b7c9d",
                    "uid": "0f8d2c4b-2f7e-4c5f-8f39-0a9b8c7d6e5f",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                _managed("kube-controller-manager", "", {"f:spec": _managed_spec(containers)}),
                _managed("kubelet", "status", {"f:status": _managed_status()}),
            ],
        },
        "spec": {
            "containers": containers,
            "volumes": [
                {"name": "config", "configMap": {"name": "storefront", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {}},
            ],
            "nodeName": "node-17.example.net",
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "storefront",
            "serviceAccount": "storefront",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-03-04T05:06:11Z",
                }
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.3.17",
            "hostIPs": [{"ip": "10.0.3.17"}],
            "podIP": "10.244.9.31",
            "podIPs": [{"ip": "10.244.9.31"}],
            "startTime": "2026-03-04T05:06:07Z",
            "qosClass": "Burstable",
            "containerStatuses": [_status(container) for container in containers],
        },
    }


def pod_bytes() -> bytes:
    """Return the pod as JSON."""
    return json.dumps(pod_as_in_clusters(), separators=(",", ":")).encode()


def _container(name: str, port: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    return {
        "name": name,
        "image": f"registry.example.net/shop/{name}:1.42.0",
        "args": ["--port", str(port)],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "storefront", "key": "token"}}},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "readOnly": True, "mountPath": "/etc/storefront"}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _status(container: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": container["name"],
        "state": {"running": {"startedAt": "2026-03-04T05:06:10Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": container["image"],
        "imageID": f"{container['image']}@sha256:{'0123456789abcdef' * 4}",
        "containerID": f"containerd://{'fedcba9876543210' * 4}",
        "started": True,
    }


def _managed(manager: str, subresource: str, fields: dict[str, Any]) -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-03-04T05:06:12Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry


def _managed_spec(containers: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "f:containers": {
            f'k:{{"name":"{container["name"]}"}}': {".": {}, **{f"f:{key}": {} for key in container}}
            for container in containers
        },
        "f:dnsPolicy": {},
        "f:volumes": {".": {}, 'k:{"name":"config"}': {".": {}, "f:configMap": {".": {}, "f:name": {}}}},
    }


def _managed_status() -> dict[str, Any]:
    kinds = ("ContainersReady", "Initialized", "Ready")
    condition: dict[str, Any] = {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}}
    conditions = {f'k:{{"type":"{kind}"}}': condition for kind in kinds}
    return {"f:conditions": conditions, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}}
