"""Validation of nodes, namespaces, quotas and limit ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import dry_run_creates, dry_run_updates, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Object

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
QUOTAS = "/api/v1/namespaces/{ns}/resourcequotas"
LIMITS = "/api/v1/namespaces/{ns}/limitranges"
TAINT = {"key": "a", "effect": "NoSchedule"}


def node(**spec: Any) -> Object:
    return {"spec": spec}


def with_status(**status: Any) -> Object:
    return {"status": status}


def quota(*scopes: str, **hard: str) -> Object:
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"spec": {"hard": named} | ({"scopes": list(scopes)} if scopes else {})}


def selected(scope: str, operator: str, *values: str, **hard: str) -> Object:
    expression: dict[str, Any] = {"scopeName": scope, "operator": operator}
    return {
        "spec": {
            "hard": hard or {"pods": "1"},
            "scopeSelector": {"matchExpressions": [expression | ({"values": list(values)} if values else {})]},
        }
    }


def limit(kind: str = "Container", **fields: Any) -> Object:
    return {"spec": {"limits": [{"type": kind} | fields]}}


def cpu(**fields: str) -> Object:
    return {"spec": {"limits": [{"type": "Container"} | {name: {"cpu": amount} for name, amount in fields.items()}]}}


WRONG: dict[str, tuple[str, list[Object]]] = {
    "nodes": (
        NODES,
        [
            node(taints=[{"key": "a b", "effect": "NoSchedule"}]),
            node(taints=[{"key": "", "effect": "NoSchedule"}]),
            node(taints=[TAINT | {"value": "a b"}]),
            node(taints=[{"key": "a"}]),
            node(taints=[{"key": "a", "effect": "Never"}]),
            node(taints=[TAINT, TAINT | {"value": "b"}]),
            node(podCIDRs=["x"], podCIDR="x"),
            node(podCIDR="10.0.0.1/24"),
            node(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24", "10.0.1.0/24"]),
            node(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24", "fd00::/64", "fd01::/64"]),
            {"metadata": {"name": "a_b"}},
            {"metadata": {"name": "A"}},
        ],
    ),
    "sizes-of-nodes": (
        NODES,
        [
            with_status(capacity={"cpu": "-1"}),
            with_status(allocatable={"memory": "-1Gi"}),
            with_status(capacity={"pods": "1.5"}),
            with_status(capacity={"example.com/gpu": "500m"}),
        ],
    ),
    "namespaces": (
        NAMESPACES,
        [
            {"metadata": {"name": "A"}},
            {"metadata": {"name": "a.b"}},
            {"metadata": {"name": "a_b"}},
            {"metadata": {"name": "a" * 64}},
            {"metadata": {"name": "a"}, "spec": {"finalizers": ["a b"]}},
            {"metadata": {"name": "a"}, "spec": {"finalizers": ["other"]}},
            {"metadata": {"name": "a", "finalizers": ["other"]}},
        ],
    ),
    "quotas": (
        QUOTAS,
        [
            quota(foo="1"),
            quota(storage="1"),
            {"spec": {"hard": {"a b": "1"}}},
            {"spec": {"hard": {"limits.example.com/gpu/x": "1"}}},
            quota(cpu="-1"),
            quota(pods="-1"),
            quota(pods="1.5"),
            quota(secrets="500m"),
            {"spec": {"hard": {"count/pods": "1.5"}}},
            {"spec": {"hard": {"example.com/gpu": "1.5"}}},
        ],
    ),
    "scopes": (
        QUOTAS,
        [
            quota("Sometimes", pods="1"),
            quota("BestEffort", cpu="1"),
            quota("Terminating", secrets="1"),
            quota("VolumeAttributesClass", pods="1"),
            quota("BestEffort", "NotBestEffort", pods="1"),
            quota("Terminating", "NotTerminating", pods="1"),
        ],
    ),
    "scope-selectors": (
        QUOTAS,
        [
            selected("Sometimes", "Exists"),
            selected("PriorityClass", "In"),
            selected("PriorityClass", "Exists", "a"),
            selected("PriorityClass", "Near", "a"),
            selected("PriorityClass", ""),
            selected("BestEffort", "In", "a"),
            selected("Terminating", "DoesNotExist"),
            selected("PriorityClass", "In", "a", secrets="1"),
        ],
    ),
    "types-of-limits": (
        LIMITS,
        [
            limit("Deployment"),
            limit(""),
            limit("a b"),
            {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}},
            limit("PersistentVolumeClaim"),
            limit("PersistentVolumeClaim", max={"cpu": "1"}),
            limit("Pod", default={"cpu": "1"}),
            limit("Pod", defaultRequest={"cpu": "1"}),
            limit(max={"storage": "1"}),
            limit(max={"foo": "1"}),
            limit(min={"a b": "1"}),
        ],
    ),
    "limits": (
        LIMITS,
        [
            cpu(min="2", max="1"),
            cpu(min="2", defaultRequest="1"),
            cpu(max="1", defaultRequest="2"),
            cpu(default="1", defaultRequest="2"),
            cpu(min="2", default="1"),
            cpu(max="1", default="2"),
            cpu(maxLimitRequestRatio="500m"),
            cpu(min="1", max="2", maxLimitRequestRatio="3"),
            cpu(min="300m", max="1", maxLimitRequestRatio="4"),
            limit(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "1"}),
            limit(default={"hugepages-2Mi": "4Mi"}, defaultRequest={"hugepages-2Mi": "2Mi"}),
        ],
    ),
}


@variants("case", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {422}


RIGHT: dict[str, tuple[str, list[Object]]] = {
    "nodes": (
        NODES,
        [
            {},
            node(podCIDR="10.0.0.0/24", providerID="p://1", unschedulable=True, taints=[TAINT | {"value": "b"}]),
            node(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24", "FD00::/64"]),
            node(taints=[TAINT, {"key": "a", "effect": "NoExecute", "timeAdded": "2024-05-01T10:00:00Z"}]),
            with_status(
                capacity={"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "1"},
                allocatable={"cpu": "3500m"},
                addresses=[{"type": "InternalIP", "address": "10.0.0.1"}],
                conditions=[{"type": "Ready", "status": "True"}],
            ),
        ],
    ),
    "namespaces": (
        NAMESPACES,
        [{}, {"metadata": {"name": "1a"}}, {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/mine"]}}],
    ),
    "quotas": (
        QUOTAS,
        [
            {},
            quota(cpu="1", requests_cpu="500m", limits_memory="1Gi", pods="10", services_nodeports="0"),
            {
                "spec": {
                    "hard": {"count/deployments.apps": "5", "requests.example.com/gpu": "1", "hugepages-2Mi": "4Mi"}
                }
            },
            {"spec": {"hard": {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}}},
            quota("BestEffort", pods="1"),
            quota("NotTerminating", "NotBestEffort", cpu="1"),
            selected("PriorityClass", "In", "high"),
            selected("CrossNamespacePodAffinity", "Exists"),
        ],
    ),
    "limits": (
        LIMITS,
        [
            {},
            cpu(min="100m", max="2", default="1", defaultRequest="500m", maxLimitRequestRatio="4"),
            limit("Pod", max={"cpu": "4", "memory": "8Gi"}),
            limit("PersistentVolumeClaim", min={"storage": "1Gi"}),
            limit("example.com/Own", max={"example.com/things": "1"}),
        ],
    ),
}


@variants("case", RIGHT)
async def test_valid_objects_are_accepted(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {201}


async def test_node_addressing_is_immutable(api: Conversation) -> None:
    old = node(podCIDR="10.0.0.0/24", providerID="p://1", taints=[TAINT])
    changes = [
        node(podCIDR="10.0.1.0/24", providerID="p://1"),
        node(podCIDR="10.0.0.0/24", podCIDRs=["10.0.0.0/24", "fd00::/64"], providerID="p://1"),
        node(podCIDR="10.0.0.0/24"),
        node(podCIDR="10.0.0.0/24", providerID="p://2"),
        node(podCIDR="10.0.0.0/24", providerID="p://1", taints=[{"key": "a", "effect": "Never"}]),
        node(podCIDR="10.0.0.0/24", providerID="p://1", externalID="x"),
        node(podCIDR="10.0.0.0/24", providerID="p://1", unschedulable=True),
    ]
    named = [each | {"metadata": {"name": api.namespace}} for each in (old, *changes)]
    try:
        statuses = await dry_run_updates(api, NODES, named[0], named[1:])
    finally:
        await api("DELETE", f"{NODES}/{api.namespace}", recorded=False)
    assert statuses == [422, 422, 422, 422, 422, 422, 200]


async def test_node_status_is_validated(api: Conversation) -> None:
    await api.create(NODES, {"metadata": {"name": api.namespace}})
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    changes = [{"capacity": {"cpu": "-1"}}, {"addresses": [address, address]}, {"capacity": {"cpu": "4"}}]
    try:
        answers = [
            await api("PATCH", f"{NODES}/{api.namespace}/status?dryRun=All", {"status": each}, content_type=MERGE_PATCH)
            for each in changes
        ]
    finally:
        await api("DELETE", f"{NODES}/{api.namespace}", recorded=False)
    assert [answer.status for answer in answers] == [422, 422, 200]


async def test_quota_scopes_are_immutable(api: Conversation) -> None:
    old = quota("BestEffort", pods="1")
    changes = [
        quota(pods="1"),
        quota("Terminating", pods="1"),
        quota("BestEffort", pods="2"),
        quota("BestEffort", x="1"),
    ]
    assert await dry_run_updates(api, QUOTAS, old, changes) == [422, 422, 200, 422]


async def test_quota_status_is_validated(api: Conversation) -> None:
    await api.create(QUOTAS, manifest(quota(pods="1")))
    changes = [{"hard": {"pods": "1"}, "used": {"pods": "0"}}, {"used": {"foo": "1"}}, {"hard": {"pods": "-1"}}]
    answers = [
        await api("PATCH", f"{QUOTAS}/a/status?dryRun=All", {"status": each}, content_type=MERGE_PATCH)
        for each in changes
    ]
    assert [answer.status for answer in answers] == [200, 422, 422]


async def test_limit_range_updates_are_validated(api: Conversation) -> None:
    assert await dry_run_updates(api, LIMITS, cpu(max="1"), [cpu(max="2"), cpu(min="2", max="1")]) == [200, 422]


async def test_namespace_phase_must_match_deletion(api: Conversation) -> None:
    where = "/api/v1/namespaces/{ns}/status?dryRun=All"
    answers = [
        await api("PATCH", where, {"status": {"phase": phase}}, content_type=MERGE_PATCH)
        for phase in ("Terminating", "Active", "Sometimes")
    ]
    assert [answer.status for answer in answers] == [422, 200, 422]
