"""What informers say of themselves: logs of functions that block or do not return, snapshots, and reprs."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ResourceEventHandlerFuncs, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import TransportError
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.handlers import CoalescingHandler, FilteringResourceEventHandler
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.limits import measure_blocks, measure_slices
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.usefixtures("queue")


class Blocks:
    """A clock that advances only when something blocks the loop."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def block(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    clock = Blocks()
    measure_blocks(monkeypatch, clock)
    measure_slices(monkeypatch, clock)
    return clock


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records if record.name == "aioinformer.handlers"]


def of(function: Any) -> str:
    return f"at informer/test_diagnostics.py:{function.__code__.co_firstlineno}"


async def test_blocking_handler_is_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    def on_add(obj: Any) -> None:
        clock.block(0.25 if obj.metadata.name == "b" else 0.0)

    async with informer_of("a", "b", "c", on_add=on_add):
        (line,) = warnings()
    handler = f"informer of pods: handler 1 (on_add {of(on_add)})"
    assert line.startswith(f"{handler} blocked the event loop for 0.25 s with default/b")


@pytest.mark.parametrize("before", [0, 1, 2], ids=["no await", "one await", "two awaits"])
async def test_blocking_coroutine_is_logged_at_each_step(
    clock: Blocks, warnings: Callable[[], list[str]], before: int
) -> None:
    async def on_add(obj: Any) -> None:
        for _ in range(before):
            await asyncio.sleep(1)
        clock.block(0.25 if obj.metadata.name == "b" else 0.0)
        await asyncio.sleep(1)

    async with informer_of("a", "b", "c", on_add=on_add):
        await asyncio.sleep(20)
    (line,) = warnings()
    assert of(on_add) in line
    assert "0.25 s with default/b" in line


async def test_awaiting_is_not_blocking(warnings: Callable[[], list[str]]) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(20)

    async with informer_of("a", "b") as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        await registration.wait_for_sync()
    assert registration.longest_call == pytest.approx(20, abs=0.1)
    assert warnings() == []


async def test_many_quick_calls_are_not_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    async with informer_of(*"abcdefgh", on_add=lambda obj: clock.block(0.01)):
        assert warnings() == []


