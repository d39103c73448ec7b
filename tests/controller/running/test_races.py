"""Managers in virtual time, at bad moments: stops amid other changes, lost leaderships, stubborn reconcilers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, LeaderElection, Request, Result
from aioinformer.errors import UsageError
from aioinformer.leaderelection import LeaderElectionOptions
from tests.controller.running.setting import CONFIG_MAPS, Runs, Server, config_map, manager_of, now, settled, started
from tests.leaderelection.lease_server import LeaseServer
from tests.leaderelection.stalling_loop import stall
from tests.own_writes.model import PODS

if TYPE_CHECKING:
    from aioinformer.transport import Request as HttpRequest

ELECTION = LeaderElection("it", options=LeaderElectionOptions(watch=False), identity="me")


class Cluster(Server):
    """A server that also has a Lease.

    Attributes:
        leases: its server.
        sent: when each write of an object arrived.
        renewed: when the last request was sent that has renewed the Lease.
        late: the writes that arrived after the renew deadline.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leases = LeaseServer()
        self.sent: list[float] = []
        self.renewed = 0.0
        self.late: list[float] = []
        self.put("configmaps", config_map("a"))

    async def request(self, request: HttpRequest) -> Any:
        began = now()
        if "/leases" in request.path:
            answer = await self.leases.request(request)
            if request.method != "GET" and answer.status < 300:
                self.renewed = began
            return answer
        if request.method != "GET":
            self.sent.append(began)
            if began > self.renewed + ELECTION.options.renew_deadline:
                self.late.append(began)
        return await super().request(request)


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}}


class Stubborn:
    """A reconciler that ignores all cancellations, and creates a pod at its end.

    Attributes:
        errors: of these creations.
    """

    def __init__(self, seconds: float) -> None:
        self.errors: list[Exception] = []
        self._seconds = seconds

    async def __call__(self, request: Request[Any]) -> None:
        end = now() + self._seconds
        while now() < end:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(end - now())
        try:
            await request.client.core.v1.pods.create(pod("late"))
        except Exception as error:
            self.errors.append(error)


# Stops.


@pytest.mark.behaviour("C-69")
async def test_stop_may_come_while_a_controller_is_removed() -> None:
    server, slow = Server(), Runs(seconds=5)
    server.put("configmaps", config_map("a"))
    one, two = Controller("one", CONFIG_MAPS, slow), Controller("two", CONFIG_MAPS, Runs(seconds=7))
    manager = manager_of(server, one, two)
    async with manager:
        await started()
        removal = asyncio.create_task(manager.remove(one))
        await settled()
    await removal
    assert manager.stop_report is not None
    assert manager.stop_report.controllers["two"].finished == ("default/a",)
    assert list(manager.controllers) == ["two"]


@pytest.mark.behaviour("C-69")
async def test_stop_may_come_while_a_controller_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = asyncio.all_tasks()
    one, two = Controller("one", CONFIG_MAPS, Runs()), Controller("two", PODS, Runs(), owns=[CONFIG_MAPS])
    outcomes = set()
    for steps in range(30):
        server = Server()
        for number in range(20):
            server.put("configmaps", config_map(str(number)))
        manager = manager_of(server, one)
        async with manager:
            await started()
            monkeypatch.setattr("aioinformer.concurrency.Slicer.count_step", lambda self: True)  # each step pauses
            addition = asyncio.create_task(manager.add(two))
            for _ in range(steps):
                await asyncio.sleep(0)
            manager.stop()
        monkeypatch.undo()
        [outcome] = await asyncio.gather(addition, return_exceptions=True)
        assert outcome is None or isinstance(outcome, UsageError)
        outcomes.add(outcome is None)
        assert asyncio.all_tasks() == tasks
        assert ("two" in manager.controllers) == (outcome is None)
        with pytest.raises(UsageError, match="does not run"):
            two.snapshot()
    assert outcomes == {True, False}


