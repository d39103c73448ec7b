"""SharedInformerFactory: one informer for each resource; they start and stop together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.reflector.state import Phase
from aioinformer.resources.resource import Resource
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.reflector.options import ListOptions

pytestmark = pytest.mark.usefixtures("queue")

PODS, NODES = built_in("v1/pods"), built_in("v1/nodes")
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


@pytest.mark.conformance("FAC-02")
async def test_resource_has_one_informer_on_every_path() -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer()
    assert factory.core.v1.pods.informer() is informer
    assert factory.informer_for(PODS) is informer
    assert factory.for_resource("v1/pods").informer() is informer
    assert factory.for_resource(PODS).informer() is informer
    nodes: Any = factory.core.v1.nodes.informer()
    assert nodes is not informer


@pytest.mark.conformance("FAC-07", "FAC-10", "FAC-14")
async def test_for_resource_needs_a_built_in_name_or_resource() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster)
    for name in ("apps/v1/pods", "pods", "widgets.example.com", ""):
        with pytest.raises(UsageError, match="not a built-in resource; write it as group/version/plural"):
            factory.for_resource(name)  # type: ignore[call-overload]
    factory.for_resource(WIDGETS).informer()
    async with factory:
        await factory.wait_for_cache_sync()
    assert cluster.paths() == ["/apis/example.com/v1/widgets"]


async def test_unlistable_resource_is_refused() -> None:
    factory = SharedInformerFactory(Cluster())
    with pytest.raises(UsageError, match=r"v1/bindings has no verb list, only create; .* --verbs=list"):
        factory.for_resource("v1/bindings").informer()  # type: ignore[call-overload]


async def test_unwatchable_resource_is_polled() -> None:
    statuses = Collection("scheduler", resource=built_in("v1/componentstatuses"))
    cluster = Cluster(statuses)
    factory = SharedInformerFactory(cluster)
    informer: SharedIndexInformer[Any] = factory.for_resource("v1/componentstatuses").informer()
    async with factory:
        assert await factory.wait_for_cache_sync(1)
        assert (informer.state.phase, informer.state.healthy) == (Phase.POLLING, True)
        statuses.put("etcd")
        await asyncio.sleep(5)
        assert len(informer.get_store()) == 2
        await asyncio.sleep(300)
        assert len(cluster.requests) < 20
        assert not any(dict(request.query).get("watch") for request in cluster.requests)


@pytest.mark.conformance("FAC-04")
async def test_entry_starts_existing_informers_only() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster)
    factory.core.v1.pods.informer()
    async with factory:
        factory.core.v1.nodes.informer()
        await settled()
        assert cluster.paths() == ["/api/v1/pods"]


@pytest.mark.conformance("FAC-04")
async def test_second_start_starts_new_informers_only(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster)
    factory.core.v1.pods.informer()
    async with factory:
        await settled()
        factory.core.v1.nodes.lister()
        factory.start()
        factory.start()
        await settled()
        assert cluster.paths() == ["/api/v1/nodes", "/api/v1/pods"]
        assert len(cluster.requests) == 2
    assert "was started already" not in caplog.text


@pytest.mark.conformance("FAC-05", "FAC-11")
async def test_wait_for_sync_starts_informers_and_reports_each() -> None:
    pods = Collection("a")
    factory = SharedInformerFactory(Cluster(pods))
    async with factory:
        lister = factory.core.v1.pods.lister()
        factory.core.v1.nodes.informer()
        assert await factory.wait_for_cache_sync() == {"v1/pods": True, "v1/nodes": True}
        assert [pod.metadata.name for pod in lister.list()] == ["a"]


@pytest.mark.conformance("FAC-05")
async def test_sync_timeout_is_a_result() -> None:
    pods = Collection("a")
    pods.gate.clear()
    factory = SharedInformerFactory(Cluster(pods))
    factory.core.v1.pods.informer()
    factory.core.v1.nodes.informer()
    async with factory:
        assert await factory.wait_for_cache_sync(timeout=30) == {"v1/pods": False, "v1/nodes": True}
        pods.gate.set()
        assert await factory.wait_for_cache_sync(timeout=30) == {"v1/pods": True, "v1/nodes": True}


async def test_outer_timeout_raises() -> None:
    pods = Collection()
    pods.gate.clear()
    factory = SharedInformerFactory(Cluster(pods))
    factory.core.v1.pods.informer()
    async with factory:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await factory.wait_for_cache_sync()


async def test_factory_is_ready_while_all_informers_are() -> None:
    factory = SharedInformerFactory(Cluster())
    factory.core.v1.pods.informer()
    assert not factory.is_ready()
    async with factory:
        assert not factory.is_ready()
        await factory.wait_for_cache_sync()
        assert factory.is_ready()
        factory.core.v1.nodes.informer()
        assert not factory.is_ready()
        await factory.wait_for_cache_sync()
        assert factory.is_ready()
    assert not factory.is_ready()


@pytest.mark.conformance("FAC-01")
async def test_namespace_applies_to_namespaced_resources_only() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster, namespace="web")
    factory.core.v1.pods.informer()
    factory.core.v1.nodes.informer()
    async with factory:
        await settled()
    assert cluster.paths() == ["/api/v1/namespaces/web/pods", "/api/v1/nodes"]


@pytest.mark.conformance("FAC-03", "FAC-01")
async def test_tweak_applies_to_every_list_and_watch() -> None:
    cluster = Cluster(Collection("a", resource=PODS))

    def tweak(options: ListOptions) -> None:
        options.label_selector = "app=web"

    factory = SharedInformerFactory(cluster, tweak_list_options=tweak)
    factory.core.v1.pods.informer()
    async with factory:
        await asyncio.sleep(2000)
    assert len(cluster.requests) > 2
    assert {dict(request.query)["labelSelector"] for request in cluster.requests} == {"app=web"}


@pytest.mark.conformance("FAC-02", "FAC-01")
async def test_custom_resync_overrides_the_factory_period() -> None:
    pods, nodes = Collection("a"), Collection("n", resource=NODES)
    factory = SharedInformerFactory(Cluster(pods, nodes), 10, custom_resync={"v1/nodes": 25})
    of_pods, of_nodes = Recorder(), Recorder()
    factory.core.v1.pods.informer().add_event_handler(of_pods)
    factory.core.v1.nodes.informer().add_event_handler(of_nodes)
    async with factory:
        await asyncio.sleep(59)
    assert (len(of_pods.received) - 1, len(of_nodes.received) - 1) == (5, 2)


def test_invalid_custom_resync_is_refused() -> None:
    with pytest.raises(UsageError, match=r"custom_resync\['v1/pods'\] must be 0"):
        SharedInformerFactory(Cluster(), custom_resync={"v1/pods": -1})


@pytest.mark.conformance("FAC-01", "FAC-14")
async def test_informer_transform_overrides_the_factory() -> None:
    def named(name: str) -> Any:
        return lambda pod: {**pod.to_dict(), "status": {"phase": name}}

    factory = SharedInformerFactory(Cluster(Collection("a"), Collection("n", resource=NODES)), transform=named("all"))
    pods, nodes = factory.core.v1.pods.lister(), factory.informer_for(NODES, transform=named("own"))
    async with factory:
        await factory.wait_for_cache_sync()
    status = pods.list()[0].status
    assert status is not None
    assert status.phase == "all"
    assert nodes.lister().list()[0].status.phase == "own"
