"""`aioinformer uninstall --dry-run`: list what a manager has left in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cli.connecting import connected
from aioinformer.cli.program import Program
from aioinformer.client.changes.ownership import writes_as
from aioinformer.client.client import Client
from aioinformer.concurrency import create_task
from aioinformer.controller.running.failure_condition import failure_manager
from aioinformer.crds.conversion.converter import LOST, UNREAD
from aioinformer.errors import AioinformerError, ApiNotFound
from aioinformer.logs import get_logger, visible
from aioinformer.resources.resource import Resource
from aioinformer.ring.leases import LABEL
from aioinformer.webhooks.certificates import (
    CONFIGURATIONS,
    DEFINITIONS,
    SECRETS,
    conversion_of,
    refers_to,
    webhooks_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

    from aioinformer.cli.options import ServerOptions
    from aioinformer.controller import Manager
    from aioinformer.transport import Transport
    from aioinformer.webhooks import WebhookServer

logger = get_logger("aioinformer.cli")

_TIMEOUT = 300.0
_CONFIG_MAPS: Final[Resource[Any]] = Resource("", "v1", "configmaps", kind="ConfigMap")
_EVENTS: Final[Resource[Any]] = Resource("", "v1", "events", kind="Event")
_LEASES: Final[Resource[Any]] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")


class _Object(msgspec.Struct):
    """What is read of an object: the values of Secrets are not decoded."""

    metadata: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_Object).decode
_decode_whole: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Left:
    """An object that a manager has written.

    Attributes:
        resource, namespace, name: of the object.
        why: what it is to the manager.
    """

    resource: Resource[Any]
    namespace: str
    name: str
    why: str

    def __str__(self) -> str:
        place = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.resource.group_resource}/{self.name}{place}: {self.why}"


class UninstallProgram(Program):
    """Prints a line for each object to stdout. It reads only."""

    def __init__(self, manager: Manager, server: ServerOptions, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._manager = manager
        self._server = server
        self._write = write

    async def run(self) -> int:
        work = create_task(self._look(), name="look at what is left")
        code = await self.wait_for_end(work, _TIMEOUT, 1)
        return await self.stop(work, code)

    def interrupt(self) -> None:
        logger.error("interrupted before everything was listed")
        self.end(1)

    def time_out(self, code: int) -> None:
        logger.error("the cluster did not list everything within %g s", _TIMEOUT)
        super().time_out(code)

    async def _look(self) -> None:
        objects = set()
        try:
            async with connected(self._server) as (transport, _):
                async for each in left_by(self._manager, transport):
                    objects.add((each.resource.group_resource, each.namespace, each.name))
                    self._write(f"{visible(str(each))}\n".encode())
        except AioinformerError as error:
            logger.error("the list is not complete: %s", error)
            self.end(1)
        else:
            logger.info("manager %s has left %d objects; nothing was removed", self._manager.name, len(objects))
            self.end(0)


async def left_by(manager: Manager, transport: Transport) -> AsyncIterator[Left]:
    """Yield what a manager has left in a cluster: what its controllers have written, then what itself has.

    An object counts as written by a controller or background task if its managed fields say so, as far as the manager
    declares its kind. Objects of a manager's own have names that it declares; a Lease or ConfigMap that another program
    has under such a name cannot be told apart, except those of a ring, which have a label.

    Raises:
        AioinformerError: the cluster cannot be asked, or refuses.
    """
    client = Client(transport)
    for writer in _writers(manager):
        for resource in writer.resources:
            async for each in _written_by(client, writer, resource, manager.namespaces):
                yield each
    async for each in _own(manager, client):
        yield each


@dataclass(frozen=True, slots=True)
class _Writer:
    """A controller or a background task, and the kinds that it may have written.

    Attributes:
        title: "controller maps".
        name: its field manager.
        resources: the kinds.
    """

    title: str
    name: str
    resources: list[Resource[Any]]


def _writers(manager: Manager) -> Iterator[_Writer]:
    for name, controller in manager.controllers.items():
        kinds = [controller.resource, *(each.resource for each in controller.owns), *(controller.writes or ())]
        yield _Writer(f"controller {name}", name, _unique(kinds))
    for name, task in manager.background_tasks.items():
        yield _Writer(f"background task {name}", name, _unique(task.writes or ()))


def _unique(resources: Iterable[Resource[Any]]) -> list[Resource[Any]]:
    return list({each.group_resource: each for each in resources}.values())


async def _written_by(
    client: Client, writer: _Writer, resource: Resource[Any], namespaces: Iterable[str]
) -> AsyncIterator[Left]:
    for namespace in (namespaces if resource.namespaced else ()) or ("",):
        async for metadata in _listed(client, resource, namespace=namespace):
            if what := _what(writer.name, metadata):
                why = f"{writer.title} has set {what}"
                yield Left(resource, metadata.get("namespace", ""), metadata["name"], why)


def _what(manager: str, metadata: dict[str, Any]) -> str:
    """Return what a controller has set in an object; "" for nothing."""
    every = metadata.get("managedFields") or ()
    entries = [each for each in every if writes_as(manager, each.get("manager") or "")]
    held = [name for name in metadata.get("finalizers") or () if any(_has_finalizer(each, name) for each in entries)]
    if held:
        return "its finalizer " + ", ".join(held)
    if entries:
        return "fields"
    failures = failure_manager(manager)
    if any(each.get("manager") == failures for each in every):
        return "the condition of its failures"
    return ""


def _has_finalizer(entry: dict[str, Any], name: str) -> bool:
    fields = (entry.get("fieldsV1") or {}).get("f:metadata", {}).get("f:finalizers", {})
    return f'v:"{name}"' in fields


async def _own(manager: Manager, client: Client) -> AsyncIterator[Left]:
    """Yield what a manager has written itself."""
    election = manager.leader_election
    if election is not None and await _is_there(client, _LEASES, election.namespace, election.name):
        yield Left(_LEASES, election.namespace, election.name, "the Lease of the leader election")
    if (ring := manager.ring) is not None:
        for resource, why in ((_LEASES, "the Lease of a replica"), (_CONFIG_MAPS, "which replica owns which slot")):
            async for metadata in _listed(client, resource, {LABEL: ring.name}, namespace=ring.namespace):
                yield Left(resource, ring.namespace, metadata["name"], f"ring {ring.name}: {why}")
    async for left in _kept_by_conversions(manager, client):
        yield left
    if (server := manager.webhooks) is not None:
        async for left in _of_webhooks(manager, server, client):
            yield left
    async for left in _events(manager, client):
        yield left


async def _kept_by_conversions(manager: Manager, client: Client) -> AsyncIterator[Left]:
    for resource in manager.admission.conversions.resources():
        for namespace in (manager.namespaces if resource.namespaced else ()) or ("",):
            async for metadata in _listed(client, resource, namespace=namespace):
                for name in metadata.get("annotations") or ():
                    if name.startswith((LOST, UNREAD)):
                        why = f"its annotation {name} keeps what another version does not have"
                        yield Left(resource, metadata.get("namespace", ""), metadata["name"], why)


async def _events(manager: Manager, client: Client) -> AsyncIterator[Left]:
    selector = {"reportingComponent": manager.name}
    own = [each.namespace for each in (manager.leader_election, manager.ring) if each is not None]
    namespaces = dict.fromkeys((*manager.namespaces, *own)) if manager.namespaces else ("",)
    for namespace in namespaces:
        async for metadata in _listed(client, _EVENTS, namespace=namespace, field_selector=selector):
            yield Left(
                _EVENTS, metadata["namespace"], metadata["name"], "recorded by the manager; it expires by itself"
            )


async def _of_webhooks(manager: Manager, server: WebhookServer, client: Client) -> AsyncIterator[Left]:
    """Yield the CA, and what refers to the webhooks."""
    if server.files is None and await _is_there(client, SECRETS, server.namespace, server.secret):
        yield Left(SECRETS, server.namespace, server.secret, "the CA of the webhooks")
    for resource in CONFIGURATIONS.values():
        found = await client.resource(resource, _decode_whole).get_or_none(server.configuration)
        if found is not None and any(refers_to(server, each) for each in webhooks_of(found)):
            yield Left(resource, "", server.configuration, "calls the webhooks: delete it before the manager")
    for each in manager.admission.conversions.resources():
        found = await client.resource(DEFINITIONS, _decode_whole).get_or_none(each.group_resource)
        if found is not None and any(refers_to(server, config) for config in conversion_of(found)):
            why = "its versions are converted by the manager: retire them, or delete it, before the manager"
            yield Left(DEFINITIONS, "", each.group_resource, why)


async def _listed(
    client: Client,
    resource: Resource[Any],
    labels: Mapping[str, str] | str = "",
    *,
    namespace: str = "",
    field_selector: Mapping[str, str] | str = "",
) -> AsyncIterator[dict[str, Any]]:
    """Yield the metadata of objects; none if the kind is not served any more."""
    found = client.resource(resource, _decode).list(labels, namespace=namespace, field_selector=field_selector)
    try:
        async for obj in found:
            yield obj.metadata
    except ApiNotFound:
        return


async def _is_there(client: Client, resource: Resource[Any], namespace: str, name: str) -> bool:
    return await client.resource(resource, _decode).get_or_none(name, namespace=namespace) is not None
