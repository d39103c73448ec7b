"""Wrong uses of the types of the client, models and controllers. This module is never run: `test_checkers` checks that
mypy and pyright refuse each line that ends in `# wrong`, and no other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from aioinformer import Client, Condition, Resource
from aioinformer.client import ResourceClient
from aioinformer.controller import (
    BackgroundRun,
    Controller,
    Manager,
    Owns,
    Request,
    Result,
    Watch,
    controller,
    set_status,
)
from aioinformer.controller.inputs import Primary
from aioinformer.models import Object, ObjectMeta, apps_v1, core_v1, networking_v1
from aioinformer.webhooks import AdmissionRequest


class Website(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    size: int


WEBSITES = Resource("example.com", "v1", "websites", "Website", decoder=Website)


async def bodies(
    client: Client, pod: core_v1.Pod, deployment: apps_v1.Deployment, request: Request[core_v1.Pod]
) -> None:
    pods, websites = client.core.v1.pods, client.resource(WEBSITES)
    await pods.create(None)  # wrong
    await pods.create(deployment)  # wrong
    await pods.create(request.object)  # wrong
    await pods.create("shop/a")  # wrong
    await pods.create(pod.spec)  # wrong
    await pods.create([pod])  # wrong
    await pods.replace(deployment)  # wrong
    await pods.replace(request.object)  # wrong
    await pods.apply(deployment)  # wrong
    await pods.apply_if_changed(deployment, None)  # wrong
    await pods.apply_if_changed(pod, deployment)  # wrong
    await pods.status.replace(deployment)  # wrong
    await client.apps.v1.deployments.scale.replace(deployment)  # wrong
    await websites.create(pod)  # wrong
    await client.resource(core_v1.NODES).replace(pod)  # wrong


async def targets(client: Client, request: Request[core_v1.Pod]) -> None:
    pods = client.core.v1.pods
    await pods.delete(request.object)  # wrong
    await pods.delete(3)  # wrong
    await pods.get(request.object)  # wrong
    await pods.patch(request.object, {})  # wrong
    await pods.patch("a", "{}")  # wrong
    await pods.patch("a", {}, "yaml")  # wrong
    await pods.edit(request.object, lambda pod: pod)  # wrong
    await pods.evict(request.object)  # wrong
    await pods.bind(request.object, "node-1")  # wrong
    await client.core.v1.serviceaccounts.create_token(None)  # wrong
    await client.apps.v1.deployments.scale.get(None)  # wrong
    await pods.delete("a", propagation="background")  # wrong


async def verbs(client: Client, secrets: ResourceClient[core_v1.Secret]) -> None:
    core = client.core.v1
    await core.configmaps.evict("a")  # wrong
    await core.configmaps.namespaced("shop").evict("a")  # wrong
    await client.resource(apps_v1.DEPLOYMENTS).evict("a")  # wrong
    await client.resource(WEBSITES).evict("a")  # wrong
    await core.pods.create_token("a")  # wrong
    await secrets.create_token("a")  # wrong
    await secrets.bind("a", "node-1")  # wrong
    await client.batch.v1.jobs.bind("a", "node-1")  # wrong
    client.batch.v1.jobs.logs("a")  # wrong
    await core.services.ephemeral_containers.get("a")  # wrong
    await core.pods.evicts("a")  # wrong


def reserved_words(probe: core_v1.Probe, rule: networking_v1.NetworkPolicyIngressRule) -> None:
    core_v1.Probe(exec_="true")  # wrong
    core_v1.Probe(_exec=core_v1.ExecAction())  # wrong
    networking_v1.NetworkPolicyIngressRule(from_=["a"])  # wrong
    print(probe.exec_.command)  # wrong
    print(rule.from_[0])  # wrong


TEXTS = {"pods": ("patch",)}


async def of_pods(request: Request[core_v1.Pod]) -> None:
    print(request)


async def of_websites(request: Request[Website]) -> Result | None:
    print(request)
    return None


async def of_objects(request: Request[Object]) -> None:
    print(request)


async def of_object(obj: core_v1.Pod) -> None:
    print(obj)


async def of_two(request: Request[core_v1.Pod], more: int) -> None:
    print(request, more)


async def seconds(request: Request[core_v1.Pod]) -> int:
    return request.attempt


async def without() -> None:
    print()


class Reconciler:
    async def reconcile(self, request: Request[core_v1.Pod]) -> None:
        print(self, request)


def reconcilers(manager: Manager) -> None:
    manager.controller(WEBSITES)(of_pods)  # wrong
    manager.controller(WEBSITES)(of_objects)  # wrong
    manager.controller(WEBSITES)(Reconciler().reconcile)  # wrong
    manager.controller(core_v1.PODS)(of_websites)  # wrong
    manager.controller(core_v1.PODS)(of_object)  # wrong
    manager.controller(core_v1.PODS)(of_two)  # wrong
    manager.controller(core_v1.PODS)(seconds)  # wrong
    manager.controller(core_v1.PODS)(without)  # wrong
    controller(WEBSITES)(of_pods)  # wrong
    Controller("websites", WEBSITES, of_pods)  # wrong
    Controller("pods", core_v1.PODS, of_two)  # wrong
    Controller("pods", core_v1.PODS, lambda request: request.name)  # wrong
    Controller("pods", core_v1.PODS, lambda request: of_websites(request))  # wrong
    declared: Controller[core_v1.Pod] = controller(WEBSITES)(of_websites)  # wrong
    print(declared)


def decorated(manager: Manager) -> None:
    @manager.controller(WEBSITES)  # wrong
    async def pods(request: Request[core_v1.Pod]) -> None:
        print(request)

    @controller(core_v1.PODS)  # wrong
    async def text(request: Request[core_v1.Pod]) -> str:
        return request.name

    print(pods, text)


def node_name(node: core_v1.Node) -> str:
    return node.metadata.name


def inputs() -> None:
    Watch(core_v1.NODES, to=node_name, namespac="shop")  # wrong
    Watch(core_v1.NODES, to=node_name, labels="app=web")  # wrong
    Watch(core_v1.NODES, to=node_name, storage="bites")  # wrong
    Watch(core_v1.NODES, to=node_name, resync_period="1m")  # wrong
    Watch(core_v1.NODES, to=node_name, options="fifo")  # wrong
    Watch(core_v1.PODS, to=node_name)  # wrong
    Watch(core_v1.NODES)  # wrong
    Watch("v1/nodes", to=str)  # wrong
    Owns(core_v1.SECRETS, controller_only="no")  # wrong
    Owns(core_v1.SECRETS, label_selectors="app=web")  # wrong
    Owns(core_v1.SECRETS, resync_period="0.1")  # wrong
    Owns("v1/secrets")  # wrong
    Primary(core_v1.PODS, resync=60)  # wrong
    Primary(core_v1.PODS, field=["spec.nodeName"])  # wrong
    Primary(core_v1.PODS, when="updated")  # wrong
    Primary(core_v1.PODS, storage="disk")  # wrong


def writes(manager: Manager) -> None:
    manager.controller(WEBSITES, writes=TEXTS)(of_websites)  # wrong
    manager.controller(WEBSITES, writes=[core_v1.PODS])(of_websites)  # wrong
    manager.controller(WEBSITES, writes={core_v1.PODS: 3})(of_websites)  # wrong
    controller(WEBSITES, writes={core_v1.PODS: None})(of_websites)  # wrong
    Controller("websites", WEBSITES, of_websites, writes=TEXTS)  # wrong
    Controller("websites", WEBSITES, of_websites, writes={core_v1.PODS: [1]})  # wrong
    Controller("websites", WEBSITES, of_websites, owns=[Website])  # wrong


async def requests(request: Request[Website], pods: Request[core_v1.Pod], untyped: Request) -> Any:
    print(request.object.size)  # wrong
    print(untyped.obj)  # wrong
    print(request.owned("v1/pods"))  # wrong
    request.event("Created")  # wrong
    await set_status(request, Condition("Ready", "True"))  # wrong
    websites: Request[Website] = pods  # wrong
    if request.object:
        print(request.object.colour)  # wrong
    return websites


@asynccontextmanager
async def number(manager: Manager) -> AsyncIterator[int]:
    yield 1


@contextmanager
def blocking(manager: Manager) -> Iterator[int]:
    yield 1


async def with_text(request: Request[Website, str]) -> None:
    print(request.state.upper())
    print(request.state + 1)  # wrong


async def refresh(run: BackgroundRun[str]) -> None:
    print(run.state.upper())
    print(run.state + 1)  # wrong
    print(run.key)  # wrong


def plain(run: BackgroundRun) -> None:
    print(run)


def lifespans() -> None:
    manager = Manager("test", lifespan=number)
    manager.controller(WEBSITES)(with_text)  # wrong
    manager.background(refresh)  # wrong
    manager.background(elected=True)(refresh)  # wrong
    manager.background(plain)  # wrong
    manager.background(plain, leader=True)  # wrong
    Manager("test", lifespan=blocking)  # wrong
    Manager("test", lifespan=[number, number])  # wrong

    @manager.validate(WEBSITES)  # wrong
    async def check(request: AdmissionRequest[Website, str]) -> None:
        print(request)

    print(check)


def conditions(text: str) -> None:
    Condition("Ready", "Yes")  # wrong
    Condition("Ready", True)  # wrong
    Condition("Ready", text)  # wrong
    Condition("Ready")  # wrong
    Condition("Ready", "True", observed="3")  # wrong
    Result(after="5")  # wrong
    Result(5)  # wrong
