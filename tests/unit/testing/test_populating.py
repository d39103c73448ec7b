"""Changes that a server makes by itself: a seeded workload, a population, and what a process loads for it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec

from aioinformer.testing import ApiServer, Workload, populate

#: In a test that starts a server, fills it in its own process, lists and watches.
MOST_MODULES = 120

LATER = tuple(f"aioinformer.testing.{room}" for room in ("kinds", "rules", "tables", "cel.checking"))

WATCHED = """
import asyncio, json, sys
from aioinformer import SharedInformerFactory
from aioinformer.testing import ApiServer, make_pod, populate
from aioinformer import HttpTransport

def loaded():
    return [name for name in sys.modules if name.startswith("aioinformer.testing")]

async def main():
    async with ApiServer() as server:
        await populate(server, 20)
        async with HttpTransport(server.url) as transport, SharedInformerFactory(transport) as factory:
            pods, lister = factory.core.v1.pods.informer(), factory.core.v1.pods.lister()
            await factory.wait_for_cache_sync()
            assert len(lister.list()) == 20
            read = loaded()
            server.create("configmaps", {"metadata": {"name": "settings"}})
            server.create("pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
            await pods.wait_for("default/web")
            assert lister.namespaced("default").get("web").spec.dns_policy == "ClusterFirst"
    print(json.dumps({"read": read, "written": loaded()}))

asyncio.run(main())
"""


def story(server: ApiServer) -> list[Any]:
    resources = ("pods", "replicasets.apps", "deployments.apps", "jobs.batch", "configmaps", "nodes")
    return [(obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for r in resources for obj in server.list(r)]


def test_same_seed_gives_the_same_changes() -> None:
    servers = ApiServer(), ApiServer()
    for server in servers:
        workload = Workload(server, seed=7)
        workload.begin()
        for _ in range(60):
            workload.step()
    assert story(servers[0]) == story(servers[1])


def test_every_step_changes_something() -> None:
    server = ApiServer()
    workload = Workload(server)
    workload.begin()
    versions = []
    for _ in range(60):
        workload.step()
        versions.append(server.resource_version)
    assert len(set(versions)) == 60


async def test_populated_pods_have_realistic_sizes(server: ApiServer) -> None:
    await populate(server, 40, namespaces=2)
    pods = server.list("pods")
    assert len(pods) == 40
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert all(5_500 < len(msgspec.json.encode(pod)) < 6_500 for pod in pods)


def test_modules_of_a_server_that_is_populated_and_watched() -> None:
    run = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    modules = json.loads(run.stdout)
    assert not [name for name in modules["read"] if name.startswith(LATER)]
    assert len(modules["written"]) <= MOST_MODULES
