"""A real kube-apiserver on loopback, and a client for it that is independent of the code under test."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

CONFIGMAPS = "/api/v1/configmaps"


class Version(NamedTuple):
    """The uid and resourceVersion of one state of an object."""

    uid: str
    resource_version: str


@dataclass(frozen=True)
class RealCluster:
    """A test cluster, made by the tools in the folder AIOINFORMER_TEST_CLUSTER.

    Attributes:
        tools: that folder.
        directory: the data directory of the cluster.
        options: further options for the start.
    """

    tools: Path
    directory: Path
    options: tuple[str, ...] = ()

    def up(self) -> None:
        """Start the cluster. It also ends when this process ends."""
        self._run("up", "--detach", "--dir", self.directory, "--exit-with-pid", os.getpid(), *self.options)

    def down(self) -> None:
        """Stop the cluster and remove its data."""
        self._run("down", "--dir", self.directory, "--rm")

    def fault(self, name: str) -> None:
        """Run a fault such as "compact" or "restart-apiserver", and return when it is done."""
        self._run("fault", "--dir", self.directory, name)

    def restart(self) -> None:
        """Restart the API server, and the controllers, which would exit if it were missing while they start."""
        self.fault("restart-apiserver")
        self.fault("restart-controllers")

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def restricted_kubeconfig(self) -> Path:
        """The kubeconfig of a user without permissions."""
        return self.directory / "restricted.kubeconfig"

    def address(self, field: str) -> str:
        """Return one of the addresses or tokens of the cluster."""
        return str(json.loads((self.directory / "cluster.json").read_text())[field])

    def _run(self, tool: str, *arguments: object) -> None:
        subprocess.run([self.tools / tool, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


class Operator:
    """An administrator who reads and writes the cluster and injects faults. An async context manager."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._server = cluster.address("server")

    async def __aenter__(self) -> Self:
        authority = ssl.create_default_context(cafile=str(self._cluster.directory / "pki" / "ca.crt"))
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._cluster.address('adminToken')}"},
            connector=aiohttp.TCPConnector(ssl=authority),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Send a request; return the status and the body of the response."""
        async with self._session.request(method, self._server + path, json=body) as response:
            return response.status, await response.json()

    async def create(self, path: str, body: Any) -> dict[str, Any]:
        """Create an object and return it."""
        status, answer = await self.request("POST", path, body)
        assert status == 201, answer
        return answer

    async def configmaps(self) -> dict[str, Version]:
        """Return the versions of all ConfigMaps by key, which informers must reach."""
        status, answer = await self.request("GET", CONFIGMAPS)
        assert status == 200, answer
        return {f"{each['namespace']}/{each['name']}": version_of(each) for each in map(_metadata, answer["items"])}

    async def features(self) -> dict[str, bool]:
        """Return which features this version of the API server has, and whether each one is enabled."""
        async with self._session.get(f"{self._server}/metrics") as response:
            assert response.status == 200
            return {
                found[1]: line.endswith(" 1")
                for line in (await response.text()).splitlines()
                if (found := re.match(r'kubernetes_feature_enabled\{name="(\w+)"', line)) is not None
            }

    async def act(self, action: str, *flags: str) -> None:
        """Run an action such as "kill-apiserver", "start-apiserver" or "compact"."""
        headers = {"Authorization": f"Bearer {self._cluster.address('controlToken')}"}
        url = f"{self._cluster.address('control')}/{action}"
        async with self._session.post(url, json=list(flags), headers=headers) as response:
            assert response.status == 200, await response.text()


def version_of(metadata: dict[str, Any]) -> Version:
    return Version(metadata["uid"], metadata["resourceVersion"])


def _metadata(item: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = item["metadata"]
    return metadata


def running(folder: Path, *options: str) -> Iterator[RealCluster]:
    """Start a cluster with its data in a folder, and stop it at the end."""
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        pytest.skip("needs a real API server: set AIOINFORMER_TEST_CLUSTER (see docs/contributing.md)")
    cluster = RealCluster(Path(tools), folder / "data", options)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()
