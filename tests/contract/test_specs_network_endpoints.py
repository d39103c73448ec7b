"""Validation of endpoints, endpoint slices, service CIDRs and IP addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.tables import variants
from tests.contract.variations import dry_run_creates, dry_run_updates, manifest

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Object

ENDPOINTS = "/api/v1/namespaces/{ns}/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
IP = {"ip": "1.2.3.4"}


def endpoints(*addresses: dict[str, Any], ports: tuple[dict[str, Any], ...] = (), **subset: Any) -> Object:
    return {"subsets": [{"addresses": list(addresses) or [IP], "ports": list(ports)} | subset]}


def sliced(*addresses: str, kind: str = "IPv4", ports: tuple[dict[str, Any], ...] = (), **endpoint: Any) -> Object:
    found = {"addresses": list(addresses) or ["1.2.3.4"]} | endpoint
    return {"addressType": kind, "ports": list(ports), "endpoints": [found]}


WRONG: dict[str, tuple[str, list[Object]]] = {
    "endpoints": (
        ENDPOINTS,
        [
            {"subsets": [{}]},
            {"subsets": [{"ports": [{"port": 80}]}]},
            endpoints({"ip": "x"}),
            endpoints({"ip": ""}),
            endpoints({"ip": "0.0.0.0"}, {"ip": "127.0.0.1"}, {"ip": "169.254.0.1"}, {"ip": "224.0.0.1"}),
            endpoints({"ip": "01.2.3.4"}),
            endpoints(IP | {"hostname": "a.b"}),
            endpoints(IP | {"nodeName": "a_b"}),
            endpoints(addresses=[], notReadyAddresses=[{"ip": "x"}]),
            endpoints(ports=({"port": 0}, {"port": 70000, "name": "A"})),
            endpoints(ports=({"port": 80, "protocol": "x", "appProtocol": "a b"},)),
        ],
    ),
    "slices": (
        SLICES,
        [
            {"endpoints": []},
            {"addressType": "ipv4", "endpoints": []},
            sliced(addresses=[]),
            sliced("x"),
            sliced("::1"),
            sliced("fd00::1"),
            sliced("1.2.3.4", kind="IPv6"),
            sliced("FD00::1", kind="IPv6"),
            sliced("", kind="FQDN"),
            sliced("a", kind="FQDN"),
            sliced("a_b.c", kind="FQDN"),
            sliced(*(["1.2.3.4"] * 101)),
        ],
    ),
    "ends-of-slices": (
        SLICES,
        [
            sliced(nodeName="a_b"),
            sliced(hostname="a.b"),
            sliced(hostname=""),
            sliced(hints={"forZones": [{"name": "a b"}]}),
            sliced(hints={"forZones": [{"name": "a"}, {"name": "a"}]}),
            sliced(hints={"forZones": [{"name": f"z{index}"} for index in range(9)]}),
            sliced(hints={"forNodes": [{"name": "a_b"}, {"name": "a"}, {"name": "a"}]}),
            sliced(hints={"forNodes": [{"name": f"n{index}"} for index in range(9)]}),
            {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}] * 1001},
        ],
    ),
    "ports-of-slices": (
        SLICES,
        [
            sliced(ports=({"port": 80}, {"port": 81})),
            sliced(ports=({"name": "a"}, {"name": "a"})),
            sliced(ports=({"name": "A_b", "port": 80},)),
            sliced(ports=({"port": 80, "protocol": "x"},)),
            sliced(ports=({"port": 80, "appProtocol": "a b"},)),
        ],
    ),
    "ranges": (
        RANGES,
        [
            {},
            {"spec": {"cidrs": []}},
            {"spec": {"cidrs": ["x"]}},
            {"spec": {"cidrs": ["10.1.0.1/16"]}},
            {"spec": {"cidrs": ["FD00::/64"]}},
            {"spec": {"cidrs": ["10.01.0.0/16"]}},
            {"spec": {"cidrs": ["10.1.0.0/16", "10.2.0.0/16"]}},
            {"spec": {"cidrs": ["10.1.0.0/16", "fd00::/64", "10.2.0.0/16"]}},
        ],
    ),
    "addresses": (
        ADDRESSES,
        [
            {"metadata": {"name": "a"}, "spec": {"parentRef": {"resource": "services", "name": "a"}}},
            {"metadata": {"name": "FD00::1"}, "spec": {"parentRef": {"resource": "services", "name": "a"}}},
            {"metadata": {"name": "10.9.0.1"}},
            {"metadata": {"name": "10.9.0.1"}, "spec": {"parentRef": {}}},
            {
                "metadata": {"name": "10.9.0.1"},
                "spec": {"parentRef": {"resource": "a/b", "name": "..", "namespace": "%"}},
            },
        ],
    ),
}


@variants("case", WRONG)
async def test_invalid_objects_are_refused(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {422}


RIGHT: dict[str, tuple[str, list[Object]]] = {
    "endpoints": (
        ENDPOINTS,
        [
            {},
            {"subsets": []},
            endpoints(IP, {"ip": "FD00::1", "hostname": "a", "nodeName": "n.example.com"}),
            endpoints(ports=({"port": 80, "name": "a"}, {"port": 80, "name": "a", "protocol": "UDP"})),
        ],
    ),
    "slices": (
        SLICES,
        [
            {"addressType": "IPv4", "endpoints": []},
            {"addressType": "IPv4"},
            sliced("1.2.3.4", "1.2.3.5", ports=({"name": "a", "port": 80}, {"name": "b", "protocol": "UDP"})),
            sliced("fd00::1", kind="IPv6", zone="z", deprecatedTopology={"a": "b"}),
            sliced("example.com.", kind="FQDN"),
            sliced(
                nodeName="n",
                hostname="h",
                conditions={"ready": True, "serving": False, "terminating": True},
                hints={"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]},
                targetRef={"kind": "Pod", "name": "p"},
            ),
            sliced(ports=({"port": 0}, {"port": 70000, "name": "a"})),
        ],
    ),
    "ranges": (RANGES, [{"spec": {"cidrs": ["10.1.0.0/16", "fd00::/64"]}}]),
    "addresses": (
        ADDRESSES,
        [
            {"metadata": {"name": "10.9.0.1"}, "spec": {"parentRef": {"resource": "services", "name": "a"}}},
            {"metadata": {"name": "fd00::1"}, "spec": {"parentRef": {"group": "a.b", "resource": "c", "name": "a"}}},
        ],
    ),
}


@variants("case", RIGHT)
async def test_valid_objects_are_accepted(api: Conversation, case: tuple[str, list[Object]]) -> None:
    assert set(await dry_run_creates(api, *case)) == {201}


async def test_address_type_of_a_slice_is_immutable(api: Conversation) -> None:
    changes = [
        sliced("fd00::1", kind="IPv6"),
        sliced(kind=""),
        sliced("1.2.3.5", ports=({"port": 80},)),
        sliced("x"),
    ]
    assert await dry_run_updates(api, SLICES, sliced(), changes) == [422, 422, 200, 422]


async def test_endpoints_updates_are_validated(api: Conversation) -> None:
    changes = [endpoints({"ip": "FD00::1"}), {"subsets": []}, endpoints({"ip": "x"})]
    assert await dry_run_updates(api, ENDPOINTS, endpoints(), changes) == [200, 200, 422]


async def test_service_cidr_only_grows(api: Conversation) -> None:
    old = {"metadata": {"name": api.namespace}, "spec": {"cidrs": ["10.7.0.0/16"]}}
    made = await api.create(RANGES, manifest(old))
    lists = [["10.8.0.0/16"], ["10.7.0.0/16", "x"], ["10.7.0.0/16", "fd00::/64"], ["fd00::/64", "10.7.0.0/16"], None]
    try:
        answers = [
            await api("PUT", f"{RANGES}/{api.namespace}?dryRun=All", made | {"spec": {"cidrs": each}}) for each in lists
        ]
    finally:
        await api("DELETE", f"{RANGES}/{api.namespace}", recorded=False)
    assert [answer.status for answer in answers] == [422, 422, 200, 422, 422]


async def test_ip_address_keeps_its_parent(api: Conversation) -> None:
    parent = {"resource": "services", "name": "a", "namespace": api.namespace}
    made = await api.create(ADDRESSES, {"metadata": {"name": "10.9.0.2"}, "spec": {"parentRef": parent}})
    try:
        answers = [
            await api("PUT", f"{ADDRESSES}/10.9.0.2?dryRun=All", made | {"spec": spec})
            for spec in ({"parentRef": parent | {"name": "b"}}, {})
        ]
    finally:
        await api("DELETE", f"{ADDRESSES}/10.9.0.2", recorded=False)
    assert [answer.status for answer in answers] == [422, 422]
