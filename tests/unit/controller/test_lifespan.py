"""The lifespan of a manager, in virtual time: when it is entered and left, and what follows its errors."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, Manager, Request
from aioinformer.errors import UsageError
from aioinformer.harness import review
from tests.support.managers import CONFIG_MAPS, Runs, config_map, manager_of, now, server_with, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aioinformer.webhooks import AdmissionRequest


class Resources:
    """A lifespan, and what happens to it.

    Attributes:
        story: in the order of the events.
        entering, leaving: seconds that they take.
        entry_error, exit_error: raised then; None for none.
        stubborn: seconds for which leaving ignores its cancellation.
        tasks: those that have entered and left.
    """

    def __init__(self) -> None:
        self.story: list[str] = []
        self.entering = self.leaving = self.stubborn = 0.0
        self.entry_error: Exception | None = None
        self.exit_error: Exception | None = None
        self.tasks: list[asyncio.Task[Any] | None] = []
        self.opened = 0

    @asynccontextmanager
    async def __call__(self, manager: Manager) -> AsyncIterator[str]:
        self.tasks.append(asyncio.current_task())
        try:
            await asyncio.sleep(self.entering)
            if self.entry_error is not None:
                raise self.entry_error
            self.opened += 1
            self.story.append(f"entered for {manager.name}")
            yield f"resource {self.opened}"
            try:
                await asyncio.sleep(self.leaving)
            finally:
                if self.stubborn:
                    await self._ignore_cancellations()
            if self.exit_error is not None:
                raise self.exit_error
        finally:
            self.tasks.append(asyncio.current_task())
            self.story.append("left")

    async def _ignore_cancellations(self) -> None:
        end = now() + self.stubborn
        while now() < end:
            try:
                await asyncio.sleep(end - now())
            except asyncio.CancelledError:
                self.story.append("ignores a cancellation")


@pytest.fixture
def resources() -> Resources:
    return Resources()


def running() -> set[str]:
    """Return the names of the tasks that run, without that of the test."""
    return {each.get_name() for each in asyncio.all_tasks() if each is not asyncio.current_task()}


@pytest.mark.behaviour("C-150")
async def test_lifespan_surrounds_informers_and_attempts(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_with("it")

    async def reconcile(request: Request[Any, str]) -> None:
        resources.story.append(f"runs with {request.state}")
        await asyncio.sleep(5)
        resources.story.append("has run")

    resources.entering = 3.0
    requests: list[str] = []
    ask = server.request

    async def request(given: Any) -> Any:
        requests.append(f"{given.path} after {resources.story}")
        return await ask(given)

    monkeypatch.setattr(server, "request", request)
    manager = manager_of(server, Controller("it", CONFIG_MAPS, reconcile), lifespan=resources)
    for number in (1, 2):
        async with manager:
            await started()
        assert resources.story == ["entered for test", f"runs with resource {number}", "has run", "left"]
        resources.story.clear()
    assert len(set(resources.tasks)) == 2, "each of them is entered and left in one task"
    assert all("after ['entered for test'" in each for each in requests)
    assert len(requests) >= 2


@pytest.mark.behaviour("C-151")
async def test_error_on_entry_ends_the_start(resources: Resources) -> None:
    resources.entry_error = OSError("the database does not answer")
    server = server_with("it")
    manager = manager_of(server, Controller("it", CONFIG_MAPS, Runs()), lifespan=resources)
    with pytest.raises(OSError, match="the database does not answer") as caught:
        await manager.run()
    [note] = caught.value.__notes__
    assert re.fullmatch(r"manager test: lifespan Resources at .*: it could not be entered", note)
    assert (resources.story, running(), server.reads) == (["left"], set(), [])
    resources.entry_error = None
    async with manager:
        assert resources.story[1:] == ["entered for test"]


@pytest.mark.behaviour("C-151")
async def test_start_that_fails_later_leaves_the_lifespan(resources: Resources) -> None:
    controller = Controller("it", CONFIG_MAPS, Runs())
    async with manager_of(server_with(), controller):
        await started()
        before = running()
        with pytest.raises(UsageError, match="it already runs in manager test"):
            await manager_of(server_with(), controller, lifespan=resources).run()
        assert resources.story == ["entered for test", "left"]
        assert running() <= before


@pytest.mark.behaviour("C-151")
@pytest.mark.parametrize("end", ["cancel", "stop"])
async def test_start_that_is_ended_while_entering_leaves_it(resources: Resources, end: str) -> None:
    resources.entering = 3600.0
    server = server_with("it")
    manager = manager_of(server, Controller("it", CONFIG_MAPS, Runs()), lifespan=resources)
    task = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    assert manager.ready().checks["lifespan"] == "it is being entered"
    assert manager.snapshot()["lifespan"] == "entering"
    began = now()
    if end == "cancel":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        manager.stop()
        await task
    assert now() - began < 1
    assert (resources.story, running(), server.reads) == (["left"], set(), [])


@pytest.mark.behaviour("C-152")
async def test_lifespan_that_is_left_late_is_cancelled_and_named(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    resources.leaving = 3600.0
    manager = manager_of(server_with(), lifespan=resources, grace=7.0)
    began = 0.0
    with pytest.raises(TimeoutError, match=r"lifespan .*Resources.* not left within 7 s, the grace of the manager"):
        async with manager:
            began = now()
    assert now() - began == pytest.approx(7, abs=0.1)
    assert resources.story == ["entered for test", "left"]
    assert "is cancelled: it was not left within 7 s" in caplog.text
    assert running() == set()


@pytest.mark.behaviour("C-152")
async def test_lifespan_that_ignores_its_cancellation_is_abandoned(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    resources.leaving, resources.stubborn = 3600.0, 60.0
    manager = manager_of(server_with(), lifespan=resources, grace=7.0)
    began = 0.0
    async with manager:
        began = now()
    assert now() - began == pytest.approx(17, abs=0.1)
    assert manager.stop_report is not None
    assert manager.stop_report.abandoned == ["the lifespan"]
    assert "it is abandoned" in caplog.text
    await asyncio.sleep(100)
    assert resources.story[-1] == "left"


@pytest.mark.behaviour("C-152")
async def test_second_cancellation_hurries_the_lifespan(resources: Resources) -> None:
    resources.leaving = 3600.0
    manager = manager_of(server_with(), lifespan=resources, grace=600.0)
    task = asyncio.create_task(manager.run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.sleep(5)
    assert resources.story == ["entered for test"]
    task.cancel()
    began = now()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert now() - began < 1, "without the rest of the grace"
    assert (resources.story[1:], running()) == (["left"], set())


@pytest.mark.behaviour("C-152")
async def test_error_on_leaving_is_raised(resources: Resources) -> None:
    resources.exit_error = OSError("the session is broken")
    with pytest.raises(OSError, match="the session is broken") as caught:
        async with manager_of(server_with(), lifespan=resources):
            pass
    assert caught.value.__notes__[0].endswith("it could not be left")


@pytest.mark.behaviour("C-152")
async def test_failure_within_the_lifespan_stops_the_manager() -> None:
    left: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(30)
        raise OSError("the connection broke")

    @asynccontextmanager
    async def lifespan(manager: Manager) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            try:
                yield
            finally:
                left.append("left")

    began = now()
    with pytest.raises(OSError, match="the connection broke"):
        await manager_of(server_with(), lifespan=lifespan).run()
    assert now() - began == pytest.approx(30, abs=0.1)
    assert left == ["left"]


async def test_state_of_reviews_is_that_of_the_lifespan(resources: Resources) -> None:
    manager: Manager[str] = manager_of(server_with(), lifespan=resources)
    seen: list[str] = []

    @manager.validate(CONFIG_MAPS)
    async def check(request: AdmissionRequest[Any, str]) -> None:
        seen.append(request.state)

    @manager.default(CONFIG_MAPS)
    async def fill(request: AdmissionRequest[Any, str]) -> Any:
        seen.append(f"default: {request.state}")
        return request.object

    answer = await review(manager, CONFIG_MAPS, config_map("it"), state="given")
    assert (answer.allowed, seen) == (True, ["default: given", "given"])
    with pytest.raises(UsageError, match=r"has no state: pass lifespan=… to Manager\(\), or, in a test, state=…"):
        await review(manager, CONFIG_MAPS, config_map("it"))
    seen.clear()
    body = (
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation":'
        b' "CREATE", "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "name": "it", "namespace":'
        b' "default", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}}}}'
    )
    async with manager:
        status, _ = await manager.admission.answer("/validate/configmaps", body)
    assert (status, seen) == (200, ["resource 1"])


async def test_dry_run_enters_the_lifespan_and_says_so(resources: Resources, caplog: pytest.LogCaptureFixture) -> None:
    async with manager_of(server_with(), lifespan=resources, dry_run=True):
        assert resources.story == ["entered for test"]
    assert "also in the lifespan and in background tasks" in caplog.text


async def test_request_without_a_lifespan_has_no_state() -> None:
    caught: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        with pytest.raises(
            UsageError, match=r"<request for default/it.*> has no state: pass lifespan=… to Manager\(\)"
        ):
            request.state  # noqa: B018 - raises
        caught.append(request.name)

    async with manager_of(server_with("it"), Controller("it", CONFIG_MAPS, reconcile)):
        await started()
    assert caught == ["it"]


@asynccontextmanager
async def nothing(manager: Manager) -> AsyncIterator[None]:
    yield


async def undecorated(manager: Manager) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def of_nothing() -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: [nothing, nothing], "lifespan must be one function, not several; write one that enters them in order"),
        (lambda: nothing(Manager()), "lifespan must be a function that returns an async context manager"),
        (lambda: undecorated, "without its decorator; decorate an async generator function of the manager with"),
        (lambda: of_nothing, "must accept one argument, the manager"),
        (lambda: "nothing", "lifespan must be a function, not 'nothing'"),
    ],
)
def test_wrong_lifespan_is_refused_with_the_remedy(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Manager("test", lifespan=make())


async def test_lifespan_that_is_not_async_is_refused_at_the_start() -> None:
    @contextmanager
    def lifespan(manager: Manager) -> Iterator[None]:
        yield

    wrong: Any = lifespan
    with pytest.raises(UsageError, match="is no async context manager; decorate an async generator function"):
        await manager_of(server_with(), lifespan=wrong).run()
    assert running() == set()


async def test_lines_of_a_quiet_lifespan_are_none(resources: Resources, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with manager_of(server_with(), lifespan=resources):
        await asyncio.sleep(1)
    assert caplog.records == []
