"""Measure a ring of processes on a real API server: hand-over, bytes, CPU and memory of each replica, and its writes.

    AIOINFORMER_TEST_CLUSTER=../cluster python benchmarks/ring.py
    AIOINFORMER_TEST_CLUSTER=../cluster python benchmarks/ring.py --objects 10000 --rate 200 --replicas 3 --write

The API server, etcd, the replicas and this program share the cores of the machine, so all times contain their work. The
server does not support shards, which is the normal case; with `--shards`, it does. Each question has a namespace of its
own. The figures are shown. With `--write` they are added to `benchmarks/results/ring.json`.

- share: `--replicas` processes with all objects and `--rate` changes a second for `--seconds`, and one process with all
  objects; a process without objects is the base of the memory.
- foreign: two replicas and a reconciler that does nothing. The CPU time of one for events of its slots, and for others.
- hand-over: from `kill -9`, or SIGTERM, to the write that gives a slot to another replica; one sample for each slot.
- burst: reconciles a second after the start of one and two processes; each writes its object.
- requests: writes of Leases and of the ring a second without a change, against n / retry_period.
- faults: all faults of `tests/real/e2e/ring_faults.py`, without and with shards; the audit log shows all writes. It
  needs `--only faults`, and its figures name their own options.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

import aiohttp

from aioinformer import LeaderElectionOptions, connect
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.ring.table import slot_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_TICK = os.sysconf("SC_CLK_TCK")
_PATCH = {"Content-Type": "application/merge-patch+json"}
QUESTIONS = ("share", "foreign", "hand_over", "burst", "requests")


class Counted:
    """A transport that counts the bytes of the answers, as they are after TLS."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.bytes = 0

    async def request(self, request: Any) -> Any:
        return CountedResponse(await self._transport.request(request), self)

    async def aclose(self) -> None:
        await self._transport.aclose()


class CountedResponse:
    def __init__(self, response: Any, counted: Counted) -> None:
        self._response = response
        self._counted = counted
        self.status, self.headers = response.status, response.headers
        self.nudge = getattr(response, "nudge", None)

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            self._counted.bytes += len(chunk)
            yield chunk

    async def close(self) -> None:
        await self._response.close()


