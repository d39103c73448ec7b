"""Validation of services; allocation of addresses and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.variations import dry_run_creates, dry_run_updates, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Object

SERVICES = "/api/v1/namespaces/{ns}/services"
PORT = {"port": 80}


def service(*ports: dict[str, Any], **spec: Any) -> Object:
    return {"spec": {"ports": list(ports) or [PORT]} | spec}


def annotated(annotations: dict[str, str], **spec: Any) -> Object:
    return service(**spec) | {"metadata": {"annotations": annotations}}


def balancer(*ports: dict[str, Any], **spec: Any) -> Object:
    return service(*ports, type="LoadBalancer", **spec)


WRONG: dict[str, list[Object]] = {
    "ports": [
        {"spec": {}},
        {"spec": {"ports": []}},
        {"spec": {"selector": {"a": "b"}, "type": "NodePort"}},
        service({}),
        service({"port": 0}),
        service({"port": 70000}),
        service({"port": -1}),
        service({"port": 80, "protocol": "HTTP"}),
        service({"port": 80, "protocol": "tcp"}),
        service({"port": 80, "appProtocol": "not one"}),
        service({"port": 80, "appProtocol": ""}),
    ],
    "names-of-ports": [
        service({"port": 80}, {"port": 81}),
        service({"port": 80, "name": "a"}, {"port": 81}),
        service({"port": 80, "name": "a"}, {"port": 81, "name": "a"}),
        service({"port": 80, "name": "A_b"}),
        service({"port": 80, "name": "a.b"}),
        service({"port": 80, "name": "a" * 64}),
        service({"port": 80, "name": "a"}, {"port": 80, "name": "b"}),
        service({"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "TCP", "targetPort": 3}),
    ],
    "target-ports": [
        service({"port": 80, "targetPort": 70000}),
        service({"port": 80, "targetPort": -1}),
        service({"port": 80, "targetPort": "Web"}),
        service({"port": 80, "targetPort": "longer-than-fifteen"}),
        service({"port": 80, "targetPort": "1234"}),
        service({"port": 80, "targetPort": "a--b"}),
        service({"port": 80, "targetPort": "-a-"}),
    ],
    "type": [
        service(type="Internal"),
        service(type="clusterip"),
        service(type="ExternalName"),
        service(type="ExternalName", externalName="a_b"),
        service(type="ExternalName", externalName="."),
        service(type="ExternalName", externalName="example.com", clusterIP="10.0.0.77"),
        service(type="ExternalName", externalName="example.com", clusterIP="None"),
        service(type="ExternalName", externalName="example.com", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack"),
        service(type="ExternalName", externalName="example.com", externalTrafficPolicy="Local"),
        service(type="NodePort", clusterIP="None"),
        balancer(clusterIP="None"),
    ],
    "addresses": [
        service(clusterIP="x"),
        service(clusterIP="1.2.3"),
        service(clusterIP="none"),
        service(clusterIP="010.0.0.5"),
        service(clusterIPs=["10.0.0.77"]),
        service(clusterIP="10.0.0.77", clusterIPs=["10.0.0.78"]),
        service(clusterIP="10.0.0.77", clusterIPs=["10.0.0.77", "10.0.0.78"]),
        service(clusterIP="10.0.0.77", clusterIPs=["10.0.0.77", "fd00::1", "fd00::2"]),
        service(clusterIP="10.0.0.77", clusterIPs=["10.0.0.77", "fd00::1"]),
        service(clusterIP="None", clusterIPs=["None", "10.0.0.77"]),
        service(clusterIP="fd00::1"),
    ],
    "families": [
        service(ipFamilies=["IPv5"]),
        service(ipFamilies=["IPv4", "IPv4"]),
        service(ipFamilies=["IPv6"]),
        service(ipFamilies=["IPv4", "IPv6"]),
        service(ipFamilyPolicy="Dual"),
        service(ipFamilyPolicy="RequireDualStack"),
        service(ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"]),
        service(ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"]),
        service(clusterIP="10.0.0.77", ipFamilies=["IPv6"]),
        service(clusterIP="None", selector={"a": "b"}, ipFamilies=["IPv6"]),
    ],
    "affinity": [
        service(sessionAffinity="Cookie"),
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 86401}}),
    ],
    "traffic": [
        service(externalTrafficPolicy="Local"),
        service(externalTrafficPolicy="Near"),
        service(type="NodePort", externalTrafficPolicy="Near"),
        service(internalTrafficPolicy="Near"),
        service(trafficDistribution="Near"),
        service(healthCheckNodePort=30090),
        service(type="NodePort", externalTrafficPolicy="Local", healthCheckNodePort=30090),
        balancer(externalTrafficPolicy="Cluster", healthCheckNodePort=30090),
    ],
    "load-balancers": [
        service(loadBalancerClass="example.com/one"),
        service(loadBalancerSourceRanges=["10.0.0.0/8"]),
        service(allocateLoadBalancerNodePorts=True),
        balancer(loadBalancerClass="not one"),
        balancer(loadBalancerSourceRanges=["10.0.0.0", "x/8", "10.0.0.1/8", " 10.0.0.0/8 "]),
        annotated({"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8"}),
        annotated({"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, x"}, type="LoadBalancer"),
        annotated({"service.kubernetes.io/topology-mode": "Auto", "service.kubernetes.io/topology-aware-hints": "x"}),
    ],
    "others": [
        service(selector={"a b": "c"}),
        service(selector={"a": "b c"}),
        service(externalIPs=["x"]),
        service(externalIPs=["0.0.0.0"]),
        service(externalIPs=["127.0.0.1", "169.254.1.1", "224.0.0.1", "::1"]),
        service(externalIPs=["010.1.1.1", "::ffff:1.2.3.4"]),
        service() | {"metadata": {"name": "A"}},
        service() | {"metadata": {"name": "a.b"}},
        service() | {"metadata": {"name": "a" * 64}},
    ],
}


@variants("wrong", WRONG)
async def test_invalid_services_are_refused(api: Conversation, wrong: list[Object]) -> None:
    assert set(await dry_run_creates(api, SERVICES, wrong)) == {422}


RIGHT = [
    service(),
    service() | {"metadata": {"name": "1a"}},
    service(
        {"name": "a", "port": 53, "protocol": "UDP", "targetPort": "dns"},
        {"name": "b", "port": 53, "protocol": "TCP", "targetPort": ""},
        {"name": "c", "port": 53, "protocol": "SCTP", "targetPort": 0},
        {"name": "d", "port": 54, "appProtocol": "kubernetes.io/h2c"},
    ),
    service(
        sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 86400}}, selector={"a": "b"}
    ),
    service(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}}),
    service(clusterIP="None", publishNotReadyAddresses=True),
    {"spec": {"clusterIP": "None", "selector": {"a": "b"}}},
    {"spec": {"clusterIP": "None", "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"}},
    service(clusterIP="None", externalIPs=["1.2.3.4"], sessionAffinity="ClientIP", loadBalancerIP="1.2.3.4"),
    {"spec": {"type": "ExternalName", "externalName": "example.com."}},
    service(type="ExternalName", externalName="1.2.3.4", externalIPs=["1.2.3.4"], selector={"a": "b"}),
    service({"port": 80, "nodePort": 30080}, type="ExternalName", externalName="example.com"),
    service(ipFamilyPolicy="PreferDualStack"),
    service(externalName="example.com", trafficDistribution="PreferClose"),
    service(trafficDistribution="PreferSameNode", internalTrafficPolicy="Local"),
    service(externalIPs=["1.2.3.4", "FD00::1"], externalTrafficPolicy="Local"),
    annotated({"service.kubernetes.io/topology-aware-hints": "Auto"}),
    service({"port": 80, "nodePort": 80}, type="NodePort"),
]


async def test_valid_services_are_accepted(api: Conversation) -> None:
    assert set(await dry_run_creates(api, SERVICES, RIGHT)) == {201}


PORTS: dict[str, Object] = {
    "node-port": service(type="NodePort"),
    "one-for-two-protocols": service(
        {"port": 53, "name": "a"},
        {"port": 53, "name": "b", "protocol": "UDP"},
        {"port": 54, "name": "c"},
        type="NodePort",
    ),
    "balancer": balancer(),
    "local": balancer(externalTrafficPolicy="Local", loadBalancerClass="example.com/one", loadBalancerIP="1.2.3.4"),
    "none": balancer(allocateLoadBalancerNodePorts=False),
}


@variants("right", PORTS)
async def test_node_ports_are_allocated(api: Conversation, right: Object) -> None:
    answer = await api("POST", SERVICES, manifest(right), shown=_ranged)
    ports = [each.get("nodePort") for each in answer.body["spec"]["ports"]]
    assert all(port is None or 30000 <= port <= 32767 for port in ports)


def _ranged(service: Any) -> Any:
    """Return a service with placeholders for its node ports, which are allocated at random."""
    seen: dict[int, str] = {}
    spec = dict(service["spec"])
    spec["ports"] = [dict(port) for port in spec["ports"]]
    for holder in (spec, *spec["ports"]):
        for field in {"nodePort", "healthCheckNodePort"} & holder.keys():
            holder[field] = seen.setdefault(holder[field], f"<port {len(seen) + 1}>")
    return service | {"spec": spec}


ELSEWHERE = [
    service(clusterIP="1.2.3.4"),
    service({"port": 80, "nodePort": 80}, type="NodePort"),
    service({"port": 80, "nodePort": 32768}, type="NodePort"),
    service({"port": 80, "nodePort": -1}, type="NodePort"),
    service(
        {"port": 80, "name": "a", "nodePort": 30081}, {"port": 81, "name": "b", "nodePort": 30081}, type="NodePort"
    ),
    balancer(externalTrafficPolicy="Local", healthCheckNodePort=80),
]


async def test_invalid_addresses_and_ports_are_refused(api: Conversation) -> None:
    answers = [await api("POST", SERVICES, manifest(each)) for each in ELSEWHERE]
    assert [answer.status for answer in answers] == [422, 422, 422, 422, 422, 500]


async def test_allocated_port_and_address_are_not_given_twice(api: Conversation) -> None:
    first = await api.create(SERVICES, manifest(service({"port": 80}, type="NodePort")))
    port, address = first["spec"]["ports"][0]["nodePort"], first["spec"]["clusterIP"]
    taken = [
        await api("POST", SERVICES, manifest(each, "b"), shown=lambda body: _without(body, str(port)))
        for each in (service({"port": 80, "nodePort": port}, type="NodePort"), service(clusterIP=address))
    ]
    await api("DELETE", f"{SERVICES}/a", recorded=False)
    free = await api("POST", SERVICES, manifest(service(clusterIP=address), "b"))
    assert [*(each.status for each in taken), free.status] == [422, 422, 201]


def _without(body: Any, text: str) -> Any:
    match body:
        case dict():
            return {name: _without(value, text) for name, value in body.items()}
        case list():
            return [_without(value, text) for value in body]
        case str():
            return body.replace(text, "<port>")
    return body


async def test_cluster_ip_is_immutable(api: Conversation) -> None:
    changes = [
        service(clusterIP="10.0.0.99"),
        service(clusterIP="None"),
        service(clusterIPs=[]),
        service(clusterIP="", clusterIPs=[""]),
        service(ipFamilies=["IPv6"]),
        service(ipFamilyPolicy="RequireDualStack"),
        service(type="LoadBalancer", clusterIP="None"),
        service(clusterIP="x"),
        service(sessionAffinity="x"),
    ]
    statuses = await dry_run_updates(api, SERVICES, service(), changes)
    assert statuses == [422, 422, 200, 422, 422, 422, 422, 422, 422]


async def test_headless_service_stays_headless(api: Conversation) -> None:
    headless = {"spec": {"clusterIP": "None", "selector": {"a": "b"}}}
    changes = [
        {"spec": {"selector": {"a": "c"}}},
        service(clusterIP="10.0.0.99"),
        service(clusterIP="", selector={"a": "b"}),
    ]
    assert await dry_run_updates(api, SERVICES, headless, changes) == [200, 422, 200]


BECOMING: dict[str, tuple[Object, Object]] = {
    "external-name": (service(), {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    "cluster-ip-of-external-name": (
        {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        {"spec": {"type": "ClusterIP", "ports": [PORT]}},
    ),
    "node-port": (service(), {"spec": {"type": "NodePort"}}),
    "cluster-ip": (service(type="NodePort"), {"spec": {"type": "ClusterIP"}}),
    "cluster-ip-of-balancer": (
        balancer(loadBalancerClass="example.com/a", externalTrafficPolicy="Local"),
        {"spec": {"type": "ClusterIP"}},
    ),
    "cluster-ip-of-class": (balancer(loadBalancerClass="example.com/a"), {"spec": {"type": "ClusterIP"}}),
    "without-check": (balancer(externalTrafficPolicy="Local"), {"spec": {"externalTrafficPolicy": "Cluster"}}),
    "with-check": (balancer(), {"spec": {"externalTrafficPolicy": "Local"}}),
    "other-ports": (
        service(type="NodePort"),
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}},
    ),
    "another-class": (balancer(loadBalancerClass="example.com/a"), {"spec": {"loadBalancerClass": "example.com/b"}}),
    "another-check": (balancer(externalTrafficPolicy="Local"), {"spec": {"healthCheckNodePort": 32111}}),
}


@variants("case", BECOMING)
async def test_service_type_can_change(api: Conversation, case: tuple[Object, Object]) -> None:
    old, patch = case
    await api.create(SERVICES, manifest(old))
    answer = await api("PATCH", f"{SERVICES}/a", patch, content_type=MERGE_PATCH, shown=_shown_changed)
    assert answer.status in (200, 422)


def _shown_changed(body: Any) -> Any:
    return _ranged(body) if body["kind"] == "Service" and body["spec"].get("ports") else body


async def test_put_keeps_allocated_values(api: Conversation) -> None:
    made = await api.create(SERVICES, manifest(balancer(externalTrafficPolicy="Local")))
    answer = await api(
        "PUT", f"{SERVICES}/a", manifest(balancer({"port": 81}, externalTrafficPolicy="Local")), shown=_ranged
    )
    assert answer.body["spec"]["healthCheckNodePort"] == made["spec"]["healthCheckNodePort"]


INGRESS: dict[str, list[dict[str, Any]]] = {
    "right": [{"ip": "1.2.3.4"}, {"hostname": "example.com"}, {"ip": "FD00::1", "ipMode": "Proxy"}],
    "address": [{"ip": "x"}],
    "mode": [{"ip": "1.2.3.4", "ipMode": "x"}],
    "mode-of-name": [{"hostname": "example.com", "ipMode": "VIP"}],
    "name": [{"hostname": "a_b"}, {"hostname": "1.2.3.4"}],
}


@variants("points", INGRESS)
async def test_load_balancer_status_is_validated(api: Conversation, points: list[dict[str, Any]]) -> None:
    await api.create(SERVICES, manifest(balancer(allocateLoadBalancerNodePorts=False)))
    status = {"status": {"loadBalancer": {"ingress": points}}}
    answer = await api("PATCH", f"{SERVICES}/a/status", status, content_type=MERGE_PATCH)
    assert answer.status in (200, 422)


async def test_only_load_balancers_have_ingress_status(api: Conversation) -> None:
    await api.create(SERVICES, manifest(service()))
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    answer = await api("PATCH", f"{SERVICES}/a/status", status, content_type=MERGE_PATCH)
    assert answer.status == 422
