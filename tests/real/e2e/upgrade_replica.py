"""A replica as a process, with the version of the package that is imported: this one, or an earlier one.

    python -m tests.real.e2e.upgrade_replica NAMESPACE WEBHOOK_PORT HEALTH_PORT MEMBER

It has two managers: one shares the ConfigMaps with the label `app=web` in a ring, and serves webhooks; the other one
has those with `app=elected`, as the leader of an election. Both write who has processed which change of an object, with
the token of the right to do so, and apply the children of the object. It uses only what both versions have.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import sys
from datetime import timedelta
from typing import Any

import aioinformer
from aioinformer import LeaderElectionOptions, evolve
from aioinformer.controller import LeaderElection, Manager, Request, apply_set
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.webhooks import AdmissionRequest, WebhookServer, authority, server

TIMES = LeaderElectionOptions(lease_duration=4, renew_deadline=2.5, retry_period=0.5)
#: The CA is replaced every 16 seconds, and noticed within a second. A former one is trusted for ten seconds.
SETTINGS: Any = {
    authority: {"_LIFETIME": timedelta(seconds=24), "_SKEW": timedelta(seconds=1), "_FORMER": timedelta(seconds=10)},
    server: {"_INTERVAL": 1.0, "_RETRY": 0.2},
}


async def reconcile(request: Request[core_v1.ConfigMap]) -> None:
    if request.object is None or request.term is None:
        return
    data = request.object.data or {}
    wanted = [child(request.name, each, data["seq"]) for each in data["children"].split(",")]
    await apply_set(request, wanted, resources=[core_v1.SECRETS])
    if data.get("done") != data["seq"]:
        done = {"done": data["seq"], "by": sys.argv[4], "epoch": str(request.term.token)}
        await request.client.core.v1.configmaps.patch(request.object, {"data": done})


def child(parent: str, name: str, sequence: str) -> dict[str, Any]:
    metadata = {"name": f"{parent}-{name}", "labels": {"child": name}}
    data = {"seq": base64.b64encode(sequence.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


async def set_default(request: AdmissionRequest[Any]) -> Any:
    return evolve(request.object, "metadata.annotations", {"reviewed": "yes"})


async def check(request: AdmissionRequest[Any]) -> None:
    if (request.object.metadata.annotations or {}).get("reviewed") != "yes":
        raise RuntimeError("the other function was not called")
    request.lister(core_v1.SECRETS).list()


async def main(namespace: str, port: str, health_port: str, member: str) -> None:
    hooks = WebhookServer("hooks", namespace, port=int(port), host="127.0.0.1", hosts=("127.0.0.1",))
    sharing = Manager(
        "sharing",
        ring=ControllerRing("widgets", namespace, slots=16, member=member, options=TIMES),
        webhooks=hooks,
        namespaces=[namespace],
        health_port=int(health_port),
        health_host="127.0.0.1",
        grace=3.0,
    )
    electing = Manager(
        "electing",
        leader_election=LeaderElection("electing", namespace, identity=member, options=TIMES),
        namespaces=[namespace],
        grace=3.0,
    )
    for manager, app in ((sharing, "web"), (electing, "elected")):
        selected: Any = {"label_selector": f"app={app}"}
        declare = manager.controller(
            core_v1.CONFIG_MAPS, name=app, owns=[core_v1.SECRETS], workers=4, informer=selected
        )
        declare(reconcile)
    sharing.default(core_v1.CONFIG_MAPS)(set_default)
    sharing.validate(core_v1.CONFIG_MAPS, reads=[core_v1.SECRETS])(check)
    async with electing:
        await sharing.run(signals=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    for module, values in SETTINGS.items():
        for name, value in values.items():
            if hasattr(module, name):
                setattr(module, name, value)
    logging.info("the package is %s", aioinformer.__file__)
    asyncio.run(main(*sys.argv[1:]))
