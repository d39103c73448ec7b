"""Built-in kinds: defaults, and Events in the core group and in events.k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH
from tests.real.contract.tables import variants

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
    "service": (f"{CORE}/services", {"spec": {"ports": [{"port": 80}]}}),
    "stateful_set": (
        "/apis/apps/v1/namespaces/{ns}/statefulsets",
        {"spec": {"selector": SELECTED, "template": TEMPLATE, "serviceName": "s"}},
    ),
    "deployment": ("/apis/apps/v1/namespaces/{ns}/deployments", {"spec": {"selector": SELECTED, "template": TEMPLATE}}),
    "replication_controller": (f"{CORE}/replicationcontrollers", {"spec": {"template": TEMPLATE}}),
    "pod_template": (f"{CORE}/podtemplates", {"template": TEMPLATE}),
    "limit_range": (
        f"{CORE}/limitranges",
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1000m"}, "min": {"memory": "1Mi"}}]}},
    ),
    "autoscaler": (
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}},
    ),
    "network_policy": (
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 80}, {}]}]}},
    ),
    "network_policy_without_egress": (
        "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
        {"spec": {"podSelector": {}, "ingress": [], "egress": []}},
    ),
}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
WEBHOOK = {
    "name": "a.b.c",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"name": "s", "namespace": "n"}},
    "rules": [RULE],
}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
#: Cluster-scoped objects: these are not stored.
UNSTORED: dict[str, tuple[str, dict[str, Any]]] = {
    "validating_webhooks": (f"{ADMISSION}/validatingwebhookconfigurations", {"webhooks": [WEBHOOK]}),
    "mutating_webhooks": (f"{ADMISSION}/mutatingwebhookconfigurations", {"webhooks": [WEBHOOK]}),
    "admission_policy": (
        f"{ADMISSION}/validatingadmissionpolicies",
        {"spec": {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}},
    ),
    "admission_policy_binding": (
        f"{ADMISSION}/validatingadmissionpolicybindings",
        {"spec": {"policyName": "p", "validationActions": ["Deny"], "matchResources": {"resourceRules": [RULE]}}},
    ),
    "csi_driver": ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {}}),
    "ingress_class": (
        "/apis/networking.k8s.io/v1/ingressclasses",
        {"spec": {"controller": "a.b/c", "parameters": {"kind": "X", "name": "y", "apiGroup": "z.io"}}},
    ),
}
EPHEMERAL = {"spec": {"containers": [CONTAINER], "ephemeralContainers": [{"name": "e", "image": "i"}]}}


@pytest.mark.parametrize("kind", UNSTORED)
async def test_defaults_of_configurations_are_applied(api: Conversation, kind: str) -> None:
    path, manifest = UNSTORED[kind]
    answer = await api("POST", f"{path}?dryRun=All", {"metadata": {"name": "a"}} | manifest)
    assert answer.status == 201


async def test_pod_is_created_without_ephemeral_containers(api: Conversation) -> None:
    answer = await api("POST", f"{CORE}/pods", {"metadata": {"name": "a"}, **EPHEMERAL})
    assert answer.status == 422


async def test_template_has_no_ephemeral_containers(api: Conversation) -> None:
    template = {**TEMPLATE, **EPHEMERAL}
    path = "/apis/apps/v1/namespaces/{ns}/deployments"
    answer = await api("POST", path, {"metadata": {"name": "a"}, "spec": {"selector": SELECTED, "template": template}})
    assert answer.status == 422


@pytest.mark.parametrize("kind", MANIFESTS)
async def test_defaults_are_applied(api: Conversation, kind: str) -> None:
    path, manifest = MANIFESTS[kind]
    answer = await api("POST", path, {"metadata": {"name": "a"}} | manifest)
    assert answer.status == 201


EVENTS = "/api/v1/namespaces/{ns}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
BOTH = {"core": EVENTS, "newer": NEW_EVENTS}
EARLIER, LATER = "2024-05-01T10:00:00Z", "2024-05-01T10:05:00Z"
MOMENT = "2024-05-01T10:00:00.123456Z"


def old_event(api: Conversation, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Return an event of the core group."""
    involved = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u"}
    return {
        "metadata": {"name": name, "labels": {"n": name}},
        "involvedObject": involved | {"fieldPath": "spec.containers{c}", "resourceVersion": "5"},
        "reason": "Killing",
        "message": "Stopping container c",
        "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": EARLIER,
        "lastTimestamp": LATER,
        "count": 3,
        "type": "Normal",
        **fields,
    }


def new_event(api: Conversation, name: str = "a", **fields: Any) -> dict[str, Any]:
    """Return an event of events.k8s.io."""
    return {
        "metadata": {"name": name, "labels": {"n": name}},
        "eventTime": MOMENT,
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-1",
        "action": "Stop",
        "reason": "Stopped",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        "note": "Stopped container c",
        "type": "Warning",
        **fields,
    }


@variants("where", BOTH)
async def test_event_is_served_in_both_groups(api: Conversation, where: str) -> None:
    event = old_event(api) if where == EVENTS else new_event(api, series={"count": 2, "lastObservedTime": MOMENT})
    await api("POST", where, event)
    core = await api("GET", f"{EVENTS}/a")
    newer = await api("GET", f"{NEW_EVENTS}/a")
    assert (core.body["message"], core.body["metadata"]["uid"]) == (newer.body["note"], newer.body["metadata"]["uid"])


@variants("where", BOTH)
async def test_watch_in_either_group(api: Conversation, where: str) -> None:
    made = await api.create(EVENTS, old_event(api))
    api.variables["v"] = made["metadata"]["resourceVersion"]
    await api.create(NEW_EVENTS, new_event(api, "b"))
    await api("PATCH", f"{EVENTS}/a", {"count": 4}, content_type=MERGE_PATCH, recorded=False)
    await api("DELETE", f"{NEW_EVENTS}/a", recorded=False)
    await api("DELETE", f"{EVENTS}/b", recorded=False)
    answer = await api.watch(f"{where}?watch=true&resourceVersion={{v}}", events=4)
    assert [event["type"] for event in answer.body] == ["ADDED", "MODIFIED", "DELETED", "DELETED"]