async def test_handler_is_logged_once_a_minute(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    async with informer_of("a", on_update=lambda old, new: clock.block(0.5)) as (pods, informer, _):
        for _ in range(240):
            await informer.wait_for_resource_version(pods.put("a"))
            await settled()
    assert len(warnings()) == 2


async def test_log_names_the_called_function(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    class Shop:
        def on_add(self, obj: Any) -> None: ...

        def on_update(self, old: Any, new: Any) -> None: ...

        def on_delete(self, obj: Any) -> None:
            clock.block(1)

    async with informer_of("a") as (pods, informer, _):
        informer.add_event_handler(FilteringResourceEventHandler(lambda obj: True, Shop()))
        await settled()
        pods.delete("a")
        await settled()
    (line,) = warnings()
    assert f"handler 2 (Shop.on_add {of(Shop.on_add)}), in Shop.on_delete {of(Shop.on_delete)}, blocked" in line


def transform(clock: Blocks, result: Any, obj: Any) -> Any:
    clock.block(0.3)
    return obj if result is None else result


@pytest.mark.parametrize(
    ("what", "options", "result"),
    [
        ("transform transform", lambda part: {"transform": part}, None),
        ("decoder transform", lambda part: {"decoder": part}, None),
        ("index function 'app', transform", lambda part: {"indexers": {"app": part}}, []),
    ],
    ids=["transform", "decoder", "index function"],
)
async def test_blocking_functions_of_objects_are_logged(
    clock: Blocks, warnings: Callable[[], list[str]], what: str, options: Any, result: Any
) -> None:
    async with informer_of("a", "b", **options(functools.partial(transform, clock, result))):
        line = warnings()[0]
    assert f"informer of pods: {what} {of(transform)}" in line
    assert "blocked the event loop for 0.30 s with default/a" in line


async def test_blocking_coalescing_handler_is_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    def on_add(obj: Any) -> None:
        clock.block(0.4)

    async with CoalescingHandler(ResourceEventHandlerFuncs(on_add=on_add)) as latest, informer_of("a") as (_, pods, _):
        registration = pods.add_event_handler(latest)
        await settled()
        await settled()
    assert f"(on_add {of(on_add)})" in registration.name
    (line,) = warnings()
    assert f"on_add {of(on_add)}" in line
    assert "default/a" in line


async def hang(obj: Any) -> None:
    await asyncio.sleep(3600 if obj.metadata.name == "b" else 0)


async def test_call_is_logged_after_30_s_and_then_each_minute(warnings: Callable[[], list[str]]) -> None:
    async with informer_of("a", "b", "c", options=RunOptions(shutdown_grace=0), on_add=hang):
        await asyncio.sleep(29)
        assert warnings() == []
        await asyncio.sleep(2)
        (line,) = warnings()
        place = f"hang at informer/test_diagnostics.py:{hang.__code__.co_firstlineno}"
        assert line == (
            f"informer of pods: handler 1 ({place}): {place} has not returned for 30 s: it was called for default/b, "
            "and 1 notifications are pending behind it"
        )
        await asyncio.sleep(58)
        assert len(warnings()) == 1
        await asyncio.sleep(125)
        later = [line.split(" has not returned for ")[1].split(":")[0] for line in warnings()[1:]]
        assert later == ["90 s", "150 s", "210 s"]


@pytest.mark.parametrize("failures", [1, 2])
async def test_calls_are_checked_again_after_a_failure_of_the_log(
    failures: int, warnings: Callable[[], list[str]]
) -> None:
    left = itertools.count(failures, -1)

    def fail(record: logging.LogRecord) -> bool:
        if next(left) > 0:
            raise ValueError("a filter of the log raises")
        return True

    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    log = logging.getLogger("aioinformer.handlers")
    log.addFilter(fail)
    try:
        async with informer_of("a", "b", "c", options=RunOptions(shutdown_grace=0), on_add=hang):
            await asyncio.sleep(31)
            assert len(warnings()) + len(reported) == 1, "the failure is not silent"
            await asyncio.sleep(30)
    finally:
        log.removeFilter(fail)
    assert any("has not returned for 60 s" in line for line in warnings())


async def test_idle_informer_has_no_timer() -> None:
    def timers() -> int:
        loop: Any = asyncio.get_running_loop()
        return len([timer for timer in loop._scheduled if not timer.cancelled()])

    before = timers()
    async with informer_of(
        "a", "b", options=RunOptions(shutdown_grace=0), on_update=lambda old, new: asyncio.sleep(3600)
    ) as (pods, *_):
        during = timers()
        await asyncio.sleep(31)
        assert during - timers() == 1
        pods.put("a")
        await settled()
    await settled()
    assert timers() == before


async def test_call_behind_a_coalescing_handler_is_logged(warnings: Callable[[], list[str]]) -> None:
    async with CoalescingHandler(ResourceEventHandlerFuncs(on_add=hang)) as latest, informer_of("a", "b") as (_, it, _):
        it.add_event_handler(latest)
        await asyncio.sleep(31)
    (line,) = warnings()
    assert line.startswith("coalescing handler (hang at informer/test_diagnostics.py:")
    assert "for 30 s: it was called for default/b, and 0 notifications are pending" in line


NUMBERS = itertools.count()


@pytest.fixture
def backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.handlers.backlog._BACKLOG", 100)


async def flood(pods: Collection, seconds: float, per_second: int) -> None:
    for _ in range(int(seconds * 10)):
        for _ in range(per_second // 10):
            pods.put(f"p{next(NUMBERS)}")
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("backlog")
async def test_growing_backlog_of_quick_calls_is_logged_each_time_it_doubles(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.02)

    async with informer_of("a", on_add=on_add) as (pods, _, _):
        await flood(pods, 20, 100)
        await asyncio.sleep(60)
    lines = [record.getMessage() for record in caplog.records]
    counts = [int(line.split(": ")[2].split()[0]) for line in lines if "falls behind" in line]
    assert 3 <= len(counts) <= 5
    assert all(after >= 1.9 * before for before, after in itertools.pairwise(counts))
    assert re.search(r"\d+ arrived and (49|50|51) were delivered per second", lines[-2])
    assert re.fullmatch(r"informer of pods: handler 1 \(.*\) has caught up after \d+ s", lines[-1])


@pytest.mark.usefixtures("backlog")
async def test_burst_that_drains_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.005)

    async with informer_of("a", on_add=on_add) as (pods, _, _):
        for _ in range(3):
            await flood(pods, 0.1, 3000)
            await asyncio.sleep(10)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.usefixtures("backlog")
async def test_backlog_without_further_events_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.1)

    async with informer_of(*(f"first-{number}" for number in range(200)), on_add=on_add) as (pods, _, _):
        await asyncio.sleep(10)
        assert caplog.records == []  # the initial list
        await asyncio.sleep(60)
        await flood(pods, 0.1, 3000)
        await asyncio.sleep(60)
    first, last = (record.getMessage() for record in caplog.records)
    assert "notifications are pending; in the last 2 s, " in first
    assert "has caught up after 30 s" in last


@pytest.mark.usefixtures("backlog")
async def test_each_backlog_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.1)

    async with informer_of("a", on_add=on_add) as (pods, _, _):
        for _ in range(2):
            await flood(pods, 0.1, 3000)
            await asyncio.sleep(60)
    assert ["falls behind: 278" in each for each in caplog.messages] == [True, False, True, False]
    assert ["has caught up after 30 s" in each for each in caplog.messages] == [False, True, False, True]


