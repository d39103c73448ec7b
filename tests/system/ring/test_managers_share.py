"""Managers that share a ring, with the embedded API server over HTTP and short times: who runs and writes what."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import HttpTransport, LeaderElectionOptions
from aioinformer.cli.controllers.needs import needs
from aioinformer.controller import Controller, LeaderElection, Manager, Request
from aioinformer.errors import AioinformerError, ApiError, TransportError, UsageError
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.ring import ControllerRing, RingRefused, SlotLost, membership

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

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

    async def request(self, request: Any) -> Any:
        if self.cut:
            raise TransportError("connection refused")
        if self.refused and self.refused in request.path:
            raise ApiError(403, "Forbidden", "no rights")
        return await self._transport.request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


class Replica:
    """One manager with a transport of its own."""

    def __init__(self, server: ApiServer, name: str, **ring: Any) -> None:
        self.name = name
        self.runs: Counter[str] = Counter()
        self.running: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.instead: dict[str, Callable[[Request[Any]], Awaitable[None]]] = {}
        self.failures: list[BaseException] = []
        self.transport = Link(HttpTransport(server.url))
        options: dict[str, Any] = {"slots": 16, "options": SHORT, "member": name, **ring}
        controller = Controller("widgets", core_v1.CONFIG_MAPS, self.reconcile, informer={"label_selector": "app=web"})
        self.manager = Manager(
            name, [controller], client=self.transport, ring=ControllerRing("widgets", **options), grace=0.5
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
            if (request.object.data or {}).get("by") != self.name:
                await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"by": self.name}})
        except asyncio.CancelledError:
            try:  # a reconciler that goes on after its cancellation
                await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"by": "late"}})
            except AioinformerError as error:
                self.failures.append(error)
            raise
        finally:
            self.running.discard(key)

    async def start(self) -> None:
        await self.manager._start(ends_on_failure=True)

    async def stop(self) -> None:
        await self.manager._stop("the test")

    @property
    def ring(self) -> Any:
        snapshot = self.manager.snapshot()["ring"]
        assert snapshot is not None
        return snapshot


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
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


@pytest.fixture
async def server(api_server: ApiServer) -> ApiServer:
    for number in range(OBJECTS):
        api_server.create("configmaps", {"metadata": {"name": f"m{number:02}", "labels": {"app": "web"}}})
    return api_server


@pytest.fixture
async def replicas(server: ApiServer) -> AsyncIterator[list[Replica]]:
    replicas = [Replica(server, name) for name in "abc"]
    yield replicas
    for each in replicas:
        each.transport.cut = False
        with suppress(RingRefused):
            await each.stop()
        await each.transport.aclose()


@pytest.fixture
async def shared(server: ApiServer, replicas: list[Replica]) -> list[Replica]:
    """Provide three replicas that share the objects."""
    for each in replicas:
        await each.start()
    await until(lambda: settled(server, *replicas))
    return replicas


def ring_object(server: ApiServer) -> dict[str, Any]:
    return server.get("configmaps", "widgets-ring", "default")


async def test_each_change_runs_in_one_replica(server: ApiServer, shared: list[Replica]) -> None:
    before = [Counter(each.runs) for each in shared]
    for number in range(OBJECTS):
        server.patch("configmaps", f"m{number:02}", {"data": {"seen": "1"}}, namespace="default")

    def ran() -> Counter[str]:
        """Return in how many replicas each key ran."""
        return Counter(key for each, known in zip(shared, before, strict=True) for key in each.runs - known)

    await until(lambda: len(ran()) == OBJECTS)
    assert set(ran().values()) == {1}


async def test_replica_that_is_cut_off_writes_nothing(server: ApiServer, shared: list[Replica]) -> None:
    first, *others = shared
    first.gate = asyncio.Event()
    for number in range(OBJECTS):
        server.patch("configmaps", f"m{number:02}", {"data": {"by": "", "seen": "1"}}, namespace="default")
    await until(lambda: first.running)
    first.transport.cut = True
    running = set(first.running)
    await until(lambda: first.ring["remaining"] <= 0)
    await until(lambda: settled(server, *others))
    first.transport.cut = False
    await until(lambda: not first.running)
    assert len(first.failures) >= len(running)
    assert all(isinstance(each, SlotLost | TransportError) for each in first.failures)
    assert any(isinstance(each, SlotLost) for each in first.failures)
    first.gate.set()
    await until(lambda: settled(server, *shared))


async def test_stop_hands_the_slots_over(server: ApiServer, shared: list[Replica]) -> None:
    await shared[0].stop()
    assert not [each for each in server.list("leases") if each["metadata"]["name"] == "widgets-a"]
    document = json.loads(ring_object(server)["data"]["ring.json"])["ring"]
    assert {owner for owner, _, _ in document["slots"]} == {"widgets-b", "widgets-c"}
    await until(lambda: settled(server, *shared[1:]))


async def test_change_during_a_move_runs(server: ApiServer, shared: list[Replica]) -> None:
    stop = asyncio.create_task(shared[0].stop())
    for name in owners(server)["a"]:
        server.patch("configmaps", name, {"data": {"by": ""}}, namespace="default")
        await asyncio.sleep(0)
    await stop
    await until(lambda: settled(server, *shared[1:]))


async def test_deleted_ring_is_made_again(server: ApiServer, shared: list[Replica]) -> None:
    uid = ring_object(server)["metadata"]["uid"]
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: not any(each.ring["mine"] for each in shared))
    await until(lambda: settled(server, *shared))
    assert ring_object(server)["metadata"]["uid"] != uid


async def test_ring_that_was_edited_stops_all(server: ApiServer, shared: list[Replica]) -> None:
    text = ring_object(server)["data"]["ring.json"].replace("widgets-a", "widgets-b")
    server.patch("configmaps", "widgets-ring", {"data": {"ring.json": text}}, namespace="default")
    await until(lambda: not any(each.ring["mine"] for each in shared))
    for each in shared:
        assert "edited by hand" in str(each.manager.ready())
    await until(lambda: [event for event in server.list("events") if event.get("reason") == "RingUnusable"])
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: settled(server, *shared))


@pytest.mark.parametrize(
    ("member", "ring", "reason"),
    [
        ("d", {"slots": 32}, "has 16 slots by uid, and this replica is configured for 32"),
        ("d", {"by": "namespace"}, "configured for 16 by namespace"),
        ("a", {}, "another process"),
    ],
)
async def test_replica_that_does_not_fit_is_refused(
    server: ApiServer, shared: list[Replica], member: str, ring: dict[str, Any], reason: str
) -> None:
    other = Replica(server, member, **ring)
    try:
        async with asyncio.timeout(30):
            with pytest.raises(RingRefused, match=reason):
                await other.manager.run()
    finally:
        await other.transport.aclose()
    await until(lambda: settled(server, *shared))


async def test_caches_have_the_objects_of_the_slots(server: ApiServer, shared: list[Replica]) -> None:
    def cached(replica: Replica) -> set[str]:
        session = replica.manager._session
        assert session is not None
        return set(session.controllers["widgets"].active.inputs.primary.get_indexer().list_keys())

    def divided(*replicas: Replica) -> bool:
        keys = [cached(each) for each in replicas]
        return sum(map(len, keys)) == len(set().union(*keys)) == OBJECTS and all(keys)

    await until(lambda: divided(*shared))
    runs = Counter(shared[1].runs)
    await shared[0].stop()
    await until(lambda: divided(*shared[1:]))
    assert sum((shared[1].runs - runs).values()) < OBJECTS
    await shared[0].start()
    await until(lambda: divided(*shared))


@pytest.mark.parametrize("path", ["/configmaps/widgets-ring", "/leases"])
async def test_missing_rights_are_named(server: ApiServer, replicas: list[Replica], path: str) -> None:
    replicas[0].transport.refused = path
    await replicas[0].start()
    await until(lambda: "`aioinformer check` prints the roles" in str(replicas[0].manager.ready()))
    assert not replicas[0].runs
    replicas[0].transport.refused = ""
    await until(lambda: settled(server, replicas[0]))


async def test_slot_that_is_not_handed_over_is_reported(
    server: ApiServer, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_PATIENCE", 0.0)
    first, second, _ = replicas
    go_on = asyncio.Event()

    async def stay(request: Request[Any]) -> None:
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    first.instead = {f"default/m{number:02}": stay for number in range(OBJECTS)}
    await first.start()
    await until(lambda: first.ring["mine"])
    await second.start()
    await until(lambda: "widgets-a hands slot" in second.ring["gap"])
    await until(lambda: "widgets-a hands slot" in first.ring["gap"])
    assert not second.manager.ready()
    await until(lambda: [event for event in server.list("events") if event.get("reason") == "SlotsUnowned"])
    go_on.set()
    await until(lambda: first.manager.ready() and second.manager.ready())


async def test_metrics_have_the_map(server: ApiServer) -> None:
    registry = CollectorRegistry()
    async with HttpTransport(server.url) as transport:
        manager = Manager("shared", client=transport, ring="shared", metrics=PrometheusMetrics(registry))
        async with manager:
            await until(lambda: b'ring_slot_owner{member="shared-' in generate_latest(registry))
            assert b"ring_unowned_slots_seconds{" in generate_latest(registry)


def test_check_prints_the_rights_of_a_ring() -> None:
    rules = {str(rule): rule.names for rule in needs(Manager("widgets", ring=ControllerRing("widgets", "ops")))}
    assert rules["get, list, create, update, delete leases.coordination.k8s.io in namespace ops"] == ()
    assert rules["create configmaps in namespace ops"] == ()
    assert rules["get, watch, update configmaps in namespace ops"] == ("widgets-ring",)


async def test_key_of_another_replica_is_refused(server: ApiServer, shared: list[Replica]) -> None:
    theirs = sorted(owners(server)["b"])[0]
    controller = shared[0].manager.controllers["widgets"]
    with pytest.raises(UsageError, match=r"does not run default/.* in this replica"):
        shared[0].manager.enqueue(controller, f"default/{theirs}")


async def test_lease_deleted_by_hand_ends_a_life(server: ApiServer, shared: list[Replica]) -> None:
    uid = server.get("leases", "widgets-a", "default")["metadata"]["uid"]
    server.delete("leases", "widgets-a", "default")
    await until(lambda: [each for each in server.list("leases") if each["metadata"]["name"] == "widgets-a"])
    assert server.get("leases", "widgets-a", "default")["metadata"]["uid"] != uid
    await until(lambda: settled(server, *shared))


async def test_writes_stay_in_the_slots(server: ApiServer, shared: list[Replica]) -> None:
    mine, theirs = (f"default/{min(owners(server)[name])}" for name in "ab")
    results: dict[str, Any] = {}

    async def probe(request: Request[Any]) -> None:
        configmaps = request.client.core.v1.configmaps
        for name, writes in (("inside", configmaps), ("outside", request.client.outside_ring().core.v1.configmaps)):
            try:
                await writes.patch(theirs, {"data": {"probe": name}})
                results[name] = None
            except AioinformerError as error:
                results[name] = error
        try:
            await configmaps.delete_collection(namespace="default", label_selector="app=web")
        except AioinformerError as error:
            results["collection"] = error

    shared[0].instead[mine] = probe
    shared[0].manager.enqueue(shared[0].manager.controllers["widgets"], mine)
    await until(lambda: "collection" in results)
    assert isinstance(results["inside"], SlotLost)
    assert results["outside"] is None
    assert isinstance(results["collection"], SlotLost)


@pytest.mark.parametrize("write", ["patch", "json patch", "delete", "apply", "replace"])
async def test_run_for_a_former_object_does_not_reach_its_successor(
    server: ApiServer, shared: list[Replica], write: str
) -> None:
    name = min(owners(server)["a"])
    result: list[Any] = []

    async def probe(request: Request[Any]) -> None:
        configmaps = request.client.core.v1.configmaps
        server.delete("configmaps", name, "default")
        server.create("configmaps", {"metadata": {"name": name}})  # it does not match the selector of the controller
        try:
            if write == "patch":
                await configmaps.patch(name, {"data": {"by": "former"}}, namespace="default")
            elif write == "json patch":
                patch = [{"op": "add", "path": "/data", "value": {"by": "former"}}]
                await configmaps.patch(name, patch, "json", namespace="default")
            elif write == "delete":
                await configmaps.delete(name, namespace="default")
            elif write == "apply":
                obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
                await configmaps.apply({**obj, "data": {"by": "former"}})
            else:
                await configmaps.replace({"metadata": {"name": name, "namespace": "default"}, "data": {"by": "former"}})
        except AioinformerError as error:
            result.append(error)
        else:
            result.append(None)

    shared[0].instead[f"default/{name}"] = probe
    shared[0].manager.enqueue(shared[0].manager.controllers["widgets"], f"default/{name}")
    await until(lambda: result)
    assert isinstance(result[0], ApiError)
    assert "data" not in server.get("configmaps", name, "default")


def test_ring_excludes_leader_election() -> None:
    with pytest.raises(UsageError, match="pass ring or leader_election"):
        Manager("widgets", ring="widgets", leader_election=LeaderElection("widgets"))


@pytest.mark.parametrize(
    "options", [{"slots": 63}, {"slots": 2048}, {"by": "name"}, {"name": ""}, {"member": ""}, {"name": "A b"}]
)
def test_ring_with_wrong_options_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ControllerRing(**{"name": "widgets", **options})
