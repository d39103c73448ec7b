"""Attempts in virtual time: when reconcilers run, what they may write, and what follows their results."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import logging
import sys
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aioinformer.controller import Controller, QueueOptions, Request, Result, Retry
from aioinformer.controller.errors import UndeclaredWrite
from aioinformer.controller.writes import defaults
from aioinformer.events import FakeRecorder
from aioinformer.functions import function_name
from aioinformer.workqueue import Cause
from tests.support.limits import measure_blocks
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    STEADY,
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


def tasks_of_workers() -> list[str]:
    return sorted(
        name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("controller it: default/")
    )


@pytest.mark.behaviour("C-51")
async def test_workers_limit_the_attempts_and_idle_controllers_have_none() -> None:
    server, runs = server_with(*"abcde"), Runs(seconds=1)
    async with manager_of(server, Controller("it", CONFIG_MAPS, runs, workers=2)):
        await started()
        assert tasks_of_workers() == ["controller it: default/a", "controller it: default/b"]
        await asyncio.sleep(5)
        assert (sorted(runs.names), runs.most) == (list("abcde"), 2)
        assert tasks_of_workers() == []


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="")


@pytest.mark.behaviour("C-51")
async def test_each_attempt_is_a_task_that_ends_with_it() -> None:
    tasks: list[asyncio.Task[Any]] = []
    others = asyncio.all_tasks()

    async def reconcile(request: Request[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        if request.name == "c":
            await asyncio.sleep(1)
        if request.name == "b":
            raise Retry("later")

    async with manager_of(server_with("a", "b", "c"), Controller("it", CONFIG_MAPS, reconcile, workers=1)) as manager:
        await asyncio.sleep(0.5)
        assert [task.get_name() for task in asyncio.all_tasks() if task in tasks] == ["controller it: default/c"]
        assert snapshot_of(manager)["results"]["success"] == 1
        await asyncio.sleep(10)
    assert {task.get_name() for task in tasks} == {f"controller it: default/{name}" for name in "abc"}
    assert len(set(tasks)) == len(tasks) > 3
    assert all(task.done() for task in tasks)
    assert asyncio.all_tasks() == others


@pytest.mark.behaviour("C-51")
async def test_attempt_that_was_cancelled_before_its_first_step_never_calls_the_reconciler() -> None:
    runs = Runs()
    controller = Controller("it", CONFIG_MAPS, runs, workers=1, queue=STEADY)
    async with manager_of(Server(), controller) as manager:
        await started()
        manager.enqueue(controller, "default/a")
        for _ in range(10):
            await asyncio.sleep(0)
            if attempts := list(active_of(manager).attempts):
                break
        for task in attempts:
            task.cancel()
        await started()
        assert runs.names == []
        assert list(snapshot_of(manager)["failing"]) == ["default/a"]
        await asyncio.sleep(5)
        assert (runs.names, snapshot_of(manager)["results"]) == (["a"], {"error": 1, "success": 1})


@pytest.mark.behaviour("C-51")
async def test_attempts_that_do_not_wait_leave_nothing_to_later_ones() -> None:
    seen: list[tuple[str, str]] = []
    at_once: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task.get_name() == f"controller it: {request.key}"
        seen.append((request.name, VARIABLE.get()))
        VARIABLE.set(request.name)
        if request.name == "b" and request.attempt == 1:
            raise ValueError("no")
        if request.name == "c" and request.attempt == 1:
            task.cancel()  # and returns: the cancellation must not reach the next attempt
        asyncio.get_running_loop().call_soon(lambda: at_once.append(VARIABLE.get()))

    controller = Controller("it", CONFIG_MAPS, reconcile, workers=1, queue=STEADY)
    async with manager_of(server_with(*"abcd"), controller) as manager:
        await asyncio.sleep(10)
        assert snapshot_of(manager)["results"] == {"success": 4, "error": 2}
    assert seen == [(name, "") for name in "abcdbc"]
    assert at_once == list("acdbc")


async def test_what_an_attempt_leaves_behind_does_not_count_against_a_later_one() -> None:
    loop = asyncio.get_running_loop()

    async def reconcile(request: Request[Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        if request.name == "a":
            loop.call_later(1, task.cancel)
        elif request.name == "b":
            await asyncio.sleep(2)
        elif request.attempt == 1:
            task.cancel()
            task.uncancel()

    controller = Controller("it", CONFIG_MAPS, reconcile, workers=1, queue=QueueOptions(max_attempts=1))
    async with manager_of(server_with("a", "b"), controller) as manager:
        await asyncio.sleep(10)
        assert snapshot_of(manager)["results"] == {"success": 2}
        manager.enqueue(controller, "default/c")
        manager.enqueue(controller, "default/b")
        await asyncio.sleep(10)
        # Before Python 3.13, a task is cancelled even after `uncancel`: c itself, and not b after it.
        failed = sys.version_info < (3, 13)
        expected = {"success": 4 - failed, "error": 1} if failed else {"success": 4}
        assert snapshot_of(manager)["results"] == expected
        assert list(snapshot_of(manager)["parked"]) == ["default/c"] * failed


class Item:
    pass


async def test_ended_attempts_are_freed_at_once_and_waiting_ones_show_their_line(
    request: pytest.FixtureRequest,
) -> None:
    variable: contextvars.ContextVar[Item] = contextvars.ContextVar("variable")
    owned: list[weakref.ref[Any]] = []

    async def reconcile(request: Request[Any]) -> None:
        variables = Item()
        owned.append(weakref.ref(variables))
        variable.set(variables)
        if request.name == "b" and request.attempt == 1:
            raise Retry("later")
        if request.name == "c":
            await asyncio.sleep(1)

    gc.disable()  # it would free cycles
    request.addfinalizer(gc.enable)
    async with manager_of(server_with("a", "b", "c"), Controller("it", CONFIG_MAPS, reconcile, workers=1)):
        await asyncio.sleep(0.5)
        assert [each() is None for each in owned] == [True, True, False]
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "controller it: default/c"]
        assert [frame.f_code.co_name for frame in task.get_stack()] == ["reconcile"]


async def test_timeout_counts_from_the_begin_and_concerns_one_attempt() -> None:
    ended: dict[str, float] = {}

    async def reconcile(request: Request[Any]) -> None:
        if request.name != "a" or request.attempt > 1:
            return
        try:
            await asyncio.sleep(60)
        finally:
            ended[request.name] = now()

    before = now()
    controller = Controller("it", CONFIG_MAPS, reconcile, workers=1, timeout=5, queue=STEADY)
    async with manager_of(server_with("a", "b"), controller) as manager:
        await asyncio.sleep(20)
        assert snapshot_of(manager)["results"] == {"timeout": 1, "success": 2}
    assert ended["a"] - before == pytest.approx(5, abs=0.1)


async def test_request_says_why_it_runs_and_has_the_cached_object() -> None:
    server, runs = server_with("a"), Runs()
    controller = Controller("it", CONFIG_MAPS, runs)
    async with manager_of(server, controller) as manager:
        await started()
        (first,) = runs.requests
        assert first.object is not None
        assert (first.object.metadata.name, first.resource, first.term) == ("a", CONFIG_MAPS, None)
        assert [str(cause) for cause in first.causes] == ["configmaps default/a initial"]
        server.remove("configmaps", "default/a")
        await settled()
        assert (runs.requests[1].object, [each.trigger for each in runs.requests[1].causes]) == (None, ["deleted"])
        manager.enqueue(controller, "default/b", Cause("requested", "hook"), after=5)
        before = now()
        await asyncio.sleep(6)
        assert runs.names[2:] == ["b"]
        assert runs.times[2] - before == pytest.approx(5)


@pytest.mark.behaviour("C-52")
async def test_timeout_cancels_and_retries(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        if request.attempt == 1:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise ValueError("its cleanup failed") from None
        elif request.attempt == 2:
            raise TimeoutError("of a database")
        elif request.attempt == 3:
            raise asyncio.CancelledError
        ended.append("done")

    controller = Controller("it", CONFIG_MAPS, reconcile, timeout=5, queue=STEADY)
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(20)
        assert ended == ["cancelled", "done"]
        assert snapshot_of(manager)["results"] == {"timeout": 1, "error": 2, "success": 1}
    assert "attempt 1 for default/a failed with ReconcileTimeout: it took longer than the timeout of 5 s" in caplog.text
    assert "attempt 2 for default/a failed with TimeoutError: of a database" in caplog.text
    assert "attempt 3 for default/a failed with CancelledError: the reconciler was cancelled" in caplog.text


@pytest.mark.behaviour("C-58")
async def test_attempt_that_ignores_its_timeout_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    runs = Runs()

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        if request.name == "a" and request.attempt == 1:
            end = now() + 60
            while now() < end:
                try:
                    await asyncio.sleep(end - now())
                except asyncio.CancelledError:
                    continue

    controller = Controller("it", CONFIG_MAPS, reconcile, timeout=5)
    async with manager_of(server_with("a", "b"), controller) as manager:
        await asyncio.sleep(20)
        assert sorted(runs.names) == ["a", "b"]
        line = "controller it: default/a did not end within 10 s of its timeout, and keeps a worker"
        assert subject_of_line(caplog, line) == ("it", "default/a")
        await asyncio.sleep(41)
        assert snapshot_of(manager)["results"] == {"success": 2, "timeout": 1}


@pytest.mark.behaviour("C-53")
async def test_results_run_the_key_again() -> None:
    results: list[Any] = [Result(after=5), Result(at=datetime.now(UTC) + timedelta(seconds=7)), Result(), None]
    times: list[float] = []

    async def reconcile(request: Request[Any]) -> Any:
        times.append(now())
        return results.pop(0)

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile)):
        await asyncio.sleep(60)
        assert [after - before for before, after in itertools.pairwise(times)] == [
            pytest.approx(5),
            pytest.approx(7, abs=1),  # the wall clock goes on during the test
        ]


@pytest.mark.behaviour("C-53")
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(parked="waits for a person"), "waits for a person"),
        (True, "the reconciler returned True; return None or a Result"),
        ({"secret": "x"}, "the reconciler returned an object of type dict; return None or a Result"),
    ],
)
async def test_parked_key_waits_for_a_change(result: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    runs = Runs()

    async def reconcile(request: Request[Any]) -> Any:
        await runs(request)
        return result if len(runs.requests) == 1 else None

    server, controller = server_with("a"), Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(3600)
        assert {str(key): each.reason for key, each in manager.parked(controller).items()} == {"default/a": reason}
        on_purpose = isinstance(result, Result)
        what = "waits" if on_purpose else "parked"
        [line] = [each for each in caplog.records if "attempt 1 for default/a: " in each.getMessage()]
        assert f"attempt 1 for default/a: {what} until an input changes: {reason}" in line.getMessage()
        assert line.levelno == (logging.INFO if on_purpose else logging.ERROR)
        snapshot = snapshot_of(manager)
        waiting, parked = ({"default/a": reason}, {}) if on_purpose else ({}, {"default/a": reason})
        assert (snapshot["waiting"], snapshot["parked"]) == (waiting, parked)
        server.put("configmaps", config_map("a", value="fixed"))
        await settled()
        assert (len(runs.requests), manager.parked(controller)) == (2, {})


async def test_parked_keys_are_retried_on_demand() -> None:
    runs = Runs()

    async def reconcile(request: Request[Any]) -> Any:
        await runs(request)
        return Result(parked="later") if len(runs.requests) < 3 else None

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server_with("a", "b"), controller) as manager:
        await started()
        assert manager.retry_parked(controller, ["default/b"]) == 1
        await settled()
        assert (runs.names[2:], list(map(str, manager.parked(controller)))) == (["b"], ["default/a"])
        assert manager.retry_parked(controller) == 1


@pytest.mark.behaviour("C-58")
async def test_attempt_that_blocks_the_event_loop_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    measure_blocks(monkeypatch, lambda: seconds)

    async def reconcile(request: Request[Any]) -> Result:
        nonlocal seconds
        await asyncio.sleep(1)
        seconds += 0.3 if request.name == "b" else 0.05
        return Result(after=10)

    async with manager_of(server_with("a", "b"), Controller("it", CONFIG_MAPS, reconcile)):
        await asyncio.sleep(30)
    (line,) = (each.getMessage() for each in caplog.records if each.levelno == logging.WARNING)
    assert line.startswith(
        f"controller it: {function_name(reconcile)} blocked the event loop for 0.30 s with default/b"
    )


@pytest.mark.behaviour("C-55")
async def test_key_rests_until_its_writes_are_cached_and_holds_no_worker() -> None:
    server, runs = server_with("a", "b"), Runs()
    children: list[int] = []

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        if request.name == "a":
            children.append(len(request.lister(PODS).list()))
            if not children[-1]:
                await request.client.core.v1.pods.create(
                    {"metadata": {"name": f"child-{len(children)}", "namespace": "default"}}
                )

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS], workers=1)
    async with manager_of(server, controller) as manager:
        await started()
        server.delay = lambda: 2.0
        server.remove("pods", "default/child-1")
        await asyncio.sleep(2.5)
        children.clear()
        manager.enqueue(controller, "default/a")
        await settled()
        manager.enqueue(controller, "default/a")
        manager.enqueue(controller, "default/b")
        await settled()
        assert (children, runs.names[-1]) == ([0], "b")
        assert snapshot_of(manager)["settling"] == ["default/a"]
        await asyncio.sleep(3)
        assert (children, server.names("pods")) == ([0, 1], ["default/child-1"])


@pytest.mark.behaviour("C-60")
async def test_context_variables_of_a_run_are_not_seen_by_the_next() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        seen.append(variable.get())
        variable.set(request.name)

    variable.set("of the program")
    async with manager_of(server_with(*"abc"), Controller("it", CONFIG_MAPS, reconcile, workers=1)):
        await started()
        assert seen == ["of the program"] * 3


@pytest.mark.behaviour("C-62")
async def test_controller_that_triggers_itself_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request[Any]) -> None:
        assert request.object is not None
        turn = request.object.data["turn"] == "a"
        await request.client.core.v1.configmaps.patch("default/a", {"data": {"turn": "b" if turn else "a"}})

    server = Server()
    server.put("configmaps", config_map("a", turn="a"))
    server.delay = lambda: 0.5
    async with manager_of(server, Controller("it", CONFIG_MAPS, reconcile)):
        await asyncio.sleep(20)
    assert "controller it triggers itself: default/a ran 8 times" in caplog.text
    assert "data.turn of configmaps default/a alternates between two values" in caplog.text


async def test_log_of_a_request_names_controller_and_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def reconcile(request: Request[Any]) -> None:
        request.log.info("it has %d parts", 3)

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile)):
        await started()
    (record,) = (each for each in caplog.records if "parts" in each.getMessage())
    assert record.getMessage() == "it default/a: it has 3 parts"
    assert (vars(record)["controller"], vars(record)["key"]) == ("it", "default/a")


@pytest.mark.behaviour("C-72")
async def test_dry_run_sends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server, names = server_with("a"), []

    async def reconcile(request: Request[Any]) -> None:
        made = await request.client.core.v1.pods.create(pod("child"))
        request.event("Created", "it made a pod")
        names.append(made.metadata.name)

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    async with manager_of(server, controller, dry_run=True) as manager:
        await started()
        manager.enqueue(controller, "default/a")
        await settled()
    assert (names, server.writes) == (["child", "child"], [])
    assert "dry run: event Normal Created about ConfigMap default/a is not sent: it made a pod" in caplog.text
    lines = [record for record in caplog.records if "dry run: create pods in default" in record.getMessage()]
    assert lines[0].getMessage().startswith("it default/a: dry run: create pods in default")
    assert (vars(lines[0])["controller"], vars(lines[0])["key"]) == ("it", "default/a")


async def test_undeclared_write_raises_with_the_plugin_and_warns_without(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for plugin, strict, errors in (
        (True, None, ["UndeclaredWrite"]),
        (True, False, []),
        (False, None, []),
        (False, True, ["UndeclaredWrite"]),
    ):
        if not plugin:
            monkeypatch.setattr(defaults, "strict_writes", False)
        found: list[str] = []

        async def reconcile(request: Request[Any], found: list[str] = found) -> None:
            try:
                await request.client.core.v1.pods.create(pod("child"))
            except UndeclaredWrite as error:
                found.append(type(error).__name__)

        controller = Controller("it", CONFIG_MAPS, reconcile, writes={CONFIG_MAPS: ["patch"]})
        async with manager_of(server_with("a"), controller, strict_writes=strict):
            await started()
        assert found == errors
    assert "it default/a: create pods in default is not declared: add 'create' for pods to writes=" in caplog.text


async def test_events_go_to_the_given_recorder() -> None:
    recorder = FakeRecorder()

    async def reconcile(request: Request[Any]) -> None:
        request.event("Seen", "it is there")
        request.event("Odd", "it is odd", type="Warning", about=request.object)

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile), recorder=recorder):
        await started()
    assert recorder.events == ["Normal Seen it is there", "Warning Odd it is odd"]
