"""Managers in virtual time: start, stop, restarts, and controllers that come and go."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import anyio
import pytest

from aioinformer import SharedInformerFactory
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import Controller, Manager, Request
from aioinformer.controller.errors import ControllerFailed
from aioinformer.controller.inputs import Source
from aioinformer.controller.running import Restart
from aioinformer.errors import UsageError
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
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
    subject_of_line,
)

AT_ONCE = Restart(backoff=BackoffOptions(initial=1.0, factor=1.0, jitter=0.0), limit=3)


class Stubborn:
    """A reconciler that sleeps, and ignores so many cancellations.

    Attributes:
        cancellations: how often it was cancelled.
        ended: the keys whose runs have ended.
    """

    def __init__(self, seconds: float, ignored: int = 0) -> None:
        self.cancellations = 0
        self.ended: list[str] = []
        self._seconds = seconds
        self._ignored = ignored

    async def __call__(self, request: Request[Any]) -> None:
        end = now() + self._seconds
        try:
            while now() < end:
                try:
                    await asyncio.sleep(end - now())
                except asyncio.CancelledError:
                    self.cancellations += 1
                    if self.cancellations > self._ignored:
                        raise
        finally:
            self.ended.append(request.name)


# Start and stop.


@pytest.mark.behaviour("C-63")
async def test_embedded_manager_starts_at_once_and_leaves_nothing() -> None:
    server, runs = server_with("a"), Runs()
    server.answers.clear()
    handler = signal.getsignal(signal.SIGTERM)
    before, tasks = now(), asyncio.all_tasks()
    manager = manager_of(server, Controller("it", CONFIG_MAPS, runs))
    async with manager:
        assert now() == before
        assert signal.getsignal(signal.SIGTERM) is handler
        await started()
        assert runs.names == ["a"]
        with pytest.raises(UsageError, match="manager test runs already"):
            await manager.run()
    assert asyncio.all_tasks() == tasks
    assert manager.snapshot()["running"] is False


@pytest.mark.behaviour("C-64")
async def test_stop_lets_attempts_finish_within_the_grace() -> None:
    stubborn = Stubborn(seconds=5)
    controller = Controller("it", CONFIG_MAPS, stubborn, workers=2)
    manager = manager_of(server_with("a", "b", "c"), controller, grace=6)
    async with manager:
        await started()
        before = now()
    assert now() - before == pytest.approx(5, abs=0.1)
    assert sorted(stubborn.ended) == ["a", "b"]
    assert manager.stop_report is not None
    report = manager.stop_report.controllers["it"]
    assert (report.finished, report.cancelled, report.queued) == (("default/a", "default/b"), {}, 1)
    assert str(manager.stop_report) == (
        "stopped within 5.0 s because of the end of the block: 2 finished, 1 left in queues"
    )


@pytest.mark.behaviour("C-64")
async def test_stop_cancels_attempts_after_the_grace(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn(seconds=3600)
    manager = manager_of(server_with("a"), Controller("it", CONFIG_MAPS, stubborn), grace=2)
    async with manager:
        await asyncio.sleep(10)
        before = now()
    assert now() - before == pytest.approx(2, abs=0.1)
    assert stubborn.ended == ["a"]
    assert manager.stop_report is not None
    assert manager.stop_report.controllers["it"].cancelled == {"default/a": pytest.approx(12, abs=0.1)}
    line = "the attempt for default/a is cancelled: it did not end within 2 s of the stop"
    assert subject_of_line(caplog, line) == ("it", "default/a")


@pytest.mark.behaviour("C-65")
async def test_manager_ends_although_a_reconciler_does_not(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn(seconds=60, ignored=100)
    manager = manager_of(server_with("a"), Controller("it", CONFIG_MAPS, stubborn), grace=2)
    async with manager:
        await started()
        before = now()
    assert now() - before == pytest.approx(12, abs=0.1)
    assert manager.stop_report is not None
    assert manager.stop_report.abandoned == ["it: default/a"]
    line = "controller it: default/a did not end within 10 s of its cancellation: it is abandoned"
    assert subject_of_line(caplog, line) == ("it", "default/a")
    await asyncio.sleep(60)  # the test must not leave it behind
    assert stubborn.ended == ["a"]


@pytest.mark.behaviour("C-65")
async def test_second_cancellation_makes_the_stop_a_quick_one() -> None:
    stubborn = Stubborn(seconds=60, ignored=100)
    manager = manager_of(server_with("a"), Controller("it", CONFIG_MAPS, stubborn), grace=100)
    running = asyncio.create_task(manager.run())
    await started()
    before = now()
    running.cancel()
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert now() - before == pytest.approx(2, abs=0.1)
    await asyncio.sleep(60)


@pytest.mark.behaviour("C-74")
async def test_reconciler_may_stop_its_manager() -> None:
    async def reconcile(request: Request[Any]) -> None:
        manager.stop()
        await asyncio.sleep(1)

    manager = manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile))
    await manager.run()
    assert manager.stop_report is not None
    assert (manager.stop_report.reason, manager.stop_report.controllers["it"].finished) == ("stop()", ("default/a",))


@pytest.mark.behaviour("C-64")
async def test_no_attempt_begins_after_the_stop() -> None:
    begun: list[str] = []

    async def reconcile(request: Request[Any]) -> None:  # never waits, so that attempts follow each other
        begun.append(request.name)
        manager.stop()

    manager = manager_of(server_with("a", "b", "c"), Controller("it", CONFIG_MAPS, reconcile, workers=2))
    await manager.run()
    assert len(begun) == 1
    assert manager.stop_report is not None
    assert manager.stop_report.controllers["it"].queued == 2


@pytest.mark.behaviour("C-74")
async def test_cancel_scope_around_a_manager_does_not_cut_the_stop() -> None:
    stubborn = Stubborn(seconds=5)
    manager = manager_of(server_with("a"), Controller("it", CONFIG_MAPS, stubborn))
    with anyio.move_on_after(1) as scope:
        async with manager:
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert (stubborn.ended, stubborn.cancellations) == (["a"], 0)


@pytest.mark.behaviour("C-74")
async def test_cancellation_at_any_step_of_the_start_leaves_nothing() -> None:
    tasks = asyncio.all_tasks()
    for steps in range(40):
        controller = Controller("it", CONFIG_MAPS, Runs(), owns=[PODS])
        manager = manager_of(server_with("a"), controller)
        running = asyncio.create_task(manager.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert asyncio.all_tasks() == tasks
        async with manager_of(server_with("a"), controller):  # the declaration is free again
            await started()


async def test_start_fails_with_the_error_of_a_controller() -> None:
    tasks = asyncio.all_tasks()
    controllers = [
        Controller("one", CONFIG_MAPS, Runs(), informer={"storage": "metadata"}),
        Controller("two", CONFIG_MAPS, Runs(), informer={"storage": "dict"}),
    ]
    manager = manager_of(Server(), *controllers)
    with pytest.raises(UsageError, match=r"controller two: .* other options: storage is 'metadata', not 'dict'"):
        async with manager:
            pass
    assert asyncio.all_tasks() == tasks
    await manager.remove(controllers[1])
    async with manager:
        await started()
        assert snapshot_of(manager)["phase"] == "working"


@pytest.mark.behaviour("C-73")
async def test_declaration_runs_in_one_manager_at_a_time_and_again() -> None:
    server, runs = server_with("a"), Runs()
    controller = Controller("it", CONFIG_MAPS, runs)
    first, second = manager_of(server, controller), manager_of(server, controller)
    for manager in (first, second, first):
        async with manager:
            await started()
    assert runs.names == ["a"] * 3
    async with first:
        with pytest.raises(UsageError, match="controller it already runs in manager test; make another Controller"):
            async with second:
                pass
        with pytest.raises(UsageError, match="controller it does not run in manager test"):
            second.enqueue(controller, "default/a")
        await started()
        first.enqueue(controller, "default/a")
        await settled()
    assert runs.names == ["a"] * 5


# Failures.


@pytest.mark.behaviour("C-67")
async def test_controller_that_cannot_start_says_what_it_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.refuse_reads = 404
    async with manager_of(server, Controller("it", CONFIG_MAPS, Runs())):
        await asyncio.sleep(30)
    waits = [each.getMessage() for each in caplog.records if " waits" in each.getMessage()]
    assert waits == [
        "controller it waits, and begins by itself once all inputs have synced: informer of configmaps: not_found: "
        "404 Not Found; apply the CustomResourceDefinition, and compare the version with `kubectl api-resources`"
    ]


@pytest.mark.behaviour("C-67", "C-81", "C-119")
async def test_controller_whose_informer_crashes_is_restarted_alone(caplog: pytest.LogCaptureFixture) -> None:
    server, runs, others = server_with("a"), Runs(), Runs()
    server.put("pods", pod("p"))
    controller = Controller("it", CONFIG_MAPS, runs)
    manager = manager_of(server, controller, Controller("other", PODS, others), restart=AT_ONCE)
    async with manager:
        await started()
        crash_informer(manager)
        server.put("configmaps", config_map("a", value="lost"))
        await settled()
        assert len(runs.requests) == 1
        cause = "informer of configmaps has ended: stopped: crashed: Broken"
        assert manager.ready().reasons == (f"controller it: it has failed, and is restarted after 1 s: {cause}",)
        await asyncio.sleep(2)
        assert manager.ready()
        assert [request.causes[0].trigger for request in runs.requests] == ["initial", "initial"]
        server.put("configmaps", config_map("b"))
        server.put("pods", pod("q"))
        await settled()
    assert (runs.names, others.names) == (["a", "a", "b"], ["p", "q"])
    assert caplog.text.count("informer of configmaps crashed; the controllers that use it are restarted") == 1
    assert "controller it has failed; restarting it in 1.0 s" in caplog.text


@pytest.mark.behaviour("C-119")
async def test_crash_in_the_factory_of_a_service_makes_the_manager_not_ready() -> None:
    server = server_with("a")
    controller = Controller("it", CONFIG_MAPS, Runs())
    factory = SharedInformerFactory(server, on_crash="log")
    async with factory, manager_of(server, controller, factory=factory) as manager:
        await started()
        assert manager.ready()
        crash_informer(manager)
        server.put("configmaps", config_map("a", value="lost"))
        await settled()
        assert "cache v1/configmaps: stopped: crashed: Broken" in manager.ready().reasons


class Broken(BaseException):
    """The exception with which an informer crashes."""


def crash_informer(manager: Manager) -> None:
    """Let the informer of the primary crash at its next event."""

    async def broken(*_: Any) -> None:
        raise Broken("of a handler")

    vars(active_of(manager).inputs.primary._sources)["source"].queue.apply = broken


@pytest.mark.behaviour("C-67")
@pytest.mark.parametrize(("restart", "starts"), [(AT_ONCE, 4), (Restart(policy="never"), 1)])
async def test_controller_that_fails_for_good_ends_run(
    restart: Restart, starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, count = server_with("a"), 0

    def broken(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        raise AssertionError("a bug")

    monkeypatch.setattr("aioinformer.controller.running.active.outcome_of", broken)
    manager = manager_of(server, Controller("it", CONFIG_MAPS, Runs()), restart=restart)
    with pytest.raises(ControllerFailed, match="controller it has failed: a bug"):
        await manager.run()
    assert count == starts
    assert manager.stop_report is not None
    assert manager.stop_report.reason == "controller it has failed"


@pytest.mark.behaviour("C-67")
async def test_source_that_ignores_its_cancellation_does_not_keep_the_manager(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def items() -> Any:
        end = now() + 60
        while now() < end:
            try:
                await asyncio.sleep(end - now())
            except asyncio.CancelledError:
                continue
        yield "default/a"

    manager = manager_of(Server(), Controller("it", CONFIG_MAPS, Runs(), sources=[Source(items)]))
    async with manager:
        await started()
        before = now()
    assert now() - before == pytest.approx(10, abs=0.1)
    assert "did not end within 10 s of its cancellation: abandoned" in caplog.text
    await asyncio.sleep(60)


# Controllers that come and go.


@pytest.mark.behaviour("C-68")
async def test_informers_are_shared_and_stop_after_their_last_use() -> None:
    server = server_with("a")
    one, two = Controller("one", CONFIG_MAPS, Runs()), Controller("two", CONFIG_MAPS, Runs(), owns=[PODS])
    manager = manager_of(server, one, two)

    def informers() -> list[str]:
        snapshot = manager.snapshot()["informers"]
        assert snapshot is not None
        return sorted(snapshot["informers"])

    async with manager:
        await started()
        assert informers() == ["v1/configmaps", "v1/pods"]
        assert len(server._open("configmaps")) == 1
        await manager.remove(two)
        await settled()
        assert (informers(), len(server._open("pods"))) == (["v1/configmaps"], 0)
        await manager.add(two)
        await started()
        assert informers() == ["v1/configmaps", "v1/pods"]
        await manager.remove(one)
        await manager.remove(two)
        await settled()
        assert (informers(), len(server._open("configmaps"))) == ([], 0)


@pytest.mark.behaviour("C-69")
async def test_controllers_are_added_and_removed_while_it_runs() -> None:
    server, first, second = server_with("a"), Runs(), Runs(seconds=1)
    one, two = Controller("one", CONFIG_MAPS, first), Controller("two", CONFIG_MAPS, second)
    async with manager_of(server, one) as manager:
        await started()
        await manager.add(two)
        await settled()
        assert second.names == ["a"]
        with pytest.raises(UsageError, match="has a controller two already"):
            await manager.add(two)
        before = now()
        await manager.remove(two)
        assert now() - before == pytest.approx(1, abs=0.1)  # its attempt may finish
        server.put("configmaps", config_map("b"))
        await settled()
        assert (first.names, second.names) == (["a", "b"], ["a"])
        with pytest.raises(UsageError, match="has no <controller two"):
            await manager.remove(two)


@pytest.mark.behaviour("C-69")
async def test_reconciler_cannot_wait_for_its_own_removal() -> None:
    messages: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        with pytest.raises(UsageError) as refusal:
            await manager.remove(controller)
        messages.append(str(refusal.value))

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server_with("a"), controller) as manager:
        await started()
    assert messages == [
        "the reconciler of controller it cannot wait for its own end: remove the controller in another task"
    ]
