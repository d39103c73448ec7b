"""Zero, empty, null and reordered fields: how they are written, and their owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import CONFIGMAPS, DEPLOYMENTS, PODS, SERVICES
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

C = {"name": "c", "image": "i"}
LABELS = {"a": "b"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [C]}}
WORK = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
QUOTAS = "/api/v1/namespaces/{ns}/resourcequotas"


def pod(**spec: Any) -> tuple[str, dict[str, Any]]:
    return PODS, {"spec": {"containers": [C], **spec}}


def contained(**fields: Any) -> tuple[str, dict[str, Any]]:
    return PODS, {"spec": {"containers": [C | fields]}}


WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "null-data": (CONFIGMAPS, {"data": None}),
    "empty-data": (CONFIGMAPS, {"data": {}, "binaryData": {}}),
    "empty-value": (CONFIGMAPS, {"data": {"k": ""}}),
    "not-immutable": (CONFIGMAPS, {"immutable": False}),
    "empty-labels": (
        CONFIGMAPS,
        {"metadata": {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}},
    ),
    "null-labels": (CONFIGMAPS, {"metadata": {"labels": None, "annotations": None, "generateName": None}}),
    "empty-label": (CONFIGMAPS, {"metadata": {"labels": {"a": ""}}}),
    "no-replicas": (DEPLOYMENTS, {"spec": WORK | {"replicas": 0, "minReadySeconds": 0, "paused": False}}),
    "null-replicas": (DEPLOYMENTS, {"spec": WORK | {"replicas": None, "strategy": None}}),
    "empty-strategy": (DEPLOYMENTS, {"spec": WORK | {"strategy": {"type": "", "rollingUpdate": {}}}}),
    "zero-surge": (
        DEPLOYMENTS,
        {"spec": WORK | {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}},
    ),
    "false-fields": pod(hostNetwork=False, hostPID=False, hostIPC=False, setHostnameAsFQDN=False),
    "false-pointers": pod(automountServiceAccountToken=False, shareProcessNamespace=False, enableServiceLinks=False),
    "empty-lists": pod(volumes=[], initContainers=[], tolerations=[], imagePullSecrets=[], hostAliases=[]),
    "empty-maps": pod(nodeSelector={}, securityContext={}, affinity={}),
    "deep-affinity": pod(
        affinity={"nodeAffinity": {}, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    ),
    "empty-texts": pod(nodeName="", hostname="", priorityClassName="", serviceAccountName=""),
    "zero-grace": pod(terminationGracePeriodSeconds=0, activeDeadlineSeconds=None),
    "empty-command": contained(command=[], args=[], env=[], ports=[]),
    "empty-environment": contained(env=[{"name": "E", "value": ""}, {"name": "F"}]),
    "no-source": contained(env=[{"name": "E", "valueFrom": None}]),
    "empty-resources": contained(resources={"limits": {}, "requests": {}, "claims": []}),
    "numbers-as-quantities": contained(resources={"limits": {"cpu": 1, "memory": 1024}, "requests": {"cpu": 0.5}}),
    "empty-probe": contained(livenessProbe={"httpGet": {"port": 80, "path": ""}}),
    "probe-port-name": contained(readinessProbe={"tcpSocket": {"port": "http"}, "initialDelaySeconds": 0}),
    "empty-directory": pod(volumes=[{"name": "v", "emptyDir": {}}]),
    "nothing-in-volume": pod(volumes=[{"name": "v"}]),
    "limited-directory": pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "0", "medium": ""}}]),
    "optional-map": pod(volumes=[{"name": "v", "configMap": {"name": "m", "optional": False, "items": []}}]),
    "projected": pod(volumes=[{"name": "v", "projected": {"sources": []}}]),
    "stdin": contained(stdin=False, tty=True, stdinOnce=None),
    "context": contained(securityContext={"privileged": False, "capabilities": {"add": [], "drop": ["ALL"]}}),
    "status-of-client": (PODS, {"spec": {"containers": [C]}, "status": {"phase": "Running"}}),
    "port-0": (SERVICES, {"spec": {"ports": [{"port": 80, "targetPort": 0}]}}),
    "port-empty": (SERVICES, {"spec": {"ports": [{"port": 80, "targetPort": ""}]}}),
    "port-name": (SERVICES, {"spec": {"ports": [{"port": 80, "targetPort": "http", "nodePort": 0}]}}),
    "not-published": (SERVICES, {"spec": {"ports": [{"port": 80}], "publishNotReadyAddresses": False, "selector": {}}}),
    "no-rules": (ROLES, {}),
    "empty-rules": (ROLES, {"rules": []}),
    "rule-of-nothing": (
        ROLES,
        {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": []}]},
    ),
    "slice-of-nothing": (SLICES, {"addressType": "IPv4", "endpoints": []}),
    "slice-of-nulls": (SLICES, {"addressType": "IPv4", "endpoints": None, "ports": None}),
    "not-ready": (
        SLICES,
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}]},
    ),
    "lease-in-another-zone": (
        LEASES,
        {"spec": {"renewTime": "2026-01-01T01:00:00.500000+01:00", "holderIdentity": ""}},
    ),
    "job-of-zeros": (
        JOBS,
        {
            "spec": {
                "template": {"spec": {"containers": [C], "restartPolicy": "Never"}},
                "backoffLimit": 0,
                "parallelism": 0,
            }
        },
    ),
    "empty-secret": (SECRETS, {"data": {"k": ""}, "stringData": {}, "type": ""}),
    "null-value": (SECRETS, {"data": {"k": None}}),
    "account": (ACCOUNTS, {"secrets": [], "imagePullSecrets": [{"name": ""}], "automountServiceAccountToken": False}),
    "quota": (QUOTAS, {"spec": {"hard": {}, "scopes": []}}),
    "quantities": (QUOTAS, {"spec": {"hard": {"cpu": "1000m", "memory": "1024Ki", "pods": "1e1"}}}),
}


@variants("case", WRITTEN)
async def test_zero_values_are_written_as_go_writes_them(api: Conversation, case: tuple[str, dict[str, Any]]) -> None:
    path, content = case
    obj = content | {"metadata": {"name": "a"} | content.get("metadata", {})}
    answer = await api("POST", path, obj)
    assert answer.status in (201, 400, 422)


@pytest.mark.parametrize(
    "path", [PODS, DEPLOYMENTS, SERVICES, CONFIGMAPS], ids=["pods", "deployments", "services", "maps"]
)
async def test_reordered_or_empty_fields_are_no_change(api: Conversation, path: str) -> None:
    contents: dict[str, dict[str, Any]] = {
        PODS: {"spec": {"containers": [C]}},
        DEPLOYMENTS: {"spec": WORK},
        SERVICES: {"spec": {"ports": [{"port": 80}]}},
        CONFIGMAPS: {"data": {"k": "v", "a": "b"}},
    }
    made = await api.create(path, {"metadata": {"name": "a"}, **contents[path]})
    turned = _turned(made) | {"metadata": _turned(made["metadata"]) | {"labels": {}, "finalizers": []}}
    answer = await api("PUT", f"{path}/a", turned)
    assert answer.metadata["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_fields_are_written_in_kind_order(api: Conversation) -> None:
    spec = {"restartPolicy": "Never", "containers": [{"env": [{"value": "v", "name": "n"}], "image": "i", "name": "c"}]}
    await api.create(PODS, {"spec": spec, "metadata": {"labels": LABELS, "name": "a"}})
    answer = await api("GET", f"{PODS}/a", as_text=True)
    assert answer.body.index('"containers"') < answer.body.index('"restartPolicy"')


def _turned(value: Any) -> Any:
    match value:
        case dict():
            return {name: _turned(field) for name, field in reversed(value.items())}
        case list():
            return [_turned(item) for item in value]
    return value
