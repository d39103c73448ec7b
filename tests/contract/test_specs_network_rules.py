"""Validation of ingresses, ingress classes and network policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import dry_run_creates, dry_run_updates, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Object

NETWORKING = "/apis/networking.k8s.io/v1"
INGRESSES = f"{NETWORKING}/namespaces/{{ns}}/ingresses"
CLASSES = f"{NETWORKING}/ingressclasses"
POLICIES = f"{NETWORKING}/namespaces/{{ns}}/networkpolicies"
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def ingress(**spec: Any) -> Object:
    return {"spec": {"defaultBackend": BACKEND} | spec}


def rule(host: str = "", **path: Any) -> Object:
    ruled: dict[str, Any] = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND} | path]}}
    return {"spec": {"rules": [ruled | ({"host": host} if host else {})]}}


def served(**service: Any) -> Object:
    return ingress(defaultBackend={"service": {"name": "s", "port": {"number": 80}} | service})


def policy(**spec: Any) -> Object:
    return {"spec": {"podSelector": {}} | spec}


def port(**fields: Any) -> Object:
    return policy(ingress=[{"ports": [fields]}])


def peer(**fields: Any) -> Object:
    return policy(egress=[{"to": [fields]}])


def classed(controller: str = "example.com/c", **parameters: Any) -> Object:
    return {"spec": {"controller": controller} | ({"parameters": parameters} if parameters else {})}


WRONG: dict[str, tuple[str, list[Object]]] = {
    "ingresses": (
        INGRESSES,
        [
            {},
            {"spec": {}},
            ingress(ingressClassName="a_b"),
            ingress(ingressClassName=""),
            {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}} | ingress(ingressClassName="b"),
            {"spec": {"rules": [{"http": {"paths": []}}]}},
            {"spec": {"rules": [{"host": "a.b", "http": {}}]}},
            ingress(tls=[{"hosts": ["a_b", "*", "*.a.b", "a.*.b"]}]),
            ingress(tls=[{"secretName": "a_b"}]),
            {"metadata": {"name": "a_b"}} | ingress(),
        ],
    ),
    "backends": (
        INGRESSES,
        [
            ingress(defaultBackend={}),
            ingress(defaultBackend=BACKEND | {"resource": {"kind": "K", "name": "n"}}),
            ingress(defaultBackend={"resource": {}}),
            ingress(defaultBackend={"resource": {"apiGroup": "a_b", "kind": "a/b", "name": ".."}}),
            served(name=""),
            served(name="A"),
            served(name="a.b"),
            served(port={}),
            served(port={"name": "a", "number": 80}),
            served(port={"name": "A_b"}),
            served(port={"number": 70000}),
            rule(backend={}),
        ],
    ),
    "paths": (
        INGRESSES,
        [
            rule(pathType=None),
            rule(pathType="Regex"),
            rule(path="a"),
            rule(path=""),
            rule(path="//a"),
            rule(path="/a/../b/./c/.."),
            rule(path="/a%2fb", pathType="Exact"),
            rule(path="a", pathType="ImplementationSpecific"),
        ],
    ),
    "hosts": (
        INGRESSES,
        [
            rule("A.b"),
            rule("1.2.3.4"),
            rule("*"),
            rule("*.*.a"),
            rule("a.*"),
            rule("example.com:80"),
            rule("a" * 254),
        ],
    ),
    "classes": (
        CLASSES,
        [
            {},
            {"spec": {}},
            classed("c"),
            classed("example.com/"),
            classed("a_b/c"),
            classed("example.com/a b"),
            classed(f"example.com/{'a' * 250}"),
            classed(apiGroup="a"),
            classed(kind="K", name="n", namespace="a"),
            classed(kind="K", name="n", scope="Namespace"),
            classed(kind="K", name="n", scope="Namespace", namespace="a_b"),
            classed(kind="a/b", name="%", scope="x"),
        ],
    ),
    "policies": (
        POLICIES,
        [
            policy(podSelector={"matchLabels": {"a b": "c"}}),
            policy(podSelector={"matchLabels": {"a": "b c"}}),
            policy(podSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            policy(podSelector={"matchExpressions": [{"key": "a", "operator": "x"}]}),
            policy(podSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
            policy(policyTypes=["ingress"]),
            policy(policyTypes=["Ingress", "Egress", "Ingress"]),
        ],
    ),
    "ports": (
        POLICIES,
        [
            port(port=0),
            port(port=70000),
            port(port="A_b"),
            port(port=""),
            port(protocol="x", port=80),
            port(endPort=80),
            port(port="a", endPort=80),
            port(port=80, endPort=79),
            port(port=80, endPort=70000),
            policy(egress=[{"ports": [{"port": -1}]}]),
        ],
    ),
    "peers": (
        POLICIES,
        [
            peer(),
            peer(ipBlock={}),
            peer(ipBlock={"cidr": "x"}),
            peer(ipBlock={"cidr": "10.0.0.1/8"}),
            peer(ipBlock={"cidr": "10.0.0.1"}),
            peer(ipBlock={"cidr": "010.0.0.0/8"}),
            peer(ipBlock={"cidr": "::ffff:10.0.0.0/104"}),
            peer(ipBlock={"cidr": "10.0.0.0/8", "except": ["x"]}),
            peer(ipBlock={"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.0.0.0/8", "fd00::/64"]}),
            peer(ipBlock={"cidr": "10.0.0.0/8"}, podSelector={}),
            peer(namespaceSelector={"matchLabels": {"a": "b c"}}),
            policy(ingress=[{"from": [{}]}]),
        ],
    ),
}


@variants("case", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {422}


RIGHT: dict[str, tuple[str, list[Object]]] = {
    "ingresses": (
        INGRESSES,
        [
            ingress(),
            rule("*.example.com", pathType="ImplementationSpecific", path=""),
            rule("example.com", pathType="Exact", path="/a/"),
            served(name="1a", port={"name": "web"}),
            {"spec": {"rules": [{"host": "a.b"}], "ingressClassName": "c"}},
            ingress(defaultBackend={"resource": {"apiGroup": "a.b", "kind": "K", "name": "n"}}),
            ingress(tls=[{"hosts": ["a.b", "*.c.d"], "secretName": "s"}, {}]),
            {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}} | ingress(),
        ],
    ),
    "classes": (
        CLASSES,
        [classed(), classed(kind="K", name="n"), classed(kind="K", name="n", scope="Namespace", namespace="a")],
    ),
    "policies": (
        POLICIES,
        [
            {},
            policy(),
            policy(policyTypes=["Egress"]),
            policy(egress=[{}], ingress=[]),
            port(port="web", protocol="SCTP"),
            port(port=80, endPort=90),
            port(),
            peer(ipBlock={"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}),
            peer(ipBlock={"cidr": "FD00::/64"}),
            peer(podSelector={}, namespaceSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
        ],
    ),
}


@variants("case", RIGHT)
async def test_valid_objects_are_accepted(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {201}


async def test_ingress_updates_are_validated(api: Conversation) -> None:
    changes = [
        rule("a.b"),
        {"spec": {}},
        {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}} | ingress(ingressClassName="b"),
    ]
    assert await dry_run_updates(api, INGRESSES, ingress(), changes) == [200, 422, 200]


async def test_ingress_class_controller_is_immutable(api: Conversation) -> None:
    made = await api.create(CLASSES, {"metadata": {"name": api.namespace}} | classed())
    changes = [classed("example.com/d"), classed("x"), classed(kind="K", name="n")]
    try:
        answers = [
            await api("PUT", f"{CLASSES}/{api.namespace}?dryRun=All", {"metadata": made["metadata"]} | each)
            for each in changes
        ]
    finally:
        await api("DELETE", f"{CLASSES}/{api.namespace}", recorded=False)
    assert [answer.status for answer in answers] == [422, 422, 200]


async def test_network_policy_updates_are_validated(api: Conversation) -> None:
    changes = [policy(policyTypes=["Egress"]), peer(ipBlock={"cidr": "FD00::/64"}), port(port=0)]
    assert await dry_run_updates(api, POLICIES, policy(), changes) == [200, 200, 422]


POINTS: dict[str, list[dict[str, Any]]] = {
    "right": [{"ip": "1.2.3.4", "ports": [{"port": 80, "protocol": "TCP"}]}, {"hostname": "a.b"}],
    "wrong": [{"ip": "x"}, {"hostname": "a_b"}, {"hostname": "1.2.3.4"}],
}


@variants("points", POINTS)
async def test_ingress_status_is_validated(api: Conversation, points: list[dict[str, Any]]) -> None:
    await api.create(INGRESSES, manifest(ingress()))
    status = {"status": {"loadBalancer": {"ingress": points}}}
    answer = await api("PATCH", f"{INGRESSES}/a/status", status, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)
