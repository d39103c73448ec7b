"""Attempts in virtual time: when reconcilers run, and what follows their results and errors."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import (
    Cause,
    Controller,
    NothingToDo,
    Owns,
    QueueOptions,
    Request,
    Result,
    Retry,
    RetryAfter,
    StaleCache,
    TerminalError,
    Watch,
)
from aioinformer.errors import ApiError, Conflict, FormerOwner, InformerStopped, UsageError
from aioinformer.functions import function_name
from aioinformer.handlers import stalls
from aioinformer.resources.restmapper import UnknownResource
from tests.support.written_collection import PODS
from tests.unit.controller.setting import (
    CONFIG_MAPS,
    Runs,
    Server,
    config_map,
    manager_of,
    now,
    settled,
    started,
    subject_of_line,
)

STEADY = QueueOptions(backoff=BackoffOptions(initial=1.0, jitter=0.0, factor=2.0))


def server_with(*names: str) -> Server:
    server = Server()
    for name in names:
        server.put("configmaps", config_map(name))
    return server


def tasks_of_workers() -> list[str]:
    return sorted(
        name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("controller it: default/")
    )


@pytest.mark.behaviour("C-50")
async def test_no_run_before_all_inputs_have_synced() -> None:
    server, runs = server_with("a"), Runs()
    slow = asyncio.Event()
    answer = server.request

    async def request(request: Any) -> Any:
        if "pods" in request.path:
            await slow.wait()
        return await answer(request)

    server.request = request  # type: ignore[method-assign]
    controller = Controller("it", CONFIG_MAPS, runs, owns=[PODS])
    async with manager_of(server, controller):
        await asyncio.sleep(60)
        assert controller.snapshot()["phase"] == "syncing"
        assert controller.snapshot()["waits_for"] == ["informer of pods: syncing"]
        assert runs.names == []
        slow.set()
        await started()
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-51")
async def test_workers_limit_the_tasks_and_idle_controllers_have_none() -> None:
    server, runs = server_with(*"abcde"), Runs(seconds=1)
    async with manager_of(server, Controller("it", CONFIG_MAPS, runs, workers=2)):
        await started()
        assert tasks_of_workers() == ["controller it: default/a", "controller it: default/b"]
        await asyncio.sleep(5)
        assert (sorted(runs.names), runs.most) == (list("abcde"), 2)
        assert tasks_of_workers() == []


@pytest.mark.behaviour("C-51")
async def test_key_never_runs_twice_at_a_time() -> None:
    server, runs = server_with("a"), Runs(seconds=1)
    async with manager_of(server, Controller("it", CONFIG_MAPS, runs)):
        for number in range(5):
            await asyncio.sleep(0.1)
            server.put("configmaps", config_map("a", value=str(number)))
        await asyncio.sleep(5)
        assert (len(runs.requests), runs.most) == (2, 1)


async def test_request_says_why_it_runs_and_has_the_cached_object() -> None:
    server, runs = server_with("a"), Runs()
    controller = Controller("it", CONFIG_MAPS, runs)
    async with manager_of(server, controller):
        await started()
        (first,) = runs.requests
        assert first.object is not None
        assert (first.object.metadata.name, first.resource, first.term) == ("a", CONFIG_MAPS, None)
        assert [str(cause) for cause in first.causes] == ["configmaps default/a initial"]
        server.remove("configmaps", "default/a")
        await settled()
        assert (runs.requests[1].object, [each.trigger for each in runs.requests[1].causes]) == (None, ["deleted"])
        controller.enqueue("default/b", Cause("requested", "hook"), after=5)
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
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(20)
        assert ended == ["cancelled", "done"]
        assert controller.snapshot()["results"] == {"timeout": 1, "error": 2, "success": 1}
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
    async with manager_of(server_with("a", "b"), controller):
        await asyncio.sleep(20)
        assert sorted(runs.names) == ["a", "b"]
        line = "controller it: default/a did not end within 10 s of its timeout, and keeps a worker"
        assert subject_of_line(caplog, line) == ("it", "default/a")
        await asyncio.sleep(41)
        assert controller.snapshot()["results"] == {"success": 2, "timeout": 1}


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
    runs = Runs()

    async def reconcile(request: Request[Any]) -> Any:
        await runs(request)
        return result if len(runs.requests) == 1 else None

    server, controller = server_with("a"), Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server, controller):
        await asyncio.sleep(3600)
        assert {str(key): each.reason for key, each in controller.parked().items()} == {"default/a": reason}
        assert f"attempt 1 for default/a: parked until an input changes: {reason}" in caplog.text
        server.put("configmaps", config_map("a", value="fixed"))
        await settled()
        assert (len(runs.requests), controller.parked()) == (2, {})


async def test_parked_keys_are_retried_on_demand() -> None:
    runs = Runs()

    async def reconcile(request: Request[Any]) -> Any:
        await runs(request)
        return Result(parked="later") if len(runs.requests) < 3 else None

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server_with("a", "b"), controller):
        await started()
        assert controller.retry_parked(["default/b"]) == 1
        await settled()
        assert (runs.names[2:], list(map(str, controller.parked()))) == (["b"], ["default/a"])
        assert controller.retry_parked() == 1


def raising(error: BaseException, seen: list[float]) -> Any:
    async def reconcile(request: Request[Any]) -> None:
        seen.append(now())
        if len(seen) == 1:
            raise error

    return reconcile


CONFLICT = Conflict(409, "Conflict", "the object has been modified")
BUSY = ApiError(503, "ServiceUnavailable", retry_after=30.0)


@pytest.mark.behaviour("C-54")
@pytest.mark.parametrize(
    ("error", "delay", "quiet"),
    [
        (ValueError("no"), 1.0, False),
        (StaleCache("old"), 1.0, False),
        (RetryAfter(7, "not ready"), 7.0, True),
        (CONFLICT, 0.03, True),
        (ExceptionGroup("two", [CONFLICT, CONFLICT]), 0.03, True),
        (ExceptionGroup("two", [CONFLICT, ValueError("no")]), 1.0, False),
        (BUSY, 30.0, False),
        (ExceptionGroup("two", [ValueError("no"), BUSY]), 30.0, False),
        (InformerStopped("it has stopped"), 1.0, False),
        (UnknownResource("widgets"), 1.0, False),
        (ExceptionGroup("two", [UsageError("no"), CONFLICT]), 1.0, False),
    ],
)
async def test_errors_decide_about_the_retry(
    error: Exception, delay: float, quiet: bool, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[float] = []
    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, raising(error, seen), queue=STEADY)):
        await asyncio.sleep(60)
        assert seen[1] - seen[0] == pytest.approx(delay, abs=0.02)
        assert len(seen) == 2
    warnings = [each for each in caplog.records if each.levelno > logging.INFO]
    assert ("retrying in" in "".join(each.getMessage() for each in warnings)) is not quiet


def attempts_in(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the records about attempts, and their counts."""
    return [
        each for each in caplog.records if ": attempt " in each.getMessage() or " more errors " in each.getMessage()
    ]


