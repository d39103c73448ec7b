"""Wrong uses of the types of the client and of models. This module is never run: `test_checkers` checks that mypy and
pyright refuse each line that ends in `# wrong`, and no other.
"""

from __future__ import annotations

import msgspec

from aioinformer import Resource
from aioinformer.client import Client, ResourceClient
from aioinformer.controller import Request
from aioinformer.models import ObjectMeta, apps_v1, core_v1, networking_v1


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
    await pods.create(pod.metadata)  # wrong
    await pods.create([pod])  # wrong
    await pods.create(b"{}")  # wrong
    await pods.replace(deployment)  # wrong
    await pods.replace(None)  # wrong
    await pods.replace(request.object)  # wrong
    await pods.apply(deployment)  # wrong
    await pods.apply_if_changed(deployment, None)  # wrong
    await pods.apply_if_changed(pod, deployment)  # wrong
    await pods.status.replace(deployment)  # wrong
    await client.apps.v1.deployments.scale.replace(deployment)  # wrong
    await websites.create(pod)  # wrong
    await websites.replace(pod)  # wrong
    await client.resource(core_v1.NODES).replace(pod)  # wrong
    await client.resource("v1/nodes").create(pod)  # wrong


async def targets(client: Client, request: Request[core_v1.Pod]) -> None:
    pods = client.core.v1.pods
    await pods.delete(request.object)  # wrong
    await pods.delete(None)  # wrong
    await pods.delete(["a"])  # wrong
    await pods.delete(3)  # wrong
    await pods.delete(b"a")  # wrong
    await pods.get(None)  # wrong
    await pods.get(request.object)  # wrong
    await pods.patch(None, {})  # wrong
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
    core, deployments = client.core.v1, client.apps.v1.deployments
    await core.configmaps.evict("a")  # wrong
    await core.configmaps.namespaced("shop").evict("a")  # wrong
    await core.nodes.evict("a")  # wrong
    await deployments.evict("a")  # wrong
    await client.resource(apps_v1.DEPLOYMENTS).evict("a")  # wrong
    await client.resource("apps/v1/deployments").evict("a")  # wrong
    await client.resource(WEBSITES).evict("a")  # wrong
    await deployments.create_token("a")  # wrong
    await core.pods.create_token("a")  # wrong
    await secrets.create_token("a")  # wrong
    await secrets.bind("a", "node-1")  # wrong
    await client.batch.v1.jobs.bind("a", "node-1")  # wrong
    client.batch.v1.jobs.logs("a")  # wrong
    deployments.logs("a")  # wrong
    await core.services.ephemeral_containers.get("a")  # wrong
    await core.pods.evicts("a")  # wrong


def reserved_words(probe: core_v1.Probe, rule: networking_v1.NetworkPolicyIngressRule) -> None:
    core_v1.Probe(exec="true")  # wrong
    core_v1.Probe(exec_="true")  # wrong
    core_v1.Probe(_exec=core_v1.ExecAction())  # wrong
    networking_v1.IPBlock(cidr="10.0.0.0/8", _except=["10.1.0.0/16"])  # wrong
    networking_v1.NetworkPolicyIngressRule(_from=[])  # wrong
    networking_v1.NetworkPolicyIngressRule(from_=["a"])  # wrong
    print(probe.exec_.command)  # wrong
    print(rule.from_[0])  # wrong
