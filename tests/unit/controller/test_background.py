"""Background tasks of a manager, in virtual time: their runs, restarts and ends."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import BackgroundRun, Controller, LeaderElection, Manager, Request
from aioinformer.controller.running import Restart
from aioinformer.errors import Stale, UsageError
from aioinformer.leaderelection import LeadershipLost
from tests.support.limits import measure_ages
from tests.support.managers import CONFIG_MAPS, Cluster, Runs, config_map, manager_of, now, server_with, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

STEADY = Restart(backoff=BackoffOptions(initial=2.0, cap=60.0, jitter=0.0))
ELECTION = LeaderElection("it")


class Loop:
    """A background task that notes what happens, and runs until it is told otherwise.

    Attributes:
        story: with the virtual times since the first event.
        runs: what each call got.
        end: what a call does at its end: returns after `seconds`, or raises.
        stubborn: seconds for which it ignores its cancellation.
    """

    def __init__(self) -> None:
        self.story: list[tuple[float, str]] = []
        self.runs: list[BackgroundRun[Any]] = []
        self.seconds = float("inf")
        self.error: Callable[[], BaseException] | None = None
        self.stubborn = 0.0
        self._began: float | None = None

    def tell(self, what: str) -> None:
        self._began = now() if self._began is None else self._began
        self.story.append((round(now() - self._began, 1), what))

    async def __call__(self, run: BackgroundRun[Any]) -> None:
        self.runs.append(run)
        self.tell(f"attempt {run.attempt}")
        try:
            await (asyncio.sleep(self.seconds) if self.seconds < float("inf") else asyncio.Event().wait())
        except asyncio.CancelledError:
            end = now() + self.stubborn
            while now() < end:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(end - now())
            self.tell("cancelled")
            raise
        if self.error is not None:
            raise self.error()


@pytest.fixture
def loop() -> Loop:
    return Loop()


def background(manager: Manager, name: str = "loop") -> Any:
    return manager.snapshot()["background"][name]


def running() -> set[str]:
    return {each.get_name() for each in asyncio.all_tasks() if each is not asyncio.current_task()}


@pytest.mark.behaviour("C-153")
async def test_task_runs_with_the_state_and_ends_between_attempts_and_lifespan(loop: Loop) -> None:
    @asynccontextmanager
    async def lifespan(manager: Manager) -> AsyncIterator[str]:
        loop.tell("entered")
        yield "resource"
        loop.tell("left")

    async def reconcile(request: Request[Any]) -> None:
        await asyncio.sleep(5)
        loop.tell("attempt has ended")

    manager = manager_of(server_with("it"), Controller("it", CONFIG_MAPS, reconcile), lifespan=lifespan)
    manager.background(loop, name="loop")
    async with manager:
        await started()
        assert background(manager)["phase"] == "running"
        assert any(name.startswith("background task loop: Loop") for name in running())
        assert manager.ready().checks["background task loop"] == ""
    [run] = loop.runs
    assert (run.state, run.term, run.dry_run, str(run)) == ("resource", None, False, "<run of background task loop>")
    assert [what for _, what in loop.story] == ["entered", "attempt 1", "attempt has ended", "cancelled", "left"]
    assert running() == set()


@pytest.mark.behaviour("C-154")
async def test_crash_is_logged_restarted_with_backoff_and_in_readiness(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    loop.seconds, loop.error = 1.0, partial(KeyError, "postgres://me:secret@db")
    manager = manager_of(server_with(), restart=STEADY)
    manager.background(loop, name="loop")
    async with manager:
        await asyncio.sleep(1.5)
        assert background(manager)["phase"] == "restarting"
        [reason] = manager.ready().reasons
        assert re.fullmatch(
            r"background task loop: it has failed, and is restarting: KeyError at controller/test_background.py:\d+: "
            r"'postgres://<redacted>@db'",
            reason,
        )
        await asyncio.sleep(11)
        assert [at for at, _ in loop.story] == [0.0, 3.0, 8.0]
        assert [what for _, what in loop.story] == ["attempt 1", "attempt 2", "attempt 3"]
        loop.seconds = float("inf")
        await asyncio.sleep(9)  # the next run began 17 s after the first one
        assert background(manager)["restarts"] == 3
        assert "is running" in manager.ready().reasons[0]
        await asyncio.sleep(10)
        assert manager.ready()
        assert background(manager)["failure"] == ""
        problems = [each["text"] for each in manager.report()["problems"]]
        assert problems == []
    first, *others = [each for each in caplog.records if "has failed with KeyError" in each.getMessage()]
    assert first.exc_info is not None
    assert first.getMessage().endswith("restarting it in 2.0 s, attempt 2")
    assert len(others) == 2


@pytest.mark.behaviour("C-154")
async def test_crash_is_a_problem_on_the_page_and_does_not_end_the_manager(loop: Loop) -> None:
    loop.seconds, loop.error = 0.0, partial(OSError, "down")
    manager = manager_of(server_with("it"), Controller("it", CONFIG_MAPS, runs := Runs()), restart=Restart("never"))
    manager.background(loop, name="loop")
    task = asyncio.create_task(manager.run())
    await asyncio.sleep(3600)
    [problem] = manager.report()["problems"]
    assert re.match(
        r"The background task loop has failed, and is restarting after \d+ restarts: OSError", problem["text"]
    )
    assert 30 < len(loop.runs) < 75, "once in one to two minutes in the end"
    assert (task.done(), len(runs.requests)) == (False, 1)
    manager.stop()
    await task


async def test_task_that_returns_has_ended(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop.seconds = 2.0
    manager = manager_of(server_with())
    manager.background(loop, name="loop")
    for _ in range(2):
        async with manager:
            await asyncio.sleep(100)
            assert background(manager)["phase"] == "ended"
            assert manager.ready()
    assert [what for _, what in loop.story] == ["attempt 1", "attempt 1"]
    assert "background task loop has returned: it does not run before the next start of the manager" in caplog.text


async def test_cancelled_error_of_the_task_itself_is_a_crash(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    loop.seconds, loop.error = 0.0, asyncio.CancelledError
    manager = manager_of(server_with(), restart=STEADY)
    manager.background(loop, name="loop")
    async with manager:
        await asyncio.sleep(3)
        assert [what for _, what in loop.story] == ["attempt 1", "attempt 2"]
    assert "it raised CancelledError, and nothing had cancelled it" in caplog.text


async def test_error_while_it_is_cancelled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    manager = manager_of(server_with())

    @manager.background
    async def sweep(run: BackgroundRun) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the cleanup failed")

    async with manager:
        await started()
    assert "background task sweep failed while it was cancelled" in caplog.text
    assert manager.stop_report is not None
    assert manager.stop_report.abandoned == []


@pytest.mark.behaviour("C-155")
async def test_task_that_ignores_its_cancellation_is_abandoned_and_writes_no_more(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    loop.stubborn = 60.0
    server = server_with()
    manager = manager_of(server)
    manager.background(loop, name="loop")
    began = 0.0
    async with manager:
        await started()
        began = now()
    assert now() - began == pytest.approx(10, abs=0.1)
    assert manager.stop_report is not None
    assert manager.stop_report.abandoned == ["background task loop"]
    assert "1 abandoned" in str(manager.stop_report)
    with pytest.raises(UsageError, match="background task loop goes on after its cancellation, and may not write"):
        await loop.runs[0].client.core.v1.configmaps.create(config_map("late"))
    assert server.writes == []
    await asyncio.sleep(100)
    assert "background task loop has ended after it was abandoned" in caplog.text


@pytest.mark.behaviour("C-156")
async def test_elected_task_runs_in_the_leader_alone(loop: Loop) -> None:
    server = Cluster()
    server.leases.take("former")
    manager = manager_of(server, leader_election=ELECTION)
    manager.background(loop, name="loop", elected=True)
    async with manager:
        await asyncio.sleep(5)
        assert (loop.story, background(manager)["phase"]) == ([], "standby")
        assert manager.ready()
        await asyncio.sleep(60)  # the Lease of the former leader expires
        assert background(manager)["phase"] == "running"
        server.leases.down = True
        await asyncio.sleep(15)
        assert [what for _, what in loop.story] == ["attempt 1", "cancelled"]
        [run] = loop.runs
        assert run.term is not None
        with pytest.raises(LeadershipLost):
            await run.client.core.v1.configmaps.create(config_map("late"))
        assert server.names() == []
        assert background(manager)["phase"] == "standby"
        server.leases.down = False
        await asyncio.sleep(60)
        assert [what for _, what in loop.story] == ["attempt 1", "cancelled", "attempt 1"]
        await loop.runs[1].client.core.v1.configmaps.create(config_map("now"))
    assert server.names() == ["default/now"]
    assert running() == set()


@pytest.mark.behaviour("C-156")
async def test_lease_is_released_after_the_elected_task_has_ended(loop: Loop) -> None:
    server = Cluster()
    manager = manager_of(server, leader_election=ELECTION)
    manager.background(loop, name="loop", elected=True)
    loop.stubborn = 5.0
    async with manager:
        await asyncio.sleep(30)
        assert loop.runs[0].term is not None
        stopping = asyncio.create_task(manager._stop("the test"))
        await asyncio.sleep(4)
        assert server.leases.holder != ""
        loop.runs[0].term.check()
        await stopping
    assert server.leases.holder == ""


@pytest.mark.behaviour("C-156")
async def test_lease_waits_for_the_threads_of_the_elected_task(caplog: pytest.LogCaptureFixture) -> None:
    server = Cluster()
    manager = manager_of(server, leader_election=ELECTION)
    begun = asyncio.Event()
    end = threading.Event()
    answers: list[str] = []

    def block() -> str:
        end.wait(30)
        return "done"

    @manager.background(elected=True)
    async def sweep(run: BackgroundRun) -> None:
        answers.append(await run.to_thread(str.upper, "first"))
        begun.set()
        await run.to_thread(block)

    async with manager:
        await begun.wait()
        holder = server.leases.holder
        manager.stop()
        await asyncio.sleep(5)
        assert (server.leases.holder, holder != "") == (holder, True)
        end.set()
        while server.leases.holder:  # noqa: ASYNC110 - virtual time does not wait for a thread
            await asyncio.sleep(0)
    assert answers == ["FIRST"]
    assert "abandoned" not in caplog.text


@pytest.mark.behaviour("C-156")
async def test_thread_that_goes_on_keeps_the_lease(caplog: pytest.LogCaptureFixture) -> None:
    server = Cluster()
    manager = manager_of(server, leader_election=ELECTION)
    begun = asyncio.Event()
    end = threading.Event()

    @manager.background(elected=True)
    async def sweep(run: BackgroundRun) -> None:
        begun.set()
        await run.to_thread(end.wait, 30)

    async with manager:
        await begun.wait()
    assert server.leases.holder != ""
    assert re.search(r"sweep: .* still runs in a thread 10 s after .*; the next run and the Lease wait", caplog.text)
    assert "the Lease is not released, and must expire: threads go on: background task sweep: " in caplog.text
    end.set()
    await asyncio.sleep(0.1)


@pytest.mark.behaviour("C-155")
async def test_delete_is_refused_while_a_cache_is_stale(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_ages(monkeypatch, now)
    server = server_with("it", "other")
    manager = manager_of(server, Controller("it", CONFIG_MAPS, Runs()), max_staleness=30.0)
    manager.background(loop, name="loop")
    async with manager:
        await started()
        client = loop.runs[0].client.core.v1.configmaps
        await client.delete("default/other")
        server.refuse_reads = 503
        await asyncio.sleep(300)
        with pytest.raises(Stale):
            await client.delete("default/it")
        await client.patch("default/it", {"data": {"a": "b"}})
        server.refuse_reads = 0
    assert [each.method for each in server.writes] == ["DELETE", "PATCH"]


async def test_dry_run_runs_the_tasks_and_sends_no_writes(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Cluster()
    manager = manager_of(server, leader_election=ELECTION, dry_run=True)
    manager.background(loop, name="loop", elected=True)
    async with manager:
        await started()
        [run] = loop.runs
        assert (run.dry_run, run.term) == (True, None)
        await run.client.core.v1.configmaps.create(config_map("it"))
        run.log.info("swept")
    assert server.writes == []
    assert "loop: dry run: create configmaps in default is not sent" in caplog.text
    assert "loop: swept" in caplog.text


async def test_undeclared_write_is_refused(loop: Loop) -> None:
    server = server_with()
    manager = manager_of(server, strict_writes=True)
    manager.background(loop, name="loop", writes={CONFIG_MAPS: ["patch"]})
    async with manager:
        await started()
        with pytest.raises(UsageError, match="add 'create' for configmaps to writes="):
            await loop.runs[0].client.core.v1.configmaps.create(config_map("it"))
    assert server.writes == []


async def work(run: BackgroundRun) -> None: ...


def plain(run: BackgroundRun) -> None: ...


async def without_argument() -> None: ...


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda manager: manager.background(partial(work)), "work at controller/test_background.py"),
        (lambda manager: manager.background(partial(work)), 'pass one: background(function, name="sweep")'),
        (lambda manager: manager.background(Loop()), "has no name, which log lines, readiness and its field manager"),
        (lambda manager: manager.background(plain), "which is not async; write `async def the function(run)`"),
        (lambda manager: manager.background(lambda run: work(run)), "is not async"),
        (lambda manager: manager.background(without_argument), "must accept one argument, the run"),
        (lambda manager: manager.background(work, name="a b"), "name must be up to 63 letters"),
        (lambda manager: manager.background(work, elected="yes"), "elected must be True or False, not 'yes'"),
        (lambda manager: manager.background(work, writes=["pods"]), "background task work: writes must be a mapping"),
        (lambda manager: manager.background(work, name="it"), "has a controller it already"),
        (lambda manager: (manager.background(work), manager.background(work)), "has a background task work already"),
        (
            lambda manager: (manager.background(work), manager.controller(CONFIG_MAPS, name="work")(Runs())),
            "has a background task work already",
        ),
    ],
)
def test_wrong_task_is_refused_with_the_remedy(declare: Callable[[Any], Any], message: str) -> None:
    manager = Manager("test", [Controller("it", CONFIG_MAPS, Runs())])
    with pytest.raises(UsageError, match=re.escape(message)):
        declare(manager)


def test_elected_task_is_refused_in_a_ring() -> None:
    manager = Manager("test", ring="test")
    message = r"needs a leader, and the replicas of a ring have none; pass elected=False, or add it to a second Manager"
    with pytest.raises(UsageError, match=message):
        manager.background(work, elected=True)
    manager.background(work)
    assert list(manager.background_tasks) == ["work"]


async def test_task_is_declared_before_the_start(loop: Loop) -> None:
    async with manager_of(server_with()) as manager:
        with pytest.raises(UsageError, match="manager test runs: declare background tasks before the start"):
            manager.background(work)
