"""Start, shutdown and crashes of a factory."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import InformerStopped
from aioinformer.factory.factory import SharedInformerFactory
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from aioinformer.informer.shared_informer import SharedIndexInformer

pytestmark = pytest.mark.usefixtures("queue")

NODES = built_in("v1/nodes")


class Broken(Exception):
    """The exception with which an informer crashes."""


def crash(informer: SharedIndexInformer[Any], collection: Collection) -> None:
    async def broken(*args: Any) -> None:
        raise Broken

    assert informer._source is not None
    informer._source.queue.apply = broken  # type: ignore[assignment,method-assign]
    collection.put("last straw")


@pytest.mark.conformance("FAC-06")
async def test_repeated_shutdown_stops_all_informers() -> None:
    factory = SharedInformerFactory(Cluster())
    informers: list[SharedIndexInformer[Any]] = [factory.core.v1.pods.informer(), factory.core.v1.nodes.informer()]
    factory.start()
    await factory.wait_for_cache_sync()
    await asyncio.gather(factory.shutdown(), factory.shutdown())
    await factory.shutdown()
    assert [informer.is_stopped() for informer in informers] == [True, True]


async def test_never_started_factory_can_be_shut_down() -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer()
    await factory.shutdown()
    assert informer.is_stopped()


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


async def test_different_tasks_may_enter_and_leave() -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer()
    await asyncio.create_task(factory.__aenter__())
    await asyncio.create_task(factory.wait_for_cache_sync())
    await asyncio.create_task(factory.__aexit__(None, None, None))
    assert informer.is_stopped()


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


async def test_crash_reaches_waits_and_the_exit() -> None:
    pods = Collection("a")
    factory = SharedInformerFactory(Cluster(pods))
    informer, other = factory.core.v1.pods.informer(), factory.core.v1.nodes.informer()
    await asyncio.create_task(factory.__aenter__())
    await factory.wait_for_cache_sync()
    crash(informer, pods)
    waits = asyncio.gather(informer.wait_for("z"), other.wait_for("z"), return_exceptions=True)
    assert [type(error) for error in await waits] == [Broken, InformerStopped]
    assert not factory.is_ready()
    with pytest.raises(Broken):
        await factory.__aexit__(None, None, None)


async def test_crashed_factory_raises_the_crash_on_start() -> None:
    pods = Collection("a")
    factory = SharedInformerFactory(Cluster(pods))
    informer = factory.core.v1.pods.informer()
    await asyncio.create_task(factory.__aenter__())
    await factory.wait_for_cache_sync()
    crash(informer, pods)
    await settled()
    factory.core.v1.nodes.informer()
    with pytest.raises(Broken):
        factory.start()
    with pytest.raises(Broken):
        await factory.wait_for_cache_sync()
    with pytest.raises(Broken):
        await factory.shutdown()


async def test_informer_created_during_a_crash_fails() -> None:
    pods = Collection("a")
    factory = SharedInformerFactory(Cluster(pods, Collection("n", resource=NODES)), shutdown_grace=30)
    informer = factory.core.v1.pods.informer()
    factory.core.v1.nodes.informer().add_event_handler(Recorder(pace=3600))
    await asyncio.create_task(factory.__aenter__())
    await factory.wait_for_cache_sync()
    crash(informer, pods)
    await settled()
    factory.core.v1.secrets.informer()
    with pytest.raises(InformerStopped):
        await factory.wait_for_cache_sync()
    with pytest.raises(Broken):
        await factory.shutdown()


async def test_handler_may_shut_down_its_own_factory() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")), shutdown_grace=5)
    informer = factory.core.v1.pods.informer()

    async def on_add(pod: Any) -> None:
        await factory.shutdown()

    informer.add_event_handler(on_add=on_add)
    factory.start()
    await asyncio.sleep(6)
    assert informer.is_stopped()
    await asyncio.wait_for(factory.shutdown(), 1)


def test_ctrl_c_stops_a_factory_cleanly() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")), shutdown_grace=5)
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