@pytest.mark.behaviour("C-65")
async def test_abandoned_attempt_does_not_delay_the_stop_twice() -> None:
    cluster, stubborn = Cluster(), Stubborn(100)
    manager = manager_of(cluster, Controller("it", CONFIG_MAPS, stubborn), leader_election=ELECTION, grace=2)
    async with manager:
        await started()
        before = now()
    assert now() - before == pytest.approx(12, abs=0.1)
    assert cluster.leases.holder == ""
    await asyncio.sleep(100)
    assert len(stubborn.errors) == 1


@pytest.mark.behaviour("C-65")
async def test_abandoned_attempt_may_not_write() -> None:
    server, stubborn = Server(), Stubborn(100)
    server.put("configmaps", config_map("a"))
    controller = Controller("it", CONFIG_MAPS, stubborn, grace=0)
    async with manager_of(server, controller) as manager:
        await started()
        await manager.remove(controller)
        await asyncio.sleep(100)
    assert server.writes == []
    assert "the reconciler of default/a goes on after its cancellation" in str(stubborn.errors[0])


async def test_attempt_that_has_ended_does_not_expire() -> None:
    server, results = Server(), []
    server.put("configmaps", config_map("a"))
    go_on = asyncio.Event()

    async def reconcile(request: Request[Any]) -> Result:
        results.append(now())
        await go_on.wait()
        return Result(parked="done")

    controller = Controller("it", CONFIG_MAPS, reconcile, timeout=5)
    async with manager_of(server, controller):
        await started()
        go_on.set()
        stall(10)  # the end of the attempt and its timeout are noticed at the same time
        await asyncio.sleep(1)
        assert controller.snapshot()["results"] == {"parked": 1}


# Own writes.


@pytest.mark.behaviour("C-55")
async def test_controller_that_returns_knows_its_writes() -> None:
    server = Server()
    server.put("configmaps", config_map("a"))

    async def reconcile(request: Request[Any]) -> None:
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create({"metadata": {"generateName": "child-", "namespace": "default"}})

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    other = Controller("other", PODS, Runs())  # keeps the informer of pods
    async with manager_of(server, controller, other) as manager:
        server.delay = lambda: 3.0
        await started()
        await manager.remove(controller)
        await manager.add(controller)
        await asyncio.sleep(20)
        assert len(server.names("pods")) == 1


@pytest.mark.behaviour("C-55")
async def test_writes_that_settle_late_are_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server = Server()
    server.put("configmaps", config_map("a"))

    async def reconcile(request: Request[Any]) -> None:
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create(pod("child"))

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    async with manager_of(server, controller):
        server.delay = lambda: 7.0
        await asyncio.sleep(30)
        lines = [line for line in caplog.messages if "failed with StaleCache" in line]
        assert len(lines) == controller.snapshot()["results"]["stale"] == 1
        assert "retrying in 0" in lines[0]


# Leadership.


@pytest.mark.behaviour("C-95")
@pytest.mark.parametrize("fault", ["silent", "down", "stalled", "slow"])
async def test_no_write_is_sent_after_the_renew_deadline(fault: str) -> None:
    cluster = Cluster()

    async def reconcile(request: Request[Any]) -> Result:
        while True:
            try:
                await request.client.core.v1.configmaps.patch("default/a", {"data": {"time": str(now())}})
            finally:
                await asyncio.sleep(0.3)  # it goes on writing although it was cancelled

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(cluster, controller, leader_election=ELECTION, grace=0) as manager:
        await asyncio.sleep(5.1)
        assert len(cluster.sent) > 10
        if fault == "stalled":
            cluster.leases.take("other")
            stall(30)
        elif fault == "slow":
            cluster.leases.latency = 3.0
        else:
            setattr(cluster.leases, fault, True)
        await asyncio.sleep(14)
        assert cluster.late == []
        assert manager.snapshot()["leader"] is (fault == "slow")
