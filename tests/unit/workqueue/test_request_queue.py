"""The queue of requests on an event loop in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
from prometheus_client import CollectorRegistry

from aioinformer.controller import QueueOptions
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.resources import ObjectName
from aioinformer.workqueue import (
    LOW_PRIORITY,
    Again,
    Cause,
    Finished,
    Outcome,
    Park,
    QueueShutDown,
    RequestQueue,
    Run,
    Unfinished,
    WorkQueue,
)
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ONE, TWO, THREE = (ObjectName("a", name) for name in "123")
UPDATED = Cause("updated")


class Workers:
    """Tasks that wait in `get`, and what they got."""

    def __init__(self, queue: RequestQueue, tasks: asyncio.TaskGroup, count: int) -> None:
        self.got: list[Run] = []
        self.tasks = [tasks.create_task(self._get(queue)) for _ in range(count)]

    async def _get(self, queue: RequestQueue) -> None:
        self.got.append(await queue.get())

    @property
    def keys(self) -> list[ObjectName]:
        return [run.key for run in self.got]


@pytest.fixture
async def tasks() -> AsyncIterator[asyncio.TaskGroup]:
    async with asyncio.TaskGroup() as group:
        yield group


@pytest.mark.behaviour("C-03")
async def test_batch_of_adds_wakes_one_worker(tasks: asyncio.TaskGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RequestQueue()
    workers = Workers(queue, tasks, 3)
    await settled()
    loop = asyncio.get_running_loop()
    calls: list[object] = []

    def call_soon(*args: Any, **options: Any) -> asyncio.Handle:
        calls.append(args)
        return original(*args, **options)

    original = loop.call_soon
    with monkeypatch.context() as patched:
        patched.setattr(loop, "call_soon", call_soon)
        for number in range(1000):
            queue.add(ObjectName("a", str(number)), UPDATED)
            queue.add(ObjectName("a", str(number)), UPDATED)
    assert len(calls) == 1
    await settled()
    assert len(workers.got) == 3, "one worker wakes the next one"


@pytest.mark.behaviour("C-02")
async def test_delayed_request_wakes_a_worker_at_the_earliest_time(tasks: asyncio.TaskGroup) -> None:
    queue, loop = RequestQueue(), asyncio.get_running_loop()
    workers = Workers(queue, tasks, 2)
    start = loop.time()
    queue.add(ONE, UPDATED, after=100.0)
    queue.add(TWO, UPDATED, after=50.0)
    queue.add(ONE, UPDATED, after=20.0)
    await asyncio.gather(*workers.tasks)
    assert [(run.key, run.started - start) for run in workers.got] == [(ONE, 20.0), (TWO, 50.0)]


@pytest.mark.behaviour("C-15")
@pytest.mark.parametrize("before", [False, True], ids=["add first", "cancel first"])
@pytest.mark.parametrize("cancelled", [{0}, {1}, {0, 1}], ids=str)
async def test_cancelled_worker_leaves_its_request_to_another(cancelled: set[int], before: bool) -> None:
    """The first worker is woken for the request; it, the other one or both are cancelled before they can run."""
    queue = RequestQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await settled()
    if not before:
        queue.add(ONE, UPDATED)
    for number in cancelled:
        workers[number].cancel()
    if before:
        queue.add(ONE, UPDATED)
    await asyncio.wait(workers)
    assert {number for number, worker in enumerate(workers) if worker.cancelled()} == cancelled
    found: list[Run | None] = [worker.result() for worker in workers if not worker.cancelled()]
    [run] = found or [queue.take()]
    assert run is not None
    assert run.key == ONE
    assert queue.take() is None


@pytest.mark.behaviour("C-16")
async def test_drain_finishes_what_is_ready_and_drops_the_rest(tasks: asyncio.TaskGroup) -> None:
    queue = RequestQueue("widgets")
    for key in ONE, TWO:
        queue.add(key, UPDATED)
    queue.add(THREE, UPDATED, after=1.0)
    first = await queue.get()
    queue.add(ONE, UPDATED)
    drain = tasks.create_task(queue.drain())
    await settled()
    queue.add(ObjectName("a", "4"), UPDATED)
    second = await queue.get()
    waiting = tasks.create_task(queue.get())
    await settled()
    assert not waiting.done(), "the run of the first key is not finished, and it is requested again"
    queue.finish(first, Finished())
    third = await waiting
    assert [run.key for run in (first, second, third)] == [ONE, TWO, ONE]
    queue.finish(second, Unfinished(ValueError("no")))
    await settled()
    assert not drain.done()
    queue.finish(third, Again(asyncio.get_running_loop().time() + 5))
    await drain
    assert queue.snapshot().delayed == 0, "no retry comes after the end"
    with pytest.raises(QueueShutDown, match="request queue 'widgets' was shut down"):
        await queue.get()


@pytest.mark.behaviour("C-16")
async def test_shutdown_drops_requests_and_ends_workers(tasks: asyncio.TaskGroup) -> None:
    queue = RequestQueue()
    queue.add(ONE, UPDATED)
    run = await queue.get()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await settled()
    for key in ONE, TWO:
        queue.add(key, UPDATED, after=float(key is TWO))
    queue.shut_down()
    drain = tasks.create_task(queue.drain())
    await settled()
    assert not drain.done()
    queue.finish(run, Unfinished(ValueError("no"), 0.0))
    await drain
    for worker in workers:
        with pytest.raises(QueueShutDown):
            await worker
    assert queue.take() is None


@pytest.mark.behaviour("C-17")
async def test_scrape_has_the_metrics_of_client_go() -> None:
    registry = CollectorRegistry()
    queue = RequestQueue("widgets", metrics=PrometheusMetrics(registry))
    for key in ONE, TWO, THREE:
        queue.add(key, UPDATED)
    queue.add(ObjectName("a", "later"), UPDATED, after=60.0)
    await asyncio.sleep(2)
    first, second = await queue.get(), await queue.get()
    await asyncio.sleep(3)
    queue.release(first)
    await asyncio.sleep(1)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "widgets"})

    assert shown("depth") == 1
    assert shown("adds_total") == 3
    assert shown("retries_total") == 1
    assert shown("queue_duration_seconds_sum") == pytest.approx(4)
    assert shown("work_duration_seconds_sum") == pytest.approx(3), "a released run needs no worker"
    assert shown("unfinished_work_seconds") == shown("longest_running_processor_seconds") == pytest.approx(4)
    queue.finish(first, Finished())
    queue.finish(second, Finished())
    assert shown("work_duration_seconds_count") == 2


@pytest.mark.behaviour("C-17")
async def test_snapshot_names_what_runs_fails_and_is_parked() -> None:
    queue = RequestQueue("widgets", random=lambda: 0.0)
    for key in ONE, TWO, THREE:
        queue.add(key, UPDATED)
    runs = [await queue.get() for _ in range(3)]
    queue.finish(runs[0], Unfinished(ValueError("wrong colour")))
    queue.finish(runs[1], Park("the spec is wrong"))
    snapshot = queue.snapshot()
    assert (snapshot.ready, snapshot.delayed, snapshot.running) == (0, 1, (runs[2],))
    assert {key: each.reason for key, each in snapshot.parked.items()} == {TWO: "the spec is wrong"}
    failing = snapshot.failing[ONE]
    assert (failing.attempts, failing.error, failing.until) == (1, "ValueError: wrong colour", snapshot.time + 0.05)
    assert (failing.cause, snapshot.failing_keys) == ("ValueError", 1)
    assert queue.retry_parked() == 1
    assert queue.parked() == {}


async def test_failure_lasts_until_a_run_succeeds() -> None:
    queue = RequestQueue("widgets")
    assert queue.longest_failure() == 0
    for key in ONE, TWO:
        queue.add(key, UPDATED)
    first, second = await queue.get(), await queue.get()
    queue.finish(first, Unfinished(ValueError("no"), 5.0))
    await asyncio.sleep(2)
    queue.finish(second, Unfinished(ValueError("no"), 60.0))
    queue.finish(again := await queue.get(), Unfinished(ValueError("no"), 5.0))
    assert again.key == ONE
    assert queue.longest_failure() == pytest.approx(5)
    queue.finish(await queue.get(), Finished())
    assert queue.longest_failure() == pytest.approx(8), "of the other key"


@pytest.mark.behaviour("C-05")
async def test_takeover_requests_known_keys_at_low_priority() -> None:
    queue = RequestQueue()
    queue.add(TWO, UPDATED)
    queue.take_over([ONE, TWO, THREE])
    runs = [await queue.get() for _ in range(3)]
    takeover = Cause("takeover")
    assert [(run.key, run.priority, run.causes) for run in runs] == [
        (TWO, 0, (UPDATED, takeover)),
        (ONE, LOW_PRIORITY, (takeover,)),
        (THREE, LOW_PRIORITY, (takeover,)),
    ]


@pytest.mark.behaviour("C-115")
@pytest.mark.parametrize("state", ["new", "ready", "delayed", "failing", "parked", "running", "requested"])
async def test_gone_key_of_a_standby_leaves_the_queue(state: str) -> None:
    queue, deleted = RequestQueue(), Cause("deleted")
    if state != "new":
        queue.add(ONE, Cause("requested") if state == "requested" else UPDATED, after=9 if state == "delayed" else 0)
    run = await queue.get() if state in ("failing", "parked", "running") else None
    if run is not None and state != "running":
        queue.finish(run, Park("no") if state == "parked" else Unfinished(ValueError()))
    queue.add(TWO, UPDATED)
    queue.add_as_standby(ONE, deleted, priority=0, gone=True, seen=0.0)
    snapshot = queue.snapshot()
    kept = state in ("running", "requested")
    assert (snapshot.gone, snapshot.delayed, snapshot.parked, snapshot.failing) == (not kept, 0, {}, {})
    assert snapshot.ready == 1 + (state == "requested")
    if run is not None and state == "running":
        queue.finish(run, Finished())
    queue.take_over([THREE])
    runs = [await queue.get() for _ in range(3)]
    assert [each.key for each in runs] == {"running": [TWO, ONE, THREE], "requested": [ONE, TWO, THREE]}.get(
        state, [TWO, THREE, ONE]
    )
    assert queue.take() is None


@pytest.mark.behaviour("C-116")
async def test_next_queue_has_the_requests_of_the_former() -> None:
    queue, options = RequestQueue(), QueueOptions(min_interval=1.0)
    queue.add(ONE, UPDATED)
    run = await queue.get()
    queue.add(ONE, Cause("requested"))
    queue.add(TWO, UPDATED, priority=3)
    queue.add(TWO, Cause("deleted"))
    queue.add(THREE, UPDATED, after=60)
    queue.add_as_standby(ObjectName("a", "4"), Cause("deleted"), priority=0, gone=True, seen=0.0)
    following = queue.hand_over(lambda: RequestQueue(options=options))
    queue.finish(run, Finished())
    queue.add(ONE, UPDATED)
    assert (queue.snapshot().ready, following.snapshot().gone) == (0, 1)
    began = asyncio.get_running_loop().time()
    runs = [await following.get() for _ in range(3)]
    assert [(each.key, each.priority, [cause.trigger for cause in each.causes]) for each in runs] == [
        (TWO, 3, ["updated", "deleted"]),
        (ONE, 0, ["updated", "requested"]),
        (THREE, 0, ["updated"]),
    ]
    assert asyncio.get_running_loop().time() - began == pytest.approx(60)


@pytest.mark.behaviour("C-08")
async def test_end_of_a_run_wakes_a_worker_for_its_group(tasks: asyncio.TaskGroup) -> None:
    queue = RequestQueue(options=QueueOptions(group_limit=1))
    for key in ONE, TWO, THREE:
        queue.add(key, UPDATED)
    workers = Workers(queue, tasks, 3)
    await settled()
    assert workers.keys == [ONE]
    queue.release(workers.got[0])
    await settled()
    assert workers.keys == [ONE, TWO]
    queue.finish(workers.got[1], Finished())
    await settled()
    assert workers.keys == [ONE, TWO, THREE]


@pytest.mark.behaviour("C-17")
async def test_statistics_follow_the_life_of_requests() -> None:
    queue = RequestQueue("widgets", random=lambda: 0.0)

    def figures() -> tuple[int, int, int, int, int]:
        found = queue.statistics()
        return found.depth, found.processing, found.delayed, found.adds, found.retries

    for key in ONE, TWO:
        queue.add(key, UPDATED)
    queue.add(THREE, UPDATED, after=60.0)
    assert figures() == (2, 0, 1, 2, 1)
    await asyncio.sleep(2)
    first = await queue.get()
    await asyncio.sleep(3)
    second = await queue.get()
    await asyncio.sleep(4)
    assert figures() == (0, 2, 1, 2, 1)
    found = queue.statistics()
    assert (found.waited.count, found.waited.total) == pytest.approx((2, 2 + 5))
    assert (found.unfinished_work, found.longest_running) == pytest.approx((7 + 4, 7))
    queue.release(first)
    assert queue.statistics().processing == 1
    assert queue.statistics().worked.total == pytest.approx(7)
    await asyncio.sleep(10)
    queue.finish(first, Finished())
    queue.finish(second, Unfinished(ValueError("no")))
    found = queue.statistics()
    assert figures() == (0, 0, 2, 2, 2)
    assert (found.worked.count, found.worked.total) == pytest.approx((2, 7 + 14))
    assert (found.unfinished_work, found.longest_running, found.shutting_down) == (0, 0, False)
    assert queue.problems() == ({}, 1, 0.0)
    await asyncio.sleep(2.05)
    assert figures() == (1, 0, 1, 3, 2)
    assert queue.problems()[:2] == ({}, 1)
    assert queue.problems()[2] == pytest.approx(2)
    assert queue.oldest(5) == [TWO]
    queue.finish(await queue.get(), Park("no", kind="result"))
    assert queue.problems() == ({"result": 1}, 0, 0.0)
    queue.shut_down()
    assert figures() == (0, 0, 0, 3, 2)
    assert queue.statistics().shutting_down


@pytest.mark.parametrize("outcomes", [["finish"], ["fail", "finish"], ["fail", "fail", "park"]], ids=str)
async def test_answer_to_a_change_is_timed_until_a_run_succeeds_or_gives_up(outcomes: list[str]) -> None:
    queue = RequestQueue()
    queue.add(TWO, Cause("initial"))
    queue.finish(await queue.get(), Finished())
    assert queue.answered.snapshot().count == 0, "no input changed"
    queue.add(ONE, Cause("resync"))
    await asyncio.sleep(1)
    queue.add(ONE, UPDATED)
    began = asyncio.get_running_loop().time()
    queue.add(ONE, Cause("added"))
    for outcome in outcomes:
        run = await queue.get()
        await asyncio.sleep(1)
        assert queue.answered.snapshot().count == 0
        made: dict[str, Outcome] = {"finish": Finished(), "fail": Unfinished(ValueError("no")), "park": Park("no")}
        queue.finish(run, made[outcome])
    found = queue.answered.snapshot()
    assert (found.count, found.total) == pytest.approx((1, asyncio.get_running_loop().time() - began))


@pytest.mark.behaviour("C-17")
async def test_key_tells_its_state_and_why_it_runs() -> None:
    queue = RequestQueue(random=lambda: 0.0)
    now = asyncio.get_running_loop().time()
    causes = tuple(Cause("updated", key=str(number)) for number in range(10))

    def state() -> tuple[Any, ...]:
        found = queue.key(ONE)
        assert found.key == ONE
        return found.state, found.at, found.causes, found.causes_left_out

    assert state() == ("idle", None, (), 0)
    queue.add(ONE, causes[0], after=5)
    assert state() == ("delayed", now + 5, causes[:1], 0)
    for each in causes:
        queue.add(ONE, each)
    assert state() == ("ready", now, causes[:8], 2)
    run = await queue.get()
    assert state() == ("running", None, causes[:8], 2)
    assert (queue.runs(ONE), queue.runs(TWO)) == (True, False)
    queue.add(ONE, UPDATED)
    assert state() == ("running", now, causes[:8], 2)
    assert queue.failing(ONE) is None
    queue.finish(run, Unfinished(ValueError("no"), 9.0))
    assert state() == ("ready", now, (Cause("retry"), *causes[:7]), 4), "the change starts an early run"
    failing = queue.failing(ONE)
    assert failing is not None
    assert failing is queue.key(ONE).failing
    assert failing.attempts == 1
    queue.finish(await queue.get(), Park("wrong"))
    assert state() == ("parked", None, (), 0)
    parked = queue.key(ONE).parked
    assert parked is not None
    assert (parked.reason, queue.key(ONE).failing) == ("wrong", None)


async def test_hastened_request_keeps_its_priority_and_causes() -> None:
    queue = RequestQueue()
    queue.hasten(ONE)
    assert queue.take() is None
    queue.add(ONE, UPDATED, priority=-7, after=60)
    queue.hasten(ONE)
    run = queue.take()
    assert run is not None
    assert (run.key, run.priority, run.causes) == (ONE, -7, (UPDATED,))
    queue.hasten(ONE)
    queue.finish(run, Finished())
    assert queue.take() is None


@pytest.mark.behaviour("C-115")
async def test_standby_keeps_keys_and_drops_those_that_are_long_gone() -> None:
    queue, deleted = RequestQueue(), Cause("deleted")
    keys = [ObjectName("a", str(number)) for number in range(6)]
    times = []
    for key in keys[:4]:
        queue.add_as_standby(key, deleted, priority=0, gone=True, seen=0.0)
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
    queue.add_as_standby(keys[0], UPDATED, priority=3, gone=False, seen=times[2])  # it was created again
    assert queue.snapshot().gone == 2, "the second one was gone before"
    queue.add_as_standby(keys[4], Cause("requested"), priority=1, gone=True, seen=0.0)
    queue.add_as_standby(keys[5], Cause("source"), priority=2, gone=True, seen=0.0)
    assert queue.snapshot().gone == 2
    queue.take_over([keys[1]], times[3])
    assert queue.snapshot().gone == 0
    runs = [await queue.get() for _ in range(5)]
    assert [(run.key, run.priority) for run in runs] == [
        (keys[0], 3),
        (keys[5], 2),
        (keys[4], 1),
        (keys[1], LOW_PRIORITY),
        (keys[3], LOW_PRIORITY - 1),
    ]
    assert queue.take() is None


async def test_only_the_named_keys_are_retried_or_forgotten() -> None:
    queue = RequestQueue()
    for key in ONE, TWO, THREE:
        queue.add(key, UPDATED)
        queue.finish(await queue.get(), Park("no"))
    assert queue.retry_parked([ONE, ObjectName("a", "4")]) == 1
    worker = asyncio.create_task(queue.get())
    await settled()
    assert worker.result().key == ONE, "a worker is woken"
    assert not queue.forget(ONE)
    assert queue.forget(TWO)
    assert set(queue.parked()) == {THREE}
    assert queue.forget(ObjectName("a", "5"))


async def test_forgotten_request_ends_a_drain(tasks: asyncio.TaskGroup) -> None:
    queue = RequestQueue()
    queue.add(ONE, UPDATED)
    drain = tasks.create_task(queue.drain())
    await settled()
    assert not drain.done()
    assert queue.forget(ONE)
    await settled()
    assert drain.done()


async def test_workers_that_give_up_waiting_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    made: WeakSet[asyncio.Future[Any]] = WeakSet()
    original = loop.create_future

    def create_future() -> asyncio.Future[Any]:
        made.add(future := original())
        return future

    monkeypatch.setattr(loop, "create_future", create_future)
    for queue in RequestQueue(), WorkQueue[str]():
        for _ in range(100):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await queue.get()
    assert len(made) < 10


async def test_drain_of_a_queue_that_was_idle_waits_for_what_runs_now(tasks: asyncio.TaskGroup) -> None:
    queue = RequestQueue()
    queue.add(ONE, UPDATED)
    queue.finish(await queue.get(), Finished())
    queue.add(ONE, UPDATED)
    run = await queue.get()
    drain = tasks.create_task(queue.drain())
    await settled()
    assert not drain.done()
    queue.finish(run, Finished())
    await drain


def test_queues_without_a_name_have_no_metrics() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    for _ in range(2):
        RequestQueue(metrics=metrics)
    assert registry.get_sample_value("workqueue_depth", {"name": ""}) is None
