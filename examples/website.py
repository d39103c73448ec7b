"""Websites: each is served by pods under a host name that a register elsewhere points to.

The CustomResourceDefinition is made from the class. Replicas of this program elect a leader.

cd examples && aioinformer crd website:Website | kubectl apply --server-side -f -
aioinformer run website:manager
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from aioinformer import Condition
from aioinformer.controller import (
    LeaderElection,
    Manager,
    Request,
    apply_set,
    finalizing,
    set_status,
)
from aioinformer.crds import Column, Scale, custom_resource, list_map, rule, rules
from aioinformer.models import ObjectMeta, apps_v1, core_v1, meta_v1


@rules(rule("!has(self.host) || self.replicas > 0", message="a host needs a replica"))
class Spec(msgspec.Struct, frozen=True):
    """What the user wants."""

    text: Annotated[str, Meta(max_length=10_000)]
    """What the website says."""
    image: Annotated[str, Meta(min_length=1)] = "nginx:1.29"
    replicas: Annotated[int, Meta(ge=0, le=20)] = 1
    host: Annotated[str, Meta(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$")] | None = None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller reports."""

    observed_generation: int | None = None
    replicas: int = 0
    conditions: Annotated[tuple[meta_v1.Condition, ...], list_map("type")] = ()


class Website(msgspec.Struct, frozen=True):
    """A text that pods serve."""

    metadata: ObjectMeta
    spec: Spec
    status: Status | None = None


WEBSITES = custom_resource(
    Website,
    "example.com",
    "v1",
    short_names=["web"],
    scale=Scale(),
    columns=[
        Column("Host", ".spec.host"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Age", ".metadata.creationTimestamp"),
    ],
)
CHILDREN = [core_v1.CONFIG_MAPS, apps_v1.DEPLOYMENTS, core_v1.SERVICES]
WRITES = {WEBSITES: ("patch",)} | dict.fromkeys(CHILDREN, ("create", "patch", "delete"))
register: dict[str, str] = {}  # in place of the names of a DNS server

manager = Manager("website", leader_election=LeaderElection("website"))


@manager.controller(WEBSITES, owns=CHILDREN, workers=4, writes=WRITES)
async def websites(request: Request[Website]) -> None:
    async with finalizing(request, "example.com/host") as ending:
        if ending:
            register.pop(request.name, None)
            request.event("Removed", "The host name is free")
            return
        website = request.object
        assert website is not None  # finalizing ends the run if the website is gone
        if website.spec.host:
            register[request.name] = website.spec.host
        else:
            register.pop(request.name, None)
        applied = await apply_set(request, children(website), resources=CHILDREN)
        if applied.sent:
            request.event("Applied", "The pods and their service are as the website says")
        deployed = request.owned(apps_v1.DEPLOYMENTS)
        ready = sum(each.status.ready_replicas or 0 for each in deployed if each.status)
        wanted = website.spec.replicas
        status: Literal["True", "False"] = "True" if ready >= wanted else "False"
        told = Condition("Ready", status, "Pods", f"{ready} of {wanted} pods are ready")
        await set_status(request, [told], replicas=ready)


def children(website: Website) -> list[dict[str, Any]]:
    name, labels = website.metadata.name, {"example.com/website": website.metadata.name}
    spec = website.spec
    volume = {"name": "text", "configMap": {"name": name}}
    container = {
        "name": "web",
        "image": spec.image,
        "ports": [{"name": "http", "containerPort": 80}],
        "volumeMounts": [{"name": "text", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}}
    deployed = {"replicas": spec.replicas, "selector": {"matchLabels": labels}, "template": pod}
    served = {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    head = {"name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": head,
            "data": {"index.html": spec.text},
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": head, "spec": deployed},
        {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": served},
    ]


if __name__ == "__main__":
    manager.main()
