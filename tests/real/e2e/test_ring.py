"""A ring of three processes on a real API server, under faults, with an observer of all writes.

The observer is a watch that shares no code with the replicas. Each write says who made it, and in which epoch of the
slot. The epoch grows with each owner: for each object it must never go back, and have one writer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.support.real_cluster import Operator, RealCluster

OBJECTS = int(os.environ.get("RING_OBJECTS", "100"))
#: How many replicas are replaced one after the other.
ROLLED = int(os.environ.get("RING_ROLLED", "1"))
#: Changes a second while the faults happen.
RATE = int(os.environ.get("RING_RATE", "20"))


class Writes:
    """All writes of the replicas, as a watch shows them."""

    def __init__(self, operator: Operator, path: str) -> None:
        self._operator = operator
        self._path = path
        self.count = 0
        #: Object -> the epoch of the last write, and its writer.
        self.last: dict[str, tuple[int, str]] = {}
        self.violations: list[str] = []
        self.done: dict[str, str] = {}
        #: When the oldest change of an object was made that is not processed, and how long the others took.
        self.sent: dict[str, tuple[float, str]] = {}
        self.delays: list[tuple[float, str]] = []

    async def follow(self, version: str) -> None:
        while True:
            url = f"{self._operator._server}{self._path}?watch=1&labelSelector=app%3Dweb&resourceVersion={version}"
            with suppress(aiohttp.ClientError):
                async with self._operator._session.get(url, timeout=aiohttp.ClientTimeout()) as response:
                    async for line in response.content:
                        event = json.loads(line)
                        if event["type"] == "ERROR":  # the server was restarted, and has no older versions
                            version = await self.list()
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        self.take(event["object"])
            await asyncio.sleep(0.1)

    async def list(self) -> str:
        _, listed = await self._operator.request("GET", f"{self._path}?labelSelector=app%3Dweb")
        for each in listed["items"]:
            self.take(each)
        version: str = listed["metadata"]["resourceVersion"]
        return version

    def take(self, obj: dict[str, Any]) -> None:
        name, data = obj["metadata"]["name"], obj.get("data") or {}
        self.done[name] = data.get("done", "")
        if self.done[name] == data.get("seq") and name in self.sent:
            began, during = self.sent.pop(name)
            self.delays.append((asyncio.get_running_loop().time() - began, during))
        if "by" not in data:
            return
        now, before = (int(data["epoch"]), data["by"]), self.last.get(name)
        self.last[name] = now
        self.count += 1
        if before is not None and (now[0] < before[0] or (now[0] == before[0] and now[1] != before[1])):
            self.violations.append(f"{name}: {before} and then {now}")


class Network:
    """Forwards connections to the API server. While it is cut, bytes are lost, and nothing says so."""

    def __init__(self, cluster: RealCluster) -> None:
        self.kubeconfig = Path(cluster.kubeconfig).with_name("cut.kubeconfig")
        self.is_cut = False
        self._config = Path(cluster.kubeconfig).read_text()
        server = re.search(r"https://127.0.0.1:(\d+)", self._config)
        assert server is not None
        self._port = int(server[1])
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Network:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.kubeconfig.write_text(self._config.replace(f":{self._port}", f":{port}"))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(OSError):
            upper_reader, upper = await asyncio.open_connection("127.0.0.1", self._port)
            self._writers.append(upper)
            await asyncio.gather(self._forward(reader, upper), self._forward(upper_reader, writer))
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lost = False
        with suppress(OSError):
            while data := await reader.read(65536):
                lost = lost or self.is_cut
                if not lost:  # a connection of which bytes were lost is never of use again
                    writer.write(data)
                    await writer.drain()
        writer.close()


class Ring:
    """The processes, and what the server has of their ring."""

    def __init__(self, cluster: RealCluster, operator: Operator, namespace: str) -> None:
        self._cluster = cluster
        self._operator = operator
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.processes: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, *names: str, kubeconfig: Path | None = None) -> None:
        program = Path(__file__).with_name("ring_replica.py")
        for name in names:
            arguments = sys.executable, program, kubeconfig or self._cluster.kubeconfig, self.namespace, name
            self.processes[name] = await asyncio.create_subprocess_exec(*map(str, arguments))

    async def end(self, name: str, number: signal.Signals) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        await process.wait()

    async def settled(self, *names: str) -> float:
        """Wait until these members share all slots; return for how many seconds."""
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(120):
            while await self.owners() != {f"widgets-{each}" for each in names}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time() - began

    async def owners(self) -> set[str]:
        with suppress(aiohttp.ClientError):
            status, ring = await self._operator.request("GET", f"{self.path}/widgets-ring")
            if status == 200:
                slots = json.loads(ring["data"]["ring.json"])["ring"]["slots"]
                return {"" if to else owner for owner, _, to in slots}
        return set()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_ring_under_faults(cluster: RealCluster, operator: Operator) -> None:
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "ring-"}})
    ring = Ring(cluster, operator, created["metadata"]["name"])
    names = [f"m{number:04}" for number in range(OBJECTS)]
    for name in names:
        labelled = {"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"seq": "0"}}
        version = (await operator.create(ring.path, labelled))["metadata"]["resourceVersion"]
    writes = Writes(operator, ring.path)
    sequence = dict.fromkeys(names, "0")

    async def change() -> None:
        number = 0
        while True:
            number += 1
            name = names[number * 7919 % OBJECTS]
            writes.sent.setdefault(name, (asyncio.get_running_loop().time(), during))
            with suppress(aiohttp.ClientError):
                headers = {"Content-Type": "application/merge-patch+json"}
                url, body = f"{operator._server}{ring.path}/{name}", json.dumps({"data": {"seq": str(number)}})
                async with operator._session.patch(url, data=body, headers=headers) as response:
                    if response.status == 200:
                        sequence[name] = str(number)
            await asyncio.sleep(1 / RATE)

    seconds: dict[str, float] = {}
    during = "start"

    @asynccontextmanager
    async def window(fall: str, *names: str) -> AsyncIterator[None]:
        """Let a fall happen; then wait until these members share the slots, and all of its changes are processed."""
        nonlocal during
        during = fall
        yield
        seconds[fall] = await ring.settled(*(names or ring.processes))
        during = f"after {fall}"
        await until(lambda: not any(label == fall for _, label in writes.sent.values()))

    try:
        async with Network(cluster) as network, asyncio.TaskGroup() as tasks:
            following = tasks.create_task(writes.follow(version))
            async with window("start"):
                await ring.start("a", "b")
                await ring.start("c", kubeconfig=network.kubeconfig)
            changing = tasks.create_task(change())
            async with window("kill -9"):
                await ring.end("a", signal.SIGKILL)
            async with window("join"):
                await ring.start("d")
            async with window("SIGSTOP", "c", "d"):
                ring.processes["b"].send_signal(signal.SIGSTOP)
            async with window("SIGCONT"):
                ring.processes["b"].send_signal(signal.SIGCONT)
            async with window("network cut", "b", "d"):
                network.is_cut = True
            async with window("network healed"):
                network.is_cut = False
            for old, new in list(zip("bcd", "efg", strict=True))[:ROLLED]:
                async with window(f"join {new}"):
                    await ring.start(new)
                async with window(f"leave {old}"):
                    await ring.end(old, signal.SIGTERM)
            async with window("ring deleted"):
                status, _ = await operator.request("DELETE", f"{ring.path}/widgets-ring")
                assert status == 200
            for gate in ("false", "true"):
                async with window(f"server restarted, shards {gate}"):
                    await operator.act("restart-apiserver", f"--feature-gates=ShardedListAndWatch={gate}")
                async with window(f"join with shards {gate}"):
                    await ring.start(f"gate-{gate}")

            changing.cancel()
            await until(lambda: all(writes.done.get(name) == sequence[name] for name in names))
            following.cancel()
    finally:
        for process in ring.processes.values():
            process.kill()
            await process.wait()
    assert not writes.violations
    assert writes.count >= OBJECTS
    delays = sorted(each for each, _ in writes.delays)
    shares = {share: round(delays[int(len(delays) * share)], 2) for share in (0.5, 0.99, 0.999)}
    longest = {during: f"{each:.1f} s" for each, during in sorted(writes.delays)}
    print(f"from a change to its write: {shares}; at most {longest}")
    print({name: round(each, 1) for name, each in seconds.items()}, f"{writes.count} writes")
