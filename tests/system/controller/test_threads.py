"""`Request.to_thread` over HTTP, with real threads: an attempt and its term do not end before them."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import LeaderElectionOptions
from aioinformer.controller import Controller, LeaderElection, Manager, Request
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from tests.support.limits import clean_up_within
from tests.support.managers import active_of
from tests.system.controller.processes import line, program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing import ApiServer

#: How many threads an attempt has at a time, as the documentation of `to_thread` says.
AT_ONCE = 8
QUICK = LeaderElectionOptions(lease_duration=3, renew_deadline=1.0, retry_period=0.05)


class Work:
    """A function that blocks until it is released, and counts how many calls there are at a time."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)
        self.calls = self.running = self.most = 0
        self.error: Exception | None = None
        self._lock = threading.Lock()

    def __call__(self, *, seconds: float = 30.0) -> str:
        with self._lock:
            self.calls += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.begun.release()
        self.go_on.wait(seconds)
        with self._lock:
            self.running -= 1
        if self.error is not None:
            raise self.error
        return "done"


@pytest.fixture
def work() -> Iterator[Work]:
    work = Work()
    yield work
    work.go_on.set()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110 - threads and other processes change it
            await asyncio.sleep(0.01)


def call(work: Work, **options: Any) -> Controller[Any]:
    """Return a controller whose reconciler calls the work for the config map `it`."""

    async def reconcile(request: Request[Any]) -> None:
        if request.name == "it":
            await request.to_thread(work)

    return Controller("it", core_v1.CONFIG_MAPS, reconcile, **options)


def results_of(manager: Manager) -> dict[str, int]:
    return manager.snapshot()["controllers"]["it"]["results"]


def create(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "it", "namespace": "default"}})


