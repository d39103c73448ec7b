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

from aioinformer import Client, HttpTransport
from tests.support.writing_managers import WritingManagers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing import ApiServer

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
        """Return the field managers of an object but the user and the server: name, operation and subresource."""
        every = (await self.read(path))["metadata"]["managedFields"]
        entries = [each for each in every if each["manager"] not in ("user", "kube-apiserver")]
        return [" ".join(filter(None, map(each.get, ("manager", "operation", "subresource")))) for each in entries]

    def event(self, name: str) -> dict[str, Any]:
        """Return an Event about an object; nothing if there is none."""
        events = self._server.list("events")
        return next((each for each in events if each["involvedObject"]["name"] == name), {})

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


async def test_written_names_and_formats(api_server: ApiServer) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    async with HttpTransport(api_server.url) as transport:
        managers = WritingManagers(Client(transport, namespace="shop"), "example.com")
        async with managers.running():
            written = await what_is_written(Written(api_server), managers)
    assert written == json.loads(GOLDEN.read_text()), json.dumps(written, indent=2)


async def what_is_written(seen: Written, managers: WritingManagers) -> dict[str, Any]:
    core, coordination = "/api/v1/namespaces/shop", "/apis/coordination.k8s.io/v1/namespaces/shop"
    registration = "/apis/admissionregistration.k8s.io/v1"
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gates.example.com"

    def failures() -> list[dict[str, Any]]:
        conditions = seen.found("services", "web").get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] == "Reconciled"]

    await until(lambda: seen.found("secrets", "child"))
    await until(lambda: is_formed(seen.found("configmaps", "widgets-ring")))
    await until(lambda: failures() and seen.event("web"))
    creations = await seen.managers(f"{core}/secrets/child")
    managers.child["immutable"] = True
    await managers.change_parent()
    await until(lambda: seen.found("secrets", "child").get("immutable"))
    of_service = await seen.managers(f"{core}/services/web")
    event = seen.event("web")
    kinds = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    return {
        "field manager of creations": creations,
        "field manager of applies": await seen.managers(f"{core}/secrets/child"),
        "field manager of status and edits": {
            "finalizer": await seen.managers(f"{core}/configmaps/parent"),
            "status": [each for each in of_service if "-failures" not in each],
        },
        "field manager of the failure condition": [each for each in of_service if "-failures" in each],
        "field manager of the manager's own objects": {
            "Lease of an election": await seen.managers(f"{coordination}/leases/widgets"),
            "Lease of a ring": await seen.managers(f"{coordination}/leases/widgets-a"),
            "ConfigMap of a ring": await seen.managers(f"{core}/configmaps/widgets-ring"),
            "Secret with a CA": await seen.managers(f"{core}/secrets/widgets-webhook-ca"),
            "webhooks": await seen.managers(f"{registration}/validatingwebhookconfigurations/widgets.shop"),
            "definition": await seen.managers(definition),
            "Event": await seen.managers(f"{core}/events/{event['metadata']['name']}"),
        },
        "finalizer": seen.found("configmaps", "parent")["metadata"]["finalizers"],
        "owner reference": stable(seen.found("secrets", "child")["metadata"]["ownerReferences"]),
        "failure condition": stable(failures()[0]),
        "Event": stable({**event, "message": "MESSAGE", "count": 1}),
        "Lease of an election": stable(seen.found("leases", "widgets")),
        "Lease of a ring": stable(seen.found("leases", "widgets-a")),
        "ConfigMap of a ring": stable(seen.found("configmaps", "widgets-ring")),
        "Secret with a CA": stable(seen.found("secrets", "widgets-webhook-ca")),
        "caBundle": {
            **{kind: seen.trusted(kind, "widgets.shop") for kind in kinds},
            "customresourcedefinitions": seen.trusted("customresourcedefinitions", "gates.example.com"),
        },
        "annotation of a conversion": seen.found("gates", "a")["metadata"]["annotations"],
    }


def test_page_has_a_row_for_each_item_and_no_others() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    assert rows[1:] == list(json.loads(GOLDEN.read_text()))
