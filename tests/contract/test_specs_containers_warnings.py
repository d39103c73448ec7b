"""Warnings about pods and pod templates, and validation of templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import DEPLOYMENTS, PODS
from tests.contract.tables import variants
from tests.contract.variations import variant_statuses, with_changes

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

ONE, FIRST = "spec.containers.0", "spec.initContainers.0"
SPEC = {"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "e", "image": "i"}]}
POD = {"metadata": {"name": "a"}, "spec": SPEC}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
SELECTING = {"metadata": {"name": "a.b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
JOB = {"template": {"spec": SPEC | {"restartPolicy": "Never"}}}
APPS = "/apis/apps/v1/namespaces/{ns}"
BATCH = "/apis/batch/v1/namespaces/{ns}"
CORE = "/api/v1/namespaces/{ns}"
OLD = "beta.kubernetes.io/os"
EXPRESSION = {"key": OLD, "operator": "In", "values": ["a b"]}
HALF = {"memory": "1500m", "ephemeral-storage": "0.5"}


def ports(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.ports": list(found)}


def variables(*found: dict[str, Any]) -> Changes:
    return {f"{ONE}.env": list(found)}


WARNED: dict[str, list[Changes]] = {
    "names": [{"metadata.name": "a.b"}, {"metadata.name": "a" * 64}],
    "ports": [
        ports({"containerPort": 80}, {"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}),
        ports({"containerPort": 80, "hostPort": 80}, {"containerPort": 80}),
        ports({"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 80, "hostIP": "192.0.2.1"}),
        ports({"containerPort": 80, "hostIP": "192.0.2.1"}),
        ports({"containerPort": 80, "hostIP": "192.0.2.1", "name": "a", "protocol": "SCTP"}),
        {**ports({"containerPort": 80, "name": "a"}), f"{FIRST}.ports": [{"containerPort": 81, "name": "a"}]},
        {**ports({"containerPort": 80}), f"{FIRST}.ports": [{"containerPort": 80}]},
    ],
    "variables": [
        variables({"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}),
        variables({"name": "A", "value": "1"}, {"name": "A", "value": "$(A)"}),
        variables({"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A"}),
        variables({"name": "A"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    ],
    "fractions": [
        {f"{ONE}.resources": {"requests": HALF, "limits": HALF}},
        {f"{FIRST}.resources": {"requests": HALF}},
    ],
    "annotations": [
        {"metadata.annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
        {"metadata.annotations": {"security.alpha.kubernetes.io/sysctls": "a=b"}},
        {"metadata.annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}},
        {"metadata.annotations": {"container.seccomp.security.alpha.kubernetes.io/c": "unconfined"}},
    ],
    "placement": [
        {"spec.nodeSelector": {OLD: "linux"}},
        {
            "spec.affinity.nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [EXPRESSION | {"values": ["a"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [EXPRESSION]}}
                ],
            }
        },
        {
            f"spec.affinity.{kind}": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}
                ],
            }
            for kind in ("podAffinity", "podAntiAffinity")
        },
        {
            "spec.topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "failure-domain.beta.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                }
            ]
        },
    ],
    "doubles": [
        {"spec.hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}, {"ip": "192.0.2.1", "hostnames": ["b"]}]},
        {"spec.hostAliases": [{"ip": "2001:db8::0:1", "hostnames": ["a"]}]},
        {"spec.dnsConfig": {"nameservers": ["2001:DB8::1"]}},
        {"spec.imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
    ],
    "volumes": [
        {"spec.volumes": [{"name": "v", "flocker": {"datasetName": "a"}}]},
        {"spec.volumes": [{"name": "v", "storageos": {"volumeName": "a"}}]},
        {"spec.volumes": [{"name": "v", "gitRepo": {"repository": "a"}}, {"name": "w", "cephfs": {"monitors": ["a"]}}]},
    ],
}
MAKING: dict[str, tuple[str, dict[str, Any]]] = {
    "deployment": (DEPLOYMENTS, SELECTING),
    "replica_set": (f"{APPS}/replicasets", SELECTING),
    "daemon_set": (f"{APPS}/daemonsets", SELECTING),
    "stateful_set": (f"{APPS}/statefulsets", with_changes(SELECTING, {"metadata.name": "a", "spec.serviceName": "s"})),
    "controller": (f"{CORE}/replicationcontrollers", {"metadata": {"name": "a.b"}, "spec": {"template": TEMPLATE}}),
    "job": (f"{BATCH}/jobs", {"metadata": {"name": "a.b"}, "spec": JOB}),
    "cron_job": (
        f"{BATCH}/cronjobs",
        {"metadata": {"name": "a.b"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": JOB}}},
    ),
    "pod_template": (f"{CORE}/podtemplates", {"metadata": {"name": "a.b"}, "template": TEMPLATE}),
}


@variants("warned", WARNED)
async def test_questionable_pods_return_warnings(api: Conversation, warned: list[Changes]) -> None:
    assert await variant_statuses(api, PODS, POD, warned) == {201}


@variants("made", MAKING)
async def test_questionable_templates_return_warnings(api: Conversation, made: tuple[str, dict[str, Any]]) -> None:
    path, right = made
    at = "template" if "template" in right else "spec.template"
    at = "spec.jobTemplate.spec.template" if "jobTemplate" in right.get("spec", {}) else at
    containers = f"{at}.spec.containers.0"

    doubled = {f"{containers}.ports": [{"containerPort": 80}] * 2, f"{at}.spec.nodeSelector": {OLD: "linux"}}

    assert await variant_statuses(api, path, right, [doubled, {f"{containers}.image": " i"}]) == {201}


@variants("made", MAKING)
async def test_containers_of_templates_are_validated(api: Conversation, made: tuple[str, dict[str, Any]]) -> None:
    path, right = made
    at = "template" if "template" in right else "spec.template"
    at = "spec.jobTemplate.spec.template" if "jobTemplate" in right.get("spec", {}) else at
    wrong = {
        f"{at}.spec.containers.0.name": "C",
        f"{at}.spec.containers.0.ports": [{"containerPort": 0}],
        f"{at}.spec.initContainers.0.livenessProbe": {},
        f"{at}.spec.initContainers.0.volumeMounts": [{"name": "x", "mountPath": "/x"}],
    }

    assert await variant_statuses(api, path, right, [wrong]) == {422}
