"""Wrong uses of the types. This module is never run: `test_checkers` checks that mypy and pyright refuse each line that
ends in `# wrong`, and no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer import ListWatch, Resource, ResourceEventHandlerFuncs, RunOptions, SharedIndexInformer
from aioinformer.client import set_condition
from aioinformer.controller import Controller, Manager, QueueOptions, controller
from aioinformer.models import ObjectMeta, apps_v1, core_v1, meta_v1

if TYPE_CHECKING:
    from datetime import timedelta

    from aioinformer import Client, DeletedFinalStateUnknown, HttpTransport, SharedInformerFactory
    from aioinformer.controller import Change, Request, Result
    from aioinformer.models import Object


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    size: int


WIDGETS = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)


def absent_values(pod: core_v1.Pod, deployment: apps_v1.Deployment) -> None:
    print(pod.spec.node_name)  # wrong
    print(pod.status.phase)  # wrong
    print(deployment.spec.replicas)  # wrong
    print(pod.metadata.labels["app"])  # wrong
    print(pod.metadata.namespace.upper())  # wrong
    print(pod.metadata.creation_timestamp.year)  # wrong
    if pod.spec:
        print(pod.spec.node_name.upper())  # wrong
        print(pod.spec.affinity.node_affinity)  # wrong
    if deployment.spec:
        print(deployment.spec.replicas + 1)  # wrong
        print(deployment.spec.template.spec.containers)  # wrong


def unknown_names(pod: core_v1.Pod, obj: Object) -> None:
    print(pod.spce)  # wrong
    print(pod.nodeName)  # wrong
    print(pod.metadata.resourceVersion)  # wrong
    print(obj.spec)  # wrong
    print(core_v1.V1Pod)  # wrong
    if pod.spec:
        print(pod.spec.containers[0].imag)  # wrong


def writes(pod: core_v1.Pod, secret: core_v1.Secret) -> None:
    pod.metadata.name = "b"  # wrong
    if pod.metadata.labels is not None:
        pod.metadata.labels["app"] = "web"  # wrong
    if pod.metadata.finalizers is not None:
        pod.metadata.finalizers.append("example.com/a")  # wrong
    if secret.data is not None:
        secret.data.pop("password")  # wrong
    if pod.spec is not None:
        pod.spec.node_name = "n1"  # wrong
        pod.spec.containers[0] = core_v1.Container(name="b")  # wrong
    pod.spec = None  # wrong


def other_types(pod: core_v1.Pod, delay: timedelta) -> None:
    print(pod.kind == "Pod", pod.metadata.uid + 1)  # wrong
    deployment: apps_v1.Deployment = pod  # wrong
    print(deployment)
    if pod.metadata.creation_timestamp:
        print(pod.metadata.creation_timestamp + "1 s")  # wrong
    if pod.spec and pod.spec.termination_grace_period_seconds:
        print(pod.spec.termination_grace_period_seconds.upper())  # wrong
    print(core_v1.Container(image="a"))  # wrong
    print(core_v1.PodSpec(containers=[], nodeName="a"))  # wrong
    print(meta_v1.ObjectMeta(labels=["a"]))  # wrong
    print(Widget(metadata=core_v1.Container(name="a"), size=1))  # wrong


def of_node(node: core_v1.Node) -> None:
    print(node.metadata.name)


def of_pod(pod: core_v1.Pod) -> None:
    print(pod.metadata.name)


def of_nodes(old: core_v1.Node, new: core_v1.Node) -> None:
    print(old.metadata.name, new.metadata.name)


def nodes_of(node: core_v1.Node) -> list[str]:
    return [node.metadata.name]


class NodeHandler:
    def on_add(self, obj: core_v1.Node) -> None:
        print(obj.metadata.name)

    def on_delete(self, obj: core_v1.Node | DeletedFinalStateUnknown[core_v1.Node]) -> None:
        print(obj)


def handlers(informer: SharedIndexInformer[core_v1.Pod]) -> None:
    informer.add_event_handler(on_add=of_node)  # wrong
    informer.add_event_handler(on_update=of_nodes)  # wrong
    informer.add_event_handler(on_update=of_pod)  # wrong
    informer.add_event_handler(on_delete=of_pod)  # wrong
    informer.add_event_handler(NodeHandler())  # wrong
    informer.add_event_handler(ResourceEventHandlerFuncs(on_update=of_nodes))  # wrong
    informer.add_event_handler(of_pod)  # wrong
    informer.add_event_handler(on_added=of_pod)  # wrong
    informer.add_event_handler(on_add=lambda pod: print(pod.name))  # wrong
    informer.add_indexers({"node": nodes_of})  # wrong


def options(factory: SharedInformerFactory, transport: HttpTransport) -> None:
    factory.core.v1.pods.informer(storage="bites")  # wrong
    factory.core.v1.pods.informer(options={"queue": "fifo"})  # wrong
    factory.core.v1.pods.informer(resync=60.0)  # wrong
    factory.core.v1.pods.informer(resync_period="1m")  # wrong
    factory.core.v1.pods.lister(labels="app=web")  # wrong
    factory.core.v1.pods.informer(indexers={"node": nodes_of})  # wrong
    factory.core.v1.pods.informer(storage="dict", decoder=Widget)  # wrong
    SharedIndexInformer(ListWatch(transport, core_v1.PODS), options=RunOptions(queue="lifo"))  # wrong


def factories(factory: SharedInformerFactory) -> None:
    factory.core.v1.deployments.informer()  # wrong
    factory.apps.v2.deployments.informer()  # wrong
    factory.core.v1.nodes.lister().namespaced("a")  # wrong
    factory.for_resource("apps/v1/deployment")  # wrong
    factory.for_resource("v1/pods", namespace="a")  # wrong
    factory.informer_for("v1/pods")  # wrong
    print(factory.for_resource("v1/nodes").lister().get("a").spec.containers)  # wrong
    print(factory.for_resource(WIDGETS).lister().list()[0].colour)  # wrong
    pods: Resource[core_v1.Pod] = apps_v1.DEPLOYMENTS  # wrong
    print(pods)


async def clients(client: Client) -> None:
    print((await client.core.v1.pods.get("a/b")).spec.node_name)  # wrong
    print(await client.core.v1.deployments.get("a/b"))  # wrong
    client.resource("v1/podz")  # wrong


async def changes(client: Client, pod: core_v1.Pod, informer: SharedIndexInformer[core_v1.Pod]) -> None:
    pod.evolve("spec.nodeName")  # wrong
    pod.evolve({"spec": {}}, 1)  # wrong
    await client.core.v1.pods.edit(3, lambda each: each)  # wrong
    await client.core.v1.pods.edit(pod, {"spec": {}})  # wrong
    set_condition(pod, "Ready", "yes", "Started")  # wrong


async def reconcile(request: Request[core_v1.Pod]) -> Result | None:
    print(request.object.metadata)  # wrong
    return None


def controllers(manager: Manager) -> None:
    manager.controller(core_v1.PODS, own=[core_v1.SECRETS])(reconcile)  # wrong
    manager.controller(core_v1.PODS, owns=core_v1.SECRETS)(reconcile)  # wrong
    manager.controller("v1/pods")(reconcile)  # wrong
    controller(core_v1.PODS, worker=3)(reconcile)  # wrong
    controller(core_v1.PODS, workers="3")(reconcile)  # wrong
    controller(core_v1.PODS, queue={"max_attempts": 3})(reconcile)  # wrong
    controller(core_v1.PODS, queue=QueueOptions(attempts=3))(reconcile)  # wrong
    controller(core_v1.PODS, writes={"pods": ["patch"]})(reconcile)  # wrong
    controller(core_v1.PODS, informer={"labels": "app=web"})(reconcile)  # wrong
    Controller("pods", core_v1.PODS, reconcile, informer={"labels": "app=web"})  # wrong
    nodes: Controller[core_v1.Node] = controller(core_v1.PODS)(reconcile)  # wrong
    print(nodes)


def selects(change: Change) -> bool:
    return change.kind == "updated"  # wrong
