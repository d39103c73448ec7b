"""The queue of a standby, in virtual time: what it keeps of objects that are gone, and when it runs them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, LeaderElection, Manager, Owns, Source, TerminalError
from tests.support.lease_server import LeaseServer
from tests.support.written_collection import PODS
from tests.unit.controller.setting import CONFIG_MAPS, Runs, Server, config_map, manager_of, settled, started

if TYPE_CHECKING:
    from aioinformer.controller import Request
    from aioinformer.transport import Request as HttpRequest


class Cluster(Server):
    """A server with a Lease that another process holds, and renews until it is told not to.

    Attributes:
        leases: its server.
        terms: how many terms there have been.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leases = LeaseServer()
        self.terms = 1

    async def request(self, request: HttpRequest) -> Any:
        if "/leases" in request.path:
            return await self.leases.request(request)
        return await super().request(request)

    async def lead(self, seconds: float, gone: int = 0, name: str = "gone") -> None:
        """Let the other process lead for a time; so many objects come and go meanwhile."""
        for number in range(steps := max(1, round(seconds / 2))):
            self.leases.take("former", self.terms)
            for each in range(number * gone // steps, (number + 1) * gone // steps):
                self.put("configmaps", config_map(f"{name}-{each}"))
                await settled()
                self.remove("configmaps", f"default/{name}-{each}")
            await asyncio.sleep(seconds / steps)

    async def hand_over(self) -> None:
        self.leases.take("", self.terms)
        self.terms += 2
        await started()


def standby(server: Cluster, controller: Controller[Any]) -> Manager:
    return manager_of(server, controller, leader_election=LeaderElection("it", identity="new"))


@pytest.mark.behaviour("C-115")
async def test_standby_forgets_objects_whose_deletion_the_leader_has_seen() -> None:
    server, runs = Cluster(), Runs()
    server.put("configmaps", config_map("a"))
    controller = Controller("it", CONFIG_MAPS, runs)
    server.leases.take("former")
    async with standby(server, controller):
        await server.lead(seconds=1200, gone=1200)
        snapshot = controller.snapshot()
        assert snapshot["ready"] + snapshot["delayed"] == 1
        assert 100 < snapshot["gone"] < 150  # those of two minutes
        await server.lead(seconds=200)
        server.put("configmaps", config_map("late"))
        await settled()
        server.remove("configmaps", "default/late")
        await settled()
        assert controller.snapshot()["gone"] == 1
        await server.hand_over()
        assert runs.names == ["a", "late"]
        assert [each.trigger for each in runs.requests[1].causes] == ["deleted"]


@pytest.mark.behaviour("C-05", "C-115")
async def test_takeover_runs_existing_objects_first() -> None:
    server, runs = Cluster(), Runs(seconds=0.01)
    for number in range(20):
        server.put("configmaps", config_map(f"here-{number}"))
    server.leases.take("former")
    async with standby(server, Controller("it", CONFIG_MAPS, runs, workers=1)):
        await server.lead(seconds=20, gone=50)
        await server.hand_over()
        await asyncio.sleep(5)
        assert len(runs.names) == 70
        assert all(name.startswith("here") for name in runs.names[:20])


@pytest.mark.behaviour("C-115")
async def test_deletions_that_no_leader_has_seen_are_kept() -> None:
    server, runs = Cluster(), Runs()
    server.leases.take("former", seconds=3000)  # it has died, and its Lease is still valid
    async with standby(server, Controller("it", CONFIG_MAPS, runs)) as manager:
        await started()
        server.put("configmaps", config_map("a"))
        await settled()
        server.remove("configmaps", "default/a")
        await asyncio.sleep(2900)
        server.put("configmaps", config_map("b"))
        await settled()
        assert manager.snapshot()["controllers"]["it"]["gone"] == 1
        await asyncio.sleep(200)
        assert runs.names == ["b", "a"]


@pytest.mark.behaviour("C-115")
async def test_sign_of_life_is_not_younger_than_the_last_read() -> None:
    server, runs = Cluster(), Runs()
    server.leases.take("former")
    async with standby(server, Controller("it", CONFIG_MAPS, runs)):
        await asyncio.sleep(10)
        server.leases.down = True
        server.leases.take("former")  # the last renewal; the former leader dies
        server.put("configmaps", config_map("a"))
        await settled()
        server.remove("configmaps", "default/a")
        await asyncio.sleep(3600)
        server.leases.down = False
        await asyncio.sleep(60)
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-115")
async def test_object_that_comes_back_or_is_requested_stays_in_the_queue() -> None:
    server, runs = Cluster(), Runs()

    async def hooks() -> Any:
        yield "default/from-a-source"
        await asyncio.Event().wait()

    controller = Controller("it", CONFIG_MAPS, runs, owns=[Owns(PODS)], sources=[Source(hooks)])
    server.leases.take("former")
    async with standby(server, controller):
        await started()
        controller.enqueue("default/asked")
        for _ in range(2):
            server.put("configmaps", config_map("back"))
            await settled()
            server.remove("configmaps", "default/back")
            await settled()
        assert controller.snapshot()["gone"] == 1
        server.put("configmaps", config_map("back"))
        await settled()
        assert (controller.snapshot()["gone"], controller.snapshot()["ready"]) == (0, 3)
        await server.lead(seconds=600)
        await server.hand_over()
        assert sorted(runs.names) == ["asked", "back", "from-a-source"]


@pytest.mark.behaviour("C-115")
async def test_former_leader_keeps_no_deletions_either() -> None:
    server, runs = Cluster(), Runs()
    server.put("configmaps", config_map("parked"))
    server.put("configmaps", config_map("here"))

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        raise TerminalError("it cannot work")

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with standby(server, controller):
        await started()
        assert len(controller.parked()) == 2
        server.leases.take("former", 7)
        await asyncio.sleep(5)
        server.terms = 7
        server.remove("configmaps", "default/parked")
        await server.lead(seconds=300)
        server.put("configmaps", config_map("other"))
        await settled()
        assert list(map(str, controller.parked())) == ["default/here"]
        runs.requests.clear()
        await server.hand_over()
        assert runs.names == ["other"]


@pytest.mark.behaviour("C-115")
@pytest.mark.parametrize("seconds", [30, 300])
async def test_deletions_that_a_leader_has_left_over_run_last(seconds: float) -> None:
    server, runs = Cluster(), Runs(seconds=1000)
    for name in ("busy", "gone", "here"):
        server.put("configmaps", config_map(name))
    controller = Controller("it", CONFIG_MAPS, runs, workers=1)
    async with standby(server, controller):
        await started()
        server.remove("configmaps", "default/gone")
        await settled()
        assert (runs.names, controller.snapshot()["ready"]) == (["busy"], 2)
        server.terms = 7
        await server.lead(seconds)
        runs.requests.clear()
        runs.seconds = 0.01
        await server.hand_over()
        await asyncio.sleep(1)
        assert runs.names == ["here", "busy", "gone"][: 3 if seconds == 30 else 2]
