"""A ring of three processes on a real API server, under faults, with an observer of all writes.

    AIOINFORMER_TEST_CLUSTER=../cluster python -m tests.real.e2e.ring_faults --objects 10000 --rate 200

It prints what was observed in each fault as JSON. The API server, etcd, the replicas and this program share the cores
of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.real.e2e.ring_observer import Mark, Observer, audited, figures, quantiles
from tests.support.real_cluster import Operator, RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

RING = "widgets"
GATE = "ShardedListAndWatch"
_PATCH = {"Content-Type": "application/merge-patch+json"}
#: The most changes under way at a time.
_AT_ONCE = 32


@dataclass(frozen=True)
class Scale:
    """How much happens, and how fast.

    Attributes:
        objects: how many there are.
        filling: how many bytes of data each has that nothing reads.
        processed: whether nothing is to do for the objects at the start.
        rate: changes a second while the faults happen.
        times: lease duration, renew deadline and retry period.
        rolled: how many replicas are replaced one after the other.
        shards: whether the server selects by shards, if its version can. Then it is restarted with the contrary, and
            with this again.
        patience: the most seconds until a fault is over.
        bug: the name of a planted bug in one of the replicas; "" for none.
    """

    objects: int = 100
    filling: int = 0
    processed: bool = False
    rate: float = 20.0
    times: tuple[float, float, float] = (4.0, 2.5, 0.5)
    rolled: int = 1
    shards: bool = True
    patience: float = 120.0
    bug: str = ""

    def options(self, folder: Path) -> tuple[str, ...]:
        """Return the flags of the API server, which logs all writes to this folder."""
        return audited(folder) if self.shards else (*audited(folder), self.gate(False))

    def gate(self, shards: bool) -> str:
        return f"--feature-gates={GATE}={str(shards).lower()}"


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
    """The processes, and what the server has of their ring.

    Attributes:
        path: of the ConfigMaps.
        processes: those that run, by name.
        marks: when members began and ceased to be able to work.
    """

    def __init__(self, cluster: RealCluster, operator: Operator, namespace: str, scale: Scale) -> None:
        self._cluster = cluster
        self._operator = operator
        self._scale = scale
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.marks: list[Mark] = []

    async def start(self, *names: str, kubeconfig: Path | None = None, bug: str = "") -> None:
        for name in names:
            arguments = [str(kubeconfig or self._cluster.kubeconfig), self.namespace, name]
            arguments += [",".join(map(str, self._scale.times)), *([bug] if bug else [])]
            self.processes[name] = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.real.e2e.ring_replica",
                *arguments,
                cwd=Path(__file__).parents[3],
                start_new_session=True,
            )

    def mark(self, name: str, *, is_able: bool) -> None:
        self.marks.append(Mark(time.time(), f"{RING}-{name}", is_able))

    def send(self, name: str, number: signal.Signals) -> None:
        self.mark(name, is_able=number == signal.SIGCONT)
        self.processes[name].send_signal(number)

    async def end(self, name: str, number: signal.Signals) -> None:
        self.send(name, number)
        await self.processes.pop(name).wait()

    async def settled(self, *names: str) -> None:
        """Wait until these members share all slots."""
        async with asyncio.timeout(self._scale.patience):
            while await self.owners() != {f"{RING}-{each}" for each in names}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def owners(self) -> set[str]:
        with suppress(aiohttp.ClientError):
            status, ring = await self._operator.request("GET", f"{self.path}/{RING}-ring")
            if status == 200:
                slots = json.loads(ring["data"]["ring.json"])["ring"]["slots"]
                return {"" if to else owner for owner, _, to in slots}
        return set()

    async def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            await process.wait()


class Changes:
    """The objects, and the operator's changes of them.

    Attributes:
        sequence: the last number that the server has accepted for each object, by name.
        failed: how many changes have failed.
        ending: set to make `run` return, once the changes that are under way have ended.
    """

    def __init__(self, operator: Operator, path: str, scale: Scale) -> None:
        self._operator = operator
        self._path = path
        self._scale = scale
        self.sequence = {f"m{number:05}": 0 for number in range(scale.objects)}
        self.failed = 0
        self.ending = asyncio.Event()

    def are_processed(self, observer: Observer) -> bool:
        """Return whether the observer has seen the last change of each object, and that it was processed."""
        return all(
            int(observer.last[name].sequence) >= number and observer.last[name].is_processed
            for name, number in self.sequence.items()
        )

    async def create(self) -> None:
        names = iter(self.sequence)

        async def create_some() -> None:
            for name in names:
                data = {"seq": "0", "filling": "x" * self._scale.filling}
                data |= {"done": "0"} if self._scale.processed else {}
                metadata = {"name": name, "labels": {"app": "web"}}
                await self._operator.create(self._path, {"metadata": metadata, "data": data})

        await asyncio.gather(*(create_some() for _ in range(8)))

    async def run(self) -> None:
        """Change objects until `ending` is set. The server may carry out a change that is cancelled, and not log it."""
        names, number, began = list(self.sequence), 0, time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            under_way = set[asyncio.Task[None]]()
            while not self.ending.is_set():
                while number < (time.monotonic() - began) * self._scale.rate and len(under_way) < _AT_ONCE:
                    number += 1
                    task = tasks.create_task(self._change(names[number * 7919 % len(names)], number))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                await asyncio.sleep(min(0.005, 0.1 / self._scale.rate))

    async def _change(self, name: str, number: int) -> None:
        url, body = f"{self._operator._server}{self._path}/{name}", json.dumps({"data": {"seq": str(number)}})
        try:
            async with self._operator._session.patch(url, data=body, headers=_PATCH) as response:
                if response.status == 200:
                    self.sequence[name] = max(number, self.sequence[name])
                    return
        except aiohttp.ClientError:
            pass
        self.failed += 1


async def watch(observer: Observer, operator: Operator, path: str) -> None:
    """Show all versions of the ConfigMaps to the observer, until cancelled."""
    version = ""
    while True:
        with suppress(aiohttp.ClientError, ValueError):  # the last line may be cut
            if not version:  # at the start, and if a server has no older versions after a restart
                _, listed = await operator.request("GET", path)
                for each in listed.get("items", ()):
                    observer.see(each, time.time())
                version = listed["metadata"].get("resourceVersion", "")
            url = f"{operator._server}{path}?watch=1&resourceVersion={version}"
            async with operator._session.get(url, timeout=aiohttp.ClientTimeout()) as response:
                async for line in response.content:
                    event = json.loads(line)
                    if event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
                        version = version if response.status != 200 else ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "DELETED":
                        observer.see(event["object"], time.time())
        await asyncio.sleep(0.1)


async def run_faults(cluster: RealCluster, operator: Operator, scale: Scale, folder: Path) -> dict[str, Any]:
    """Let the faults happen one after the other, and return what was observed.

    Args:
        cluster: was started with the options of the scale.
        operator: of the cluster.
        scale: how much happens.
        folder: with the log of all writes.
    """
    created = await operator.create("/api/v1/namespaces", {"metadata": {"generateName": "ring-"}})
    ring = Ring(cluster, operator, created["metadata"]["name"], scale)
    changes, observer = Changes(operator, ring.path, scale), Observer(folder, RING)
    await changes.create()
    windows: list[tuple[float, str]] = []

    @asynccontextmanager
    async def window(fault: str, *names: str) -> AsyncIterator[None]:
        """Let a fault happen; then wait until these members share the slots, and all of its changes are processed."""
        windows.append((time.time(), fault))
        print(f"{time.strftime('%T')} {fault}", file=sys.stderr)
        yield
        await ring.settled(*(names or ring.processes))
        end = time.time()
        await until(lambda: all(each.is_processed or each.began > end for each in observer.last.values()), scale)

    try:
        async with Network(cluster) as network, asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(observer.follow())]
            following += [tasks.create_task(watch(observer, operator, ring.path))]
            async with window("start"):
                await ring.start("a")
                await ring.start("b", bug=scale.bug)
                await ring.start("c", kubeconfig=network.kubeconfig)
            changing = tasks.create_task(changes.run())
            async with window("no fault"):
                await asyncio.sleep(scale.times[0])
            async with window("kill -9"):
                await ring.end("a", signal.SIGKILL)
            async with window("join"):
                await ring.start("d")
            async with window("SIGSTOP", "c", "d"):
                ring.send("b", signal.SIGSTOP)
            async with window("SIGCONT"):
                ring.send("b", signal.SIGCONT)
            async with window("network cut", "b", "d"):
                network.is_cut = True
                ring.mark("c", is_able=False)
            async with window("network healed"):
                network.is_cut = False
                ring.mark("c", is_able=True)
            for old, new in list(zip("bcd", "efg", strict=True))[: scale.rolled]:
                async with window(f"rolling restart: {new} joins"):
                    await ring.start(new)
                async with window(f"rolling restart: {old} leaves"):
                    await ring.end(old, signal.SIGTERM)
            async with window("ring object deleted"):
                status, _ = await operator.request("DELETE", f"{ring.path}/{RING}-ring")
                assert status == 200
            is_known = GATE in await operator.features()
            for shards in (not scale.shards, scale.shards) if is_known else ():
                state = "on" if shards else "off"
                async with window(f"API server restarted, gate {state}"):
                    await operator.act("restart-apiserver", scale.gate(shards))
                async with window(f"join, gate {state}"):
                    await ring.start(f"gate-{state}")
            changes.ending.set()
            await changing
            await until(lambda: changes.are_processed(observer), scale)
            for task in following:
                task.cancel()
        _, listed = await operator.request("GET", f"{ring.path}?labelSelector=app%3Dweb")
    finally:
        await ring.kill()
    observer.read()
    delays = [seconds for began, seconds in observer.delays() if began >= windows[1][0]]  # not of the creations
    return {
        **_result(observer, changes, listed["items"], scale),
        "s from a change to its write": quantiles(delays),
        "faults": figures(observer, windows, ring.marks, scale.times[0] + 5),
    }


def _result(observer: Observer, changes: Changes, listed: list[dict[str, Any]], scale: Scale) -> dict[str, Any]:
    """Return the figures of a whole run. `listed` are the objects at its end."""
    violations, histories = observer.violations(), dict(observer.histories())
    numbers = {each["metadata"]["name"]: int(each["data"]["seq"]) for each in listed}
    versions = {each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in listed}
    return {
        "objects": scale.objects,
        "changes a second": scale.rate,
        "lease, renew deadline, retry period": scale.times,
        "gate": "on" if scale.shards else "off",
        "writes of replicas": sum(bool(each.by) for some in histories.values() for each in some),
        "versions of which the writer got no answer": observer.unanswered(),
        "changes": sum(not each.by for some in histories.values() for each in some) - scale.objects,
        "changes that the server refused or did not answer": changes.failed,
        "objects with two owners": len(violations),
        "examples": [f"{uid}: {how}" for uid, some in list(violations.items())[:3] for _, how in some[:1]],
        "changes lost": sum(number > numbers.get(name, -1) for name, number in changes.sequence.items())
        + sum(each["data"].get("done") != each["data"]["seq"] for each in listed),
        "objects whose last version was not observed": sum(
            name not in observer.last or observer.last[name].version != version for name, version in versions.items()
        ),
    }


async def until(condition: Callable[[], Any], scale: Scale) -> None:
    async with asyncio.timeout(scale.patience):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def measure(scale: Scale, tools: Path) -> dict[str, Any]:
    """Run the faults on a cluster of their own."""
    with tempfile.TemporaryDirectory(prefix="ring-") as name:
        folder = Path(name)
        cluster = RealCluster(tools, folder / "data", scale.options(folder))
        cluster.up()
        try:
            async with Operator(cluster) as operator:
                return await run_faults(cluster, operator, scale, folder)
        finally:
            cluster.down()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=Scale.objects)
    parser.add_argument("--bytes", type=int, default=Scale.filling, help="of further data of each object")
    parser.add_argument("--rate", type=float, default=Scale.rate, help="changes a second")
    parser.add_argument("--lease", type=float, default=15.0, help="seconds of a Lease; others are 2/3 and 2/15 of it")
    parser.add_argument("--rolled", type=int, default=3, help="how many replicas are replaced one after the other")
    parser.add_argument("--shards", action="store_true", help="the server selects by shards")
    parser.add_argument("--bug", default="", help="of tests/support/ring_bugs.py, in one replica")
    options = parser.parse_args()
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        parser.error("AIOINFORMER_TEST_CLUSTER must name the folder with the tools of the cluster")
    lease = options.lease
    scale = Scale(
        objects=options.objects,
        filling=options.bytes,
        processed=True,
        rate=options.rate,
        times=(lease, lease * 2 / 3, lease * 2 / 15),
        rolled=options.rolled,
        shards=options.shards,
        patience=600.0,
        bug=options.bug,
    )
    print(json.dumps(asyncio.run(measure(scale, Path(tools))), indent=2))


if __name__ == "__main__":
    main()
