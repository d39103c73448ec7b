"""What this package writes into a cluster, by name and format: other versions read it, and docs/clusters.md lists it.

A change of written.json is a change of format: replicas of the version before run beside those of this one during a
rolling update, and must go on with what they find. Never change it to make a test pass.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from aioinformer import Client, Condition, HttpTransport, LeaderElectionOptions
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import LeaderElection, Manager, QueueOptions, Request, apply_set, finalizing, set_status
from aioinformer.models import core_v1
from aioinformer.ring import ControllerRing
from aioinformer.webhooks import WebhookServer
from tests.support.converted_classes import gates
from tests.support.reviews import WIDGETS, Widget
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing import ApiServer
    from aioinformer.webhooks import AdmissionRequest

GOLDEN = Path(__file__).with_name("written.json")
PAGE = Path(__file__).parents[3] / "docs" / "clusters.md"

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
    (re.compile(r"\.[0-9a-f]{16}$"), ".HEX"),
    (re.compile(r"failed; .*"), "failed; …"),
    (re.compile(f"^{re.escape(socket.gethostname())}$"), "HOST"),
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


class Written:
    """What managers have written into a server."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def found(self, plural: str, name: str) -> dict[str, Any]:
        """Return an object as the server for tests has it; nothing if there is none."""
        objects = self._server.list(plural)
        return next((each for each in objects if each["metadata"]["name"] == name), {})

    async def read(self, path: str) -> dict[str, Any]:
        """Return an object with its managed fields, which clients see only."""
        async with aiohttp.ClientSession() as session, session.get(f"{self._server.url}{path}") as answer:
            read: dict[str, Any] = await answer.json()
            return read

    async def managers(self, path: str) -> list[str]:
        """Return the field managers of an object, with the operation and the subresource."""
        entries = (await self.read(path))["metadata"]["managedFields"]
        return [" ".join(filter(None, map(each.get, ("manager", "operation", "subresource")))) for each in entries]

    def trusted(self, plural: str, name: str) -> list[str]:
        """Return `caBundle` wherever an object has one."""
        return [stable(each) for each in _bundles(self.found(plural, name))]


