# pyright: strict
"""Right uses of the types of the client, models and controllers. This module is never run: `test_checkers` checks that
mypy and pyright accept all of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, assert_type

import msgspec
import pydantic
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import Client, Condition, Lister, Resource, RunOptions
from aioinformer.client import ResourceClient, Status, Subresource, get_condition
from aioinformer.controller import (
    BackgroundRun,
    Change,
    Controller,
    Every,
    Manager,
    Owns,
    References,
    Request,
    Result,
    Watch,
    apply_set,
    controller,
    finalizing,
    set_status,
)
from aioinformer.controller.inputs import Primary
from aioinformer.models import (
    Object,
    ObjectMeta,
    apiextensions_v1,
    apps_v1,
    authentication_v1,
    autoscaling_v1,
    core_v1,
    networking_v1,
)
from aioinformer.resources import ObjectName, ObjectReference
from aioinformer.webhooks import AdmissionRequest
from aioinformer.workqueue import Cause, Parked


class Website(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    size: int = 1


class Manifest(TypedDict):
    metadata: dict[str, str]


@dataclass
class Settings:
    metadata: ObjectMeta


@dataclass(frozen=True)
class Name:
    metadata: ObjectMeta


class Validated(pydantic.BaseModel):
    metadata: dict[str, str]


WEBSITES = Resource("example.com", "v1", "websites", "Website", decoder=Website)
PLAIN = Resource("example.com", "v1", "plains", "Plain")


async def bodies(client: Client, pod: core_v1.Pod, manifest: Manifest, plain: Mapping[str, object]) -> None:
    pods = client.core.v1.pods
    assert_type(await pods.create(pod), core_v1.Pod)
    assert_type(await pods.create({"metadata": {"name": "a"}}, namespace="shop"), core_v1.Pod)
    assert_type(await pods.create(manifest), core_v1.Pod)
    assert_type(await pods.create(plain), core_v1.Pod)
    assert_type(await pods.create(V1Pod(metadata=V1ObjectMeta(name="a"))), core_v1.Pod)
    assert_type(await pods.create(Settings(ObjectMeta(name="a"))), core_v1.Pod)
    assert_type(await pods.create(Validated(metadata={"name": "a"})), core_v1.Pod)
    assert_type(await pods.replace(pod.evolve("spec.nodeName", "a")), core_v1.Pod)
    assert_type(await pods.apply({"metadata": {"name": "a"}}, force=True, field_manager="a"), core_v1.Pod)
    assert_type((await pods.apply_if_changed(pod, None)).skipped, bool)
    assert_type(await pods.status.replace(pod), core_v1.Pod)
    assert_type(await pods.status.apply({"metadata": {"name": "a"}}), core_v1.Pod)
    websites = client.resource(WEBSITES)
    assert_type(await websites.create(Website(ObjectMeta(name="a"))), Website)
    assert_type(await websites.replace(Website(ObjectMeta(name="a"), 3)), Website)
    assert_type(await client.resource(PLAIN).create(Website(ObjectMeta(name="a"))), Any)
    assert_type(await client.resource("v1/pods", decoder=Name).replace(Name(ObjectMeta(name="a"))), Name)


async def targets(client: Client, pod: core_v1.Pod, deployment: apps_v1.Deployment, obj: Object) -> None:
    pods, deployments = client.core.v1.pods, client.apps.v1.deployments
    assert_type(await pods.get("shop/a"), core_v1.Pod)
    assert_type(await pods.get(pod), core_v1.Pod)
    assert_type(await pods.get(obj, resource_version="0"), core_v1.Pod)
    assert_type(await pods.get({"metadata": {"name": "a"}}), core_v1.Pod)
    assert_type(await pods.get(V1Pod(metadata=V1ObjectMeta(name="a"))), core_v1.Pod)
    assert_type(await pods.get(Name(ObjectMeta(name="a"))), core_v1.Pod)
    assert_type(await pods.get(Settings(ObjectMeta(name="a"))), core_v1.Pod)
    assert_type(await pods.delete(pod, propagation="Background", uid=pod.metadata.uid), core_v1.Pod | Status)
    assert_type(await pods.patch(pod, {"metadata": {"labels": None}}), core_v1.Pod)
    assert_type(await pods.patch("a", [{"op": "remove", "path": "/spec"}], "json", namespace="shop"), core_v1.Pod)
    assert_type(await deployments.scale.get(deployment), autoscaling_v1.Scale)
    assert_type(await deployments.scale.patch(deployment, {"spec": {"replicas": 3}}), autoscaling_v1.Scale)
    assert_type(await deployments.status.get(deployment), apps_v1.Deployment)
    # An object of which only the name is used may be of another kind.
    assert_type(await client.core.v1.endpoints.get(deployment), core_v1.Endpoints)


async def of_request(request: Request[core_v1.Pod]) -> None:
    pods = request.client.core.v1.pods
    if request.object is None:
        return
    assert_type(await pods.delete(request.object), core_v1.Pod | Status)
    assert_type(await pods.replace(request.object), core_v1.Pod)
    assert_type(await pods.evict(request.object), Status)


async def verbs(client: Client, pod: core_v1.Pod, untyped: ResourceClient[Any]) -> None:
    pods = client.core.v1.pods
    assert_type(await pods.evict(pod, grace=5), Status)
    assert_type(await pods.namespaced("shop").evict("a"), Status)
    assert_type(await client.resource(core_v1.PODS).evict("shop/a"), Status)
    assert_type(await client.resource("v1/pods").bind(pod, "node-1"), Status)
    assert_type(pods.logs(pod, "web", follow=True), AsyncGenerator[str, None])
    async with aclosing(pods.logs("shop/a", tail=5)) as lines:
        assert_type([line async for line in lines], list[str])
    assert_type(pods.ephemeral_containers, Subresource[core_v1.Pod])
    assert_type(await pods.ephemeral_containers.get("shop/a"), core_v1.Pod)
    accounts = client.core.v1.serviceaccounts
    assert_type(await accounts.create_token("shop/a", seconds=600), authentication_v1.TokenRequest)
    assert_type(await untyped.evict("shop/a"), Status)
    assert_type(await client.resource(PLAIN).create_token("shop/a"), authentication_v1.TokenRequest)
    assert_type(client.resource(WEBSITES).scale, Subresource[autoscaling_v1.Scale])
    assert_type(client.resource(WEBSITES).status, Subresource[Website])
    assert_type(client.core.v1.replicationcontrollers.scale, Subresource[autoscaling_v1.Scale])
    assert_type(client.core.v1.nodes.status, Subresource[core_v1.Node])
    assert_type(client.core.v1.pods.subresource("resize"), Subresource[Any])
    anything: ResourceClient[Any] = client.core.v1.configmaps
    assert_type(await anything.get("shop/a"), Any)


def reserved_words(probe: core_v1.Probe, rule: networking_v1.NetworkPolicyIngressRule) -> None:
    command = core_v1.ExecAction(command=["true"])
    assert_type(core_v1.Probe(exec_=command), core_v1.Probe)
    peers = (
        networking_v1.NetworkPolicyPeer(ip_block=networking_v1.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])),
    )
    assert_type(networking_v1.NetworkPolicyIngressRule(from_=peers), networking_v1.NetworkPolicyIngressRule)
    assert_type(apiextensions_v1.JSONSchemaProps(not_=None), apiextensions_v1.JSONSchemaProps)
    assert_type(probe.exec_, core_v1.ExecAction | None)
    assert_type(rule.from_, Sequence[networking_v1.NetworkPolicyPeer] | None)
    match probe:
        case core_v1.Probe(exec_=action):
            assert_type(action, core_v1.ExecAction | None)


READS = {core_v1.PODS: ("create", "patch")}
EVENTS = {core_v1.EVENTS: ("create",), WEBSITES: ("status/patch",)}
LISTS = {core_v1.CONFIG_MAPS: ["create"]}
NAMED: Mapping[Resource[Any], Iterable[str]] = {apps_v1.DEPLOYMENTS: {"patch"}}


async def of_pods(request: Request[core_v1.Pod]) -> None:
    if request.object is not None:
        assert_type(request.object.spec, core_v1.PodSpec | None)


async def of_websites(request: Request[Website]) -> Result:
    assert_type(request.resource, Resource[Website])
    return Result(after=request.object.size if request.object else 1)


async def of_objects(request: Request[Object]) -> Result | None:
    """A reconciler for all kinds."""
    if request.object is None:
        return None
    assert_type(request.object.metadata.uid, str)
    return Result(at=datetime.now(UTC) + timedelta(seconds=5))


async def of_any(request: Request) -> None:
    """A reconciler whose objects have no type."""
    assert_type(request, Request[Any])
    print(request.object["spec"] if request.object else request.name)


class Reconciler:
    """A reconciler that is a method, and one that is an object."""

    async def reconcile(self, request: Request[Website]) -> None:
        print(self, request.key)

    async def __call__(self, request: Request[core_v1.Pod]) -> Result | None:
        print(self, request.key)
        return None


def declared(manager: Manager) -> None:
    assert_type(manager.controller(core_v1.PODS)(of_pods), Controller[core_v1.Pod])
    assert_type(manager.controller(core_v1.PODS)(of_objects), Controller[core_v1.Pod])
    assert_type(manager.controller(core_v1.PODS)(of_any), Controller[core_v1.Pod])
    assert_type(manager.controller(WEBSITES)(of_websites), Controller[Website])
    assert_type(manager.controller(WEBSITES)(Reconciler().reconcile), Controller[Website])
    assert_type(manager.controller(core_v1.PODS)(Reconciler()), Controller[core_v1.Pod])
    assert_type(manager.controller(PLAIN)(of_websites), Controller[Any])
    assert_type(controller(WEBSITES)(of_websites), Controller[Website])
    assert_type(Controller("pods", core_v1.PODS, of_pods), Controller[core_v1.Pod])
    assert_type(Controller("websites", WEBSITES, of_websites), Controller[Website])
    assert_type(Controller("plains", PLAIN, of_websites), Controller[Any])
    assert_type(Controller("pods", core_v1.PODS, lambda request: of_pods(request)), Controller[core_v1.Pod])


class Prices:
    """What a lifespan yields."""

    async def refresh(self) -> int:
        return 1


@asynccontextmanager
async def prices(manager: Manager) -> AsyncGenerator[Prices]:
    print(manager.dry_run)
    yield Prices()


class Session:
    """An async context manager that is no generator."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager

    async def __aenter__(self) -> Prices:
        return Prices()

    async def __aexit__(self, *error: object) -> None: ...


