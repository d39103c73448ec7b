"""Realistic pods: about 5.8 KB of JSON each, with managed fields, conditions and environment variables."""

from __future__ import annotations

import json
from typing import Any

_FIELDS: dict[str, Any] = {
    "f:metadata": {
        "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}, "f:tier": {}},
        "f:ownerReferences": {},
    },
    "f:spec": {
        "f:containers": {
            'k:{"name":"app"}': {
                ".": {},
                "f:args": {},
                "f:env": {
                    ".": {},
                    **{f'k:{{"name":"SETTING_{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(6)},
                },
                "f:image": {},
                "f:imagePullPolicy": {},
                "f:livenessProbe": {".": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}, "f:periodSeconds": {}},
                "f:name": {},
                "f:ports": {".": {}, 'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:requests": {}},
                "f:terminationMessagePath": {},
                "f:volumeMounts": {".": {}, 'k:{"mountPath":"/etc/app"}': {".": {}, "f:mountPath": {}, "f:name": {}}},
            }
        },
        "f:dnsPolicy": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {},
        "f:volumes": {".": {}, 'k:{"name":"config"}': {".": {}, "f:configMap": {".": {}, "f:name": {}}, "f:name": {}}},
    },
}
_STATUS_FIELDS: dict[str, Any] = {
    "f:status": {
        "f:conditions": {
            f'k:{{"type":"{kind}"}}': {
                ".": {},
                "f:lastProbeTime": {},
                "f:lastTransitionTime": {},
                "f:status": {},
                "f:type": {},
            }
            for kind in ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
        },
        "f:containerStatuses": {},
        "f:hostIP": {},
        "f:phase": {},
        "f:podIP": {},
        "f:podIPs": {".": {}, 'k:{"ip":"10.1.2.3"}': {".": {}, "f:ip": {}}},
        "f:startTime": {},
    }
}


def pod(number: int, version: int) -> dict[str, Any]:
    """Return a pod, given its number and version, without kind and apiVersion, as in lists."""
    app, namespace = f"app-{number % 97}", f"team-{number % 50}"
    time = "2026-03-01T09:10:11Z"
    return {
        "metadata": {
            "name": f"{app}-7d9c5b8f6d-{number:06x}",
            "generateName": f"{app}-7d9c5b8f6d-",
            "namespace": namespace,
            "uid": f"8f1d2c3b-4a59-4687-9c0d-{number:012x}",
            "resourceVersion": str(version),
            "creationTimestamp": time,
            "labels": {"app": app, "pod-template-hash": "7d9c5b8f6d", "tier": "web" if number % 3 else "batch"},
            "annotations": {"checksum/config": "4c1f0d2a" * 8, "prometheus.io/scrape": "true"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-7d9c5b8f6d",
                    "uid": f"0e1d2c3b-4a59-4687-9c0d-{number % 97:012x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": time,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": _FIELDS,
                },
                {
                    "manager": "kubelet",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": time,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": _STATUS_FIELDS,
                    "subresource": "status",
                },
            ],
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
                {
                    "name": "kube-api-access-x2x4x",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                        "defaultMode": 420,
                    },
                },
            ],
            "containers": [
                {
                    "name": "app",
                    "image": f"registry.example.com/{namespace}/{app}:v1.{number % 40}.0",
                    "args": ["--listen=:8080", "--config=/etc/app/config.yaml"],
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": f"SETTING_{n}", "value": f"value-{n}-of-{app}"} for n in range(6)],
                    "resources": {
                        "limits": {"cpu": "500m", "memory": "512Mi"},
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                    },
                    "volumeMounts": [
                        {"name": "config", "mountPath": "/etc/app"},
                        {
                            "name": "kube-api-access-x2x4x",
                            "readOnly": True,
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        },
                    ],
                    "livenessProbe": {
                        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
                        "periodSeconds": 10,
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": app,
            "nodeName": f"node-{number % 200}",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": time}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": f"10.0.{number % 200}.1",
            "podIP": f"10.1.{number % 200}.{number % 250}",
            "podIPs": [{"ip": f"10.1.{number % 200}.{number % 250}"}],
            "startTime": time,
            "containerStatuses": [
                {
                    "name": "app",
                    "state": {"running": {"startedAt": time}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": number % 3,
                    "image": f"registry.example.com/{namespace}/{app}:v1.{number % 40}.0",
                    "imageID": "registry.example.com/image@sha256:" + "9a" * 32,
                    "containerID": "containerd://" + "5f" * 32,
                    "started": True,
                }
            ],
            "qosClass": "Burstable",
        },
    }


def encoded(number: int, version: int) -> bytes:
    """Return the pod as compact JSON, as in lists."""
    return json.dumps(pod(number, version), separators=(",", ":")).encode()


def encoded_metadata(number: int, version: int) -> bytes:
    """Return only the metadata of the pod as compact JSON."""
    return json.dumps({"metadata": pod(number, version)["metadata"]}, separators=(",", ":")).encode()
