"""Run an informer for an hour beside 1,000 changes a second, on a real API server that compacts and restarts.

    AIOINFORMER_TEST_CLUSTER=../cluster python benchmarks/endurance.py --minutes 60

5,000 ConfigMaps of 1 KB each change in turn. They are changed in etcd, because a write by the API server costs it a
millisecond of its CPU time or more. The API server compacts etcd every 30 seconds and restarts every 5 minutes, while
the changes go on. The informer runs in a process of its own, over TLS, with one handler, and reports every 10 seconds.

Latency is the time from just before the change is handed to the program that writes to etcd until the call of the
handler. Windows in which the API server restarted, or a list was under way, are marked: their latency contains the time
in which the server did not answer. At the end, the cache must have the last change of each object, and so must the
handler have been called with it; and no handler call may show an older state than the one before.

Without `--write`, no results are written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from harness import RESULTS, machine
from peers import Peers
from servers import CannotServe
from ticker import quantile

from aioinformer import ListWatch, SharedIndexInformer, connect
from aioinformer.models import core_v1

_OBJECTS, _SIZE, _NAMESPACE = 5_000, 1_000, "endurance"
_WINDOW, _RESTART, _COMPACTION = 10.0, 300.0, 30
#: The share of the windows that is not judged: the first lists after a restart grow the heap once.
_WARM_UP = 0.2
_PATIENCE = 120.0


def config_map(number: int, change: int, sent: float) -> str:
    """Return a ConfigMap as etcd has it."""
    name = f"object-{number:05}"
    metadata = {
        "name": name,
        "namespace": _NAMESPACE,
        "uid": f"8f1d2c3b-4a59-4687-9c0e-{number:012x}",
        "creationTimestamp": "2026-03-01T09:10:11Z",
    }
    data = {"change": str(change), "sent": repr(sent), "text": f"{change:x}".rjust(_SIZE - 330, "x")}
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})


# The process with the informer.


class Watched:
    """What the handler has seen, by key, and the latencies of the present window."""

    def __init__(self) -> None:
        self.changes: dict[str, int] = {}  # by name
        self.latencies: list[float] = []
        self.events = self.backward = 0

    async def on_add(self, obj: Any) -> None:
        self._see(obj)

    async def on_update(self, old: Any, new: Any) -> None:
        if new.metadata.resource_version != old.metadata.resource_version:
            self.events += 1
            self.latencies.append((monotonic() - float((new.data or {})["sent"])) * 1000)
            self._see(new)

    def _see(self, obj: Any) -> None:
        change, name = int((obj.data or {})["change"]), obj.metadata.name
        self.backward += change < self.changes.get(name, 0)
        self.changes[name] = change


def resident_kib() -> float:
    """Return the resident memory of this process, with what its allocator keeps."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


async def subject() -> None:
    """Run the informer; answer each line of the standard input with a report as JSON."""
    watched = Watched()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with await connect() as connection:
        informer = SharedIndexInformer(ListWatch(connection, core_v1.CONFIG_MAPS, namespace=_NAMESPACE))
        informer.add_event_handler(on_add=watched.on_add, on_update=watched.on_update)
        async with informer:
            while line := await reader.readline():
                answer: dict[str, Any] = {
                    "rss_kib": resident_kib(),
                    "events": watched.events,
                    "p50_ms": quantile(watched.latencies, 0.5),
                    "p99_ms": quantile(watched.latencies, 0.99),
                    "max_ms": quantile(watched.latencies, 1.0),
                    "backward": watched.backward,
                    "tasks": len(asyncio.all_tasks()),
                    "cpu_seconds": sum(os.times()[:2]),
                    "since": informer.snapshot()["since"],
                }
                watched.latencies.clear()
                if line == b"end\n":
                    stored = informer.get_indexer().list()
                    answer["cache"] = {each.metadata.name: int((each.data or {})["change"]) for each in stored}
                    answer["handler"] = watched.changes
                print(json.dumps(answer), flush=True)


# The process that changes objects, and restarts the API server.


class Cluster:
    """A real API server that compacts etcd often."""

    def __init__(self, tools: str) -> None:
        if not tools:
            raise CannotServe("set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster (docs/contributing.md)")
        self._tools = Path(tools)
        self._folder = tempfile.TemporaryDirectory(prefix="endurance-", ignore_cleanup_errors=True)
        self._flags = f"--etcd-compaction-interval={_COMPACTION}s"

    def __enter__(self) -> Cluster:
        self._run("up", "--detach", "--exit-with-pid", str(os.getpid()), self._flags)
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self.etcd = json.loads((Path(self._folder.name) / "cluster.json").read_text())["etcd"]
        return self

    def __exit__(self, *exc: object) -> None:
        self._run("down", "--rm")

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(self._tools / tool), *arguments, "--dir", self._folder.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    async def restart(self) -> None:
        """Restart the API server."""
        await asyncio.to_thread(self._run, "fault", "restart-apiserver", self._flags)


