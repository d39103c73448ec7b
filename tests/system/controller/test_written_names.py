"""What this package writes into a cluster, by name and format: other versions read it, and docs/clusters.md lists it.

A change of written.json is a change of format: replicas of the version before run beside those of this one during a
rolling update, and must go on with what they find. Never change it to make a test pass.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from aioinformer import LeaderElectionOptions
from aioinformer.controller import LeaderElection, Manager, Request, apply_set, finalizing
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.webhooks import WebhookServer
from tests.support.reviews import WIDGETS, Widget
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing import ApiServer
    from aioinformer.webhooks import AdmissionRequest

GOLDEN = Path(__file__).with_name("written.json")

#: What differs between two runs, and what the API server itself decides.
VOLATILE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r'"sum":"\w+"'), '"sum":"SUM"'),
    (re.compile(r'"epoch":\d+'), '"epoch":EPOCH'),
    (re.compile(r'\[("[\w-]+"),\d{10},'), r"[\1,EPOCH,"),
    (re.compile(r"_[0-9a-f]{32}$"), "_HEX"),
    (re.compile(r"^.*_UID$"), "HOST_UID"),
    (re.compile(r"^\d{10}$"), "EPOCH"),
    (re.compile(r"^[A-Za-z0-9+/=]{200,}$"), "PEM"),
]
SERVER_SETS = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}


def stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stable(each) for name, each in value.items() if name not in SERVER_SETS}
    if isinstance(value, list):
        return [stable(each) for each in value]
    if isinstance(value, str):
        for pattern, replacement in VOLATILE:
            value = pattern.sub(replacement, value)
    return value


def is_formed(config_map: dict[str, Any]) -> bool:
    return bool(config_map) and config_map["data"]["ring.json"].count('"widgets-a"') == 3


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


async def test_written_names_and_formats(api_server: ApiServer) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    service = {"service": {"name": "widgets", "namespace": "shop", "path": "/validate/widgets.example.com"}}
    hooks = configuration("ValidatingWebhookConfiguration", webhook("a", service))
    api_server.create("validatingwebhookconfigurations", hooks)
    api_server.create("configmaps", {"metadata": {"name": "parent", "namespace": "shop"}})
    server = WebhookServer("widgets", "shop", port=0, host="127.0.0.1")
    election = LeaderElection("widgets", "shop")
    manager = Manager("widgets", client=api_server.url, leader_election=election, webhooks=server)

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    @manager.controller(core_v1.CONFIG_MAPS, name="maps", owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        if request.name == "parent":
            async with finalizing(request, "example.com/cleanup"):
                child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child", "namespace": "shop"}}
                await apply_set(request, [child], resources=[core_v1.SECRETS])

    times = LeaderElectionOptions(lease_duration=3, renew_deadline=2, retry_period=0.5)
    ring = ControllerRing("widgets", namespace="shop", slots=2, member="a", options=times)
    sharing = Manager("sharing", client=api_server.url, ring=ring)

    @sharing.controller(core_v1.SERVICES, name="services")
    async def services(request: Request[Any]) -> None: ...

    def found(plural: str, name: str) -> dict[str, Any]:
        objects = api_server.list(plural, namespace="shop")
        return next((each for each in objects if each["metadata"]["name"] == name), {})

    async def read(plural: str, name: str) -> dict[str, Any]:
        url = f"{api_server.url}/api/v1/namespaces/shop/{plural}/{name}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            read: dict[str, Any] = await answer.json()
            return read

    async with manager, sharing:
        await until(lambda: found("secrets", "child"))
        await until(lambda: is_formed(found("configmaps", ring.object)))
        parent, child = await read("configmaps", "parent"), await read("secrets", "child")
        written = {
            "finalizers": parent["metadata"]["finalizers"],
            "field manager of a creation": [each["manager"] for each in child["metadata"]["managedFields"]],
            "owner reference": stable(child["metadata"]["ownerReferences"]),
            "Lease of an election": stable(found("leases", "widgets")),
            "Lease of a ring": stable(found("leases", "widgets-a")),
            "ConfigMap of a ring": stable(found("configmaps", ring.object)),
            "Secret with a CA": stable(found("secrets", server.secret)),
        }
    assert written == json.loads(GOLDEN.read_text()), json.dumps(written, indent=2)
