"""Allocation of addresses and ports for services that Python code or manifests create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from pathlib import Path


def service(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]} | spec}


def number(made: dict[str, Any]) -> int:
    port: int = made["spec"]["ports"][0]["nodePort"]
    return port


async def test_python_may_set_addresses_outside_the_ranges() -> None:
    async with ApiServer() as server:
        ports = [{"port": 80, "nodePort": 8080}]
        made = server.create("services", service(clusterIP="172.20.0.1", type="NodePort", ports=ports))
    assert (made["spec"]["clusterIPs"], number(made)) == (["172.20.0.1"], 8080)


async def test_manifests_may_set_addresses_outside_the_ranges(tmp_path: Path) -> None:
    text = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 172.20.0.1, ports: [{port: 80}]}}"
    (tmp_path / "service.yaml").write_text(text)
    async with ApiServer() as server:
        server.load_manifests(tmp_path)
        assert server.get("services", "a")["spec"]["clusterIP"] == "172.20.0.1"


async def test_allocation_is_deterministic() -> None:
    made = []
    for _ in range(2):
        async with ApiServer() as server:
            made.append(server.create("services", service(type="NodePort"))["spec"])
    assert made[0] == made[1]


async def test_allocated_values_are_not_given_twice() -> None:
    async with ApiServer() as server:
        first = server.create("services", service(type="NodePort"))
        server.delete("services", "a")
        taken = {"clusterIP": first["spec"]["clusterIP"], "type": "NodePort"}
        server.create("services", service("b", ports=[{"port": 80, "nodePort": number(first)}], **taken))
        again = server.create("services", service(type="NodePort"))
    assert again["spec"]["clusterIP"] != first["spec"]["clusterIP"]
    assert number(again) != number(first)


@pytest.mark.parametrize("way", ["deleted", "restored"])
async def test_released_values_are_allocated_again(way: str) -> None:
    async with ApiServer() as server:
        nothing = server.backup()
        first = server.create("services", service(type="NodePort"))
        if way == "deleted":
            server.delete("services", "a")
        else:
            server.restore(nothing)
        again = server.create("services", service(type="NodePort"))
    assert again["spec"] == first["spec"]


async def test_manifest_quantity_may_be_a_number(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: 4}}}"
    )
    async with ApiServer() as server:
        server.load_manifests(tmp_path)
        assert server.get("nodes", "n")["status"]["allocatable"] == {"cpu": "4"}
