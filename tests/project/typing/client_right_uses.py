# pyright: strict
"""Right uses of the types of the client and of models. This module is never run: `test_checkers` checks that mypy and
pyright accept all of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec
import pydantic
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import Resource
from aioinformer.client import Client, ResourceClient, Status, Subresource
from aioinformer.controller import Request
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
    assert_type(await pods.create(pod.to_dict()), core_v1.Pod)
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
    assert_type(await websites.create({"metadata": {"name": "a"}}), Website)
    assert_type(await websites.replace(Website(ObjectMeta(name="a"), 3)), Website)
    assert_type(await client.resource(PLAIN).create(Website(ObjectMeta(name="a"))), Any)
    assert_type(await client.resource(PLAIN).create(pod), Any)
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
    assert_type(await pods.delete("shop/a", grace=0), core_v1.Pod | Status)
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
    assert_type(await accounts.namespaced("shop").create_token("a"), authentication_v1.TokenRequest)
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
    assert_type(core_v1.LifecycleHandler(exec_=command), core_v1.LifecycleHandler)
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