@pytest.mark.behaviour("C-122")
async def test_expected_failure_has_one_line_and_a_counted_backoff(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    async def reconcile(request: Request[Any]) -> None:
        attempts.append(request.attempt)
        try:
            raise OSError("of the library")
        except OSError as error:
            raise Retry("dns answers 500") from error

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(5)
        assert (attempts, controller.snapshot()["results"]) == ([1, 2, 3], {"error": 3})
        assert controller.snapshot()["failing"] == {"default/a": "3 times, dns answers 500"}
    first, *others = attempts_in(caplog)
    assert first.getMessage() == "controller it: attempt 1 for default/a failed: dns answers 500; retrying in 1 s"
    assert (first.levelno, first.exc_info, len(others)) == (logging.WARNING, None, 2)
    assert (first.controller, first.key) == ("it", "default/a")  # type: ignore[attr-defined]


@pytest.mark.behaviour("C-122")
@pytest.mark.parametrize(
    "error", [Retry("x" * 10_000), ValueError("x" * 10_000), ExceptionGroup("", [Retry("x" * 10_000), RetryAfter(1)])]
)
async def test_long_text_of_an_error_is_shortened(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise error

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a"), controller):
        await started()
        (line,) = attempts_in(caplog)
        assert "x… (10000 characters)" in line.getMessage()
        assert len(line.getMessage()) < 1500
        assert len(controller.snapshot()["failing"]["default/a"]) < 1500
        assert (line.levelno == logging.ERROR) is isinstance(error, ValueError)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("a bug")


async def test_error_without_a_text_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request[Any]) -> None:
        if request.attempt == 1:
            raise Unreadable

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(5)
        assert controller.snapshot()["results"] == {"error": 1, "success": 1}
    assert "attempt 1 for default/a failed with Unreadable" in caplog.text


@pytest.mark.behaviour("C-122")
async def test_retry_after_leaves_a_line_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def reconcile(request: Request[Any]) -> None:
        raise RetryAfter(1, "the volume is attached elsewhere")

    async with manager_of(server_with("a", "b"), Controller("it", CONFIG_MAPS, reconcile)):
        await asyncio.sleep(59)
        lines = attempts_in(caplog)
        assert {each.getMessage() for each in lines} == {
            f"controller it: attempt 1 for default/{name} waits: the volume is attached elsewhere; retrying in 1 s"
            for name in "ab"
        }
        assert [(each.levelno, each.exc_info) for each in lines] == [(logging.INFO, None)] * 2
        await asyncio.sleep(3)
        assert len(attempts_in(caplog)) == 5, "the count, and both again"


@pytest.mark.behaviour("C-123")
async def test_failing_reconciler_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise ValueError("wrong") if int(request.name) % 2 else KeyError("missing")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY, workers=10)
    async with manager_of(server_with(*map(str, range(500))), controller):
        await asyncio.sleep(55)
        assert controller.snapshot()["results"]["error"] > 2500
        lines = attempts_in(caplog)
        assert (sum(bool(each.exc_info) for each in lines), len(lines)) == (2, 22)
        assert len(controller.snapshot()["failing"]) == 100
        await asyncio.sleep(6)
    counts = [each.getMessage() for each in attempts_in(caplog) if " more errors " in each.getMessage()]
    assert len(counts) == 2
    assert all("keys such as default/" in each for each in counts)


