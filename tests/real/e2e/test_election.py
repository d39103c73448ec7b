"""Leader election on a real API server: standbys with the permissions that `aioinformer check` prints, coordination."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from aioinformer import LeaderElectionOptions, LeaderElector, connect
from aioinformer.cli.controllers.manifest import manifest
from aioinformer.cli.controllers.needs import needs
from aioinformer.client import set_controller_reference
from aioinformer.controller import Controller, LeaderElection, Manager, Request
from aioinformer.leaderelection import LeadershipLost, LeaseCandidate
from aioinformer.models import core_v1
from tests.support.real_cluster import RealCluster

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.transport import Connection
    from tests.support.real_cluster import Operator, RealCluster


#: A candidate with these times that takes over within seconds does so because of the watch.
SLOW = LeaderElectionOptions(lease_duration=900, renew_deadline=600.0, retry_period=300.0)
COORDINATED = LeaderElectionOptions(coordinated=True)


def kubeconfig_of(cluster: RealCluster, user: str, path: Path) -> Path:
    """Write a kubeconfig with which requests are sent as a user."""
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    for each in config["users"]:
        each["user"]["as"] = user
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.behaviour("C-75", "C-90")
async def test_standby_with_the_printed_role_takes_over_a_release(
    cluster: RealCluster, operator: Operator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "standby-"}})
    namespace = created["metadata"]["name"]
    manager = Manager("robot", leader_election=LeaderElection("it", namespace, SLOW), namespaces=[namespace])
    for document in yaml.safe_load_all(manifest("robot", namespace, needs(manager))):
        if document["kind"] != "ServiceAccount":
            group = f"/apis/{document['apiVersion']}/namespaces/{namespace}"
            await operator.create(f"{group}/{document['kind'].lower()}s", document)

    config = kubeconfig_of(cluster, f"system:serviceaccount:{namespace}:robot", tmp_path / "kubeconfig")
    waiting = asyncio.Event()

    async def stand_by(stack: AsyncExitStack) -> None:
        connection = await stack.enter_async_context(await connect(kubeconfig=config))
        elector = LeaderElector(
            connection, "it", namespace, identity="second", options=SLOW, on_new_leader=lambda leader: waiting.set()
        )
        async with elector.leading() as term:
            assert term.token == 1

    async with AsyncExitStack() as stack, asyncio.timeout(200), asyncio.TaskGroup() as tasks:
        connection = await stack.enter_async_context(await connect(kubeconfig=config))
        async with LeaderElector(connection, "it", namespace, identity="first", options=SLOW).leading():
            tasks.create_task(stand_by(stack))
            await waiting.wait()
    assert "cannot be watched" not in caplog.text


@pytest.mark.behaviour("C-75", "C-110")
async def test_leader_keeps_a_lease_that_is_deleted_by_hand(cluster: RealCluster, operator: Operator) -> None:
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "deleted-"}})
    namespace = created["metadata"]["name"]
    times = LeaderElectionOptions(lease_duration=6, renew_deadline=4.0, retry_period=1.0)
    leaders: list[str] = []
    follows, stop = asyncio.Event(), asyncio.Event()

    async def compete(connection: Connection, identity: str) -> None:
        elector = LeaderElector(
            connection, "it", namespace, identity=identity, options=times, on_new_leader=lambda leader: follows.set()
        )
        async with elector.leading() as term:
            leaders.append(identity)
            assert leaders == [identity]
            await stop.wait()
            term.check()
            leaders.remove(identity)

    async with await connect(kubeconfig=cluster.kubeconfig) as connection, asyncio.TaskGroup() as tasks:
        tasks.create_task(compete(connection, "first"))
        await follows.wait()
        leases = connection.client.coordination.v1.leases.namespaced(namespace)
        follows.clear()
        second = tasks.create_task(compete(connection, "second"))
        await follows.wait()
        for number in range(8):
            deleted = (await leases.get("it")).metadata.uid
            await leases.delete("it")
            await asyncio.sleep(0.3 + 0.1 * number)
            lease = await leases.get("it")
            assert lease.metadata.uid != deleted
            assert lease.spec is not None
            assert lease.spec.holder_identity == "first"
        assert leaders == ["first"]
        second.cancel()
        stop.set()


@pytest.mark.behaviour("C-79")
async def test_handover_amid_writes_creates_no_child_twice(
    cluster: RealCluster, operator: Operator, tmp_path: Path
) -> None:
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "handover-"}})
    namespace = created["metadata"]["name"]
    await operator.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "parent"}})
    config = kubeconfig_of(cluster, f"system:serviceaccount:{namespace}:robot", tmp_path / "kubeconfig")

    async def reconcile(request: Request[core_v1.ConfigMap]) -> None:
        children = len(request.owned(core_v1.SECRETS))
        began.set()
        if children >= 20:
            some.set()
        if children >= 60:
            done.set()
        elif request.name == "parent":
            child = {"metadata": {"generateName": "child-", "namespace": namespace}}
            await request.client.core.v1.secrets.create(set_controller_reference(child, request.reference))

    def manager_of(connection: Connection | None) -> Manager:
        controller = Controller(
            "it", core_v1.CONFIG_MAPS, reconcile, owns=[core_v1.SECRETS], writes={core_v1.SECRETS: ("create",)}
        )
        election = LeaderElection("it", namespace, SLOW)
        return Manager("robot", [controller], client=connection, leader_election=election, namespaces=[namespace])

    for document in yaml.safe_load_all(manifest("robot", namespace, needs(manager_of(None)))):
        if document["kind"] != "ServiceAccount":
            group = f"/apis/{document['apiVersion']}/namespaces/{namespace}"
            await operator.create(f"{group}/{document['kind'].lower()}s", document)

    began, some, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(120), await connect(kubeconfig=config) as connection:
        second = manager_of(connection)
        async with AsyncExitStack() as stack:
            async with manager_of(connection):
                await began.wait()
                await stack.enter_async_context(second)
                await some.wait()
            await done.wait()
            results = second.snapshot()["controllers"]["it"]["results"]
        assert len(await connection.client.core.v1.secrets.namespaced(namespace).list()) == 60
        assert results.keys() == {"success"}


@pytest.mark.conformance("LE-13", "LE-14")
async def test_server_prefers_the_older_version(coordinated_cluster: RealCluster) -> None:
    terms: asyncio.Queue[str] = asyncio.Queue()
    async with AsyncExitStack() as stack, asyncio.timeout(120):
        connection = await stack.enter_async_context(await connect(kubeconfig=coordinated_cluster.kubeconfig))

        async def stand(name: str, version: str) -> None:
            async with LeaseCandidate(connection.transport, name, lease="it", binary_version=version) as candidate:
                elector = LeaderElector(
                    connection.transport,
                    candidate.lease,
                    identity=name,
                    options=COORDINATED,
                )
                try:
                    async with elector.leading():
                        terms.put_nowait(f"{name} leads")
                        await asyncio.Event().wait()
                except LeadershipLost:
                    terms.put_nowait(f"{name} gave way")

        newer = asyncio.create_task(stand("newer", "1.5.0"))
        older = None
        try:
            assert await terms.get() == "newer leads"
            older = asyncio.create_task(stand("older", "1.4.0"))
            assert await terms.get() == "newer gave way"
            assert await terms.get() == "older leads"
        finally:
            tasks = {task for task in (newer, older) if task is not None}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
