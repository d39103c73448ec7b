# pyright: strict
"""Right uses of the types of controllers. This module is never run: `test_checkers` checks that mypy and pyright accept
all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import msgspec

from aioinformer import Lister, Resource
from aioinformer.client import Client, Condition, get_condition
from aioinformer.controller import (
    Cause,
    Change,
    Controller,
    Every,
    Manager,
    Owns,
    Primary,
    References,
    Request,
    Result,
    Watch,
    apply_set,
    controller,
    finalizing,
    set_status,
)
from aioinformer.models import Object, ObjectMeta, apps_v1, core_v1
from aioinformer.resources import ObjectName, ObjectReference


class Website(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    size: int = 1


WEBSITES = Resource("example.com", "v1", "websites", "Website", decoder=Website)
PLAIN = Resource("example.com", "v1", "plains", "Plain")

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
    assert_type(manager.controller(apps_v1.DEPLOYMENTS)(of_objects), Controller[apps_v1.Deployment])
    assert_type(manager.controller(core_v1.PODS)(of_any), Controller[core_v1.Pod])
    assert_type(manager.controller(WEBSITES)(of_websites), Controller[Website])
    assert_type(manager.controller(WEBSITES)(of_any), Controller[Website])
    assert_type(manager.controller(WEBSITES)(Reconciler().reconcile), Controller[Website])
    assert_type(manager.controller(core_v1.PODS)(Reconciler()), Controller[core_v1.Pod])
    assert_type(manager.controller(PLAIN)(of_websites), Controller[Any])
    assert_type(manager.controller(PLAIN)(of_any), Controller[Any])
    assert_type(controller(WEBSITES)(of_websites), Controller[Website])
    assert_type(Controller("pods", core_v1.PODS, of_pods), Controller[core_v1.Pod])
    assert_type(Controller("pods", core_v1.PODS, of_any), Controller[core_v1.Pod])
    assert_type(Controller("websites", WEBSITES, of_websites), Controller[Website])
    assert_type(Controller("websites", WEBSITES, Reconciler().reconcile), Controller[Website])
    assert_type(Controller("plains", PLAIN, of_websites), Controller[Any])
    assert_type(Controller("pods", core_v1.PODS, lambda request: of_pods(request)), Controller[core_v1.Pod])


def decorated(manager: Manager) -> None:
    @manager.controller(WEBSITES)
    async def websites(request: Request[Website]) -> None:
        print(request.object.size if request.object else None)

    @manager.controller(core_v1.PODS, name="evictions")
    async def pods(request: Request[core_v1.Pod]) -> Result | None:
        return None if request.object else Result(parked="there is no pod")

    @manager.controller(PLAIN)
    async def plains(request: Request) -> None:
        print(request.object["spec"]["size"] if request.object else None)

    assert_type(websites, Controller[Website])
    assert_type(pods, Controller[core_v1.Pod])
    assert_type(plains, Controller[Any])


def inputs(change: Change) -> None:
    assert_type(Watch(core_v1.NODES, to=lambda node: node.metadata.name), Watch[core_v1.Node])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], storage="metadata"), Watch[core_v1.Node])
    assert_type(Watch(core_v1.SECRETS, to=References("spec.secret"), namespace="shop"), Watch[core_v1.Secret])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], label_selector={"zone": "a"}), Watch[core_v1.Node])
    assert_type(Watch(core_v1.NODES, to=lambda node: [], field_selector="metadata.name=a"), Watch[core_v1.Node])
    assert_type(Watch(WEBSITES, to=lambda site: site.metadata.name or [], resync_period=60), Watch[Website])
    assert_type(Watch(PLAIN, to=lambda plain: plain["spec"]["owner"], queue="in_order"), Watch[Any])
    assert_type(Watch(core_v1.PODS, to=key_of, when=lambda change: change.new is not None), Watch[core_v1.Pod])
    assert_type(Owns(core_v1.SECRETS), Owns[core_v1.Secret])
    assert_type(Owns(core_v1.SECRETS, controller_only=False, namespace="shop"), Owns[core_v1.Secret])
    assert_type(Owns(core_v1.SECRETS, storage="projection", fields=["type"]), Owns[core_v1.Secret])
    assert_type(Owns(PLAIN, decoder=Website), Owns[Any])
    assert_type(Owns(WEBSITES, transform=lambda site: site), Owns[Website])
    assert_type(Primary(WEBSITES, label_selector="app=web"), Primary[Website])
    assert_type(Primary(core_v1.PODS, indexers={"node": "spec.nodeName"}), Primary[core_v1.Pod])
    assert_type(Primary(core_v1.PODS, max_undecodable=0.1, metadata_only=True), Primary[core_v1.Pod])


def name_of(node: core_v1.Node) -> str:
    return node.metadata.name


def key_of(pod: core_v1.Pod) -> ObjectName:
    return ObjectName(pod.metadata.namespace or "", pod.metadata.name)


def writes(manager: Manager) -> None:
    manager.controller(WEBSITES, writes=READS)(of_websites)
    manager.controller(WEBSITES, writes={**READS, **EVENTS})(of_websites)
    manager.controller(WEBSITES, writes={**READS, **LISTS})(of_websites)
    manager.controller(WEBSITES, writes={**READS, **EVENTS, **LISTS, **NAMED})(of_websites)
    manager.controller(WEBSITES, writes={**NAMED, core_v1.NODES: ("patch",), PLAIN: ["patch"]})(of_websites)
    manager.controller(WEBSITES, writes=READS | EVENTS)(of_websites)
    manager.controller(WEBSITES, writes=READS | LISTS)(of_websites)
    manager.controller(WEBSITES, writes=NAMED)(of_websites)
    manager.controller(WEBSITES, writes=None)(of_websites)
    controller(WEBSITES, writes={WEBSITES: {"status/patch"}})(of_websites)
    controller(WEBSITES, writes=dict(READS))(of_websites)
    Controller("websites", WEBSITES, of_websites, writes=READS | EVENTS)
    Controller("websites", WEBSITES, of_websites, writes={**READS, **LISTS})
    Controller("websites", WEBSITES, of_websites, writes=None)
    merged = READS | LISTS
    controller(WEBSITES, writes=merged, workers=2)(of_websites)


def options(manager: Manager) -> None:
    manager.controller(WEBSITES, owns=[core_v1.SECRETS, Owns(PLAIN)], watches=[Watch(core_v1.NODES, to=name_of)])
    manager.controller(WEBSITES, sources=[Every(600)], workers=1, timeout=3, elected=False)
    manager.controller(WEBSITES, informer={"namespace": "shop", "storage": "bytes"}, grace=None)
    Controller("websites", WEBSITES, of_websites, informer={"resync_period": None}, resync_period=60)
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
    Condition("Ready", "True")
    Condition("Ready", "False", "Failed", "it has failed", observed_generation=3)
    Condition(type="Ready", status="Unknown", last_transition_time=datetime.now(UTC))
    Condition("Ready", "True" if ready else "False")
    found = get_condition(pod, "Ready")
    assert_type(found, Condition | None)


async def running(websites: Controller[Website]) -> None:
    assert_type(websites.resource, Resource[Website])
    assert_type(websites.primary(), Primary[Website])
    assert_type(websites.key_of("shop/a"), ObjectName)
    websites.enqueue("shop/a", Cause("requested"), after=3, priority=1)
    websites.enqueue(ObjectName("shop", "a"))
    assert_type(websites.retry_parked(), int)
    assert_type(websites.retry_parked(["shop/a"]), int)
