"""Widgets: each has as many config maps as its size, and an entry in a register elsewhere.

Replicas of this program elect a leader. Four workers reconcile, and SIGTERM stops them in order.

kubectl apply -f examples/widgets.yaml && python examples/widgets.py
"""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer import Condition, Resource
from aioinformer.controller import (
    LeaderElection,
    Manager,
    Request,
    apply_set,
    finalizing,
    set_status,
)
from aioinformer.models import ObjectMeta, core_v1


class Spec(msgspec.Struct, frozen=True):
    size: int
    colour: str = "grey"


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec
    status: dict[str, Any] | None = None


WIDGETS = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)
WRITES = {WIDGETS: ("patch",), core_v1.CONFIG_MAPS: ("create", "patch", "delete")}
register: dict[str, int] = {}  # in place of a system outside of the cluster

manager = Manager("widgets", leader_election=LeaderElection("widgets"))


@manager.controller(WIDGETS, owns=[core_v1.CONFIG_MAPS], workers=4, writes=WRITES)
async def widgets(request: Request[Widget]) -> None:
    async with finalizing(request, "example.com/register") as ending:
        if ending:
            register.pop(request.name, None)
            request.event("Removed", "Removed from the register")
            return
        widget = request.object
        assert widget is not None  # finalizing ends the run if the widget is gone
        register[request.name] = widget.spec.size
        children = [config_map(widget, number) for number in range(widget.spec.size)]
        applied = await apply_set(request, children, resources=[core_v1.CONFIG_MAPS])
        if applied.sent or applied.leaving:
            request.event("Applied", f"{len(children)} config maps are there")
        ready = Condition("Ready", "True", "Applied", f"{len(children)} config maps are there")
        await set_status(request, [ready], size=len(children))


def config_map(widget: Widget, number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{widget.metadata.name}-{number}"},
        "data": {"colour": widget.spec.colour},
    }


if __name__ == "__main__":
    manager.main()
