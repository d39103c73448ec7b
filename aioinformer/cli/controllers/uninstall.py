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
from aioinformer.errors import AioinformerError, ApiNotFound
from aioinformer.logs import get_logger, visible
from aioinformer.resources.resource import Resource
from aioinformer.ring.leases import LABEL
from aioinformer.webhooks.certificates import CONFIGURATIONS, DEFINITIONS, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.cli.options import ServerOptions
    from aioinformer.controller import Manager
    from aioinformer.controller.declaration import Controller
    from aioinformer.transport import Transport

logger = get_logger("aioinformer.cli")

_TIMEOUT = 300.0
_CONFIG_MAPS: Final[Resource[Any]] = Resource("", "v1", "configmaps", kind="ConfigMap")
_LEASES: Final[Resource[Any]] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")


class _Object(msgspec.Struct):
    """What is read of an object: the values of Secrets are not decoded."""

    metadata: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_Object).decode


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
        count = 0
        try:
            async with connected(self._server) as (transport, _):
                async for each in left_by(self._manager, transport):
                    count += 1
                    self._write(f"{visible(str(each))}\n".encode())
        except AioinformerError as error:
            logger.error("the list is not complete: %s", error)
            self.end(1)
        else:
            logger.info("manager %s has left %d objects; nothing was removed", self._manager.name, count)
            self.end(0)


async def left_by(manager: Manager, transport: Transport) -> AsyncIterator[Left]:
    """Yield what a manager has left in a cluster: what its controllers have written, then what itself has.

    An object counts as written by a controller if its managed fields say so, as far as the manager declares its kind.
    Objects of a manager's own have names that it declares; a Lease or ConfigMap that another program has under such a
    name cannot be told apart, except those of a ring, which have a label.

    Raises:
        AioinformerError: the cluster cannot be asked, or refuses.
    """
    client = Client(transport)
    for controller in manager.controllers.values():
        for resource in _written(controller):
            namespaces = (manager.namespaces if resource.namespaced else ()) or ("",)
            for namespace in namespaces:
                async for each in _by_controller(client, controller, resource, namespace):
                    yield each
    async for each in _own(manager, client):
        yield each


def _written(controller: Controller[Any]) -> list[Resource[Any]]:
    """Return the kinds that a controller may have written: its own, those it owns, and those it declares."""
    kinds = [controller.resource, *(each.resource for each in controller.owns), *(controller.writes or ())]
    return list({each.group_resource: each for each in kinds}.values())


async def _by_controller(
    client: Client, controller: Controller[Any], resource: Resource[Any], namespace: str
) -> AsyncIterator[Left]:
    found = client.resource(resource, _decode).list(namespace=namespace)
    try:
        async for obj in found:
            metadata = obj.metadata
            every = metadata.get("managedFields") or ()
            entries = [each for each in every if writes_as(controller.name, each.get("manager") or "")]
            if not entries:
                continue
            held = [name for name in metadata.get("finalizers") or () if any(_has_finalizer(e, name) for e in entries)]
            what = "its finalizer " + ", ".join(held) if held else "fields"
            why = f"controller {controller.name} has set {what}"
            yield Left(resource, metadata.get("namespace", ""), metadata["name"], why)
    except ApiNotFound:
        return  # the kind is not served any more


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
            selector = {LABEL: ring.name}
            async for obj in client.resource(resource, _decode).list(selector, namespace=ring.namespace):
                yield Left(resource, ring.namespace, obj.metadata["name"], f"ring {ring.name}: {why}")
    if (server := manager.webhooks) is not None:
        if server.files is None and await _is_there(client, SECRETS, server.namespace, server.secret):
            yield Left(SECRETS, server.namespace, server.secret, "the CA of the webhooks")
        for resource in CONFIGURATIONS.values():
            if await _is_there(client, resource, "", server.configuration):
                yield Left(resource, "", server.configuration, "calls the webhooks: delete it before the manager")
        for each in manager.admission.conversions.resources():
            if await _is_there(client, DEFINITIONS, "", each.group_resource):
                why = "its versions are converted by the manager: retire them, or delete it, before the manager"
                yield Left(DEFINITIONS, "", each.group_resource, why)


async def _is_there(client: Client, resource: Resource[Any], namespace: str, name: str) -> bool:
    return await client.resource(resource, _decode).get_or_none(name, namespace=namespace) is not None