@pytest.mark.usefixtures("backlog")
async def test_many_handlers_that_fall_behind_leave_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(0.1)

    async with informer_of("a", on_add=on_add) as (pods, informer, _):
        for _ in range(19):
            informer.add_event_handler(on_add=on_add)
        await asyncio.sleep(1)
        await flood(pods, 0.1, 3000)
        await asyncio.sleep(60)
    lines = [record.getMessage() for record in caplog.records]
    for what, then in (("falls behind", "fall behind"), ("has caught up", "have caught up")):
        assert len([line for line in lines if what in line]) == 3
        (rest,) = (line for line in lines if then in line)
        assert rest.startswith("beside informer of pods: handler ")
        assert f", 19 more handlers of its informer {then}; " in rest


# Snapshots and reprs: the state of informers and handlers, without content.


async def test_healthy_informer() -> None:
    async with informer_of("a", "b", storage="stripped", indexers={"app": lambda obj: []}) as (pods, informer, _):
        await informer.wait_for_resource_version(pods.put("c"))
        snapshot = informer.snapshot()
    assert snapshot["name"] == "informer of pods"
    assert snapshot["resource"] == "v1/pods"
    assert snapshot["scope"] == {"namespace": "", "label_selector": "", "field_selector": ""}
    assert (snapshot["phase"], snapshot["reason"], snapshot["healthy"]) == ("watching", "", True)
    assert (snapshot["synced"], snapshot["objects"], snapshot["resource_version"]) == (True, 3, "3")
    assert (snapshot["attempts"], snapshot["next_retry"]) == (0, None)
    assert (snapshot["skipped"], snapshot["skipped_total"], snapshot["queued"]) == ([], 0, 0)
    assert (snapshot["indexes"], snapshot["storage"]) == (["app", "namespace"], "stripped")
    assert snapshot["last_event"] is not None
    assert snapshot["last_event_age"] is not None
    assert 0 <= snapshot["last_event_age"] < 60
    assert snapshot["since"] is not None
    assert abs(snapshot["since"] - time.time()) < 60


async def test_failing_informer_has_reason_attempts_and_retry() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    pods.refusals.extend(TransportError("api:6443 refused the connection") for _ in range(50))
    informer.add_event_handler(on_add=print)
    snapshot = informer.snapshot()
    assert (snapshot["phase"], snapshot["objects"], snapshot["last_event_age"]) == ("new", 0, None)
    assert snapshot["since"] is None
    (handler,) = snapshot["handlers"]
    assert (handler["synced"], handler["pending"], handler["calls"], handler["current"]) == (False, 0, 0, None)
    async with informer:
        await asyncio.sleep(10)
        snapshot = informer.snapshot()
    assert (snapshot["phase"], snapshot["reason"]) == ("backing_off", "api:6443 refused the connection")
    assert not snapshot["healthy"]
    assert snapshot["attempts"] >= 3
    assert snapshot["next_retry"] is not None
    assert snapshot["next_retry"] > time.time() - 1


async def test_skipped_objects_have_keys() -> None:
    def refuse(obj: Any) -> Any:
        if obj.metadata.name == "b":
            raise ValueError("secret")
        return obj

    async with informer_of("a", "b", transform=refuse) as (_, informer, _):
        snapshot = informer.snapshot()
    assert (snapshot["skipped"], snapshot["skipped_total"]) == (["default/b"], 1)
    assert "secret" not in json.dumps(snapshot)


async def test_running_call_of_a_handler() -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(3600 if obj.metadata.name == "b" else 4)

    async with informer_of("a", "b", "c", options=RunOptions(shutdown_grace=0)) as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        assert (registration.pending, registration.calls) == (3, 0)
        await asyncio.sleep(10)
        handler = informer.snapshot()["handlers"][1]
        current = handler["current"]
        assert current is not None
        place = f"on_add at informer/test_diagnostics.py:{on_add.__code__.co_firstlineno}"
        assert handler["name"] == registration.name == f"informer of pods: handler 2 ({place})"
        assert (current["function"], current["key"]) == (place, "default/b")
        assert current["seconds"] == pytest.approx(6, abs=0.5)
        assert current["since"] == pytest.approx(time.time() - 6, abs=1)
        assert (handler["pending"], handler["calls"], handler["errors"], handler["synced"]) == (2, 2, 0, False)
        assert handler["longest_call"] == pytest.approx(4, abs=0.5)
        assert registration.current is not None
        assert registration.current.key == "default/b"
        assert (registration.pending, registration.calls) == (2, 2)
        assert "2 pending" in repr(registration)
        await asyncio.sleep(3700)
        assert (registration.pending, registration.calls) == (0, 3)
        assert informer.snapshot()["handlers"][1]["current"] is None


