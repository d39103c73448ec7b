"""SharedInformerFactory: one informer for each scope of a resource; they start and stop together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Resource, SharedInformerFactory
from aioinformer.errors import OptionError, SelectorError, UsageError
from aioinformer.reflector import Phase
from aioinformer.resources import parse_label_selector
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer import SharedIndexInformer
    from aioinformer.reflector import ListOptions

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
    with pytest.raises(UsageError, match=r"v1/bindings has no verb list, only create; .* --verbs=list"):
        factory.for_resource("v1/bindings").informer()  # type: ignore[call-overload]
    factory.for_resource(WIDGETS).informer()
    async with factory:
        await factory.wait_for_cache_sync()
    assert cluster.paths() == ["/apis/example.com/v1/widgets"]


@pytest.mark.conformance("FAC-04")
async def test_entry_and_start_start_existing_informers_only(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster)
    factory.core.v1.pods.informer()
    async with factory:
        factory.core.v1.nodes.lister()
        await settled()
        assert cluster.paths() == ["/api/v1/pods"]
        factory.start()
        factory.start()
        await settled()
        assert cluster.paths() == ["/api/v1/nodes", "/api/v1/pods"]
        assert len(cluster.requests) == 2
    assert "was started already" not in caplog.text


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
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await factory.wait_for_cache_sync()
        pods.gate.set()
        assert await factory.wait_for_cache_sync(timeout=30) == {"v1/pods": True, "v1/nodes": True}


@pytest.mark.conformance("FAC-03", "FAC-01")
async def test_tweak_applies_to_every_list_and_watch_of_a_scope() -> None:
    cluster = Cluster(Collection("a", resource=PODS))

    def tweak(options: ListOptions) -> None:
        options.label_selector = f"{options.label_selector},tier=a"

    factory = SharedInformerFactory(cluster, tweak_list_options=tweak)
    factory.core.v1.pods.informer(label_selector="app=web")
    async with factory:
        await asyncio.sleep(2000)
    assert len(cluster.requests) > 2
    assert cluster.selections() == {("/api/v1/pods", "app=web,tier=a", "")}


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


PODS, NODES = built_in("v1/pods"), built_in("v1/nodes")


@pytest.mark.conformance("FAC-01", "FAC-02")
async def test_each_scope_has_its_own_informer() -> None:
    cluster = Cluster(Collection("a"))
    factory = SharedInformerFactory(cluster)
    whole = factory.core.v1.pods.informer()
    web = factory.core.v1.pods.informer(label_selector="app=web")
    shop = factory.informer_for(PODS, namespace="shop")
    near: Any = factory.for_resource("v1/pods").informer(namespace="shop", field_selector="spec.nodeName=n1")
    lister = factory.core.v1.pods.lister(label_selector="app=web")
    assert len({whole, web, shop, near}) == 4
    assert [informer.name for informer in (whole, near)] == [
        "informer of pods",
        "informer of v1/pods?namespace=shop&fieldSelector=spec.nodeName=n1",
    ]
    async with factory:
        await factory.wait_for_cache_sync()
        assert [pod.metadata.name for pod in lister.list()] == ["a"]
        with pytest.raises(UsageError, match=r"the informer of v1/pods.* was never started"):
            factory.core.v1.pods.lister(label_selector="app=other").list()
    assert cluster.selections() == {
        ("/api/v1/pods", "", ""),
        ("/api/v1/pods", "app=web", ""),
        ("/api/v1/namespaces/shop/pods", "", ""),
        ("/api/v1/namespaces/shop/pods", "", "spec.nodeName=n1"),
    }


@pytest.mark.parametrize(
    "selector", ["tier in (b,a),app=web", "app==web, tier in (a,b)", parse_label_selector("app=web,tier in (a,b)")]
)
async def test_equal_selectors_are_the_same_scope(selector: Any) -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer(label_selector="app=web,tier in (a,b)")
    assert factory.core.v1.pods.informer(label_selector=selector) is informer
    assert factory.core.v1.pods.informer(label_selector={"app": "web"}) is factory.core.v1.pods.informer(
        label_selector="app=web"
    )


@pytest.mark.conformance("FAC-01")
async def test_scope_defaults_to_the_factory() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster, namespace="shop")
    own = factory.core.v1.pods.informer()
    assert factory.core.v1.pods.informer(namespace="shop", label_selector="") is own
    factory.core.v1.pods.informer(label_selector="app=web")
    factory.core.v1.pods.informer(namespace="")
    factory.core.v1.nodes.informer(label_selector="zone=a")
    with pytest.raises(UsageError, match="v1/nodes is cluster-scoped: leave out namespace='shop'"):
        factory.core.v1.nodes.informer(namespace="shop")
    async with factory:
        result = await factory.wait_for_cache_sync()
    assert result == dict.fromkeys(
        ("v1/pods", "v1/pods?labelSelector=app=web", "v1/pods?namespace=", "v1/nodes?labelSelector=zone=a"), True
    )
    assert cluster.selections() == {
        ("/api/v1/namespaces/shop/pods", "", ""),
        ("/api/v1/namespaces/shop/pods", "app=web", ""),
        ("/api/v1/pods", "", ""),
        ("/api/v1/nodes", "zone=a", ""),
    }


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"label_selector": "app in web"}, SelectorError, "^label_selector: label selector 'app in web', at char"),
        ({"label_selector": None}, SelectorError, "^label_selector: expected a label selector"),
        ({"field_selector": "name"}, SelectorError, "^field_selector: field selector 'name', at character 1"),
        ({"namespace": None}, OptionError, "^namespace must be the name of a namespace.*, not None"),
        ({"namespace": "a/b"}, OptionError, "^namespace: 'a/b' cannot be a namespace"),
    ],
)
async def test_invalid_scope_names_the_option(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SharedInformerFactory(Cluster()).core.v1.pods.informer(**options)


@pytest.mark.parametrize("namespace", [None, 5, "a/b", "A"])
def test_factory_refuses_an_invalid_namespace(namespace: Any) -> None:
    with pytest.raises(OptionError, match=r"^namespace"):
        SharedInformerFactory(Cluster(), namespace=namespace)
