"""Replicas of which no controller can work: they take no slots, and give their own back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.system.ring.replicas import OBJECTS, Replica, settled, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKENS = {"a": "a,system:masters", "b": "b"}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """Provide a server whose user b has all rights in one namespace, for the ring and for writes."""
    async with ApiServer(authorization_mode="RBAC", tokens=TOKENS) as server:
        for number in range(OBJECTS):
            server.create("configmaps", {"metadata": {"name": f"m{number:02}", "labels": {"app": "web"}}})
        grant(server, "ring", "*", "*", namespace="default")
        yield server


def grant(server: ApiServer, name: str, verb: str, resource: str, namespace: str = "") -> None:
    """Grant a verb to user b, in all namespaces or in one."""
    scope = "" if namespace else "cluster"
    kind = "Role" if namespace else "ClusterRole"
    rules = [{"apiGroups": ["*"], "resources": [resource], "verbs": [verb]}]
    server.create(f"{scope}roles", {"metadata": {"name": name, "namespace": namespace}, "rules": rules})
    server.create(
        f"{scope}rolebindings",
        {
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "b"}],
        },
    )


@pytest.mark.behaviour("C-140")
async def test_replica_that_cannot_sync_takes_no_slots(server: ApiServer) -> None:
    async with Replica(server, "b", token="b") as unable, Replica(server, "a", token="a") as able:
        await until(lambda: settled(server, able))
        assert unable.ring["mine"] == []
        assert "this replica does not stand before its controllers have synced" in str(unable.manager.ready())
        looks = unable.looks()
        await until(lambda: unable.looks() > looks + 20)
        assert len(able.ring["mine"]) == 16
        grant(server, "maps", "*", "configmaps")
        await until(lambda: settled(server, able, unable))


@pytest.mark.behaviour("C-140")
async def test_replica_that_becomes_unable_gives_its_slots_back(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    grant(server, "maps", "*", "configmaps")
    unable = Replica(server, "b", token="b", sync_timeout=1.5)
    async with Replica(server, "a", token="a", sync_timeout=1.5) as able, unable:
        await until(lambda: settled(server, able, unable))
        server.delete("clusterrolebindings", "maps")
        async with server.fault("watch_close", resources=["configmaps"]):
            server.patch("configmaps", "m00", {"data": {"seen": "1"}}, namespace="default")
            await until(lambda: server.open_watches < 2)
        await until(lambda: settled(server, able))
        assert unable.ring["mine"] == []
        assert unable.ring["remaining"] > 0
        assert "no controller of this replica has been able to work for 1.5 s" in str(unable.manager.ready())
        assert "gives up its slots: no controller has been able to work for 1.5 s" in caplog.text
        assert server.get("leases", "widgets-b", "default")["spec"]["holderIdentity"].startswith("widgets-b_")
