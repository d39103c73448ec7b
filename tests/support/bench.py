"""Requests of a reconciler that is called by hand, on a server of its own with Widgets."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from uuid import UUID  # noqa: TC003 - msgspec reads the annotations

import msgspec

from aioinformer import Client, Resource
from aioinformer.controller import Request
from aioinformer.controller.answers import StatusAnswers
from aioinformer.controller.proofs import Proofs
from aioinformer.models import core_v1
from aioinformer.resources import object_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer import Lister, SharedIndexInformer
    from aioinformer.cache.objects.record import Record
    from aioinformer.controller.inputs import Input
    from aioinformer.resources import ObjectName
    from aioinformer.testing import ApiServer

#: The verbs of requests that change something.
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
CLEANUP = "example.com/cleanup"
WIDGETS = Resource[Any]("example.com", "v1", "widgets", "Widget")


class Identified(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: UUID
    resource_version: str


class WithUUID(msgspec.Struct):
    """A class whose uid is no text."""

    metadata: Identified


def definition(*, subresource: bool = True, status: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the definition of Widgets.

    Args:
        subresource: whether the status is a subresource.
        status: the schema of the status; by default, everything is stored.
    """
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": status or anything}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "subresources": {"status": {}} if subresource else {},
                }
            ],
        },
    }


class Bench:
    """Makes requests as a controller does, and keeps their objects: the cache is behind unless a test reads again.

    Attributes:
        server: has the Widgets.
        client: of the reconciler.
        resource: of the Widgets, perhaps with a class of the user.
        events: what was recorded.
    """

    log = logging.LoggerAdapter(logging.getLogger("tests"))

    def __init__(self, server: ApiServer, client: Client, resource: Resource[Any] = WIDGETS) -> None:
        self.server = server
        self.resource = resource
        self.events: list[tuple[str, str, str]] = []
        self.status_answers = StatusAnswers()
        self.proofs = Proofs()
        self._client = client
        self._informers: dict[str, SharedIndexInformer[Any]] = {}

    def add_input(self, informer: SharedIndexInformer[Any]) -> None:
        self._informers[informer.resource.gvr] = informer

    def use(self, client: Client) -> None:
        """Use another client for the next requests."""
        self._client = client

    async def request(self, name: str = "web", *, object: Any = ...) -> Request[Any]:
        """Return a request for a Widget; its object is the present state, unless one is given."""
        if object is ...:
            object = await self._client.resource(self.resource).get(f"default/{name}")
        key = object_name({"metadata": {"name": name, "namespace": "default"}})
        return Request(key, object, self, resource=self.resource)

    def widget(self, name: str = "web") -> Any:
        """Return the stored Widget."""
        return self.server.get("widgets", name)

    def writes(self) -> list[str]:
        """Return the verbs of the requests that wrote something, with names, since the last call."""
        found = []
        for entry in self.server.requests:
            parts = entry.path.split("/")[7 if "apis" in entry.path else 6 :]
            if entry.verb in WRITES:
                found.append(" ".join([entry.verb, "/".join(parts)] if parts else [entry.verb]))
        self.server.requests.clear()
        return found

    # What requests need of a controller.

    def client(self, key: ObjectName) -> Client:
        return self._client

    def lister(self, resource: Resource[Any] | Input[Any], *, owned: bool = False) -> Lister[Any]:
        assert isinstance(resource, Resource)
        return self._informers[resource.gvr].lister()

    def owned(self, owner: Any, resource: Resource[Any]) -> list[Any]:
        found: Sequence[Any] = self.lister(resource).list()
        return [
            each
            for each in found
            if any(reference.uid == owner.metadata.uid for reference in each.metadata.owner_references or ())
        ]

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.events.append((type, reason, message))

    def record(self, key: ObjectName) -> Record | None:
        informer = self._informers.get(self.resource.gvr)
        return None if informer is None else informer.get_indexer().store.item(str(key))

    async def to_thread(self, call: Callable[[], Any], name: str) -> Any:
        return await asyncio.to_thread(call)

    def check_fresh(self) -> None:
        pass

    async def observe(self, key: ObjectName) -> None:
        pass


def with_class(kind: type[Any]) -> Resource[Any]:
    """Return the resource of Widgets with a class of the user."""
    return msgspec.structs.replace(WIDGETS, decoder=kind)


CONFIG_MAPS = core_v1.CONFIG_MAPS
