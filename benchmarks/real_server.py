"""Compare aioinformer with client-go on a real API server: the first list, a client that catches up, a steady rate.

    AIOINFORMER_TEST_CLUSTER=../cluster make bench-real
    KUBECONFIG=~/.kube/config make bench-real

With `AIOINFORMER_TEST_CLUSTER`, the folder of a test cluster (docs/contributing.md), the server is started for this
run. Pods are then created and changed in etcd, because each write by the
API server costs some 5 ms of its CPU time. The events are the same. Otherwise the cluster of `KUBECONFIG` is used, and
pods are changed by patches. Use a cluster for tests: 20,000 pods are created in namespaces with the label
"aioinformer-benchmark", and stay there.

To measure how a client catches up, the client is stopped (SIGSTOP), 8,000 pods are changed once each, and the client
goes on; the server may have closed the watch until then. At the steady rate, changes are even, and CPU time is measured
after the first ones. No process is pinned to a core. CPU time of the server is that of the API server, if it runs
on the same machine, and of etcd in a test cluster. `--pods N` measures another number of pods, and implies `--dry-run`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import aiohttp
from clients import Stopwatch, pods_informer, rss_kib, synced_figures
from harness import Question, Requirement, run
from lone_events import Arrivals, OnUvloop, has_uvloop
from peers import Peers
from pods import encoded
from servers import CannotServe, client_environment

from aioinformer import connect

if TYPE_CHECKING:
    from harness import Figures, Measure

_CHOSEN = "REAL_SERVER_PODS"
_PODS = int(os.environ.get(_CHOSEN, 20_000))
_CATCH_UP = min(8_000, _PODS)
#: Changes per second: of etcd, and by the API server.
_FAST, _SLOW = 1_000, 100
_RATE = _FAST if os.environ.get("AIOINFORMER_TEST_CLUSTER") and _PODS >= 7 * _FAST else _SLOW
_BEFORE, _MEASURED = _RATE, 6 * _RATE


class RealServer:
    """A real API server with pods, and the program that changes them: `with RealServer(program) as url:`.

    Attributes:
        environment: for the clients, with `KUBECONFIG`.

    Raises:
        CannotServe: no cluster is given, or `program` is empty.
    """

    def __init__(self, program: str, cluster: str) -> None:
        self.environment = client_environment()
        self._program, self._cluster = program, cluster
        self._folder = tempfile.TemporaryDirectory(prefix="real-server-", ignore_cleanup_errors=True)

    def __enter__(self) -> str:
        if not self._program:
            raise CannotServe("the program that changes pods could not be built")
        if not self._cluster and not os.environ.get("KUBECONFIG"):
            raise CannotServe("set AIOINFORMER_TEST_CLUSTER or KUBECONFIG, see the docstring of this file")
        drive = [self._program, "drive"]
        if self._cluster:
            up = [str(Path(self._cluster) / "up"), "--detach", "--dir", self._folder.name]
            up += ["--exit-with-pid", str(os.getpid())]
            subprocess.run(up, check=True, stdout=subprocess.DEVNULL)
            self.environment["KUBECONFIG"] = str(Path(self._folder.name) / "kubeconfig")
            drive.append(json.loads((Path(self._folder.name) / "cluster.json").read_text())["etcd"])
        print(f"  creating {_PODS:,} pods, unless they exist", flush=True)
        self._driver = subprocess.Popen(drive, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment)
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        pods = self._driver.stdin
        try:
            with pods:
                for number in range(_PODS):
                    pods.write(encoded(number, number + 1) + b"\n")
        except BrokenPipeError:  # its reason is on stderr
            self.__exit__()
            raise CannotServe("the program that creates the pods has failed") from None
        return self._driver.stdout.readline().decode().strip()

    def __exit__(self, *exc: object) -> None:
        self._driver.terminate()
        self._driver.wait()
        assert self._driver.stdout is not None
        self._driver.stdout.close()
        if self._cluster:
            down = [str(Path(self._cluster) / "down"), "--dir", self._folder.name, "--rm"]
            subprocess.run(down, check=True, stdout=subprocess.DEVNULL)


class Driver:
    """The program that changes pods."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def server_cpu(self) -> float:
        """Return the CPU seconds of a local server, 0 for another one."""
        async with self._session.get(f"{self._url}/server-cpu", raise_for_status=True) as response:
            return float(await response.json())

    async def catch_up(self) -> float:
        """Change pods while this process is stopped, and return when it was continued."""
        query = f"pid={os.getpid()}&events={_CATCH_UP}"
        async with self._session.post(f"{self._url}/catch-up?{query}", raise_for_status=True) as response:
            return float(await response.json())

    async def change_steadily(self) -> None:
        """Begin to change pods at the steady rate."""
        query = f"rate={_RATE}&events={_BEFORE + _MEASURED}"
        async with self._session.post(f"{self._url}/go?{query}", raise_for_status=True):
            pass


