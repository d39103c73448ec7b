"""An operator with webhooks and two versions: a Gate keeps a Deployment of a proxy.

v1alpha1 had the size as `size`, and host and zone as one address. Both versions can be read and
written; objects are stored in v1.

aioinformer manifests two_versions:manager -o base && kubectl apply --server-side -k base
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from aioinformer import evolve
from aioinformer.controller import Manager, Request, apply_set, set_status
from aioinformer.crds import Column, Move, Split, custom_resource
from aioinformer.models import ObjectMeta, apps_v1, core_v1
from aioinformer.webhooks import AdmissionRequest, Denied, WebhookServer


class OldSpec(msgspec.Struct, frozen=True):
    size: int = 1
    address: str | None = None


class OldGate(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: OldSpec


class Spec(msgspec.Struct, frozen=True):
    replicas: Annotated[int, Meta(ge=0, le=9)] = 1
    host: str | None = None
    zone: str | None = None
    resources: core_v1.ResourceRequirements | None = None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int | None = None
    available: int = 0


class Gate(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec
    status: Status | None = None


STEPS = [
    Move("spec.size", "spec.replicas"),
    Split("spec.address", ["spec.host", "spec.zone"], separator="/"),
]
OLD_GATES = custom_resource(
    OldGate, "example.com", "v1alpha1", kind="Gate", storage=False, conversion=STEPS
)
GATES = custom_resource(
    Gate, "example.com", "v1", columns=[Column("Host", ".spec.host")], others=[OLD_GATES]
)

manager = Manager("gates", webhooks=WebhookServer("gates"))


@manager.default(GATES)
async def fill(request: AdmissionRequest[Gate]) -> Gate:
    spec = request.object.spec
    return request.object if spec.zone else evolve(request.object, "spec.zone", "eu")


@manager.validate(GATES)
async def check(request: AdmissionRequest[Gate]) -> None:
    if request.old and request.old.spec.host not in (None, request.object.spec.host):
        raise Denied({"spec.host": "cannot be changed"})


@manager.controller(
    GATES, owns=[apps_v1.DEPLOYMENTS], writes={apps_v1.DEPLOYMENTS: ("create", "patch", "delete")}
)
async def gates(request: Request[Gate]) -> None:
    if (gate := request.object) is None:
        return
    applied = await apply_set(request, [deployment(gate)], resources=[apps_v1.DEPLOYMENTS])
    statuses = [each.status for each in applied.objects]
    await set_status(
        request, available=sum(each.available_replicas or 0 for each in statuses if each)
    )


def deployment(gate: Gate) -> dict[str, object]:
    labels = {"gate": gate.metadata.name}
    resources = gate.spec.resources.to_dict() if gate.spec.resources else {}
    container = {"name": "proxy", "image": "nginx:1.29", "resources": resources}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": gate.metadata.name},
        "spec": {
            "replicas": gate.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


if __name__ == "__main__":
    manager.main()
