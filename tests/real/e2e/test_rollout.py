"""Replicas of a manager are replaced while a real API server asks their webhooks: no review is refused."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import pytest

from aioinformer import Client
from aioinformer.errors import ApiError
from aioinformer.models import core_v1
from aioinformer.transport.auth.credentials import connect
from tests.support.loopback import free_port
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster

#: Seconds until new connections do not reach a pod that ends any more.
LAG = 2.0


class Replica:
    """A process, and its readiness as kubelet sees it."""

    def __init__(self, namespace: str, kubeconfig: str) -> None:
        self.port, self.health_port = free_port(), free_port()
        self._arguments = ("-m", "tests.real.e2e.hooks_replica", namespace, str(self.port), str(self.health_port))
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._arguments, env=self._environment, stderr=asyncio.subprocess.DEVNULL
        )

    async def until_ready(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{self.health_port}/readyz") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.1)

    async def end(self) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()


class Service:
    """Connects clients of a port with one of the replicas, as kube-proxy does: open connections stay as they are."""

    def __init__(self) -> None:
        self.endpoints: list[int] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", random.choice(self.endpoints))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, back))
                tasks.create_task(_copy(there, writer))
        except (OSError, asyncio.CancelledError):
            writer.close()
        finally:
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@pytest.mark.timeout(180)
@pytest.mark.behaviour("C-129")
async def test_rolling_update_refuses_no_review(cluster: RealCluster) -> None:
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "rollout-"}})
        namespace = made.metadata.name
        client = Client(transport, namespace=namespace)
        service = await stack.enter_async_context(Service())
        old, new = ([Replica(namespace, str(cluster.kubeconfig)) for _ in range(2)] for _ in range(2))
        for each in (*old, *new):
            stack.push_async_callback(_ended, each)
        async with asyncio.timeout(150):
            resource, body = await _registered(client, service)
            stack.push_async_callback(resource.delete, body["metadata"]["name"])
            for each in old:
                await each.start()
                await each.until_ready()
                service.endpoints.append(each.port)
            refused: list[str] = []
            ended = asyncio.Event()
            await _until_called(client)
            async with asyncio.TaskGroup() as tasks:
                loads = [tasks.create_task(_load(client, refused, ended)) for _ in range(4)]
                for before, after in zip(old, new, strict=True):
                    await after.start()
                    await after.until_ready()
                    service.endpoints.append(after.port)
                    ending = tasks.create_task(before.end())
                    await asyncio.sleep(LAG)
                    service.endpoints.remove(before.port)
                    assert await ending == 0
                await asyncio.sleep(1)
                ended.set()
        assert refused == []
        assert sum(each.result() for each in loads) > 200


async def _ended(replica: Replica) -> None:
    if replica._process is not None and replica._process.returncode is None:
        replica._process.kill()
        await replica._process.wait()


async def _registered(client: Client, service: Service) -> tuple[Any, dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": client.namespace}}
    url = f"https://127.0.0.1:{service.port}/validate/configmaps"
    hook = webhook("check", {"url": url}, rules=[rule], namespaceSelector=selector)
    body = configuration("ValidatingWebhookConfiguration", hook, name=f"hooks.{client.namespace}")
    resource = await client.resource_for(body)
    await resource.create(body)
    return resource, body


async def _until_called(client: Client) -> None:
    """Wait until the API server has noticed the CA."""
    dry = client.with_options(dry_run=True, retry=False).resource(core_v1.CONFIG_MAPS)
    in_a_row = 0
    while in_a_row < 20:
        try:
            await dry.create({"metadata": {"name": "probe"}})
            in_a_row += 1
        except ApiError:
            in_a_row = 0
        await asyncio.sleep(0.05)


async def _load(client: Client, refused: list[str], ended: asyncio.Event) -> int:
    """Write until the end, and return how often."""
    dry = client.with_options(dry_run=True, retry=False).resource(core_v1.CONFIG_MAPS)
    count = 0
    while not ended.is_set():
        try:
            await dry.create({"metadata": {"generateName": "probe-"}})
        except ApiError as error:
            refused.append(str(error))
        count += 1
        await asyncio.sleep(0.01)
    return count