async def measure(url: str, **options: Any) -> Figures:
    """Measure the informer with one handler."""
    arrivals = Arrivals()

    async def on_add(obj: Any) -> None: ...

    async def on_update(old: Any, new: Any) -> None:
        arrivals.note()

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session, await connect() as connection:
        driver = Driver(session, url)
        informer = pods_informer(connection.transport, **options)
        registration = informer.add_event_handler(on_add=on_add, on_update=on_update)
        server = await driver.server_cpu()
        before, watch = rss_kib(), Stopwatch()
        async with informer:
            await registration.wait_for_sync()
            figures = synced_figures(watch, before, len(informer.get_indexer()))
            figures["server_list_cpu_seconds"] = await driver.server_cpu() - server

            arrivals.begin(0, _CATCH_UP)
            cpu = process_time()
            continued = await driver.catch_up()
            await arrivals.wait()
            figures["catch_up_us_per_event"] = (arrivals.finished - cpu) / _CATCH_UP * 1e6
            figures["catch_up_wall_seconds"] = arrivals.times[-1] - continued

            arrivals.begin(_BEFORE, _MEASURED)
            server = await driver.server_cpu()
            await driver.change_steadily()
            await arrivals.wait()
            figures["server_us_per_change"] = (await driver.server_cpu() - server) / (_BEFORE + _MEASURED) * 1e6
            figures["steady_us_per_event"] = arrivals.cpu / _MEASURED * 1e6
    return figures


_OWN: dict[str, Measure | list[str]] = {
    "aioinformer": measure,
    "aioinformer, pages": partial(measure, pages=True),
    "aioinformer, auto": partial(measure, auto=True),
    "aioinformer, metadata": partial(measure, storage="metadata"),
}
if has_uvloop:
    _OWN["aioinformer, uvloop"] = OnUvloop(measure)


def question() -> Question:
    """Return the question. Without client-go there is no program that changes pods."""
    peers = Peers()
    subjects = dict(_OWN) | peers.cluster(f"{_CATCH_UP}:{_RATE}:{_BEFORE}:{_MEASURED}")
    protobuf = "client-go typed, protobuf"
    return Question(
        "real_server",
        "How does aioinformer compare with client-go on a real API server?",
        subjects,
        requirements=[
            Requirement(f"first list, {how}: {what}, ratio to client-go with protobuf", subject, figure, 1.0, protobuf)
            for how, subject in (
                ("streaming", "aioinformer"),
                ("pages", "aioinformer, pages"),
                ("auto", "aioinformer, auto"),
            )
            for what, figure in (("wall time", "sync_wall_seconds"), ("CPU", "sync_cpu_seconds"))
        ],
        rounds=3,
        seconds=900.0,
        notes=[*peers.notes, f"The steady rate was {_RATE:,} changes per second."],
        serve=RealServer(peers.driver, os.environ.get("AIOINFORMER_TEST_CLUSTER", "")),
    )


def main() -> None:
    if "--pods" in sys.argv:  # the processes of the measurements need it, too
        at = sys.argv.index("--pods")
        os.environ[_CHOSEN] = sys.argv[at + 1]
        os.execv(sys.executable, [sys.executable, *sys.argv[:at], *sys.argv[at + 2 :], "--dry-run"])
    if "--subject" in sys.argv:  # the process of a single measurement does not build the peers
        run(Question("real_server", "", _OWN))
        return
    try:
        run(question())
    except CannotServe as error:
        sys.exit(f"not measured: {error}")


if __name__ == "__main__":
    main()