def _bundles(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "caBundle" in value:
            yield value["caBundle"]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from _bundles(each)


def managers_of(server: ApiServer) -> tuple[Manager, Manager, dict[str, Any]]:
    """Return managers that write all that managers write; and a manager's child, which it applies again if changed."""
    webhooks = WebhookServer("widgets", "shop", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
    election = LeaderElection("widgets", "shop")
    manager = Manager(
        "widgets",
        client=server.url,
        leader_election=election,
        webhooks=webhooks,
        failure_condition="Reconciled",
    )
    manager.convert(gates("example.com")[0])
    child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child", "namespace": "shop"}}
    quick = QueueOptions(backoff=BackoffOptions(initial=0.02, factor=1.0, jitter=0.0))

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    @manager.controller(core_v1.CONFIG_MAPS, name="maps", owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        if request.name == "parent":
            async with finalizing(request, "example.com/cleanup"):
                await apply_set(request, [child], resources=[core_v1.SECRETS])

    @manager.controller(core_v1.SERVICES, name="services", queue=quick)
    async def services(request: Request[Any]) -> None:
        await set_status(request, [Condition("Ready", "True", "AllThere", "")])
        raise RuntimeError("it always fails")

    times = LeaderElectionOptions(lease_duration=3, renew_deadline=2, retry_period=0.5)
    ring = ControllerRing("widgets", namespace="shop", slots=2, member="a", options=times)
    sharing = Manager("sharing", client=server.url, ring=ring)

    @sharing.controller(core_v1.ENDPOINTS, name="endpoints")
    async def endpoints(request: Request[Any]) -> None: ...

    return manager, sharing, child


async def test_written_names_and_formats(api_server: ApiServer) -> None:
    seen = Written(api_server)
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    service = {"service": {"name": "widgets", "namespace": "shop", "path": "/validate/widgets.example.com"}}
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        api_server.create(f"{kind.lower()}s", configuration(kind, webhook("a", service)))
    stored, old = gates("example.com")
    api_server.create("customresourcedefinitions", stored.crd({"url": "https://127.0.0.1:1/convert"}))
    manager, sharing, child = managers_of(api_server)
    core, coordination = "/api/v1/namespaces/shop", "/apis/coordination.k8s.io/v1/namespaces/shop"
    registration = "/apis/admissionregistration.k8s.io/v1"
    definition = "customresourcedefinitions/gates.example.com"

    def failures() -> list[dict[str, Any]]:
        conditions = seen.found("services", "web").get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] == "Reconciled"]

    def event() -> dict[str, Any]:
        events = api_server.list("events")
        return next((each for each in events if each["involvedObject"]["name"] == "web"), {})

    async with HttpTransport(api_server.url) as transport, manager, sharing:
        client = Client(transport, namespace="shop", field_manager="user")
        await client.core.v1.configmaps.create({"metadata": {"name": "parent"}, "data": {"a": "b"}})
        await client.core.v1.services.create({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
        await until(lambda: seen.found("secrets", "child"))
        await until(lambda: is_formed(seen.found("configmaps", "widgets-ring")))
        await until(lambda: failures() and event())
        await until(lambda: seen.trusted("customresourcedefinitions", "gates.example.com"))
        url = f"https://127.0.0.1:{manager.admission.port}/convert"
        changed = seen.found("customresourcedefinitions", "gates.example.com")
        changed["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = url
        api_server.update("customresourcedefinitions", changed)
        gate = {"metadata": {"name": "a"}, "spec": {"size": 3, "legacy": "kept"}}
        await client.resource(old).create(gate)
        creations = await seen.managers(f"{core}/secrets/child")
        child["immutable"] = True
        await client.core.v1.configmaps.patch("parent", {"data": {"changed": "yes"}})
        await until(lambda: seen.found("secrets", "child").get("immutable"))
        recorded = event()
        written = {
            "field manager of creations": creations,
            "field manager of applies": await seen.managers(f"{core}/secrets/child"),
            "field manager of status and edits": {
                "finalizer": [each for each in await seen.managers(f"{core}/configmaps/parent") if "user" not in each],
                "status": [
                    each for each in await seen.managers(f"{core}/services/web") if each.startswith("services ")
                ],
            },
            "field manager of the failure condition": [
                each for each in await seen.managers(f"{core}/services/web") if "-failures" in each
            ],
            "field manager of the manager's own objects": {
                "Lease of an election": await seen.managers(f"{coordination}/leases/widgets"),
                "Lease of a ring": await seen.managers(f"{coordination}/leases/widgets-a"),
                "ConfigMap of a ring": await seen.managers(f"{core}/configmaps/widgets-ring"),
                "Secret with a CA": await seen.managers(f"{core}/secrets/widgets-webhook-ca"),
                "webhooks": await seen.managers(f"{registration}/validatingwebhookconfigurations/widgets.shop"),
                "definition": await seen.managers(f"/apis/apiextensions.k8s.io/v1/{definition}"),
                "Event": await seen.managers(f"{core}/events/{recorded['metadata']['name']}"),
            },
            "finalizer": seen.found("configmaps", "parent")["metadata"]["finalizers"],
            "owner reference": stable(seen.found("secrets", "child")["metadata"]["ownerReferences"]),
            "failure condition": stable(failures()[0]),
            "Event": stable({**recorded, "message": "MESSAGE", "count": 1}),
            "Lease of an election": stable(seen.found("leases", "widgets")),
            "Lease of a ring": stable(seen.found("leases", "widgets-a")),
            "ConfigMap of a ring": stable(seen.found("configmaps", "widgets-ring")),
            "Secret with a CA": stable(seen.found("secrets", "widgets-webhook-ca")),
            "caBundle": {
                "validatingwebhookconfigurations": seen.trusted("validatingwebhookconfigurations", "widgets.shop"),
                "mutatingwebhookconfigurations": seen.trusted("mutatingwebhookconfigurations", "widgets.shop"),
                "customresourcedefinitions": seen.trusted("customresourcedefinitions", "gates.example.com"),
            },
            "annotation of a conversion": seen.found("gates", "a")["metadata"]["annotations"],
        }
    assert written == json.loads(GOLDEN.read_text()), json.dumps(written, indent=2)


def test_page_has_a_row_for_each_item_and_no_others() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    assert rows[1:] == list(json.loads(GOLDEN.read_text()))