@pytest.mark.behaviour("C-51", "C-113")
async def test_key_does_not_run_again_before_its_thread_has_ended(
    api_server: ApiServer, work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clean_up_within(monkeypatch, 0.2)
    create(api_server)
    controller = call(work, timeout=0.1, workers=2)
    async with Manager("shop", [controller], client=api_server.url) as manager:
        await until(lambda: "still runs in a thread" in caplog.text)
        await asyncio.sleep(0.5)  # many timeouts and backoffs
        assert (work.calls, results_of(manager).get("timeout")) == (1, None)
        (running,) = manager.snapshot()["controllers"]["it"]["running"]
        assert (running["key"], len(running["threads"])) == ("default/it", 1)
        work.go_on.set()
        await until(lambda: results_of(manager).get("success"))
    assert (work.most, controller.name) == (1, "it")
    assert "attempt 1 for default/it failed with ReconcileTimeout" in caplog.text
    assert "still runs in a thread 0.2 s after the end of the attempt; the key and the worker wait" in caplog.text


@pytest.mark.behaviour("C-113")
async def test_reconciler_is_cancelled_at_once_and_may_end_its_thread(api_server: ApiServer, work: Work) -> None:
    create(api_server)
    ended: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        if request.name == "it" and request.attempt == 1:
            try:
                await request.to_thread(work)
            except asyncio.CancelledError:
                ended.append(f"cancelled while {work.running} runs")
                work.go_on.set()
                raise

    controller = Controller("it", core_v1.CONFIG_MAPS, reconcile, timeout=0.1)
    async with Manager("shop", [controller], client=api_server.url) as manager:
        await until(lambda: results_of(manager).get("timeout"))
    assert ended == ["cancelled while 1 runs"]


async def test_thread_returns_raises_and_has_the_context(
    api_server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    create(api_server)
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[Any] = []

    def thread_of(*, key: int) -> tuple[int, str]:
        return key, threading.current_thread().name

    def fail(error: BaseException) -> None:
        raise error

    async def reconcile(request: Request[Any]) -> None:
        if request.name != "it":
            return
        variable.set("of the run")
        seen.append(await request.to_thread(variable.get))
        seen.append(await request.to_thread(thread_of, key=1))
        for error in (ValueError("no"), StopIteration()):
            with pytest.raises((ValueError, RuntimeError)) as raised:
                await request.to_thread(fail, error)
            seen.append(raised.value)
        with pytest.raises(UsageError, match="to_thread: expected a plain function"):
            _ = await request.to_thread(reconcile, request)
        seen.append(asyncio.create_task(later(request)))

    async def later(request: Request[Any]) -> None:
        await asyncio.sleep(0.1)
        await request.to_thread(len, "")

    async with Manager("shop", [Controller("it", core_v1.CONFIG_MAPS, reconcile)], client=api_server.url):
        await until(lambda: len(seen) == 5)
        with pytest.raises(UsageError, match="the run for default/it has ended"):
            await seen[4]
    assert seen[0] == "of the run"
    assert seen[1][0] == 1
    assert seen[1][1].startswith("controller it: default/it: thread_of at controller/test_threads.py:")
    assert str(seen[2]) == "no"
    assert "raised StopIteration" in str(seen[3])
    assert "failed" not in caplog.text


@pytest.mark.behaviour("C-113")
async def test_attempt_has_few_threads_at_a_time(api_server: ApiServer, work: Work) -> None:
    create(api_server)

    async def reconcile(request: Request[Any]) -> None:
        if request.name == "it":
            await asyncio.gather(*(request.to_thread(work) for _ in range(30)))

    controller = Controller("it", core_v1.CONFIG_MAPS, reconcile)
    async with Manager("shop", [controller], client=api_server.url) as manager:
        await until(lambda: work.running == AT_ONCE)
        await asyncio.sleep(0.1)
        work.go_on.set()
        await until(lambda: results_of(manager).get("success"))
    assert (work.calls, work.most) == (30, AT_ONCE)


@pytest.mark.behaviour("C-113")
async def test_error_of_a_thread_after_the_cancellation_is_logged(
    api_server: ApiServer, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    create(api_server)
    work.error = ValueError("of the thread")

    async def reconcile(request: Request[Any]) -> None:
        if request.name == "it" and request.attempt == 1:
            await request.to_thread(work)

    controller = Controller("it", core_v1.CONFIG_MAPS, reconcile, timeout=0.1)
    async with Manager("shop", [controller], client=api_server.url) as manager:
        await until(lambda: work.running)
        await asyncio.sleep(0.3)
        work.go_on.set()
        await until(lambda: results_of(manager).get("timeout"))
    assert "controller it: default/it: Work at controller/test_threads.py" in caplog.text
    assert "failed in a thread after it was cancelled" in caplog.text
    assert "ValueError: of the thread" in caplog.text


@pytest.mark.behaviour("C-113")
async def test_restarted_controller_waits_for_its_threads(
    api_server: ApiServer, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_up_within(monkeypatch, 0.2)
    create(api_server)
    async with Manager("shop", [call(work)], client=api_server.url) as manager:
        await until(lambda: work.running)
        before = active_of(manager)
        before._fail(RuntimeError("a bug"))
        await asyncio.sleep(2.5)  # the first delay of a restart is up to 1 s, and the cut attempt does not end
        assert active_of(manager) is before
        work.go_on.set()
        await until(lambda: active_of(manager) is not before and work.calls == 2)
    assert work.most == 1


# The Lease.


def holder(server: ApiServer) -> str:
    return str(server.get("leases", "shop")["spec"].get("holderIdentity") or "")


def replica(server: ApiServer, name: str, controller: Controller[Any], grace: float = 10.0) -> Manager:
    election = LeaderElection("shop", options=QUICK, identity=name)
    return Manager("shop", [controller], client=server.url, leader_election=election, grace=grace)


@pytest.mark.behaviour("C-114")
async def test_lost_leader_does_not_compete_while_a_thread_runs(
    api_server: ApiServer, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_up_within(monkeypatch, 0.2)
    create(api_server)
    async with replica(api_server, "first", call(work)) as manager:
        await until(lambda: work.running)
        async with api_server.fault("outage"):
            await until(lambda: manager.snapshot()["leader"] is False)
            await until(lambda: not manager.alive())
        await asyncio.sleep(1)  # many retry periods
        assert (holder(api_server), manager.snapshot()["leader"]) == ("first", False)
        assert "the code that it guards still runs" in str(manager.alive())
        work.go_on.set()
        await until(lambda: manager.snapshot()["leader"] and work.calls == 2)
    assert (work.most, holder(api_server)) == (1, "")


@pytest.mark.behaviour("C-114")
@pytest.mark.parametrize("removed", [False, True])
async def test_lease_is_not_released_under_a_thread(
    api_server: ApiServer,
    work: Work,
    removed: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clean_up_within(monkeypatch, 0.2)
    create(api_server)
    other, tasks = Work(), asyncio.all_tasks()
    other.go_on.set()
    async with replica(api_server, "first", controller := call(work), grace=0.2) as first:
        await until(lambda: work.running)
        if removed:
            await first.remove(controller)
    assert asyncio.all_tasks() == tasks
    assert holder(api_server) == "first"
    assert "the Lease is not released, and must expire: threads go on: controller it: default/it: Work" in caplog.text
    assert first.stop_report is not None
    if not removed:
        report = first.stop_report.controllers["it"]
        assert list(report.abandoned) == ["default/it"]
        assert [each.partition(" at ")[0] for each in report.threads] == ["default/it: Work"]
    async with replica(api_server, "second", call(other)):
        await asyncio.sleep(0.5)  # many retry periods
        assert (other.calls, work.running) == (0, 1)
        await until(lambda: other.calls)


@pytest.mark.behaviour("C-114")
async def test_stopped_program_exits_although_a_thread_goes_on(api_server: ApiServer) -> None:
    create(api_server)
    async with program("thread", api_server.url) as process:
        while await line(process) != "begins it":
            pass
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(50):  # the thread sleeps for an hour
            _, log = await process.communicate()
        assert process.returncode == 0, log.decode()
