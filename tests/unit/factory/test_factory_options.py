"""Options of a factory's informers: conflicting ones are refused, omitted ones are inherited."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import LeaderElector, ListWatch, Resource, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import OptionError, UnknownOption, UsageError
from aioinformer.factory import DynamicInformer, MultiNamespaceInformer, ReselectingInformer
from aioinformer.informer import RetryWatcher
from aioinformer.reflector import ReflectorOptions
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")

PODS, NODES = built_in("v1/pods"), built_in("v1/nodes")


class Pod(msgspec.Struct):
    metadata: dict[str, Any]


def unchanged(pod: Any) -> Any:
    return pod


def by_name(pod: Any) -> list[str]:
    return [pod.metadata.name]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("label_selectr", " (did you mean label_selector?)"), ("resync", " (did you mean resync_period?)"), ("xyz", "")],
)
async def test_unknown_option_is_refused_with_a_suggestion(name: str, nearest: str) -> None:
    factory: Any = SharedInformerFactory(Cluster())
    pods = factory.core.v1.pods
    for ask in (pods.informer, pods.lister, factory.for_resource("v1/pods").informer):
        with pytest.raises(UnknownOption) as caught:
            ask(**{name: 1})
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, UsageError)
        assert str(caught.value).startswith(f"informer_for() has no option {name!r}{nearest}")
        assert "; the options are namespace, label_selector, field_selector, indexers, " in str(caught.value)
    with pytest.raises(UnknownOption, match=rf"has no option '{name}'; .* for_resource\(\.\.\.\)\.informer"):
        factory.for_resource("v1/pods", **{name: 1})


async def test_settings_of_the_factory_and_the_resource_are_compared() -> None:
    factory = SharedInformerFactory(Cluster(), 30, custom_resync={"v1/nodes": 5}, transform=unchanged)
    pods = factory.core.v1.pods.informer()
    assert factory.core.v1.pods.informer(resync_period=30, transform=unchanged) is pods
    factory.core.v1.nodes.informer()
    with pytest.raises(UsageError, match=r"resync_period is 5.0, not 30.0"):
        factory.core.v1.nodes.informer(resync_period=30)
    with pytest.raises(UsageError, match="model of the Resource is 'V1Pod', not ''"):
        factory.informer_for(Resource("", "v1", "pods", "Pod"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"indexers": [by_name]}, "indexers must map names to functions"),
        ({"indexers": {"n": 5}}, "index n: expected a function"),
        ({"decoder": 5}, "decoder: expected a class or a function"),
        ({"transform": 5}, "transform: expected a function, not int"),
        ({"storage": "disk"}, "storage='disk' does not exist; choose one of bytes"),
        ({"storage": None}, "storage=None does not exist"),
        ({"fields": "spec.nodeName"}, r"fields must be a list of paths, not a string: fields=\['spec.nodeName'\]"),
        ({"fields": [5]}, "fields must be paths such as"),
        ({"fields": 5}, "fields must be a list of paths, not 5"),
        ({"resync_period": -1}, "resync_period must be 0"),
        ({"metadata_only": True}, "has no option 'metadata_only' .did you mean storage=\"metadata\"."),
        ({"queue": "in_order"}, "has no option 'queue' .did you mean options=RunOptions.queue=…."),
        ({"max_undecodable": 0.5}, "did you mean options=RunOptions.max_undecodable=…."),
        ({"page_size": 5}, "did you mean options=RunOptions.page_size=…."),
        ({"options": {"page_size": 5}}, r"options must be RunOptions\(…\), not dict"),
        ({"options": ReflectorOptions()}, r"options must be RunOptions\(…\), not ReflectorOptions"),
    ],
)
async def test_invalid_value_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    factory = SharedInformerFactory(Cluster())
    for _ in range(2):  # the refusal leaves nothing behind
        with pytest.raises(UsageError, match=message):
            factory.core.v1.pods.informer(**options)
    assert factory.core.v1.pods.informer().resource is PODS


MADE: dict[str, Any] = {
    "decoder": Pod,
    "transform": unchanged,
    "storage": "bytes",
    "fields": ["spec.nodeName", "spec.hostname"],
    "resync_period": 60,
    "options": RunOptions(page_size=100, queue="in_order", shutdown_grace=5),
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decoder": dict}, "decoder is Pod, not dict"),
        ({"transform": by_name}, "transform is unchanged, not by_name"),
        ({"storage": "stripped"}, "storage is 'bytes', not 'stripped'"),
        ({"fields": ["spec.nodeName"]}, r"fields is \['spec.hostname', 'spec.nodeName'\], not \['spec.nodeName'\]"),
        ({"resync_period": 0}, "resync_period is 60.0, not 0.0"),
        ({"options": RunOptions(page_size=100, shutdown_grace=5)}, "options.queue is 'in_order', not 'delta'"),
        (
            {"options": RunOptions(queue="in_order"), "resync_period": 1},
            "resync_period is 60.0, not 1.0; options.page_size is 100, not 500; options.shutdown_grace is 5, not 1.0",
        ),
    ],
)
async def test_options_that_differ_from_the_informer_are_refused(options: dict[str, Any], message: str) -> None:
    factory = SharedInformerFactory(Cluster())
    factory.core.v1.pods.informer(**MADE)
    with pytest.raises(UsageError, match=f"v1/pods already has an informer with other options: {message}"):
        factory.core.v1.pods.informer(**options)


@pytest.mark.conformance("FAC-02")
@pytest.mark.parametrize("name", MADE)
async def test_equal_or_omitted_options_get_the_informer(name: str) -> None:
    factory = SharedInformerFactory(Cluster())
    informer = factory.core.v1.pods.informer(**MADE)
    again: dict[str, Any] = {name: list(reversed(MADE[name])) if name == "fields" else MADE[name]}
    assert factory.core.v1.pods.informer(**again) is informer
    assert factory.core.v1.pods.informer() is informer
    assert factory.core.v1.pods.informer(decoder=None, transform=None, options=None, resync_period=None) is informer


async def test_indexers_are_merged_into_a_running_informer() -> None:
    def by_uid(pod: Any) -> list[str]:
        return [pod.metadata.uid]

    factory = SharedInformerFactory(Cluster(Collection("a")))
    informer = factory.core.v1.pods.informer(indexers={"name": by_name})
    factory.core.v1.pods.informer(indexers={"node": "spec.nodeName"})
    async with factory:
        await factory.wait_for_cache_sync()
        again = factory.core.v1.pods.informer(indexers={"uid": by_uid, "name": by_name, "node": "spec.nodeName"})
        assert again.get_indexer().index_keys("uid", "uid-1") == ["default/a"]
        for other in (by_uid, "metadata.name"):
            with pytest.raises(UsageError, match="index name exists already, with another function"):
                factory.core.v1.pods.informer(indexers={"name": other, "another": by_uid})
    assert sorted(informer.get_indexer().get_indexers()) == ["name", "namespace", "node", "uid"]


def test_coroutine_functions_are_refused() -> None:
    with pytest.raises(UsageError, match="tweak_list_options: expected a plain function"):
        SharedInformerFactory(Cluster(), tweak_list_options=tweak)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="tweak: expected a plain function"):
        ListWatch(Cluster(), PODS, tweak=tweak)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="watch error handler: expected a function"):
        SharedIndexInformer(Collection()).set_watch_error_handler(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page_size", 1.5),
        ("page_size", "500"),
        ("min_watch_timeout", float("nan")),
        ("idle_timeout", float("nan")),
        ("max_undecodable", -0.1),
        ("max_undecodable", 2),
        ("max_undecodable", True),
        ("shutdown_grace", -1),
        ("shutdown_grace", None),
    ],
)
def test_run_options_that_are_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"{name} must be"):
        RunOptions(**{name: value})


async def test_closures_are_equal_if_their_values_are() -> None:
    factory = SharedInformerFactory(Cluster())

    def ask(value: object) -> SharedIndexInformer[Any]:
        return factory.core.v1.pods.informer(
            indexers={"plain": lambda pod: [pod.metadata.name], "closure": lambda pod: [str(value)]},
            transform=lambda pod: pod,
        )

    value = object()
    assert ask(value) is ask(value)
    with pytest.raises(UsageError, match="index closure exists already"):
        ask(object())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": {}}, r"options must be RunOptions\(…\), not dict"),
        ({"metrics": True}, r"metrics must be a provider such as PrometheusMetrics\(\), not bool"),
        ({"metrics": Cluster}, "not the class Cluster"),
    ],
)
def test_factory_and_informer_refuse_the_same_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        SharedInformerFactory(Cluster(), **options)
    with pytest.raises(OptionError, match=message):
        SharedIndexInformer(Collection(), **options)


async def tweak(options: Any) -> None: ...


async def test_list_watch_accepts_selectors_in_any_form() -> None:
    cluster = Cluster()
    informer = SharedIndexInformer(
        ListWatch(cluster, PODS, label_selector={"b": "2", "a": "1"}, field_selector={"metadata.name": "x,y"})
    )
    async with informer:
        await settled()
    assert cluster.selections() == {("/api/v1/pods", "a=1,b=2", r"metadata.name=x\,y")}
    with pytest.raises(UsageError, match=r"^label_selector: "):
        ListWatch(cluster, PODS, label_selector=5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^namespace must be"):
        ListWatch(cluster, PODS, namespace=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("resource", ["v1/pods", None])
def test_invalid_resource_is_refused(resource: Any) -> None:
    factory = SharedInformerFactory(Cluster())
    with pytest.raises(UsageError, match=r"resource: expected a Resource, not .*for_resource\(\) takes names"):
        factory.informer_for(resource)
    with pytest.raises(UsageError, match="resource: expected a Resource, not"):
        ListWatch(Cluster(), resource)
    with pytest.raises(UsageError, match="resource: expected a Resource, or a name"):
        factory.for_resource(None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("gvr", "hint"),
    [
        ("v1/pod", "did you mean v1/pods?"),
        ("apps/v1/deployment", "did you mean apps/v1/deployments?"),
        ("v1/xyz", "write it as v1/pods or apps/v1/deployments"),
        ("pods", "write it as"),
        ("/pods", "write it as"),
    ],
)
def test_custom_resync_of_an_unknown_resource_is_refused(gvr: str, hint: str) -> None:
    SharedInformerFactory(Cluster(), custom_resync={"example.com/v1/widgets": 5, "apps/v9/things": 5})
    with pytest.raises(UsageError) as caught:
        SharedInformerFactory(Cluster(), custom_resync={gvr: 5})
    assert str(caught.value).startswith(f"custom_resync: {gvr!r} is not a resource; {hint}")
    with pytest.raises(UsageError, match=r"custom_resync\['v1/pods'\] must be 0"):
        SharedInformerFactory(Cluster(), custom_resync={"v1/pods": -1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"options": {"lease_duration": 5}}, r"options must be LeaderElectionOptions\(...\), not dict"),
        ({"on_new_leader": tweak}, "on_new_leader: expected a plain function"),
        ({"on_new_leader": 5}, "on_new_leader: expected a function, not int"),
    ],
)
def test_elector_refuses_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LeaderElector(Cluster(), "a", **options)


@pytest.mark.parametrize(
    ("lister_watcher_for", "namespaces", "message"),
    [
        (lambda namespace: Collection(), "shop", r"namespaces must be a list of names, not a string: \['shop'\]"),
        (lambda namespace: Collection(), ["a", "b/c"], "namespaces: 'b/c' cannot be a namespace"),
        (lambda namespace: Collection(), [""], "namespaces must be named one by one"),
        (Collection(), ["a"], "lister_watcher_for: expected a function"),
        (lambda namespace: Cluster(), ["a"], "lister_watcher: expected a ListerWatcher"),
    ],
)
def test_multi_namespace_informer_refuses_invalid_values(
    lister_watcher_for: Any, namespaces: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        MultiNamespaceInformer(lister_watcher_for, namespaces)


def test_other_informers_refuse_unknown_options() -> None:
    made: Any
    for made in (ReselectingInformer, DynamicInformer):
        with pytest.raises(TypeError, match="unexpected keyword argument 'label_selector'"):
            made(Collection(), label_selector="app=web")
    with pytest.raises(TypeError, match="unexpected keyword argument 'label_selector'"):
        MultiNamespaceInformer(lambda namespace: Collection(), ["a"], label_selector="app=web")
    with pytest.raises(UsageError, match="lister_watcher: expected a ListerWatcher"):
        RetryWatcher(Cluster(), "5")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [MultiNamespaceInformer, DynamicInformer, ReselectingInformer])
def test_kinds_of_informers_override_no_protected_member(kind: type[Any]) -> None:
    protected = {name for name in dir(SharedIndexInformer) if name.startswith("_") and not name.startswith("__")}
    assert vars(kind).keys() & protected == set()
