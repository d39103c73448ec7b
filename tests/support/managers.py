"""Managers in virtual time, over a server in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import Manager, QueueOptions
from tests.support.lease_server import LeaseServer
from tests.support.virtual_time import settled
from tests.support.written_collection import CONFIG_MAPS, PODS, Server, response_of

if TYPE_CHECKING:
    import pytest

    from aioinformer.controller import Controller, Request
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.snapshots import ControllerSnapshot
    from aioinformer.transport import HttpRequest

__all__ = [
    "CONFIG_MAPS",
    "PODS",
    "STEADY",
    "Cluster",
    "Runs",
    "Server",
    "active_of",
    "config_map",
    "manager_of",
    "now",
    "pod",
    "server_with",
    "settled",
    "snapshot_of",
    "started",
    "subject_of_line",
]


STEADY = QueueOptions(backoff=BackoffOptions(initial=1.0, jitter=0.0, factor=2.0))


def now() -> float:
    return asyncio.get_running_loop().time()


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def server_with(*names: str) -> Server:
    """Return a server with config maps."""
    server = Server()
    for name in names:
        server.put("configmaps", config_map(name))
    return server


class Cluster(Server):
    """A server with config maps that also has a Lease, in a server of its own: `leases`.

    Events are accepted, and take no version, so that the version of a cache can be that of the server.
    """

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.leases = LeaseServer()
        for name in names:
            self.put("configmaps", config_map(name))

    async def request(self, request: HttpRequest) -> Any:
        if "/leases" in request.path:
            return await self.leases.request(request)
        if request.path.endswith("/events"):
            return response_of(201, msgspec.json.decode(request.body or b"{}"))
        return await super().request(request)


def manager_of(server: Server, *controllers: Controller[Any], **options: Any) -> Manager:
    return Manager("test", controllers, client=server, **options)


def snapshot_of(manager: Manager) -> ControllerSnapshot:
    """Return the snapshot of the only controller of a manager."""
    [snapshot] = manager.snapshot()["controllers"].values()
    return snapshot


def active_of(manager: Manager, name: str = "it") -> ActiveController:
    """Return the controller that runs, to let it fail."""
    assert manager._session is not None
    return manager._session.controllers[name].active


async def started() -> None:
    """Wait until a manager that was just entered works."""
    await asyncio.sleep(0.01)


def subject_of_line(caplog: pytest.LogCaptureFixture, text: str) -> tuple[str, str]:
    """Return the attributes `controller` and `key` of the only line of the log with a text."""
    [record] = [vars(each) for each in caplog.records if text in each.getMessage()]
    return record["controller"], record["key"]


class Runs:
    """A reconciler that notes its requests, and how many run at a time.

    Attributes:
        requests: in the order of their begin.
        times: when each began.
        most: the largest number of runs at a time.
        seconds: how long a run takes.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.requests: list[Request[Any]] = []
        self.times: list[float] = []
        self.most = 0
        self.seconds = seconds
        self._running = 0

    @property
    def names(self) -> list[str]:
        return [request.name for request in self.requests]

    async def __call__(self, request: Request[Any]) -> None:
        self.requests.append(request)
        self.times.append(now())
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
        finally:
            self._running -= 1