async def test_errors_have_type_and_place() -> None:
    def on_add(obj: Any) -> None:
        raise ValueError(f"secret {obj}")

    async with informer_of("a", "b") as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        await registration.wait_for_sync()
        snapshot = informer.snapshot()
    handler = snapshot["handlers"][1]
    error = handler["last_error"]
    assert error is not None
    assert error["error"] == f"ValueError at informer/test_diagnostics.py:{on_add.__code__.co_firstlineno + 1}"
    assert (error["key"], handler["errors"], handler["calls"], handler["pending"]) == ("default/b", 2, 2, 0)
    assert registration.last_error is not None
    assert registration.last_error.key == "default/b"
    assert "secret" not in json.dumps(snapshot) + repr(informer) + repr(registration)


async def test_multi_namespace_informer_has_each_namespace() -> None:
    pods = {"one": Collection("a"), "two": Collection("b"), "": Collection()}
    pods["two"].refusals.extend(TransportError("lost") for _ in range(50))
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(lambda namespace: pods[namespace], ["one", "two"])
    async with informer:
        await asyncio.sleep(5)
        snapshot = informer.snapshot()
    assert {name: each["phase"] for name, each in snapshot["namespaces"].items()} == {
        "one": "watching",
        "two": "backing_off",
    }
    assert (snapshot["phase"], snapshot["healthy"]) == ("backing_off", False)
    assert snapshot["attempts"] == snapshot["namespaces"]["two"]["attempts"] > 0
    assert json.dumps(snapshot)


@pytest.mark.parametrize("names", [("one", "two"), ("two", "one")], ids=str)
async def test_next_retry_is_the_earliest_of_all_namespaces(names: tuple[str, str]) -> None:
    pods = {"one": Collection("a"), "two": Collection("b"), "": Collection()}
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(lambda namespace: pods[namespace], ["one", "two"])
    async with informer:
        await informer.wait_for_sync()
        for name in names:
            pods[name].refusals.extend(TransportError("lost") for _ in range(50))
            pods[name].end_watches()
            await asyncio.sleep(100 if name == names[0] else 0.1)
        snapshot = informer.snapshot()
    first, last = (snapshot["namespaces"][name] for name in names)
    assert first["next_retry"] is not None
    assert last["next_retry"] is not None
    assert first["next_retry"] - last["next_retry"] > 5, "its delay has grown"
    assert first["attempts"] > last["attempts"] > 0
    assert snapshot["next_retry"] == last["next_retry"]
    assert snapshot["attempts"] == first["attempts"]


async def test_factory_has_all_informers() -> None:
    async with SharedInformerFactory(Cluster()) as factory:
        pods = factory.core.v1.pods.informer()
        factory.apps.v1.deployments.informer()
        assert "2 informers, 0 synced" in repr(factory)
        await factory.wait_for_cache_sync()
        assert factory.informers()["v1/pods"] is pods
        snapshot = factory.snapshot()
        assert json.loads(json.dumps(snapshot)) == snapshot
        assert list(snapshot["informers"]) == ["v1/pods", "apps/v1/deployments"]
        assert (snapshot["running"], snapshot["ready"], snapshot["healthy"]) == (True, True, True)
        assert repr(factory) == "<SharedInformerFactory, running, 2 informers, 2 synced>"
    assert "stopped" in repr(factory)
    assert factory.snapshot()["running"] is False


async def test_informer_and_listers_show_object_counts() -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    assert repr(informer) == "<informer of pods, new, 0 objects, not synced>"
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(0.1)
        lister = informer.lister()
        assert repr(informer) == "<informer of pods, watching, 2 objects>"
        assert repr(lister) == "<Lister of v1/pods, 2 objects in the cache>"
        assert repr(lister.namespaced("default")) == ("<NamespaceLister of v1/pods in default, 2 objects in the cache>")
        assert repr(informer.get_indexer()) == "<Indexer, 2 objects, indices: namespace>"
        assert repr(informer.reflectors()[""]) == "<Reflector informer of pods, watching, version '2'>"