@pytest.mark.behaviour("C-123")
async def test_stop_logs_how_many_failures_were_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise ValueError("wrong")

    async with manager_of(server_with(*map(str, range(50))), Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)):
        await started()
    assert " raised 39 more errors within 60 s" in attempts_in(caplog)[-1].getMessage()


def apply_conflict(*fields: str, message: str = "Apply failed") -> Conflict:
    error = Conflict(409, "Conflict", message)
    using = 'conflict with "kubectl" using v1'
    error.details = {"causes": [{"reason": "FieldManagerConflict", "message": using, "field": each} for each in fields]}
    return error


@pytest.mark.behaviour("C-13")
async def test_conflict_that_never_ends_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise apply_conflict(".spec.replicas", ".data.colour")

    queue = QueueOptions(backoff=STEADY.backoff, max_attempts=3)
    controller = Controller("it", CONFIG_MAPS, reconcile, queue=queue)
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(0.9)
        assert controller.snapshot()["results"] == {"conflict": 4, "error": 1}
        (line,) = attempts_in(caplog)
        assert (line.levelno, line.exc_info) == (logging.WARNING, None)
        conflict = (
            'Conflict: 409 Conflict: Apply failed (.spec.replicas: conflict with "kubectl" using v1, '
            '.data.colour: conflict with "kubectl" using v1)'
        )
        what = "controller it: attempt 1 for default/a failed with conflict 5 in a row: "
        assert line.getMessage() == f"{what}{conflict}; retrying in 1 s"
        await asyncio.sleep(10)
        assert controller.snapshot()["results"] == {"conflict": 4, "error": 3}
        assert controller.snapshot()["parked"] == {"default/a": f"3 attempts failed, the last with {conflict}"}


@pytest.mark.behaviour("C-54")
async def test_terminal_error_parks_and_nothing_to_do_ends() -> None:
    seen: list[float] = []
    controller = Controller("it", CONFIG_MAPS, raising(TerminalError("spec is wrong"), seen))
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(3600)
        assert [each.reason for each in controller.parked().values()] == ["spec is wrong"]
    seen = []
    controller = Controller("it", CONFIG_MAPS, raising(NothingToDo("gone"), seen))
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(3600)
        assert (len(seen), controller.snapshot()["results"]) == (1, {"success": 1})


