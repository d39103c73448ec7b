"""Attempts that fail, in virtual time: when they are retried or parked, and what the log says of them."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import pytest

from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.controller import Controller, QueueOptions, Request, Retry, RetryAfter, TerminalError
from aioinformer.controller.errors import NothingToDo, StaleCache
from aioinformer.errors import ApiError, Conflict, FormerOwner, InformerStopped, UsageError
from aioinformer.leaderelection import LeadershipLost
from aioinformer.resources import UnknownResource
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    STEADY,
    Cluster,
    Runs,
    manager_of,
    now,
    server_with,
    snapshot_of,
    started,
)


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
        (LeadershipLost("another Lease than that of the manager"), 1.0, False),
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


async def test_time_that_a_server_names_for_a_key_is_limited() -> None:
    seen: list[float] = []
    day = ApiError(503, "ServiceUnavailable", retry_after=86_400.0)
    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, raising(day, seen), queue=STEADY)):
        await asyncio.sleep(2 * MAX_RETRY_AFTER)
    assert [at - seen[0] for at in seen[1:]] == [pytest.approx(MAX_RETRY_AFTER, abs=1)]


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
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(5)
        assert (attempts, snapshot_of(manager)["results"]) == ([1, 2, 3], {"error": 3})
        assert snapshot_of(manager)["failing"] == {"default/a": "3 times, dns answers 500"}
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
    async with manager_of(server_with("a"), controller) as manager:
        await started()
        (line,) = attempts_in(caplog)
        assert "x… (10000 characters)" in line.getMessage()
        assert len(line.getMessage()) < 1500
        assert len(snapshot_of(manager)["failing"]["default/a"]) < 1500
        assert (line.levelno == logging.ERROR) is isinstance(error, ValueError)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError("a bug")


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
    async with manager_of(Cluster(*map(str, range(500))), controller) as manager:
        await asyncio.sleep(55)
        assert snapshot_of(manager)["results"]["error"] > 2500
        lines = attempts_in(caplog)
        assert (sum(bool(each.exc_info) for each in lines), len(lines)) == (2, 22)
        assert len(snapshot_of(manager)["failing"]) == 100
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
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(0.9)
        assert snapshot_of(manager)["results"] == {"conflict": 4, "error": 1}
        (line,) = attempts_in(caplog)
        assert (line.levelno, line.exc_info) == (logging.WARNING, None)
        conflict = (
            'Conflict: 409 Conflict: Apply failed (.spec.replicas: conflict with "kubectl" using v1, '
            '.data.colour: conflict with "kubectl" using v1)'
        )
        what = "controller it: attempt 1 for default/a failed with conflict 5 in a row: "
        assert line.getMessage() == f"{what}{conflict}; retrying in 1 s"
        await asyncio.sleep(10)
        assert snapshot_of(manager)["results"] == {"conflict": 4, "error": 3}
        assert snapshot_of(manager)["parked"] == {"default/a": f"3 attempts failed, the last with {conflict}"}


@pytest.mark.behaviour("C-54")
async def test_terminal_error_parks_and_nothing_to_do_ends() -> None:
    seen: list[float] = []
    controller = Controller("it", CONFIG_MAPS, raising(TerminalError("spec is wrong"), seen))
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(3600)
        assert [each.reason for each in manager.parked(controller).values()] == ["spec is wrong"]
    seen = []
    controller = Controller("it", CONFIG_MAPS, raising(NothingToDo("gone"), seen))
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(3600)
        assert (len(seen), snapshot_of(manager)["results"]) == (1, {"success": 1})


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
            manager.enqueue(stopped, "default/a")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY, writes={})
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(60)
        assert {key.name: each.reason for key, each in manager.parked(controller).items()} == {
            "read": "controller it does not watch v1/pods: add it to owns",
            "written": "create pods in default is not declared: add 'create' for pods to writes= of the controller",
        }
        assert list(snapshot_of(manager)["failing"]) == ["default/called"]
    (line,) = (each for each in caplog.records if "attempt 1 for default/read: parked until" in each.getMessage())
    assert (line.levelno, bool(line.exc_info)) == (logging.ERROR, True)


class Odd(BaseException):
    """An error that is no Exception, such as that of a failed test."""


@pytest.mark.behaviour("C-59")
@pytest.mark.parametrize("error", [Odd("odd"), GeneratorExit(), Unreadable()])
async def test_odd_errors_are_retried(error: BaseException) -> None:
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
    async with manager_of(server_with("a", "b"), controller) as manager:
        await started()
        snapshot = snapshot_of(manager)
        assert list(snapshot["parked"]) == ["default/a"]
        assert snapshot["failing"]["default/b"].startswith("1 times, ValueError at controller/test_failures.py")


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
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(600)
        assert snapshot_of(manager)["results"] == {"waiting": 8, "success": 1}
    assert [round(later - earlier) for earlier, later in pairwise(seen)] == [1, 1, 2, 4, 8, 16, 30, 30]
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if "garbage" in record.getMessage()]
    assert [level for level, _ in lines] == ["INFO", "WARNING", "WARNING"]
    assert (
        "waits for the garbage collector: configmaps default/a belongs to the former Website one (uid u-1)"
        in (lines[0][1])
    )
    assert "has waited 32 s for the garbage collector; does it run?" in lines[1][1]
    assert "Traceback" not in caplog.text