async def with_prices(request: Request[Website, Prices]) -> None:
    assert_type(request.state, Prices)


async def with_any_state(request: Request[Website]) -> None:
    assert_type(request.state, Any)


async def refresh(run: BackgroundRun[Prices]) -> None:
    assert_type(await run.state.refresh(), int)
    await run.client.core.v1.configmaps.create({"metadata": {"name": run.name}})


async def sweep(run: BackgroundRun) -> None:
    assert_type(run.state, Any)


def of_program(manager: Manager) -> Manager:
    return manager


def lifespans() -> None:
    manager = Manager("test", lifespan=prices)
    assert_type(manager, Manager[Prices])
    assert_type(Manager("test", lifespan=Session), Manager[Prices])
    assert_type(Manager("test"), Manager[Any])
    assert_type(of_program(manager), Manager[Any])
    assert_type(manager.controller(WEBSITES)(with_prices), Controller[Website])
    manager.controller(WEBSITES)(with_any_state)
    manager.background(refresh)
    manager.background(sweep, name="other", elected=True)
    manager.background(elected=True, writes={core_v1.CONFIG_MAPS: ("create",)})(refresh)

    @manager.background
    async def decorated(run: BackgroundRun[Prices]) -> None:
        print(run)

    @manager.background()
    async def called(run: BackgroundRun[Prices]) -> None:
        print(run)

    @manager.validate(WEBSITES)
    async def check(request: AdmissionRequest[Website, Prices]) -> None:
        assert_type(request.state, Prices)

    @manager.default(WEBSITES)
    async def fill(request: AdmissionRequest[Website]) -> Website:
        return request.object

    print(decorated, called, check, fill)


