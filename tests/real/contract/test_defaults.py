"""Defaults of built-in kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

CONTAINER = {"name": "c", "image": "i"}
SELECTED = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
RICH_CONTAINER = {
    "name": "rich",
    "image": "example.com/i:1",
    "ports": [{"containerPort": 80}],
    "env": [
        {"name": "A", "value": "b"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ],
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "startupProbe": {"exec": {"command": ["true"]}},
    "resources": {"limits": {"cpu": "1"}},
    "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
}
RICH_POD = {
    "containers": [RICH_CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [
        {"name": "config", "configMap": {"name": "x"}},
        {"name": "secret", "secret": {"secretName": "x"}},
        {"name": "empty", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "x"}}]}},
        {"name": "down", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ],
}
CORE = "/api/v1/namespaces/{ns}"
MANIFESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "pod": (f"{CORE}/pods", {"spec": {"containers": [CONTAINER]}}),
    "rich_pod": (f"{CORE}/pods", {"spec": RICH_POD}),
    "guaranteed_pod": (
        f"{CORE}/pods",
        {"spec": {"containers": [CONTAINER | {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}},
    ),
    "host_network_pod": (
        f"{CORE}/pods",
        {"spec": {"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]}},
    ),
    "pod_template": (f"{CORE}/podtemplates", {"template": TEMPLATE}),
    "replication_controller": (f"{CORE}/replicationcontrollers", {"spec": {"template": TEMPLATE}}),
    "service": (f"{CORE}/services", {"spec": {"ports": [{"port": 80}]}}),
    "headless_service": (f"{CORE}/services", {"spec": {"clusterIP": "None", "selector": {"a": "b"}}}),
    "external_service": (f"{CORE}/services", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    "endpoints": (
        f"{CORE}/endpoints",
        {"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]},
    ),
    "secret": (f"{CORE}/secrets", {"stringData": {"a": "b"}}),
    "config_map": (f"{CORE}/configmaps", {"data": {"a": "b"}}),
    "service_account": (f"{CORE}/serviceaccounts", {}),
    "claim": (
        f"{CORE}/persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "limit_range": (f"{CORE}/limitranges", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
    "resource_quota": (f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": "3"}}}),
    "deployment": ("/apis/apps/v1/namespaces/{ns}/deployments", {"spec": {"selector": SELECTED, "template": TEMPLATE}}),
    "recreated_deployment": (
        "/apis/apps/v1/namespaces/{ns}/deployments",
        {"spec": {"selector": SELECTED, "template": TEMPLATE, "strategy": {"type": "Recreate"}}},
    ),
    "replica_set": (
        "/apis/apps/v1/namespaces/{ns}/replicasets",
        {"spec": {"selector": SELECTED, "template": TEMPLATE}},
    ),
    "daemon_set": ("/apis/apps/v1/namespaces/{ns}/daemonsets", {"spec": {"selector": SELECTED, "template": TEMPLATE}}),
    "stateful_set": (
        "/apis/apps/v1/namespaces/{ns}/statefulsets",
        {"spec": {"selector": SELECTED, "template": TEMPLATE, "serviceName": "s"}},
    ),
    "job": (
        "/apis/batch/v1/namespaces/{ns}/jobs",
        {"spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}},
    ),
    "cron_job": (
        "/apis/batch/v1/namespaces/{ns}/cronjobs",
        {
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {
                    "spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "OnFailure"}}}
                },
            }
        },
    ),
    "ingress": (
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    ),
    "network_policy": (
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}},
    ),
    "autoscaler": (
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}},
    ),
    "disruption_budget": (
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        {"spec": {"maxUnavailable": 1, "selector": SELECTED}},
    ),
    "role_binding": (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
        },
    ),
    "endpoint_slice": (
        "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]},
    ),
    "lease": ("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", {"spec": {"holderIdentity": "me"}}),
    "storage_class": ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/p"}),
    "priority_class": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 7}),
    "ingress_class": (
        "/apis/networking.k8s.io/v1/ingressclasses",
        {"spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n"}}},
    ),
    "volume": (
        "/api/v1/persistentvolumes",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
    ),
    "node": ("/api/v1/nodes", {}),
    "namespace": ("/api/v1/namespaces", {}),
}


@pytest.mark.parametrize("kind", MANIFESTS)
async def test_defaults_are_applied(api: Conversation, kind: str) -> None:
    path, manifest = MANIFESTS[kind]
    # Names of cluster-scoped objects must differ from those of other rows.
    name = "a" if "{ns}" in path else f"{api.namespace}-a"
    answer = await api("POST", path, {"metadata": {"name": name}} | manifest)
    assert answer.status == 201
    if "{ns}" not in path:
        await api("DELETE", f"{path}/{name}", recorded=False)
