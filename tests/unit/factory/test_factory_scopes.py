"""Scopes: each scope of a resource has its own informer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import OptionError, SelectorError, UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.resources.selectors import parse_label_selector
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.reflector.options import ListOptions

pytestmark = pytest.mark.usefixtures("queue")

PODS, NODES = built_in("v1/pods"), built_in("v1/nodes")


@pytest.mark.conformance("FAC-02", "FAC-01")
async def test_each_scope_has_its_own_informer() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster)
    whole = factory.core.v1.pods.informer()
    web = factory.core.v1.pods.informer(label_selector="app=web")
    shop = factory.informer_for(PODS, namespace="shop")
    near: Any = factory.for_resource("v1/pods").informer(namespace="shop", field_selector="spec.nodeName=n1")
    assert len({whole, web, shop, near}) == 4
    async with factory:
        await settled()
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


async def test_scope_defaults_to_the_factory() -> None:
    cluster = Cluster()
    factory = SharedInformerFactory(cluster, namespace="shop")
    own = factory.core.v1.pods.informer()
    assert factory.core.v1.pods.informer(namespace="shop", label_selector="") is own
    factory.core.v1.pods.informer(label_selector="app=web")
    factory.core.v1.pods.informer(namespace="")
    factory.core.v1.nodes.informer(label_selector="zone=a")
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


async def test_lister_of_a_scope_reads_its_informer() -> None:
    pods = Collection("a")
    factory = SharedInformerFactory(Cluster(pods))
    web = factory.core.v1.pods.lister(label_selector="app=web")
    nodes = factory.core.v1.nodes.lister(label_selector="zone=a")
    async with factory:
        await factory.wait_for_cache_sync()
        assert [pod.metadata.name for pod in web.list()] == ["a"]
        assert nodes.list() == []
        with pytest.raises(UsageError, match="the informer of pods was never started"):
            factory.core.v1.pods.lister().list()


@pytest.mark.conformance("FAC-03")
async def test_tweak_is_applied_after_the_scope() -> None:
    cluster = Cluster()

    def tweak(options: ListOptions) -> None:
        options.label_selector = f"{options.label_selector},tier=a"

    factory = SharedInformerFactory(cluster, tweak_list_options=tweak)
    factory.core.v1.pods.informer(label_selector="app=web")
    async with factory:
        await settled()
    assert cluster.selections() == {("/api/v1/pods", "app=web,tier=a", "")}


async def test_log_names_the_scope() -> None:
    factory = SharedInformerFactory(Cluster())
    assert factory.core.v1.pods.informer().name == "informer of pods"
    scoped = factory.core.v1.pods.informer(namespace="shop", label_selector="app=web")
    assert scoped.name == "informer of v1/pods?namespace=shop&labelSelector=app=web"


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


async def test_namespace_of_a_cluster_scoped_resource_is_refused() -> None:
    factory = SharedInformerFactory(Cluster(), namespace="shop")
    with pytest.raises(UsageError, match="v1/nodes is cluster-scoped: leave out namespace='shop'"):
        factory.core.v1.nodes.informer(namespace="shop")


@pytest.mark.parametrize("namespace", [None, 5, "a/b", "A"])
def test_factory_refuses_an_invalid_namespace(namespace: Any) -> None:
    with pytest.raises(OptionError, match=r"^namespace"):
        SharedInformerFactory(Cluster(), namespace=namespace)
