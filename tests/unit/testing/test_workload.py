from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.testing import ApiServer, Workload, populate


def story(server: ApiServer) -> list[Any]:
    resources = ("pods", "replicasets.apps", "deployments.apps", "jobs.batch", "configmaps", "nodes")
    return [(obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for r in resources for obj in server.list(r)]


def test_same_seed_gives_the_same_changes() -> None:
    servers = ApiServer(), ApiServer()
    for server in servers:
        workload = Workload(server, seed=7)
        workload.begin()
        for _ in range(300):
            workload.step()
    assert story(servers[0]) == story(servers[1])


def test_every_step_changes_something() -> None:
    server = ApiServer()
    workload = Workload(server)
    workload.begin()
    versions = []
    for _ in range(200):
        workload.step()
        versions.append(server.resource_version)
    assert len(set(versions)) == 200


async def test_populated_pods_have_realistic_sizes(server: ApiServer) -> None:
    await populate(server, 40, namespaces=2)
    pods = server.list("pods")
    assert len(pods) == 40
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert all(5_500 < len(msgspec.json.encode(pod)) < 6_500 for pod in pods)