async def replica(kubeconfig: str, namespace: str, member: str, times: str, writes: str) -> None:
    """Run one replica, and print its figures twice a second."""
    lease, renew, retry = map(float, times.split(","))
    options = LeaderElectionOptions(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    runs = 0
    async with await connect(kubeconfig=kubeconfig) as connection:
        counted = Counted(connection.transport)
        ring = ControllerRing("bench", namespace, member=member, options=options)
        manager = Manager("bench", ring=ring, namespaces=[namespace], client=counted, grace=2.0)

        @manager.controller(core_v1.CONFIG_MAPS, workers=4, informer={"label_selector": "app=web"})
        async def configmaps(request: Request[core_v1.ConfigMap]) -> None:
            nonlocal runs
            runs += 1
            if request.object is None:
                return
            data = request.object.data or {}
            if writes == "1" and data.get("done") != data.get("seq"):
                await request.client.core.v1.configmaps.patch(request.object, {"data": {"done": data["seq"]}})

        async def report() -> None:
            while True:
                snapshot = manager.snapshot()["ring"]
                mine = [] if snapshot is None else snapshot["mine"]
                print(json.dumps({"bytes": counted.bytes, "runs": runs, "mine": len(mine)}), flush=True)
                await asyncio.sleep(0.5)

        reporting = asyncio.create_task(report())
        await manager.run(signals=True)
        reporting.cancel()


class Process:
    """A replica, with its last figures."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.figures: dict[str, int] = {"bytes": 0, "runs": 0, "mine": 0}
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.figures = json.loads(line)

    def usage(self) -> dict[str, float]:
        """Return the CPU seconds and the resident MiB, beside the last figures."""
        folder = Path(f"/proc/{self.process.pid}")
        ticks = folder.joinpath("stat").read_text().rpartition(")")[2].split()
        resident = re.search(r"RssAnon:\s+(\d+)", folder.joinpath("status").read_text())
        assert resident is not None
        cpu = (int(ticks[11]) + int(ticks[12])) / _TICK
        return {"cpu": cpu, "mib": int(resident[1]) / 1024, **self.figures}

    async def end(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.process.wait()
        await self._reading


class Bench:
    """The cluster, and the questions."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._options = options
        self._folder = folder
        self._about = json.loads((folder / "cluster.json").read_text())
        self._times = ",".join(map(str, (options.lease, options.lease * 2 / 3, options.lease * 2 / 15)))
        self._count = 0
        self.figures: dict[str, Any] = {}

    async def __aenter__(self) -> Bench:
        authority = ssl.create_default_context(cafile=str(self._folder / "pki" / "ca.crt"))
        headers = {"Authorization": f"Bearer {self._about['adminToken']}"}
        self._session = aiohttp.ClientSession(
            self._about["server"], headers=headers, connector=aiohttp.TCPConnector(ssl=authority)
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def _ask(self, method: str, path: str, body: Any = None, headers: Any = None) -> Any:
        async with self._session.request(method, path, json=body, headers=headers) as response:
            return await response.json() if "json" in response.headers["Content-Type"] else await response.text()

    async def _seed(self, count: int) -> tuple[str, dict[str, str]]:
        """Create a namespace with objects; return its name, and the uids of the objects."""
        self._count += 1
        namespace = f"bench-{self._count}"
        await self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        names, uids = iter(range(count)), dict[str, str]()

        async def create() -> None:
            for number in names:
                data = {"seq": "0", "fill": "x" * self._options.bytes}
                body = {"metadata": {"name": f"m{number:06}", "labels": {"app": "web"}}, "data": data}
                made = await self._ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
                uids[made["metadata"]["name"]] = made["metadata"]["uid"]

        await asyncio.gather(*(create() for _ in range(8)))
        return namespace, uids

    async def _start(self, namespace: str, *members: str, writes: bool = True) -> dict[str, Process]:
        started = {}
        for member in members:
            arguments = (self._folder / "kubeconfig", namespace, member, self._times, int(writes))
            started[member] = Process(
                await asyncio.create_subprocess_exec(
                    sys.executable, __file__, "--replica", *map(str, arguments), stdout=asyncio.subprocess.PIPE
                )
            )
        return started

    async def _owners(self, namespace: str) -> list[str]:
        ring = await self._ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/bench-ring")
        if "data" not in ring:
            return []
        return ["" if to else owner for owner, _, to in json.loads(ring["data"]["ring.json"])["ring"]["slots"]]

    async def _settle(self, namespace: str, *members: str) -> None:
        async with asyncio.timeout(300):
            while set(await self._owners(namespace)) != {f"bench-{each}" for each in members}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _still(self, processes: dict[str, Process], objects: int) -> None:
        """Wait until each object has run, and nothing has run for 3 s."""
        runs, since = -1, perf_counter()
        while runs < objects or perf_counter() - since < 3:
            await asyncio.sleep(0.5)
            before, runs = runs, sum(each.figures["runs"] for each in processes.values())
            since = since if runs == before else perf_counter()

    async def _change(self, namespace: str, names: list[str], seconds: float, rate: float) -> int:
        """Change objects at a rate; return how many were changed."""
        began, count, under_way = perf_counter(), 0, set[asyncio.Task[Any]]()
        while (now := perf_counter() - began) < seconds:
            while count < now * rate and len(under_way) < 32:
                path = f"/api/v1/namespaces/{namespace}/configmaps/{names[count * 7919 % len(names)]}"
                task = asyncio.create_task(self._ask("PATCH", path, {"data": {"seq": f"{count + 1}"}}, _PATCH))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                count += 1
            await asyncio.sleep(0.005)
        await asyncio.gather(*under_way)
        return count

    async def share(self) -> None:
        options, figures = self._options, {}
        base = 0.0
        for label, count, objects in (
            ("empty", 1, 0),
            ("one", 1, options.objects),
            ("ring", options.replicas, options.objects),
        ):
            namespace, uids = await self._seed(objects)
            processes = await self._start(namespace, *(f"r{number}" for number in range(count)))
            await self._settle(namespace, *processes)
            await self._still(processes, objects)
            before = {name: each.usage() for name, each in processes.items()}
            changed = await self._change(namespace, list(uids), options.seconds, options.rate) if uids else 0
            await asyncio.sleep(1)
            after = {name: each.usage() for name, each in processes.items()}
            if not uids:
                base = after["r0"]["mib"]
            figures[label] = {
                "changes per second": changed / options.seconds,
                "replicas": {
                    name: {
                        "CPU share": (after[name]["cpu"] - before[name]["cpu"]) / options.seconds,
                        "runs per second": (after[name]["runs"] - before[name]["runs"]) / options.seconds,
                        "kB read per second": (after[name]["bytes"] - before[name]["bytes"]) / options.seconds / 1000,
                        "MiB": after[name]["mib"],
                        "MiB above an empty one": after[name]["mib"] - base,
                        "MiB above an empty one, before the changes": before[name]["mib"] - base,
                        "slots": after[name]["mine"],
                    }
                    for name in processes
                },
            }
            for each in processes.values():
                await each.end(signal.SIGKILL)
        self.figures[f"share of {options.objects:,} objects"] = figures

    async def foreign(self) -> None:
        namespace, uids = await self._seed(min(self._options.objects, 500))
        processes = await self._start(namespace, "r0", "r1", writes=False)
        await self._settle(namespace, *processes)
        await asyncio.sleep(3)
        owners = await self._owners(namespace)
        cost = {}
        for what, owner in (("idle", ""), ("own", "bench-r0"), ("foreign", "bench-r1")):
            names = [name for name, uid in uids.items() if owners[slot_of(uid, 64)] == owner]
            before = processes["r0"].usage()["cpu"]
            seconds = self._options.seconds
            changed = await self._change(namespace, names, seconds, self._options.rate) if names else 1
            if not names:
                await asyncio.sleep(seconds)
            cost[what] = (processes["r0"].usage()["cpu"] - before, changed)
        idle = cost["idle"][0]
        own, other = ((cost[what][0] - idle) / cost[what][1] * 1e6 for what in ("own", "foreign"))
        self.figures["foreign"] = {
            "µs of CPU for an own event": own,
            "µs for one of another slot": other,
            "ratio": other / own,
            "idle CPU share": idle / self._options.seconds,
        }
        for each in processes.values():
            await each.end(signal.SIGKILL)

    async def hand_over(self) -> None:
        namespace, _ = await self._seed(min(self._options.objects, 500))
        processes = await self._start(namespace, "r0", "r1", "r2")
        await self._settle(namespace, *processes)
        for what, number in (("kill -9", signal.SIGKILL), ("leave", signal.SIGTERM)):
            samples: list[float] = []
            for turn in range(self._options.falls):
                name = next(iter(processes))
                before = await self._owners(namespace)
                lost = {slot for slot, owner in enumerate(before) if owner == f"bench-{name}"}
                began, ending = perf_counter(), asyncio.create_task(processes.pop(name).end(number))
                while lost:
                    owners = await self._owners(namespace)
                    taken = {slot for slot in lost if owners[slot] not in ("", f"bench-{name}")}
                    samples += [perf_counter() - began] * len(taken)
                    lost -= taken
                    await asyncio.sleep(0.02)
                await ending
                processes |= await self._start(namespace, f"r-{number.name.lower()}-{turn}")
                await self._settle(namespace, *processes)
            cuts = quantiles(samples, n=100, method="inclusive")
            self.figures[f"hand-over after {what}"] = {"p50 s": cuts[49], "p99 s": cuts[98], "samples": len(samples)}
        for each in processes.values():
            await each.end(signal.SIGKILL)

    async def burst(self) -> None:
        for count in (1, 2):
            namespace, uids = await self._seed(self._options.burst)
            processes = await self._start(namespace, *(f"r{number}" for number in range(count)))
            began = perf_counter()
            while (done := sum(each.figures["runs"] for each in processes.values())) < len(uids):
                began = began if done else perf_counter()
                await asyncio.sleep(0.05)
            self.figures[f"runs per second, {count} processes"] = len(uids) / max(0.5, perf_counter() - began)
            for each in processes.values():
                await each.end(signal.SIGKILL)

    async def requests(self) -> None:
        for count in self._options.many:
            namespace, _ = await self._seed(20)
            members = [f"r{number}" for number in range(count)]
            processes = await self._start(namespace, *members)
            await self._settle(namespace, *members)
            await asyncio.sleep(2)
            before, epoch = await self._lease_writes(), await self._epoch(namespace)
            began = perf_counter()
            await asyncio.sleep(self._options.seconds)
            seconds = perf_counter() - began
            self.figures[f"requests of {count} replicas"] = {
                "Lease writes per second": (await self._lease_writes() - before) / seconds,
                "by the formula": count / float(self._times.split(",")[2]),
                "ring writes per second": (await self._epoch(namespace) - epoch) / seconds,
            }
            read = sum(each.figures["bytes"] for each in processes.values())
            await asyncio.sleep(self._options.seconds)
            read = sum(each.figures["bytes"] for each in processes.values()) - read
            each_read = read / self._options.seconds / count / 1000
            self.figures[f"requests of {count} replicas"]["kB read per second and replica"] = each_read
            for each in processes.values():
                await each.end(signal.SIGKILL)

    async def _epoch(self, namespace: str) -> int:
        ring = await self._ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/bench-ring")
        return int(json.loads(ring["data"]["ring.json"])["ring"]["epoch"])

    async def _lease_writes(self) -> float:
        """Return how many Leases were replaced; those of the API server itself are not counted."""
        text = await self._ask("GET", "/metrics")
        lines = (line for line in text.splitlines() if line.startswith("apiserver_request_total{"))
        found = [line for line in lines if 'resource="leases"' in line and 'verb="PUT"' in line]
        return sum(float(line.rpartition(" ")[2]) for line in found)


async def measure(folder: Path, questions: list[str], options: argparse.Namespace) -> dict[str, Any]:
    async with Bench(folder, options) as bench:
        for name in questions:
            await getattr(bench, name)()
            print(json.dumps(bench.figures, indent=2), flush=True)
    return bench.figures


def faults(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is observed in all faults, without and with shards."""
    figures = {}
    for gate, shards in (("off", []), ("on", ["--shards"])):
        scale = [f"--{name}={getattr(options, name)}" for name in ("objects", "bytes", "rate", "lease")]
        command = [sys.executable, "-m", "tests.real.e2e.ring_faults", *scale, *shards]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
        figures[f"faults, gate {gate}"] = json.loads(done.stdout)
    return figures


def on_cluster(tools: str, questions: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure on a cluster of its own."""
    with tempfile.TemporaryDirectory() as name:
        gate = f"--feature-gates=ShardedListAndWatch={str(options.shards).lower()}"
        up = [f"{tools}/up", "--detach", "--dir", name, "--exit-with-pid", str(os.getpid()), gate]
        subprocess.run(up, check=True, stdout=subprocess.DEVNULL)
        try:
            return asyncio.run(measure(Path(name), questions, options))
        finally:
            subprocess.run([f"{tools}/down", "--dir", name], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=500)
    parser.add_argument("--bytes", type=int, default=500, help="of the data of each object")
    parser.add_argument("--rate", type=float, default=50.0, help="changes a second")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--lease", type=int, default=6, help="seconds of a Lease; others are 2/3 and 2/15 of it")
    parser.add_argument("--falls", type=int, default=2, help="how many replicas fall in each way")
    parser.add_argument("--burst", type=int, default=500, help="objects of the burst")
    parser.add_argument("--many", type=int, nargs="*", default=[3], help="numbers of replicas for the requests")
    parser.add_argument("--shards", action="store_true", help="the server selects by shards")
    parser.add_argument("--only", nargs="*", choices=(*QUESTIONS, "faults"), default=QUESTIONS)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/ring.json")
    parser.add_argument("--replica", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replica:
        asyncio.run(replica(*options.replica))
        return
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        parser.error("AIOINFORMER_TEST_CLUSTER must name the folder with the tools of the cluster")
    figures = faults(options) if "faults" in options.only else {}
    if questions := [each for each in options.only if each != "faults"]:
        figures |= on_cluster(tools, questions, options)
    if options.write:
        from harness import RESULTS, machine

        asked = {each: getattr(options, each) for each in ("objects", "rate", "replicas", "seconds", "lease", "shards")}
        file = RESULTS / "ring.json"
        known = json.loads(file.read_text()) if file.exists() else {"figures": {}}
        # Without figures of another machine.
        kept = known["figures"] if known.get("machine") == machine() else {}
        asked = known.get("options", asked) if options.only == ["faults"] else asked
        result = {"machine": machine(), "options": asked, "figures": {**kept, **figures}}
        file.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
