"""Managers in virtual time, at bad moments: stops amid other changes, lost leaderships, stubborn reconcilers."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import Controller, LeaderElection, QueueOptions, Request, Result
from aioinformer.controller.running import Restart
from aioinformer.controller.running.attached import Inputs
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.reader import InformerCache
from aioinformer.workqueue import Cause, RequestQueue
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    Runs,
    Server,
    active_of,
    config_map,
    manager_of,
    now,
    pod,
    server_with,
    settled,
    snapshot_of,
    started,
)
from tests.support.stalling_loop import stall

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport import HttpRequest

ELECTION = LeaderElection("it", identity="me")
ONE_ATTEMPT = QueueOptions(max_attempts=1)


class Fenced(Cluster):
    """A server that notes writes.

    Attributes:
        sent: when each write of an object arrived. Events may be sent after the end of a term.
        renewed: when the last request was sent that has renewed the Lease.
        late: the writes that arrived after the renew deadline.
    """

    def __init__(self) -> None:
        super().__init__("a")
        self.sent: list[float] = []
        self.renewed = 0.0
        self.late: list[float] = []

    async def request(self, request: HttpRequest) -> Any:
        began = now()
        if request.method != "GET" and not {"leases", "events"} & set(request.path.split("/")):
            self.sent.append(began)
            if began > self.renewed + ELECTION.options.renew_deadline:
                self.late.append(began)
        answer = await super().request(request)
        if request.method != "GET" and "/leases" in request.path and answer.status < 300:
            self.renewed = began
        return answer


# Stops.


@pytest.mark.behaviour("C-69")
async def test_stop_may_come_while_a_controller_is_removed() -> None:
    server, slow = server_with("a"), Runs(seconds=5)
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
            manager.parked(two)
    assert outcomes == {True, False}


@pytest.mark.behaviour("C-65")
async def test_abandoned_attempt_may_not_write() -> None:
    server, errors = server_with("a"), list[str]()

    async def reconcile(request: Request[Any]) -> None:
        end = now() + 100
        while now() < end:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(end - now())
        with pytest.raises(UsageError) as refusal:
            await request.client.core.v1.pods.create(pod("late"))
        errors.append(str(refusal.value))

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server, controller, grace=0) as manager:
        await started()
        await manager.remove(controller)
        await asyncio.sleep(100)
    assert server.writes == []
    assert "the reconciler of default/a goes on after its cancellation" in errors[0]


async def test_attempt_that_has_ended_does_not_expire() -> None:
    server, results = server_with("a"), []
    go_on = asyncio.Event()

    async def reconcile(request: Request[Any]) -> Result:
        results.append(now())
        await go_on.wait()
        return Result(parked="done")

    controller = Controller("it", CONFIG_MAPS, reconcile, timeout=5)
    async with manager_of(server, controller) as manager:
        await started()
        go_on.set()
        stall(10)  # the end of the attempt and its timeout are noticed at the same time
        await asyncio.sleep(1)
        assert snapshot_of(manager)["results"] == {"parked": 1}


# Own writes.


@pytest.mark.behaviour("C-55")
async def test_controller_that_returns_knows_its_writes() -> None:
    server = server_with("a")

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


class FullMetrics:
    """Metrics that have a queue of the name of the controller already."""

    def register(self, source: Any) -> None:
        if isinstance(source, RequestQueue):
            raise UsageError("the metrics already have a queue it")


@pytest.mark.behaviour("C-55", "C-73")
@pytest.mark.parametrize("fails_between", [False, True])
async def test_next_manager_knows_the_writes_of_the_declaration(fails_between: bool) -> None:
    server = server_with("a")

    async def reconcile(request: Request[Any]) -> None:
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create({"metadata": {"generateName": "child-", "namespace": "default"}})

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    async with SharedInformerFactory(server) as factory:  # its cache of pods outlives the managers
        factory.core.v1.pods.informer()
        await factory.wait_for_cache_sync()
        server.delay = lambda: 3.0
        for _ in range(2):
            async with manager_of(server, controller, factory=factory):
                await started()
            if fails_between:
                with pytest.raises(UsageError, match="already have a queue it"):
                    async with manager_of(server, controller, factory=factory, metrics=FullMetrics()):
                        pass
        async with manager_of(server, controller, factory=factory):
            await asyncio.sleep(20)
        assert len(server.names("pods")) == 1


async def test_declaration_without_further_use_is_not_kept() -> None:
    server, written = server_with("a"), list[str]()

    async def reconcile(request: Request[Any]) -> None:
        created = await request.client.core.v1.pods.create(pod("child"))
        written.append(created.metadata.name or "")

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    server.delay = lambda: 3.0
    async with manager_of(server, controller):
        await started()
    kept = weakref.ref(controller)
    del controller, reconcile
    gc.collect()
    assert (written, kept()) == (["child"], None)


@pytest.mark.behaviour("C-37")
@pytest.mark.parametrize(("delay", "asked"), [(0.0, ["shows"]), (3.0, ["shows", "wait_until_shown"])])
async def test_own_write_is_proven_once(delay: float, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []

    def note(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            questions.append(name)
            return ask(*arguments)

        return noted

    for name in ("shows", "wait_until_shown"):
        monkeypatch.setattr(InformerCache, name, note(name, getattr(InformerCache, name)))
    server = server_with("a")

    async def reconcile(request: Request[Any]) -> None:
        await request.client.core.v1.pods.create(pod("child"))
        await asyncio.sleep(0.1)

    async with manager_of(server, Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])):
        server.delay = lambda: delay
        await asyncio.sleep(10)
    assert questions == asked


@pytest.mark.behaviour("C-09", "C-39", "C-55")
@pytest.mark.parametrize("refused", [0, 503])
async def test_writes_that_settle_late_are_no_failure(refused: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server, runs = server_with("a"), Runs()

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create(pod("child"))

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS], queue=ONE_ATTEMPT)
    server.delay = lambda: 300.0
    async with manager_of(server, controller) as manager:
        await started()
        server.refuse_reads = refused
        manager.enqueue(controller, "default/a")
        await asyncio.sleep(290)
        snapshot = snapshot_of(manager)
        assert (snapshot["settling"], snapshot["failing"], snapshot["parked"]) == (["default/a"], {}, {})
        assert 5 < snapshot["results"]["stale"] < 30  # waits become longer, up to a minute
        server.refuse_reads = 0
        await asyncio.sleep(100)
        assert (runs.names, snapshot_of(manager)["results"]["success"]) == (["a", "a"], 2)
        assert {each.attempt for each in runs.requests} == {1}
    (line,) = (each for each in caplog.messages if "own writes" in each)
    assert line.startswith("controller it: default/a: the caches do not show its own writes: ")
    assert line.endswith("; its next run waits for them")
    assert "controller it: the caches show the writes of default/a" in caplog.messages


async def test_many_writes_that_settle_late_leave_few_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    names = [f"a{number}" for number in range(20)]
    server, written = server_with(*names), set[str]()

    async def reconcile(request: Request[Any]) -> None:
        if request.name not in written:
            written.add(request.name)
            await request.client.core.v1.pods.create(pod(f"child-{request.name}"))

    server.delay = lambda: 40.0
    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    async with manager_of(server, controller):
        await asyncio.sleep(150)
    assert len(written) == 20
    late = [each for each in caplog.messages if "the caches do not show its own writes" in each]
    shown = [each for each in caplog.messages if "the caches show the writes of" in each]
    assert len(late) == len(shown) == 3
    assert [each for each in caplog.messages if "reading its own writes, raised 17 more errors" in each]


@pytest.mark.behaviour("C-09", "C-39")
async def test_result_of_a_run_is_kept_while_its_writes_are_late() -> None:
    server, runs = Server(), Runs()

    async def reconcile(request: Request[Any]) -> Result | None:
        await runs(request)
        if len(runs.requests) > 1:
            return None
        await request.client.core.v1.configmaps.create(config_map("a"))
        return Result(after=100, priority=7)

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=ONE_ATTEMPT, when=lambda change: False)
    async with manager_of(server, controller) as manager:
        await started()
        server.delay = lambda: 20.0
        manager.enqueue(controller, "default/a")
        await asyncio.sleep(200)
        assert [str(each.causes[0]) for each in runs.requests] == ["requested", "result"]
        assert runs.times[1] - runs.times[0] == pytest.approx(100)
        assert runs.requests[1].priority == 7


@pytest.mark.behaviour("C-09", "C-39")
async def test_wait_within_a_run_is_no_failed_attempt() -> None:
    server, runs = server_with("a"), Runs()

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create(pod("child"))
        await request.observe()

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS], queue=ONE_ATTEMPT)
    server.delay = lambda: 60.0
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(100)
        assert ({each.attempt for each in runs.requests}, manager.parked(controller)) == ({1}, {})
        assert snapshot_of(manager)["results"]["success"] == 1


# Restarts.


@pytest.mark.behaviour("C-116")
@pytest.mark.parametrize("attempts", [1, 2])
async def test_requests_outlive_the_restart_of_a_controller(attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, cause, attach = Runs(), Cause("requested", "hook"), Inputs.attach
    delays = BackoffOptions(initial=10.0, jitter=0.0)

    async def refuse(self: Inputs) -> None:
        monkeypatch.setattr(Inputs, "attach", attach)
        raise InformerStopped("it has stopped")

    controller = Controller("it", CONFIG_MAPS, runs, workers=1)
    async with manager_of(Server(), controller, restart=Restart(backoff=delays)) as manager:
        await started()
        runs.seconds = 1.0
        manager.enqueue(controller, "default/running", cause)
        manager.enqueue(controller, "default/waiting", cause)
        await settled()
        assert runs.names == ["running"]
        active_of(manager)._fail(RuntimeError("a bug"))
        await asyncio.sleep(1)
        if attempts == 2:
            monkeypatch.setattr(Inputs, "attach", refuse)
        began = now()
        for _ in range(3):
            manager.enqueue(controller, "default/meanwhile", cause, priority=5)
        manager.enqueue(controller, "default/later", cause, after=200)
        await asyncio.sleep(100)
        assert runs.names[1] == "meanwhile"
        assert sorted(runs.names[2:]) == ["running", "waiting"]
        assert [each.priority for each in runs.requests] == [0, 5, 0, 0]
        assert all(cause in each.causes for each in runs.requests)
        await asyncio.sleep(200)
        assert runs.names[4:] == ["later"]
        assert runs.times[4] - began == pytest.approx(200)


# Leadership.


@pytest.mark.behaviour("C-95")
@pytest.mark.parametrize("fault", ["silent", "down", "stalled", "slow"])
async def test_no_write_is_sent_after_the_renew_deadline(fault: str) -> None:
    cluster = Fenced()

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
