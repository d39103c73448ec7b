"""Table rows of services, endpoints and ingresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import SERVICES
from tests.contract.rows import Case, row_of
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
NETWORKING = "/apis/networking.k8s.io/v1"

HTTP = {"port": 80, "name": "http"}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
SELECTOR = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["t", "s"]},
        {"key": "q", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "r", "operator": "NotIn", "values": ["z"]},
    ],
}


def rules(*hosts: str) -> list[dict[str, Any]]:
    paths = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
    return [paths | ({"host": host} if host else {}) for host in hosts]


NETWORK: dict[str, Case] = {
    "service-of-nothing": (SERVICES, {"spec": {"ports": [HTTP]}}, {}),
    "headless": (SERVICES, {"spec": {"clusterIP": "None", "selector": {"b": "1", "a": "2"}}}, {}),
    "node-port": (
        SERVICES,
        {
            "spec": {
                "type": "NodePort",
                "externalIPs": ["10.1.1.1"],
                "ports": [
                    HTTP | {"nodePort": 30801},
                    {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30802},
                ],
            }
        },
        {},
    ),
    "external-name": (SERVICES, {"spec": {"type": "ExternalName", "externalName": "db.example.com"}}, {}),
    "balancer-pending": (
        SERVICES,
        {"spec": {"type": "LoadBalancer", "ports": [HTTP | {"nodePort": 30803}]}},
        {},
    ),
    "balancer": (
        SERVICES,
        {"spec": {"type": "LoadBalancer", "externalIPs": ["10.1.1.1"], "ports": [HTTP | {"nodePort": 30804}]}},
        {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}, {"ip": "10.9.9.9"}]}},
    ),
    "endpoints": (
        "/api/v1/namespaces/{ns}/endpoints",
        {
            "subsets": [
                {
                    "addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}],
                    "ports": [HTTP, {"name": "b", "port": 81}],
                },
                {"addresses": [{"ip": "10.0.0.3"}]},
            ]
        },
        {},
    ),
    "endpoints-not-ready": (
        "/api/v1/namespaces/{ns}/endpoints",
        {"subsets": [{"notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80}]}]},
        {},
    ),
    "slice": (
        SLICES,
        {
            "addressType": "IPv4",
            "ports": [
                {"name": "a", "port": 80},
                {"name": "b", "port": 81},
                {"name": "c", "port": 82},
                {"name": "d", "port": 83},
            ],
            "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(1, 6)],
        },
        {},
    ),
    "slice-of-names": (
        SLICES,
        {"addressType": "FQDN", "ports": [{"name": "b"}], "endpoints": [{"addresses": ["a.example.com"]}]},
        {},
    ),
    "slice-of-nothing": (SLICES, {"addressType": "IPv6", "endpoints": []}, {}),
    "ingress": (
        INGRESSES,
        {
            "spec": {
                "ingressClassName": "nginx",
                "tls": [{"hosts": ["a.example.com"]}],
                "rules": rules("a.example.com", "", "b.example.com", "c.example.com", "d.example.com"),
            }
        },
        {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}, {"ip": "10.9.9.9"}]}},
    ),
    "ingress-of-three": (
        INGRESSES,
        {"spec": {"rules": rules("a.example.com", "b.example.com", "c.example.com")}},
        {"loadBalancer": {"ingress": [{"ip": "10.9.9.9"}, {"ip": "10.9.9.8"}]}},
    ),
    "ingress-of-any": (INGRESSES, {"spec": {"rules": rules("")}}, {}),
    "policy-of-everything": (f"{NETWORKING}/namespaces/{{ns}}/networkpolicies", {"spec": {"podSelector": {}}}, {}),
    "policy": (f"{NETWORKING}/namespaces/{{ns}}/networkpolicies", {"spec": {"podSelector": SELECTOR}}, {}),
    "class": (
        f"{NETWORKING}/ingressclasses",
        {
            "metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {
                "controller": "example.com/c",
                "parameters": {"apiGroup": "example.com", "kind": "Config", "name": "x"},
            },
        },
        {},
    ),
    "class-of-little": (
        f"{NETWORKING}/ingressclasses",
        {"spec": {"controller": "example.com/c"}},
        {},
    ),
}


@variants("case", NETWORK)
async def test_row_of_each_kind(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 3
