"""Replicas of a ring in this process, each with a transport of its own, and what the server has of their work."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from aioinformer import HttpTransport, LeaderElectionOptions
from aioinformer.controller import Controller, Manager, Request
from aioinformer.errors import AioinformerError, ApiError, TransportError
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.testing import ApiServer

SHORT = LeaderElectionOptions(lease_duration=3, renew_deadline=2.0, retry_period=0.1)
OBJECTS = 60


class Link:
    """A transport that can be cut: requests fail, and open watches are silent."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self.cut = False
        #: A part of the paths that the server forbids.
        self.refused = ""
        #: Whether the server forbids writes of the ring.
        self.writes_refused = False
        #: Until it is set, no answer arrives to the lists that compare a cache with the server; `held` counts them.
        self.gate: asyncio.Event | None = None
        self.held = 0
        self.reads = 0
        self.lease_requests = 0

    async def request(self, request: Any) -> Any:
        self.reads += request.path.endswith("/widgets-ring")
        self.lease_requests += "/leases" in request.path
        if self.cut:
            raise TransportError("connection refused")
        written = "/configmaps" in request.path and request.method != "GET"
        if (self.refused and self.refused in request.path) or (self.writes_refused and written):
            raise ApiError(403, "Forbidden", "no rights")
        response = await self._transport.request(request)
        compares = "PartialObjectMetadataList" in request.headers.get("Accept", "") and not request.stream
        if self.gate is not None and compares:
            self.held += 1
            await self.gate.wait()
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class Replica:
    """One manager with a transport of its own."""

    def __init__(
        self,
        server: ApiServer,
        name: str,
        resource: Any = core_v1.CONFIG_MAPS,
        owns: Any = (),
        workers: int = 4,
        token: str | None = None,
        sync_timeout: float = 120.0,
        **ring: Any,
    ) -> None:
        self.name = name
        self.runs: Counter[str] = Counter()
        self.running: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.instead: dict[str, Callable[[Request[Any]], Awaitable[None]]] = {}
        self.failures: list[BaseException] = []
        self.transport = Link(HttpTransport(server.url, token=token))
        options: dict[str, Any] = {"slots": 16, "options": SHORT, "member": name, **ring}
        selected: Any = {"label_selector": "app=web"}
        controller = Controller("widgets", resource, self.reconcile, informer=selected, owns=owns, workers=workers)
        ring_of_all = ControllerRing("widgets", **options)
        self.manager = Manager(
            name, [controller], client=self.transport, ring=ring_of_all, grace=0.5, sync_timeout=sync_timeout
        )

    async def reconcile(self, request: Request[Any]) -> None:
        key = str(request.key)
        self.runs[key] += 1
        if key in self.instead:
            await self.instead.pop(key)(request)
            return
        if request.object is None:
            return
        self.running.add(key)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if isinstance(request.object, core_v1.ConfigMap) and (request.object.data or {}).get("by") != self.name:
                await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"by": self.name}})
        except asyncio.CancelledError:
            try:  # a reconciler that goes on after its cancellation
                await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"by": "late"}})
            except AioinformerError as error:
                self.failures.append(error)
            raise
        finally:
            self.running.discard(key)

    async def run(self, key: str, reconcile: Callable[[Request[Any]], Awaitable[None]]) -> None:
        """Run a key once with another reconciler, and wait for the end."""
        ended = asyncio.Event()

        async def once(request: Request[Any]) -> None:
            try:
                await reconcile(request)
            finally:
                ended.set()

        self.instead[key] = once
        self.manager.enqueue(self.manager.controllers["widgets"], key)
        async with asyncio.timeout(50):
            await ended.wait()

    async def start(self) -> None:
        await self.manager._start(ends_on_failure=True)

    async def stop(self) -> None:
        await self.manager._stop("the test")

    async def __aenter__(self) -> Replica:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()
        await self.transport.aclose()

    def looks(self) -> int:
        """Return how often the ring was read."""
        return self.transport.reads

    def cached(self) -> set[str]:
        """Return the keys of the objects in the cache."""
        session = self.manager._session
        assert session is not None
        return set(session.controllers["widgets"].active.inputs.primary.get_indexer().list_keys())

    @property
    def ring(self) -> Any:
        snapshot = self.manager.snapshot()["ring"]
        assert snapshot is not None
        return snapshot


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def owners(server: ApiServer) -> dict[str, set[str]]:
    """Return which replica has written which objects last."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in server.list("configmaps", namespace="default"):
        if each["metadata"].get("labels", {}).get("app") == "web":
            found[each.get("data", {}).get("by", "")].add(each["metadata"]["name"])
    return found


def settled(server: ApiServer, *replicas: Replica) -> bool:
    """Return whether these replicas share all slots, and have written all objects."""
    mine = [len(each.ring["mine"]) for each in replicas]
    shared = sum(mine) == 16 and min(mine) > 0 and all(each.manager.ready() for each in replicas)
    return shared and owners(server).keys() == {each.name for each in replicas}


def ring_object(server: ApiServer) -> dict[str, Any]:
    return server.get("configmaps", "widgets-ring", "default")


async def do_nothing(request: Request[Any]) -> None:
    pass