@pytest.mark.behaviour("C-54")
async def test_wrong_program_parks_with_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = server_with("read", "written", "called")
    stopped = Controller("stopped", CONFIG_MAPS, Runs())

    async def reconcile(request: Request[Any]) -> None:
        if request.name == "read":
            request.owned(PODS)
        elif request.name == "written":
            await request.client.core.v1.pods.create({"metadata": {"name": "p", "namespace": "default"}})
        else:
            stopped.enqueue("default/a")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY, writes={})
    async with manager_of(server, controller):
        await asyncio.sleep(60)
        assert {key.name: each.reason for key, each in controller.parked().items()} == {
            "read": "controller it does not watch v1/pods: add it to owns",
            "written": "create pods in default is not declared: add 'create' for pods to writes= of the controller",
        }
        assert list(controller.snapshot()["failing"]) == ["default/called"]
    (line,) = (each for each in caplog.records if "attempt 1 for default/read: parked until" in each.getMessage())
    assert (line.levelno, bool(line.exc_info)) == (logging.ERROR, True)


@pytest.mark.behaviour("C-58")
async def test_attempt_that_blocks_the_event_loop_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(stalls, "perf_counter", lambda: seconds)

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


class Odd(BaseException):
    """An error that is no Exception, such as that of a failed test."""


@pytest.mark.behaviour("C-59")
@pytest.mark.parametrize("error", [Odd("odd"), GeneratorExit()])
async def test_errors_that_are_no_exceptions_are_retried(error: BaseException) -> None:
    seen: list[float] = []
    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, raising(error, seen), queue=STEADY)):
        await asyncio.sleep(60)
        assert len(seen) == 2


async def test_decorator_that_returns_no_coroutine_parks_the_key() -> None:
    async def wrapped(request: Request[Any]) -> None: ...

    def reconcile(request: Request[Any]) -> Any:
        if request.name == "a":
            return "no coroutine"
        raise ValueError("before the first await")

    reconcile.__wrapped__ = wrapped  # type: ignore[attr-defined]
    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a", "b"), controller):
        await started()
        snapshot = controller.snapshot()
        assert list(snapshot["parked"]) == ["default/a"]
        assert snapshot["failing"]["default/b"].startswith("1 times, ValueError at running/test_attempts.py")


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
    async with manager_of(server, controller):
        await started()
        server.delay = lambda: 2.0
        server.remove("pods", "default/child-1")
        await asyncio.sleep(2.5)
        children.clear()
        controller.enqueue("default/a")
        await settled()
        controller.enqueue("default/a")
        controller.enqueue("default/b")
        await settled()
        assert (children, runs.names[-1]) == ([0], "b")
        assert controller.snapshot()["settling"] == ["default/a"]
        await asyncio.sleep(3)
        assert (children, server.names("pods")) == ([0, 1], ["default/child-1"])


@pytest.mark.behaviour("C-55")
async def test_stale_cache_delays_the_key_but_never_runs_it() -> None:
    server, runs = server_with("a"), Runs()

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        if not request.lister(PODS).list():
            await request.client.core.v1.pods.create({"metadata": {"name": "child", "namespace": "default"}})

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[PODS])
    server.delay = lambda: 60.0
    async with manager_of(server, controller):
        await asyncio.sleep(50)
        assert len(runs.requests) == 1
        assert controller.snapshot()["results"]["stale"] == 3  # after 5, 15 and 35 s
        controller.enqueue("default/a")
        await asyncio.sleep(60)
        assert (len(runs.requests), controller.snapshot()["settling"]) == (2, [])


@pytest.mark.behaviour("C-56")
async def test_object_that_does_not_decode_is_not_taken_for_deleted() -> None:
    server, runs = Server(), Runs()

    def decode(raw: bytes) -> Any:
        if b"broken" in raw:
            raise ValueError("a field is missing")
        return json.loads(raw)

    controller = Controller("it", CONFIG_MAPS, runs, informer={"decoder": decode})
    async with manager_of(server, controller):
        await started()
        server.put("configmaps", config_map("a", value="broken"))
        await settled()
        controller.enqueue("default/a")
        await settled()
        assert runs.names == []
        assert [each.reason for each in controller.parked().values()] == [
            "default/a cannot be decoded: the decoder refuses it: ValueError"
        ]
        server.put("configmaps", config_map("a", value="fixed"))
        await settled()
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-57")
async def test_keys_outside_of_the_namespaces_do_not_run() -> None:
    runs = Runs()
    elsewhere = Watch(PODS, to=lambda pod: ["other/a", "default/b"])
    controller = Controller("it", CONFIG_MAPS, runs, watches=[elsewhere], informer={"namespace": "default"})
    server = server_with("a")
    server.put("pods", {"metadata": {"name": "p", "namespace": "default"}})
    async with manager_of(server, controller):
        await started()
        with pytest.raises(UsageError, match="controller it does not watch the namespace of other/a"):
            controller.enqueue("other/a")
        with pytest.raises(UsageError, match="controller it: 'a' is no key of configmaps, which are namespaced"):
            controller.enqueue("a")
        assert sorted(f"{each.namespace}/{each.name}" for each in runs.requests) == ["default/a", "default/b"]


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


