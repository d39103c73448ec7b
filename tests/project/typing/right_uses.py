# pyright: strict
"""Right uses of the types. This module is never run: `test_checkers` checks that mypy and pyright accept all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, assert_type

import msgspec

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    HttpTransport,
    Indexer,
    Lister,
    ListWatch,
    Resource,
    ResourceEventHandlerFuncs,
    RunOptions,
    SharedIndexInformer,
    SharedInformerFactory,
    connect,
    evolve,
    meta_namespace_key_func,
)
from aioinformer.cache import ClusterLister, NamespaceLister, Storage
from aioinformer.cache.objects.frozen import FrozenDict
from aioinformer.client import ResourceClient, add_finalizer, remove_condition, set_condition
from aioinformer.factory.accessors import ClusterAccessor, NamespacedAccessor
from aioinformer.handlers import FilteringResourceEventHandler, HandlerRegistration, ThreadedHandler
from aioinformer.informer import SyncResult
from aioinformer.models import (
    MetadataView,
    Model,
    Object,
    ObjectMeta,
    Quantity,
    apps_v1,
    autoscaling_v2,
    core_v1,
    meta_v1,
)
from aioinformer.reflector import ListPager
from aioinformer.resources import BUILTIN_RESOURCES
from aioinformer.transport import Connection
from aioinformer.transport.auth.credentials import ConnectionTransport


class WidgetSpec(msgspec.Struct, frozen=True):
    size: int
    template: core_v1.PodTemplateSpec | None = None


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: WidgetSpec


@dataclass
class Gadget:
    metadata: ObjectMeta
    size: int = 0


def gadget_of(raw: bytes) -> Gadget:
    return msgspec.json.decode(raw, type=Gadget)


LENIENT = RunOptions(max_undecodable=0.1)
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)
GADGETS = Resource("example.com", "v1", "gadgets", "Gadget", namespaced=False, decoder=gadget_of)
PLAIN = Resource("example.com", "v1", "plains", "Plain")


def constants() -> None:
    assert_type(core_v1.PODS, Resource[core_v1.Pod])
    assert_type(core_v1.PODS.gvr, str)
    assert_type(core_v1.PODS.path("default", "web-0"), str)
    assert_type(WIDGETS, Resource[Widget])
    assert_type(GADGETS, Resource[Gadget])
    assert_type(PLAIN, Resource[Any])
    assert_type(BUILTIN_RESOURCES, tuple[Resource[Any], ...])


async def connections() -> None:
    assert_type(await connect(), Connection)
    assert_type((await connect()).transport, ConnectionTransport)
    assert_type(HttpTransport("https://localhost:6443").base_url, str)


async def waits(factory: SharedInformerFactory) -> None:
    result = await factory.wait_for_cache_sync()
    assert_type(result, SyncResult)
    assert_type(result["v1/pods"], bool)
    assert_type(
        factory.core.v1.nodes.lister(label_selector="zone=a", options=LENIENT),
        ClusterLister[core_v1.Node],
    )
    assert_type(factory.core.v1.nodes.lister().undecodable(), list[str])


def by_path(factory: SharedInformerFactory) -> None:
    assert_type(factory.core.v1.pods, NamespacedAccessor[core_v1.Pod])
    assert_type(factory.core.v1.nodes, ClusterAccessor[core_v1.Node])
    assert_type(factory.core.v1.pods.informer(), SharedIndexInformer[core_v1.Pod])
    assert_type(factory.apps.v1.deployments.lister(), Lister[apps_v1.Deployment])
    assert_type(factory.apps.v1.deployments.lister().namespaced("a"), NamespaceLister[apps_v1.Deployment])
    assert_type(factory.apps.v1.deployments.lister().namespaced("a").get("b"), apps_v1.Deployment)
    assert_type(factory.apps.v1.deployments.lister().list("app=web"), list[apps_v1.Deployment])
    assert_type(factory.core.v1.nodes.lister(), ClusterLister[core_v1.Node])
    assert_type(factory.core.v1.nodes.lister().list({"zone": "a"}), list[core_v1.Node])
    assert_type(
        factory.autoscaling.v2.horizontalpodautoscalers.lister().list()[0].api_version, Literal["autoscaling/v2"]
    )


def by_name(factory: SharedInformerFactory) -> None:
    assert_type(factory.for_resource("apps/v1/deployments"), NamespacedAccessor[apps_v1.Deployment])
    assert_type(factory.for_resource("v1/pods").lister().get("a/b"), core_v1.Pod)
    assert_type(factory.for_resource("v1/nodes"), ClusterAccessor[core_v1.Node])
    assert_type(factory.for_resource(WIDGETS).informer(), SharedIndexInformer[Widget])
    assert_type(factory.for_resource(PLAIN).informer(), SharedIndexInformer[Any])
    assert_type(factory.informer_for(WIDGETS).lister().list(), list[Widget])
    assert_type(factory.informer_for(GADGETS).lister().list(), list[Gadget])


def options(factory: SharedInformerFactory) -> None:
    pods = factory.core.v1.pods
    assert_type(pods.informer(namespace="a", label_selector={"app": "web"}), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(resync_period=60.0), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(options=RunOptions(queue="in_order")), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(storage="metadata"), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(storage="projection", fields=["spec.nodeName"]), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(storage="dict"), SharedIndexInformer[FrozenDict[str, Any]])
    assert_type(pods.informer(storage=Storage.DICT), SharedIndexInformer[FrozenDict[str, Any]])
    assert_type(pods.lister(storage="dict").get("a/b")["spec"], Any)
    assert_type(pods.informer(indexers={"node": "spec.nodeName"}), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(indexers={"node": nodes_of}), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(transform=without_status), SharedIndexInformer[core_v1.Pod])
    assert_type(pods.informer(decoder=Gadget), SharedIndexInformer[Gadget])
    assert_type(pods.informer(decoder=gadget_of), SharedIndexInformer[Gadget])
    assert_type(pods.lister(decoder=Widget).get("a/b").spec.size, int)
    assert_type(factory.informer_for(PLAIN, decoder=Widget), SharedIndexInformer[Widget])
    assert_type(factory.core.v1.nodes.lister(decoder=Gadget), ClusterLister[Gadget])


def nodes_of(pod: core_v1.Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec and pod.spec.node_name else []


def without_status(pod: core_v1.Pod) -> dict[str, Any]:
    return {**pod.to_dict(), "status": {}}


def pods(pod: core_v1.Pod) -> None:
    assert_type(pod.kind, Literal["Pod"])
    assert_type(pod.api_version, Literal["v1"])
    assert_type(pod.spec, core_v1.PodSpec | None)
    assert_type(pod.status, core_v1.PodStatus | None)
    assert_type(pod.to_dict(), dict[str, Any])
    assert_type(pod.evolve({"metadata": {"labels": {"a": "b"}}}), core_v1.Pod)
    assert_type(pod.evolve("spec.nodeName", "n1"), core_v1.Pod)
    assert_type(meta_namespace_key_func(pod), str)
    if pod.status is not None:
        assert_type(pod.status.phase, str | None)
        assert_type(pod.status.container_statuses, Sequence[core_v1.ContainerStatus] | None)
        for status in pod.status.container_statuses or ():
            assert_type(status.restart_count, int)
    assert pod.spec is not None
    assert_type(pod.spec.node_name, str | None)
    assert_type(pod.spec.containers, Sequence[core_v1.Container])
    assert_type([each.name for each in pod.spec.containers], list[str])
    assert_type(pod.spec.node_selector, Mapping[str, str] | None)
    resources = pod.spec.containers[0].resources
    if resources and resources.requests:
        assert_type(resources.requests, Mapping[str, str])
        assert_type(Quantity(resources.requests["cpu"]) + Quantity(1), Quantity)
    probe = pod.spec.containers[0].liveness_probe
    if probe is not None and probe.http_get is not None:
        assert_type(probe.http_get.port, int | str)


def metadata(pod: core_v1.Pod) -> None:
    assert_type(pod.metadata, MetadataView)
    assert_type(pod.metadata.name, str)
    assert_type(pod.metadata.namespace, str | None)
    assert_type(pod.metadata.uid, str)
    assert_type(pod.metadata.resource_version, str)
    assert_type(pod.metadata.labels, Mapping[str, str] | None)
    assert_type(pod.metadata.creation_timestamp, datetime | None)
    assert_type(pod.metadata.finalizers, Sequence[str] | None)
    assert_type(pod.metadata.generation, int | None)
    assert_type([each.uid for each in pod.metadata.owner_references or ()], list[str])
    assert_type(meta_v1.ObjectMeta(name="a", labels={"b": "c"}), ObjectMeta)


def other_kinds(
    deployment: apps_v1.Deployment,
    secret: core_v1.Secret,
    node: core_v1.Node,
) -> None:
    if deployment.spec and deployment.spec.template.spec:
        assert_type(deployment.spec.replicas, int | None)
        assert_type(deployment.spec.selector, meta_v1.LabelSelector)
        assert_type(deployment.spec.template.metadata, ObjectMeta | None)
        assert_type(deployment.spec.template.spec.containers, Sequence[core_v1.Container])
    assert_type(secret.data, Mapping[str, str] | None)
    assert_type(secret.immutable, bool | None)
    assert_type(node.status and node.status.allocatable, Mapping[str, str] | None)


def narrowing(obj: Object, part: Model) -> None:
    assert_type(obj.metadata.name, str)
    if isinstance(obj, core_v1.Pod):
        assert_type(obj, core_v1.Pod)
    if isinstance(part, core_v1.Container):
        assert_type(part.name, str)
    match obj:
        case core_v1.Secret(type=kind):
            assert_type(kind, str | None)
        case _:
            pass


def of_pod(pod: core_v1.Pod) -> None:
    print(pod.metadata.name)


def of_pod_in_list(pod: core_v1.Pod, is_in_initial_list: bool) -> None:
    print(pod.metadata.name, is_in_initial_list)


async def of_pods(old: core_v1.Pod, new: core_v1.Pod) -> None:
    print(old.spec == new.spec)


def of_deleted_pod(pod: core_v1.Pod | DeletedFinalStateUnknown[core_v1.Pod]) -> None:
    last = pod.obj if isinstance(pod, DeletedFinalStateUnknown) else pod
    assert_type(last, core_v1.Pod | None)


def of_object(obj: Object) -> None:
    print(obj.kind)


def runs(pod: core_v1.Pod) -> bool:
    return pod.status is not None and pod.status.phase == "Running"


class PodHandler:
    def on_add(self, obj: core_v1.Pod, is_in_initial_list: bool) -> None:
        print(obj.metadata.name, is_in_initial_list)

    async def on_update(self, old: core_v1.Pod, new: core_v1.Pod) -> None:
        print(old.metadata.name, new.metadata.name)

    def on_delete(self, obj: core_v1.Pod | DeletedFinalStateUnknown[core_v1.Pod]) -> None:
        print(obj)


class AddHandler:
    def on_add(self, obj: Object) -> None:
        print(obj.metadata.name)


def handlers(informer: SharedIndexInformer[core_v1.Pod], executor: ThreadPoolExecutor) -> None:
    assert_type(informer.add_event_handler(on_add=of_pod), HandlerRegistration[core_v1.Pod])
    informer.add_event_handler(on_add=of_pod_in_list, on_update=of_pods, on_delete=of_deleted_pod)
    informer.add_event_handler(on_add=of_object, resync_period=60)
    informer.add_event_handler(on_add=lambda pod: print(pod.metadata.name))
    informer.add_event_handler(on_add=lambda pod, is_in_initial_list: print(pod.metadata.name, is_in_initial_list))
    informer.add_event_handler(on_update=lambda old, new: print(old.metadata.uid, new.spec))
    informer.add_event_handler(PodHandler())
    informer.add_event_handler(AddHandler(), 30.0)
    informer.add_event_handler(ResourceEventHandlerFuncs(on_update=of_pods))
    informer.add_event_handler(FilteringResourceEventHandler(runs, PodHandler()))
    informer.add_event_handler(ThreadedHandler(PodHandler(), executor))


async def informers(informer: SharedIndexInformer[core_v1.Pod], transport: HttpTransport) -> None:
    assert_type(informer.resource, Resource[core_v1.Pod])
    assert_type(informer.lister(), Lister[core_v1.Pod])
    assert_type(informer.get_indexer(), Indexer[core_v1.Pod])
    assert_type(informer.get_indexer().by_index("node", "n1"), list[core_v1.Pod])
    assert_type(await informer.wait_for("default/a"), core_v1.Pod)
    assert_type(SharedIndexInformer(ListWatch(transport, core_v1.PODS)), SharedIndexInformer[core_v1.Pod])
    assert_type(SharedIndexInformer(ListWatch(transport, WIDGETS)), SharedIndexInformer[Widget])
    assert_type(SharedIndexInformer(ListWatch(transport, PLAIN), decoder=Widget), SharedIndexInformer[Widget])
    assert_type(
        SharedIndexInformer(ListWatch(transport, core_v1.PODS), storage="dict"),
        SharedIndexInformer[FrozenDict[str, Any]],
    )
    assert_type(await ListPager(ListWatch(transport, core_v1.PODS)).list(), list[core_v1.Pod])
    informer.add_indexers({"node": nodes_of, "phase": "status.phase"})
    informer.set_transform(without_status)


async def clients(client: Client) -> None:
    assert_type(client.core.v1.pods, ResourceClient[core_v1.Pod])
    assert_type(await client.core.v1.pods.get_or_none("a/b"), core_v1.Pod | None)
    async for event in client.core.v1.pods.watch(resource_version="7"):
        assert_type(event.object, core_v1.Pod)
    assert_type((await client.request("GET", "/version")).status, int)
    assert_type(client.resource(WIDGETS), ResourceClient[Widget])
    assert_type(client.resource("apps/v1/deployments"), ResourceClient[apps_v1.Deployment])
    assert_type(await client.resource_for(await client.core.v1.pods.get("a/b")), ResourceClient[core_v1.Pod])
    assert_type(client.resource(PLAIN, decoder=Widget), ResourceClient[Widget])
    assert_type([pod async for pod in client.core.v1.pods.list()], list[core_v1.Pod])


def own_models(widget: Widget, autoscaler: autoscaling_v2.HorizontalPodAutoscaler) -> None:
    assert_type(widget.metadata.labels, Mapping[str, str] | None)
    assert_type(widget.spec.template, core_v1.PodTemplateSpec | None)
    assert_type(core_v1.PodSpec(containers=(core_v1.Container(name="a"),)).to_dict(), dict[str, Any])
    assert_type(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(size=1)), Widget)
    assert_type(autoscaler.spec.scale_target_ref.kind, str)


async def changes(client: Client, factory: SharedInformerFactory, pod: core_v1.Pod) -> None:
    pods = client.core.v1.pods
    assert_type(evolve(pod, "spec.nodeName", None), core_v1.Pod)
    assert_type(add_finalizer(pod, "example.com/a"), core_v1.Pod)
    assert_type(set_condition(pod, "Ready", True, "Started"), core_v1.Pod)
    assert_type(await pods.edit(pod, lambda each: each.evolve({"metadata": {"labels": {"a": "b"}}})), core_v1.Pod)
    assert_type(await pods.status.edit("shop/a", lambda each: remove_condition(each, "Ready")), core_v1.Pod)
    assert_type((await pods.apply_if_changed({"metadata": {"name": "a"}}, pod)).object, core_v1.Pod)
    informer = factory.core.v1.pods.informer()
    assert_type(await informer.wait_for(pod), core_v1.Pod | None)
    assert_type(await informer.wait_for(pod, gone=True, timeout=None), core_v1.Pod | None)
    assert_type((await informer.lister().after(pod, timeout=5)).list(), list[core_v1.Pod])