class Changes:
    """Changes the objects in turn, at a rate, by a program that writes to etcd."""

    def __init__(self, writer: asyncio.subprocess.Process, rate: int) -> None:
        self._writer, self._rate = writer, rate
        self.count = 0
        self.last: dict[str, int] = {}

    async def change(self, count: int) -> None:
        """Make the next changes."""
        assert self._writer.stdin is not None
        for _ in range(count):
            number = self.count % _OBJECTS
            self.count += 1
            self.last[f"object-{number:05}"] = self.count
            body = config_map(number, self.count, monotonic())
            self._writer.stdin.write(f"put /registry/configmaps/{_NAMESPACE}/object-{number:05} {body}\n".encode())
        await self._writer.stdin.drain()

    async def run(self) -> None:
        """Change objects until cancelled. What is late is not caught up with, so the rate may be lower."""
        due, step = monotonic(), max(1, self._rate // 100)
        while True:
            await self.change(step)
            due = max(due + step / self._rate, monotonic() - 1.0)
            await asyncio.sleep(max(0.0, due - monotonic()))


async def endure(cluster: Cluster, program: str, seconds: float, rate: int) -> dict[str, Any]:
    """Return the figures of a run."""
    pipe = asyncio.subprocess.PIPE
    writer = await asyncio.create_subprocess_exec(program, "seed", cluster.etcd, stdin=pipe)
    changes = Changes(writer, rate)
    await changes.change(_OBJECTS)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    command = [sys.executable, __file__, "--subject"]
    watching = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment, limit=2**24)

    async def ask(line: str) -> dict[str, Any]:
        assert watching.stdin is not None
        assert watching.stdout is not None
        watching.stdin.write(line.encode() + b"\n")
        answer: dict[str, Any] = json.loads(await watching.stdout.readline())
        return answer

    windows: list[dict[str, Any]] = []
    restarts, began = 0, monotonic()
    restart_at, restarting = began + _RESTART, None
    running = asyncio.create_task(changes.run())
    while monotonic() < began + seconds:
        await asyncio.sleep(began + (len(windows) + 1) * _WINDOW - monotonic())
        busy = restarting is not None
        if restarting is not None and restarting.done():
            restarting = restarting.result()
        if monotonic() > restart_at and monotonic() < began + seconds - _RESTART / 2:
            restart_at, restarts = restart_at + _RESTART, restarts + 1
            restarting = asyncio.create_task(cluster.restart())
        windows.append({"at": round(monotonic() - began, 1), "changes": changes.count, **await ask("report")})
        windows[-1]["disturbed"] = busy or (len(windows) > 1 and windows[-1]["since"] != windows[-2]["since"])
        print(json.dumps(windows[-1]), flush=True)
    running.cancel()
    await asyncio.wait({running})
    assert writer.stdin is not None
    writer.stdin.close()
    await writer.wait()
    deadline, last = monotonic() + _PATIENCE, await ask("end")
    while last["cache"] != changes.last and monotonic() < deadline:
        await asyncio.sleep(1)
        last = await ask("end")
    await asyncio.sleep(1)
    last = await ask("end")
    assert watching.stdin is not None
    watching.stdin.close()
    await watching.wait()
    lost = [last[where].get(name) != change for name, change in changes.last.items() for where in ("cache", "handler")]
    made = (changes.count - _OBJECTS) / seconds
    return report(seconds, {"rate": round(made, 1), "restarts": restarts, "lost": sum(lost)}, last["backward"], windows)


def report(seconds: float, counts: dict[str, float], backward: int, windows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results, in the form of the other benchmarks, with the windows."""
    figures = {**counts, "backward": backward, **judged(windows)}
    limits = (
        ("lost changes", figures["lost"], 0.0),
        ("handler calls with an older state", backward, 0.0),
        ("memory, ratio of the last third to the first", figures["rss_mib_late"] / figures["rss_mib_early"], 1.05),
        ("p99, ratio of the last third to the first", figures["p99_ms_late"] / figures["p99_ms_early"], 1.25),
    )
    return {
        "question": "Does an informer stay small and fast for an hour of changes?",
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "rounds": 1,
        "notes": [],
        "requirements": [
            {"title": title, "at_most": limit, "measured": round(value, 3), "met": value <= limit, "is_ratio": False}
            for title, value, limit in limits
        ],
        "medians": {f"{seconds / 60:g} minutes": figures},
        "windows": windows,
    }


def judged(windows: list[dict[str, Any]]) -> dict[str, float]:
    """Return memory and latency in the first and in the last third, without the windows of restarts and lists."""
    warm = windows[int(len(windows) * _WARM_UP) :]
    third = max(1, len(warm) // 3)
    found: dict[str, float] = {"cpu_share": round(windows[-1]["cpu_seconds"] / windows[-1]["at"], 3)}
    for name, part in (("early", warm[:third]), ("late", warm[-third:])):
        quiet = [each for each in part if not each["disturbed"]] or part
        found[f"rss_mib_{name}"] = round(median(each["rss_kib"] for each in part) / 1024, 1)
        found[f"p50_ms_{name}"] = round(median(each["p50_ms"] for each in quiet), 2)
        found[f"p99_ms_{name}"] = round(median(each["p99_ms"] for each in quiet), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Does an informer stay small and fast for an hour of changes?")
    parser.add_argument("--minutes", type=float, default=60.0, help="default: 60")
    parser.add_argument("--rate", type=int, default=1_000, help="changes a second; default: 1000")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/endurance.json")
    parser.add_argument("--subject", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.subject:
        asyncio.run(subject())
        return
    peers = Peers()
    peers.go(0)
    if not peers.driver:
        sys.exit(f"not measured: {' '.join(peers.notes)}")
    try:
        with Cluster(os.environ.get("AIOINFORMER_TEST_CLUSTER", "")) as cluster:
            figures = asyncio.run(endure(cluster, peers.driver, options.minutes * 60, options.rate))
    except CannotServe as error:
        sys.exit(f"not measured: {error}")
    print(json.dumps({name: value for name, value in figures.items() if name != "windows"}, indent=1))
    if options.write:
        (RESULTS / "endurance.json").write_text(json.dumps(figures) + "\n")
    if not all(each["met"] for each in figures["requirements"][:2]):
        sys.exit("changes were lost, or shown in another order")


if __name__ == "__main__":
    main()
