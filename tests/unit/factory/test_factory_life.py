"""Start, shutdown and crashes of a factory, and of an informer with a block of its own."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from prometheus_client import CollectorRegistry

from aioinformer import RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import InformerStopped, OptionError, UsageError
from aioinformer.factory.pool import InformerPool
from aioinformer.prometheus import PrometheusMetrics
from tests.support.cluster import Cluster, built_in
from tests.support.collection import PODS, Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


NODES = built_in("v1/nodes")


class Broken(Exception):
    """The exception with which an informer crashes."""


class BrokenBase(BaseException):
    """An exception of a handler that is no `Exception`."""


def crash(informer: SharedIndexInformer[Any], collection: Collection) -> None:
    """Let the informer crash at an event: it cannot log a failure, as with a filter of the log that raises."""

    def broken(*args: Any) -> Any:
        raise Broken(informer.name)

    source = vars(informer._sources)["source"]
    source.queue.apply = source.controller.reflector.log_error = broken
    collection.put("last-straw")


class World:
    """A factory with pods and nodes."""

    def __init__(self, **options: Any) -> None:
        self.pods, self.nodes = Collection("a"), Collection("n", resource=NODES)
        self.factory = SharedInformerFactory(Cluster(self.pods, self.nodes), **options)
        self.informer = self.factory.core.v1.pods.informer()
        self.other = self.factory.core.v1.nodes.informer()
        self.went_on = False

    async def run(self, *crashes: Callable[[], object]) -> None:
        """Enter the factory, let informers crash, and go on for an hour."""
        async with self.factory:
            await self.factory.wait_for_cache_sync()
            for each in crashes or (self.crash,):
                each()
            await asyncio.sleep(3600)
            self.went_on = True

    def crash(self) -> None:
        crash(self.informer, self.pods)


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.conformance("FAC-06")
async def test_repeated_shutdown_stops_all_informers() -> None:
    factory = SharedInformerFactory(Cluster())
    informers: list[SharedIndexInformer[Any]] = [factory.core.v1.pods.informer(), factory.core.v1.nodes.informer()]
    factory.start()
    await factory.wait_for_cache_sync()
    await asyncio.gather(factory.shutdown(), factory.shutdown())
    await factory.shutdown()
    assert [informer.is_stopped() for informer in informers] == [True, True]


@pytest.mark.conformance("FAC-06")
async def test_after_shutdown_caches_are_readable() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")))
    informer = factory.core.v1.pods.informer()
    async with factory:
        await factory.wait_for_cache_sync()
    assert factory.core.v1.pods.informer() is informer
    assert len(factory.core.v1.pods.lister().list()) == 1
    with pytest.raises(InformerStopped, match="shut down"):
        factory.core.v1.nodes.informer()
    with pytest.raises(InformerStopped, match="shut down"):
        factory.start()
    with pytest.raises(InformerStopped, match="shut down"):
        await factory.wait_for_cache_sync()


@pytest.mark.parametrize("started", [False, True])
async def test_shutdown_fails_waits_for_unstarted_informers(started: bool) -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer()
    waiting = asyncio.ensure_future(informer.wait_for_sync())
    await settled()
    if started:
        factory.start()
    await factory.shutdown()
    with pytest.raises(InformerStopped):
        await waiting
    assert informer.is_stopped()


async def test_crash_reaches_waits_and_the_exit() -> None:
    world = World()
    await asyncio.create_task(world.factory.__aenter__())
    await world.factory.wait_for_cache_sync()
    world.crash()
    waits = asyncio.gather(world.informer.wait_for("z"), world.other.wait_for("z"), return_exceptions=True)
    assert [type(error) for error in await waits] == [Broken, InformerStopped]
    assert not world.factory.is_ready()
    world.factory.core.v1.secrets.informer()
    with pytest.raises(Broken):
        world.factory.start()
    with pytest.raises(Broken):
        await world.factory.wait_for_cache_sync()
    with pytest.raises(Broken):
        await world.factory.__aexit__(None, None, None)


async def test_informer_created_during_a_crash_fails() -> None:
    world = World(options=RunOptions(shutdown_grace=30))
    world.other.add_event_handler(Recorder(pace=3600))
    await asyncio.create_task(world.factory.__aenter__())
    await world.factory.wait_for_cache_sync()
    world.crash()
    await settled()
    world.factory.core.v1.secrets.informer()
    with pytest.raises(InformerStopped):
        await world.factory.wait_for_cache_sync()
    with pytest.raises(Broken):
        await world.factory.shutdown()


async def test_handler_may_shut_down_its_own_factory() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")), options=RunOptions(shutdown_grace=5))
    informer = factory.core.v1.pods.informer()

    async def on_add(pod: Any) -> None:
        await factory.shutdown()

    informer.add_event_handler(on_add=on_add)
    factory.start()
    await asyncio.sleep(6)
    assert informer.is_stopped()
    await asyncio.wait_for(factory.shutdown(), 1)


def test_ctrl_c_stops_a_factory_cleanly() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")), options=RunOptions(shutdown_grace=5))
    finished: list[str] = []

    async def on_add(pod: Any) -> None:
        await asyncio.sleep(3)
        finished.append(pod.metadata.name)

    informer = factory.core.v1.pods.informer()
    informer.add_event_handler(on_add=on_add)

    async def main() -> None:
        async with factory:
            await factory.wait_for_cache_sync()
            await settled()
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3600)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(KeyboardInterrupt):
        runner.run(main())
    assert informer.is_stopped()
    assert finished == ["a"]


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("started", [False, True])
async def test_crash_cancels_the_block_and_raises_its_error(
    errors: Callable[[], list[str]], started: bool, handled: bool
) -> None:
    world = World()
    if handled:
        world.informer.add_event_handler(Recorder())
    if started:
        world.factory.start()
    began = asyncio.get_running_loop().time()
    with pytest.raises(Broken):
        await world.run()
    assert not world.went_on
    assert asyncio.get_running_loop().time() - began < 60
    assert errors() == ["informer of pods crashed; the informer factory stops, and its block is cancelled"]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_outside_cancellation_of_a_crash_wins(before: bool) -> None:
    world = World()

    async def run() -> None:
        async with world.factory:
            await world.factory.wait_for_cache_sync()
            if before:
                task.cancel()
            world.crash()
            try:
                await asyncio.sleep(3600)
            finally:
                if not before:
                    task.cancel()

    task = asyncio.create_task(run())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_crash_is_raised_in_each_block_that_was_entered() -> None:
    world = World()

    async def first() -> None:
        async with world.factory:
            await asyncio.sleep(20)

    async def second() -> None:
        async with world.factory:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(20)  # a cleanup, during which the other block ends

    blocks = []
    for each in first, second:
        blocks.append(asyncio.create_task(each(), name=each.__name__))
        await asyncio.sleep(5)
    world.crash()
    await asyncio.wait(blocks)
    assert [block.cancelled() or type(block.exception()) for block in blocks] == [Broken, Broken]
    assert [block.cancelling() for block in blocks] == [0, 0]


async def test_crashes_of_several_informers_raise_a_group() -> None:
    world = World()
    with pytest.raises(ExceptionGroup) as caught:
        await world.run(world.crash, lambda: crash(world.other, world.nodes))
    assert sorted(map(str, caught.value.exceptions)) == ["informer of nodes", "informer of pods"]


async def test_crash_of_a_single_informer_cancels_its_block(errors: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)

    async def run() -> None:
        async with informer:
            await informer.wait_for_sync()
            crash(informer, pods)
            await asyncio.sleep(3600)

    with pytest.raises(Broken):
        await run()
    assert errors() == ["informer of pods crashed; the block of `async with` is cancelled"]


async def test_crash_is_logged_and_shown_when_it_happens(errors: Callable[[], list[str]]) -> None:
    world = World(options=RunOptions(shutdown_grace=30))
    world.other.add_event_handler(Recorder(pace=3600))  # the stop takes 30 s
    seen: list[tuple[float, bool, dict[str, str]]] = []
    began = asyncio.get_running_loop().time()

    async def run() -> None:
        async with world.factory:
            await world.factory.wait_for_cache_sync()
            world.crash()
            try:
                await asyncio.sleep(3600)
            finally:
                now = asyncio.get_running_loop().time()
                seen.append((now - began, world.factory.is_ready(), world.factory.unready()))
                assert len(errors()) == 1

    with pytest.raises(Broken):
        await run()
    [(seconds, ready, unready)] = seen
    assert seconds < 1
    assert not ready
    assert unready["v1/pods"] == "stopped: crashed: Broken"


async def test_timeout_after_a_crash_is_a_timeout() -> None:
    world = World()

    async def run() -> None:
        async with asyncio.timeout(3600) as limit, world.factory:
            await world.factory.wait_for_cache_sync()
            world.crash()
            try:
                await asyncio.sleep(3600)
            finally:
                limit.reschedule(0)
                await asyncio.sleep(1)

    with pytest.raises(TimeoutError):
        await run()


async def test_exit_in_another_task_raises_and_cancels_nothing(errors: Callable[[], list[str]]) -> None:
    world = World()
    await asyncio.create_task(world.factory.__aenter__())
    await world.factory.wait_for_cache_sync()
    world.crash()
    await asyncio.sleep(10)
    assert errors() == ["informer of pods crashed; the informer factory stops, and shutdown() raises the error"]
    with pytest.raises(Broken):
        await asyncio.create_task(world.factory.__aexit__(None, None, None))


async def test_log_lets_the_block_and_other_informers_go_on(errors: Callable[[], list[str]]) -> None:
    world = World(on_crash="log")
    recorder = Recorder()
    world.other.add_event_handler(recorder)
    async with world.factory:
        await world.factory.wait_for_cache_sync()
        world.crash()
        await asyncio.sleep(60)
        world.nodes.put("m")
        await settled()
        assert world.factory.unready() == {"v1/pods": "stopped: crashed: Broken"}
        assert not world.factory.is_ready()
    assert [line.split()[1] for line in recorder.received] == ["n", "m"]
    assert errors() == ["informer of pods crashed; the other informers of the informer factory go on"]


async def test_base_exception_of_a_handler_is_a_crash(errors: Callable[[], list[str]]) -> None:
    world = World()

    def on_add(pod: Any) -> None:
        if pod.metadata.name == "b":
            raise BrokenBase

    world.informer.add_event_handler(on_add=on_add)
    with pytest.raises(BrokenBase):
        await world.run(lambda: world.pods.put("b"))
    assert not world.went_on
    assert len(errors()) == 1
    assert str(world.informer.state) == "stopped: crashed: BrokenBase"


def test_unknown_policy_is_refused() -> None:
    with pytest.raises(OptionError, match="on_crash='ignore' does not exist; choose 'raise' or 'log'"):
        SharedInformerFactory(Cluster(), on_crash="ignore")  # type: ignore[arg-type]


async def test_informer_that_follows_a_released_one_has_its_metrics() -> None:
    registry = CollectorRegistry()
    pool = InformerPool(Cluster(Collection("a")), name="pool", metrics=PrometheusMetrics(registry))
    labels = {"name": "pool", "group": "", "version": "v1", "resource": "pods"}
    healthy = []
    for _ in range(2):
        informer = pool.acquire(PODS, {})
        pool.start()
        await informer.wait_for_sync()
        await settled()
        healthy.append(registry.get_sample_value("informer_healthy", labels))
        await pool.release(informer)
        healthy.append(registry.get_sample_value("informer_healthy", labels))
    await pool.stop()
    assert healthy == [1, None, 1, None]


async def test_informer_that_is_released_before_its_start_fails_its_waits() -> None:
    pool = InformerPool(Cluster(Collection("a")))
    informer = pool.acquire(PODS, {})
    wait = asyncio.create_task(informer.wait_for_sync())
    await settled()
    await pool.release(informer)
    with pytest.raises(InformerStopped, match="stopped before it was started"):
        await asyncio.wait_for(wait, 60)
    await pool.stop()


@pytest.mark.parametrize(
    ("namespaces", "resource", "options", "paths"),
    [
        ([], PODS, {}, ["/api/v1/pods"]),
        ([], PODS, {"namespace": "shop"}, ["/api/v1/namespaces/shop/pods"]),
        (["shop"], PODS, {}, ["/api/v1/namespaces/shop/pods"]),
        (["shop", "shop"], PODS, {}, ["/api/v1/namespaces/shop/pods"]),
        (["shop", "pay"], PODS, {}, ["/api/v1/namespaces/pay/pods", "/api/v1/namespaces/shop/pods"]),
        (["shop", "pay"], PODS, {"namespace": "pay"}, ["/api/v1/namespaces/pay/pods"]),
        (["shop", "pay"], NODES, {}, ["/api/v1/nodes"]),
    ],
)
async def test_informers_of_a_pool_watch_its_namespaces(
    namespaces: list[str], resource: Any, options: dict[str, Any], paths: list[str]
) -> None:
    cluster = Cluster()
    pool = InformerPool(cluster, namespaces)
    informer = pool.acquire(resource, {**options, "label_selector": "app=web"})
    assert pool.acquire(resource, {**options, "label_selector": "app=web"}) is informer
    assert pool.acquire(resource, options) is not informer
    pool.start()
    await informer.wait_for_sync()
    await settled()
    assert cluster.paths() == paths
    assert {(path, "app=web", "") for path in paths} < cluster.selections()
    await pool.stop()
    with pytest.raises(InformerStopped, match="the pool has stopped"):
        pool.acquire(resource, {"label_selector": "app=other"})


@pytest.mark.parametrize(
    ("namespaces", "message"),
    [
        ("shop", r"not a string: \['shop'\]"),
        (["shop", "b/c"], "'b/c' cannot be a namespace"),
        (["shop", ""], "for all of them, pass none"),
    ],
)
def test_pool_refuses_invalid_namespaces(namespaces: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        InformerPool(Cluster(), namespaces)


async def test_informer_of_a_pool_ends_with_its_last_use() -> None:
    pods = Collection("a")
    pool = InformerPool(Cluster(pods))
    informer = pool.acquire(PODS, {})
    pool.acquire(PODS, {})
    pool.start()
    await informer.wait_for_sync()
    await settled()
    await pool.release(informer)
    assert (informer.is_ready(), pods.open_watches) == (True, 1)
    await pool.release(informer)
    assert (informer.is_ready(), pods.open_watches) == (False, 0)
    freed = ref(informer)
    del informer
    await settled()
    gc.collect()
    assert freed() is None
    await pool.stop()


async def test_crash_of_a_pooled_informer_leaves_the_others(errors: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    pool = InformerPool(Cluster(pods, Collection("n", resource=NODES)))
    informer, other = pool.acquire(PODS, {}), pool.acquire(NODES, {})
    pool.start()
    for each in (informer, other):
        await each.wait_for_sync()
    await settled()
    crash(informer, pods)
    await settled()
    assert (other.is_ready(), list(pool.snapshot()["informers"])) == (True, ["v1/nodes"])
    assert "the controllers that use it are restarted" in errors()[-1]
    again = pool.acquire(PODS, {})
    assert again is not informer
    pool.start()
    await again.wait_for_sync()
    await pool.stop()


async def test_listers_are_readable_from_the_start_that_includes_them() -> None:
    factory = SharedInformerFactory(Cluster())
    assert not factory.is_ready()
    for lister in (factory.core.v1.pods.lister, factory.core.v1.nodes.lister):
        with pytest.raises(UsageError, match="was never started: create it before `async with factory`"):
            lister().list()
        factory.start()
        assert lister().list() == []
    await factory.shutdown()
    assert not factory.is_ready()


@pytest.mark.parametrize("started", [False, True])
async def test_entry_starts_informers_that_were_added_since(started: bool) -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")))
    if started:
        factory.start()
        await settled()
    informer = factory.core.v1.pods.informer()
    async with factory:
        await informer.wait_for_sync()
        assert factory.is_ready()


async def test_name_of_a_factory_is_free_after_its_shutdown() -> None:
    names = []
    for _ in range(2):
        factory = SharedInformerFactory(Cluster(), name="shop-of-this-test")
        other = SharedInformerFactory(Cluster(), name="shop-of-this-test")
        names += [factory.snapshot()["name"], other.snapshot()["name"]]
        for each in (factory, other):
            await each.shutdown()
    assert names == ["shop-of-this-test", "shop-of-this-test-2"] * 2