def inputs(change: Change) -> None:
    assert_type(Watch(core_v1.NODES, to=lambda node: node.metadata.name), Watch[core_v1.Node])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], storage="metadata"), Watch[core_v1.Node])
    assert_type(Watch(core_v1.SECRETS, to=References("spec.secret"), namespace="shop"), Watch[core_v1.Secret])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], label_selector={"zone": "a"}), Watch[core_v1.Node])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], field_selector="metadata.name=a"), Watch[core_v1.Node])
    assert_type(Watch(WEBSITES, to=lambda site: site.metadata.name or [], resync_period=60), Watch[Website])
    assert_type(Watch(PLAIN, to=lambda plain: plain["spec"]["owner"], options=RunOptions(queue="in_order")), Watch[Any])
    assert_type(Watch(core_v1.PODS, to=key_of, when=lambda change: change.new is not None), Watch[core_v1.Pod])
    assert_type(Owns(core_v1.SECRETS, controller_only=False, namespace="shop"), Owns[core_v1.Secret])
    assert_type(Owns(core_v1.SECRETS, storage="projection", fields=["type"]), Owns[core_v1.Secret])
    assert_type(Owns(PLAIN, decoder=Website), Owns[Any])
    assert_type(Owns(WEBSITES, transform=lambda site: site), Owns[Website])
    assert_type(Primary(WEBSITES, label_selector="app=web"), Primary[Website])
    assert_type(Primary(core_v1.PODS, indexers={"node": "spec.nodeName"}), Primary[core_v1.Pod])
    assert_type(Primary(core_v1.PODS, resync_period=60, storage="metadata"), Primary[core_v1.Pod])