@pytest.mark.behaviour("C-61")
async def test_reads_of_resources_that_are_no_inputs_are_refused() -> None:
    messages: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        for read in (request.lister, request.owned):
            with pytest.raises(UsageError) as refusal:
                read(PODS)
            messages.append(str(refusal.value))

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile)):
        await started()
    assert messages == [
        "controller it does not watch v1/pods (inputs: v1/configmaps): add it to owns or watches",
        "controller it does not watch v1/pods: add it to owns",
    ]


@pytest.mark.behaviour("C-117")
async def test_inputs_of_one_resource_are_told_apart_by_their_declarations() -> None:
    pods = Watch(PODS, to=lambda pod: ["default/a"], label_selector="app=a")
    others, unknown = Owns(PODS, label_selector="app=b"), Watch(PODS, to=lambda pod: [])
    found: list[Any] = []

    async def reconcile(request: Request[Any]) -> None:
        with pytest.raises(UsageError) as refusal:
            request.lister(PODS)
        found.append(str(refusal.value))
        with pytest.raises(UsageError, match=r"controller it does not have this Watch\(pods\): add it to"):
            request.lister(unknown)
        for each in (pods, others, controller.primary()):
            found.append([obj.metadata.name for obj in request.lister(each).list()])

    server = server_with("a")
    for app in "ab":
        server.put("pods", {"metadata": {"name": f"of-{app}", "namespace": "default", "labels": {"app": app}}})
    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[others], watches=[pods])
    async with manager_of(server, controller):
        await started()
    assert found[:4] == [
        "controller it has several inputs of v1/pods with different caches: Owns(pods, label_selector='app=b'), "
        "Watch(pods, label_selector='app=a'); pass one of these declarations instead of the resource",
        ["of-a"],
        ["of-b"],
        ["a"],
    ]


@pytest.mark.behaviour("C-117")
async def test_inputs_with_one_cache_need_no_choice() -> None:
    found: list[int] = []

    async def reconcile(request: Request[Any]) -> None:
        found.append(len(request.lister(CONFIG_MAPS).list()))

    twin = Watch(CONFIG_MAPS, to=lambda obj: [])
    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile, watches=[twin])):
        await started()
    assert found == [1]


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
    assert "controller it triggers itself: default/a ran 10 times" in caplog.text
    assert 'data.turn of configmaps default/a alternates between "' in caplog.text


async def test_log_of_a_request_names_controller_and_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def reconcile(request: Request[Any]) -> None:
        request.log.info("it has %d parts", 3)

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile)):
        await started()
    (record,) = (each for each in caplog.records if "parts" in each.getMessage())
    assert record.getMessage() == "it default/a: it has 3 parts"
    assert (vars(record)["controller"], vars(record)["key"]) == ("it", "default/a")


FORMER = FormerOwner("configmaps default/a", "Website", "one", "u-1")


@pytest.mark.behaviour("C-104")
async def test_garbage_of_a_former_owner_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    seen: list[float] = []

    async def reconcile(request: Request[Any]) -> None:
        seen.append(now())
        assert request.attempt == 1
        if len(seen) < 9:
            raise FORMER if len(seen) % 2 else ExceptionGroup("two", [FORMER])

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=QueueOptions(max_attempts=1))
    async with manager_of(server_with("a"), controller):
        await asyncio.sleep(600)
        assert controller.snapshot()["results"] == {"waiting": 8, "success": 1}
    assert [round(later - earlier) for earlier, later in pairwise(seen)] == [1, 1, 2, 4, 8, 16, 30, 30]
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if "garbage" in record.getMessage()]
    assert [level for level, _ in lines] == ["INFO", "WARNING", "WARNING"]
    assert (
        "waits for the garbage collector: configmaps default/a belongs to the former Website one (uid u-1)"
        in (lines[0][1])
    )
    assert "has waited 32 s for the garbage collector; does it run?" in lines[1][1]
    assert "Traceback" not in caplog.text
