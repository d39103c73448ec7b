"""Replicas that convert are restarted, killed, and get another certificate: no value and no event is lost."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from aioinformer import AioinformerError, Client, connect
from aioinformer.models import apiextensions_v1, core_v1
from tests.real.e2e.rollouts import LAG, Replica, Service
from tests.support.converted_classes import gates

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster

GROUP = "rollout.example.com"
NAMES = tuple(f"gate-{number}" for number in range(5))


class Writer:
    """Applies the fields of one manager to all objects, again and again, and notes what the server has accepted.

    Attributes:
        accepted: the last configuration, by name.
        versions: all resourceVersions, by name.
        failed: errors of writes that were repeated.
    """

    def __init__(self, resource: Any, manager: str, spec: Any) -> None:
        self._resource = resource
        self._manager = manager
        self._spec = spec
        self.accepted: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, list[str]] = {name: [] for name in NAMES}
        self.failed: list[str] = []

    async def run(self, ended: asyncio.Event) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            for name in NAMES:
                await self.write(name, number)

    async def write(self, name: str, number: int) -> None:
        """Write one object, and again until the server accepts it."""
        spec = self._spec(number)
        while True:
            try:
                made = await self._resource.apply(
                    {"metadata": {"name": name}, "spec": spec}, field_manager=self._manager
                )
            except AioinformerError as error:
                self.failed.append(str(error))
                await asyncio.sleep(0.1)
            else:
                self.accepted[name] = spec
                self.versions[name].append(made.metadata.resource_version)
                return


class Observer:
    """Watches one version, and goes on after each end.

    Attributes:
        seen: the resourceVersions of all events, by name.
        ends: how often a watch has ended.
    """

    def __init__(self, resource: Any) -> None:
        self._resource = resource
        self.seen: dict[str, list[str]] = {name: [] for name in NAMES}
        self.ends = 0

    async def run(self) -> None:
        version = (await self._resource.list()).resource_version
        while True:
            with suppress(AioinformerError):
                async for event in self._resource.watch(resource_version=version):
                    version = event.object.metadata.resource_version
                    if event.object.metadata.name in self.seen:
                        self.seen[event.object.metadata.name].append(version)
            self.ends += 1
            await asyncio.sleep(0.1)


async def test_replicas_are_restarted_killed_and_renewed(cluster: RealCluster) -> None:
    resource, old_resource = gates(GROUP)
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "rollout-"}})
        client = Client(transport, namespace=made.metadata.name, retry=False)
        service = await stack.enter_async_context(Service())
        module = "tests.real.e2e.conversion_replica"
        replicas = [Replica(client.namespace, str(cluster.kubeconfig), module, GROUP) for _ in range(4)]
        for each in replicas:
            stack.push_async_callback(each.kill)
        new, old = client.resource(resource), client.resource(old_resource)
        async with asyncio.timeout(600):
            definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
            body = resource.crd({"url": f"https://127.0.0.1:{service.port}/convert"})
            await definitions.create(body)
            stack.push_async_callback(definitions.delete, body["metadata"]["name"])
            for each in replicas[:3]:
                await each.start()
            for each in replicas[:3]:
                await each.until_ready()
                service.endpoints.append(each.port)
            await _until_called(old, new)
            await _go_through(client, service, replicas, new, old)


async def _go_through(client: Client, service: Service, replicas: list[Replica], new: Any, old: Any) -> None:
    writers = [
        Writer(old, "old", lambda at: {"size": at, "address": f"web-{at}/eu", "weight": str(at), "legacy": f"l{at}"}),
        Writer(new, "new", lambda at: {"extra": {"number": at}}),
    ]
    observers = [Observer(new), Observer(old)]
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        observing = [tasks.create_task(each.run()) for each in observers]
        await asyncio.sleep(0.5)
        for writer in writers:  # the objects exist before both write at once
            for name in NAMES:
                await writer.write(name, 0)
        for writer in writers:
            writer.failed.clear()
        writing = [tasks.create_task(each.run(ended)) for each in writers]
        await asyncio.sleep(2)
        assert [each.failed for each in writers] == [[], []]
        # A restart in order: no write fails, no watch ends.
        ends = [each.ends for each in observers]
        await replicas[3].start()
        await replicas[3].until_ready()
        service.endpoints.append(replicas[3].port)
        stopping = tasks.create_task(replicas[0].end())
        await asyncio.sleep(LAG)
        service.endpoints.remove(replicas[0].port)
        assert await stopping == 0
        await asyncio.sleep(1)
        assert [each.failed for each in writers] == [[], []]
        assert [each.ends for each in observers] == ends
        # A replica is killed: what fails meanwhile succeeds when it is repeated.
        await replicas[1].kill()
        await asyncio.sleep(LAG)
        service.endpoints.remove(replicas[1].port)
        await asyncio.sleep(2)
        # Another CA, and so other certificates.
        failed = [len(each.failed) for each in writers]
        trusted = await _trusted(client)
        await client.resource(core_v1.SECRETS).delete("gates-webhook-ca")
        while await _trusted(client) == trusted:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        await asyncio.sleep(4)
        assert [len(each.failed) for each in writers] == failed
        ended.set()
        await asyncio.gather(*writing)
        await _until_seen(writers, observers)
        for task in observing:
            task.cancel()
    for name in NAMES:
        found = await new.get(name)
        wanted = writers[0].accepted[name]
        assert f"{found.spec.host}/{found.spec.zone}" == wanted["address"]
        assert (found.spec.replicas, found.spec.weight) == (wanted["size"], int(wanted["weight"]))
        assert found.spec.extra == writers[1].accepted[name]["extra"]
        before = await old.get(name)
        assert (before.spec.size, before.spec.legacy) == (wanted["size"], wanted["legacy"])


async def _until_seen(writers: list[Writer], observers: list[Observer]) -> None:
    """Wait until each observer has seen each version that was written, in its order."""
    for name in NAMES:
        written = sorted({int(each) for writer in writers for each in writer.versions[name]})
        for observer in observers:
            while [each for each in map(int, observer.seen[name]) if each in set(written)] != written:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def _trusted(client: Client) -> str:
    found = await client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS).get(f"gates.{GROUP}")
    return str(found.to_dict()["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle"))


async def _until_called(old: Any, new: Any) -> None:
    """Wait until the API server reaches the webhook."""
    in_a_row = 0
    while in_a_row < 10:
        name = f"probe-{random.getrandbits(32):x}"
        try:
            await old.apply({"metadata": {"name": name}, "spec": {"size": 1}}, field_manager="probe")
            await new.get(name)
            await old.delete(name)
            in_a_row += 1
        except AioinformerError:
            in_a_row = 0
        await asyncio.sleep(0.05)