def name_of(node: core_v1.Node) -> str:
    return node.metadata.name


def key_of(pod: core_v1.Pod) -> ObjectName:
    return ObjectName(pod.metadata.namespace or "", pod.metadata.name)


def writes(manager: Manager) -> None:
    manager.controller(WEBSITES, writes={**READS, **EVENTS, **LISTS, **NAMED})(of_websites)
    manager.controller(WEBSITES, writes=READS | EVENTS)(of_websites)
    manager.controller(WEBSITES, writes=None)(of_websites)
    controller(WEBSITES, writes={WEBSITES: {"status/patch"}})(of_websites)
    Controller("websites", WEBSITES, of_websites, writes=READS | EVENTS)


def options(manager: Manager) -> None:
    manager.controller(WEBSITES, owns=[core_v1.SECRETS, Owns(PLAIN)], watches=[Watch(core_v1.NODES, to=name_of)])
    manager.controller(WEBSITES, sources=[Every(600)], workers=1, timeout=3, elected=False)
    manager.controller(WEBSITES, informer={"namespace": "shop", "storage": "bytes"})
    Controller("websites", WEBSITES, of_websites, sources=[Every(60)])
    Manager("websites", [Controller("a", WEBSITES, of_websites), Controller("b", core_v1.PODS, of_pods)])


async def requests(request: Request[Website], pods: Request[core_v1.Pod], untyped: Request) -> None:
    assert_type(request.object, Website | None)
    assert_type(pods.object, core_v1.Pod | None)
    assert_type(untyped.object, Any | None)
    assert_type(request.causes, tuple[Cause, ...])
    assert_type(request.key, ObjectName)
    assert_type(request.client, Client)
    assert_type(request.reference, ObjectReference)
    assert_type(request.lister(WEBSITES), Lister[Website])
    assert_type(request.owned(core_v1.PODS), list[core_v1.Pod])
    assert_type(request.owned(PLAIN), list[Any])
    objects: Request[Object] = pods
    anything: Request = request
    print(objects, anything)
    request.event("Created", "created", type="Normal", about=pods.object)
    assert_type(await set_status(request, [Condition("Ready", "True", "Applied")], replicas=3), Website | None)
    await apply_set(request, [{"apiVersion": "v1"}], resources=[core_v1.CONFIG_MAPS])
    async with finalizing(request, "example.com/websites") as ending:
        print(ending)


def conditions(pod: core_v1.Pod, ready: bool) -> None:
    Condition("Ready", "False", "Failed", "it has failed", observed_generation=3)
    Condition(type="Ready", status="Unknown", last_transition_time=datetime.now(UTC))
    Condition("Ready", "True" if ready else "False")
    found = get_condition(pod, "Ready")
    assert_type(found, Condition | None)


async def running(manager: Manager, websites: Controller[Website]) -> None:
    assert_type(websites.resource, Resource[Website])
    assert_type(websites.primary(), Primary[Website])
    assert_type(websites.key_of("shop/a"), ObjectName)
    manager.enqueue(websites, "shop/a", Cause("requested"), after=3, priority=1)
    assert_type(manager.parked(websites), dict[ObjectName, Parked])
    assert_type(manager.retry_parked(websites, ["shop/a"]), int)
