"""The two API servers of the soak test, with their faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from tests.support.link import Link
from tests.support.real_cluster import Operator, RealCluster
from tests.system.soak.subject import NAMESPACE

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_NAMES = 150
_LARGEST = 4000
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, ConnectionError)


class Target(ABC):
    """A server that can be written to and made to fail. An async context manager.

    Attributes:
        about: the name of the server.
        kubeconfig: the kubeconfig for the informers.
        faults: the names of the faults.
    """

    about: str
    kubeconfig: Path
    faults: tuple[str, ...]

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Send a request; return the status and the body of the response."""

    @abstractmethod
    async def fail(self, fault: str, random: Random) -> None:
        """Inject a fault, and return when it is over."""

    async def prepare(self) -> None:
        """Create the namespace."""
        status, answer = await self.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        assert status == 201, answer

    async def write(self, random: Random) -> bool:
        """Send a random write; return whether the server accepted it."""
        name = f"c-{random.randrange(_NAMES)}"
        body = {
            "metadata": {"name": name, "labels": {"kind": random.choice("abc")}},
            "data": {"kind": random.choice("abc"), "value": "x" * random.randrange(_LARGEST)},
        }
        method = random.choice(("POST", "PUT", "PUT", "PUT", "DELETE"))
        path = _PATH if method == "POST" else f"{_PATH}/{name}"
        with suppress(*_NO_ANSWER):
            async with asyncio.timeout(50):
                status, _ = await self.request(method, path, None if method == "DELETE" else body)
                return status in (200, 201)
        return False

    async def truth(self) -> dict[str, tuple[str, str]]:
        """Return the uid and resourceVersion of each object by key; retry until the server answers."""
        async with asyncio.timeout(60):
            while True:
                with suppress(*_NO_ANSWER):
                    status, answer = await self.request("GET", _PATH)
                    if status == 200:
                        metadata = [item["metadata"] for item in answer["items"]]
                        return {
                            f"{each['namespace']}/{each['name']}": (each["uid"], each["resourceVersion"])
                            for each in metadata
                        }
                await asyncio.sleep(0.5)


class RealTarget(Target):
    """A kube-apiserver, connected through a link that can be cut."""

    about = "kube-apiserver"
    faults = (
        "the connection is cut",
        "the API server is killed",
        "the API server is restarted",
        "the API server is paused",
        "etcd is paused",
        "history is lost during a disconnection",
    )

    def __init__(self, tools: Path, directory: Path) -> None:
        self._cluster = RealCluster(tools, directory / "cluster")
        self._directory = directory

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._cluster.up)
        self._operator = await Operator(self._cluster).__aenter__()
        self._link = await Link(self._cluster, self._directory).__aenter__()
        self.kubeconfig = self._link.kubeconfig
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._link.__aexit__(None, None, None)
        await self._operator.__aexit__(None, None, None)
        await asyncio.to_thread(self._cluster.down)

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        return await self._operator.request(method, path, body)

    async def fail(self, fault: str, random: Random) -> None:
        pause = random.uniform(1, 6)
        act = self._operator.act
        match self.faults.index(fault):
            case 0:
                await self._link.cut()
                await asyncio.sleep(pause)
                await self._link.restore()
            case 1:
                await act("kill-apiserver")
                await asyncio.sleep(pause)
                await act("start-apiserver")
            case 2:
                await act("restart-apiserver")
            case 3:
                await act("pause-apiserver")
                await asyncio.sleep(pause)
                await act("resume-apiserver")
            case 4:
                await act("pause-etcd")
                await asyncio.sleep(pause)
                await act("resume-etcd")
            case _:
                await self._link.cut()
                for _ in range(20):
                    await self.write(random)
                await act("restart-apiserver")
                await act("compact")
                await self._link.restore()


#: Parameters of the faults of the embedded server. Faults with a duration end by themselves.
_OWN_FAULTS: dict[str, dict[str, Any]] = {
    "black_hole": {"duration": 5, "verbs": ["watch", "list"]},
    "compaction": {},
    "cut": {"times": 6, "events": 3},
    "error_event": {"times": 6, "events": 2},
    "expired": {"times": 9},
    "forbidden": {"duration": 4, "verbs": ["watch", "list"]},
    "garbage": {"times": 9, "events": 1},
    "half_page": {"duration": 5},
    "html": {"duration": 3, "verbs": ["watch", "list"]},
    "huge_line": {"times": 4, "size": 5_000_000},
    "ignore_send_initial_events": {"duration": 8},
    "latency": {"duration": 6, "seconds": 0.5, "verbs": ["watch", "list"]},
    "no_bookmarks": {"duration": 10},
    "outage": {"duration": 4},
    "refuse_send_initial_events": {"duration": 8},
    "restart": {"downtime": 1.0},
    "server_error": {"duration": 4, "verbs": ["watch", "list"]},
    "slow": {"duration": 8, "seconds": 0.02},
    "throttle": {"duration": 3, "retry_after": 2, "verbs": ["watch", "list"]},
    "too_large": {"times": 6},
    "unauthorized": {"duration": 3, "verbs": ["watch", "list"]},
    "unavailable": {"duration": 3, "retry_after": 1, "verbs": ["watch", "list"]},
    "undecodable_object": {"times": 6, "namespace": NAMESPACE, "name": "c-0"},
    "unknown_event_type": {"times": 9},
    "version_only_bookmark": {"times": 9},
    "watch_close": {"times": 12, "events": 2},
}
#: Faults that affect only new requests.
_OF_REQUESTS = {
    "black_hole", "expired", "forbidden", "half_page", "html", "ignore_send_initial_events", "latency",
    "refuse_send_initial_events", "server_error", "throttle", "too_large", "unauthorized", "unavailable",
}  # fmt: skip


class OwnTarget(Target):
    """The embedded API server, in a separate process."""

    about = "aioinformer serve"
    faults = tuple(_OWN_FAULTS)

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "kubeconfig"

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "aioinformer", "serve", "--faults", "--kubeconfig", str(self.kubeconfig)]
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        await self._process.stdout.readline()
        self._url = json.loads(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)
        await self._process.wait()

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        async with self._session.request(method, self._url + path, json=body) as response:
            return response.status, await response.json(content_type=None)

    async def fail(self, fault: str, random: Random) -> None:
        params = _OWN_FAULTS[fault]
        await self.request("POST", f"/_faults/{fault}", params)
        if fault in _OF_REQUESTS:
            await self.request("POST", "/_faults/error_event", {"times": 9, "status": 410, "reason": "Expired"})
        await asyncio.sleep(params.get("duration", 2) + 1)
        for name in (fault, "error_event"):
            await self.request("DELETE", f"/_faults/{name}")
