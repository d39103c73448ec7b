"""Storage migration: write all objects of a custom resource again, so that older versions can be retired.

The API server stores an object in the version that the definition marks, and leaves it so until the next write. A
version can leave the definition only when no object is stored in it, and `status.storedVersions` no longer has it.

1. All API servers must use the new storage version. Discovery has a hash of it, which is asked for on fresh
   connections, so that a balancer may choose another server each time. That proves nothing about servers which were
   never reached; hence the further wait.
2. Each object is written as it was read, with its version as a precondition. After a conflict, somebody else has
   written it in the new version.
3. `storedVersions` is shortened if nothing was refused, and the definition has not changed meanwhile.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from aioinformer.client.changes.patches import document_of
from aioinformer.client.client import Client
from aioinformer.client.resource_client import ResourceClient
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import ApiError, ApiNotFound, Conflict, Expired, Forbidden, UsageError
from aioinformer.resources.keys import object_name
from aioinformer.resources.resource import Resource

_DEFINITIONS: Final[Resource[Any]] = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    subresources=("status",),
)
_GROUP: Final = "storagemigration.k8s.io"
#: Fresh connections in a row on which discovery must name the new version.
_ANSWERS: Final = 10
#: Seconds after a change of the definition.
_SETTLED: Final = 120.0
#: By which the clocks of this machine and of the API server may differ.
_SKEW: Final = 480.0
_PAUSE: Final = 1.0
#: Seconds for the cluster's own controller to begin.
_BEGIN: Final = 60.0
#: Writes at a time.
_PARALLEL: Final = 10
_PAGE: Final = 500


class MigrationReport(msgspec.Struct):
    """What a migration has done, or would do.

    Attributes:
        objects: how many there are. If all of the first page are refused, the others are not tried.
        written: objects that were written again.
        changed: objects that somebody else wrote meanwhile.
        gone: objects that were deleted meanwhile.
        cleaned: objects that lost entries of managed fields in versions that are not served.
        refused: key -> why the server refused it.
        stored_versions: those of the definition, at the end.
        last: the last key of the pages that are done, up to the first refused object; `after=` goes on behind it.
    """

    objects: int = 0
    written: int = 0
    changed: int = 0
    gone: int = 0
    cleaned: int = 0
    refused: dict[str, str] = {}
    stored_versions: tuple[str, ...] = ()
    last: str = ""


class StorageMigration:
    """Migrates the objects of a custom resource to the version that the definition stores. Run it once.

    An object keeps all its fields. It loses the entries of `metadata.managedFields` in versions that are not served any
    more, which make applies fail. A second run goes on where the first one was interrupted: a write that changes
    nothing costs the server little.

    Args:
        client: with the right to read the definition and to patch its status, and to list and update the objects. With
            that to create, get and delete `storageversionmigrations`, the cluster writes the objects, if it can.
        resource: in its stored version, as the class declares it.
        after: a key; objects up to it were written by an earlier run, in the order of lists: that of the characters of
            `namespace/name`.
        tell: is called with a line of progress now and then.
        settled: seconds since the last change of the definition.

    Attributes:
        report: what is done so far.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Any],
        *,
        after: str = "",
        tell: Callable[[str], None] = lambda line: None,
        settled: float = _SETTLED,
    ) -> None:
        self.report = MigrationReport(last=after)
        self._client = client
        # Without a decoder: all fields of an object are written, whatever the class has.
        self._resource: Resource[Any] = Resource(
            resource.group, resource.version, resource.plural, resource.kind, resource.namespaced
        )
        #: Lists have the order of the keys in etcd, where "a-b/x" is before "a/y", since "-" is before "/".
        self._after = after
        self._tell = tell
        self._settled = settled
        self._began = time.monotonic()

    async def plan(self) -> list[str]:
        """Return what `run` would do, a line each; nothing is written.

        Raises:
            UsageError: the definition stores another version.
            ApiError, TransportError: as every read.
        """
        definition = await self._definition()
        served = _served(definition)
        found = 0
        stale = 0
        async for each in self._objects().list():
            if str(object_name(each)) > self._after:
                found += 1
                stale += bool(_stale(document_of(each), served))
        stored = definition["status"].get("storedVersions") or []
        name = self._resource.group_resource
        lines = [f"{name} stores {self._resource.version}; objects may be stored in {', '.join(stored)}"]
        hashes = "names it" if await self._is_known() else "does not name it yet: wait"
        lines.append(f"discovery {hashes}")
        by = f"by a StorageVersionMigration of {api[0]}" if (api := await self._api()) else "here"
        lines.append(f"{found} objects would be written {by}")
        lines.append(f"{stale} of them would lose managed fields of versions that are not served")
        lines.append(f"storedVersions would become {self._resource.version}")
        return lines

    async def run(self) -> MigrationReport:
        """Write all objects, and shorten `storedVersions`; return what was done.

        Raises:
            UsageError: the definition stores another version, or has changed meanwhile.
            ApiError, TransportError: as every request; `report.last` says how far it went.
        """
        definition = await self._definition()
        await self._wait_for_servers(definition)
        done_by_cluster = await self._by_cluster()
        await self._write_all(_served(definition), only_stale=done_by_cluster)
        if self.report.refused:
            self.report.stored_versions = tuple(definition["status"].get("storedVersions") or ())
            return self.report
        await self._retire(definition)
        return self.report

    async def _definition(self) -> dict[str, Any]:
        found = document_of(await self._client.resource(_DEFINITIONS).get(self._resource.group_resource))
        stored = next(each["name"] for each in found["spec"]["versions"] if each["storage"])
        if stored != self._resource.version:
            raise UsageError(
                f"{self._resource.group_resource} stores {stored}, and the class is of {self._resource.version}: apply "
                "the new definition first, or name the class of the stored version"
            )
        return found

    # All API servers use the new version.

    async def _wait_for_servers(self, definition: Mapping[str, Any]) -> None:
        answers = 0
        told = False
        while answers < _ANSWERS:
            if await self._is_known():
                answers += 1
                continue
            answers = 0
            if not told:
                self._tell("waiting until discovery names the new storage version")
                told = True
            await asyncio.sleep(_PAUSE)
        if _seconds_since(definition) < self._settled + _SKEW:
            left = self._began + self._settled - time.monotonic()
            if left > 0:
                self._tell(f"waiting {left:.0f} s, since the definition has changed lately")
                await asyncio.sleep(left)

    async def _is_known(self) -> bool:
        """Return whether a server, on a fresh connection, says that it stores the version."""
        resource = self._resource
        path = f"/apis/{resource.group}/{resource.version}"
        answer = (await self._client.request("GET", path, fresh=True)).json()
        digest = hashlib.sha256(f"{resource.group}/{resource.version}/{resource.kind}".encode()).digest()
        expected = base64.b64encode(digest[:8]).decode()
        return any(
            each["name"] == resource.plural and each.get("storageVersionHash") == expected
            for each in answer.get("resources") or ()
        )

    # The writes.

    def _objects(self) -> ResourceClient[Any]:
        return self._client.resource(self._resource)

    async def _write_all(self, served: frozenset[str], *, only_stale: bool) -> None:
        while True:
            after = self._after  # within one list, no object is left out
            try:
                async for page in self._objects().list(page_size=_PAGE).pages():
                    keys = [(str(object_name(each)), each) for each in page]
                    waiting = [(key, each) for key, each in keys if key > after]
                    if waiting:
                        await self._write_page(waiting, served, only_stale)
                    if self.report.objects and len(self.report.refused) == self.report.objects:
                        self._tell(f"all of the first {self.report.objects} objects are refused: the others stay")
                        return
            except Expired:  # the rest is listed anew
                continue
            return

    async def _write_page(self, page: list[tuple[str, Any]], served: frozenset[str], only_stale: bool) -> None:
        limit = asyncio.Semaphore(_PARALLEL)

        async def write(key: str, obj: Any) -> None:
            async with limit:
                await self._write(key, document_of(obj), served, only_stale)

        try:
            async with TaskGroup() as tasks:
                for key, obj in page:
                    tasks.create_task(write(key, obj), name=f"migration of {key}")
        except ExceptionGroup as group:  # the others were cancelled for the first one
            raise group.exceptions[0] from group
        self.report.objects += len(page)
        self._after = page[-1][0]
        if not self.report.refused:  # a later run must not go on behind an object that is still in an old version
            self.report.last = self._after
        self._tell(f"{self.report.objects} objects, up to {self._after}")

    async def _write(self, key: str, document: dict[str, Any], served: frozenset[str], only_stale: bool) -> None:
        stale = _stale(document, served)
        if stale:
            metadata = document["metadata"]
            kept = [each for each in metadata["managedFields"] if each not in stale]
            document = {**document, "metadata": {**metadata, "managedFields": kept or [{}]}}
        elif only_stale:
            return
        try:
            await self._objects().replace(document)
        except Conflict:
            self.report.changed += 1
        except ApiNotFound as error:
            if not error.name:  # the resource is not served at the moment
                raise
            self.report.gone += 1
        except ApiError as error:
            self.report.refused[key] = str(error)
        else:
            self.report.written += 1
            self.report.cleaned += bool(stale)

    # By the cluster itself.

    async def _api(self) -> tuple[str, Resource[Any]] | None:
        """Return version and resource of the cluster's own migrations; None if they are not served."""
        for each in await self._client.discover():
            if each.group == _GROUP and each.kind == "StorageVersionMigration":
                return each.version, each
        return None

    async def _by_cluster(self) -> bool:
        """Let the cluster migrate the objects, if it can and may be asked to; return whether it has."""
        found = await self._api()
        if found is None:
            return False
        version, resource = found
        migrations = self._client.resource(resource)
        wanted = {"group": self._resource.group, "resource": self._resource.plural}
        if version == "v1alpha1":
            wanted["version"] = self._resource.version
        body = {"metadata": {"generateName": f"{self._resource.plural}-"}, "spec": {"resource": wanted}}
        try:
            name = document_of(await migrations.create(body))["metadata"]["name"]
        except Forbidden as error:
            self._tell(f"the cluster is not asked to migrate the objects, they are written from here: {error}")
            return False
        self._tell(f"StorageVersionMigration {name} writes the objects")
        began = time.monotonic()
        try:
            while True:
                conditions = document_of(await migrations.get(name)).get("status", {}).get("conditions") or ()
                true = {each["type"]: each for each in conditions if each["status"] == "True"}
                if "Succeeded" in true:
                    return True
                if "Failed" in true:
                    self._tell(f"it has failed: {true['Failed'].get('message', '')}; the objects are written from here")
                    return False
                if not true and time.monotonic() - began > _BEGIN:
                    self._tell("no controller has begun it; the objects are written from here")
                    return False
                await asyncio.sleep(_PAUSE)
        except ApiNotFound:
            self._tell(f"StorageVersionMigration {name} was deleted; the objects are written from here")
            return False
        finally:
            with suppress(ApiNotFound):
                await migrations.delete(name)

    # The end.

    async def _retire(self, before: Mapping[str, Any]) -> None:
        """Shorten `storedVersions`, if the definition is the one that was there before the writes."""
        now = await self._definition()
        if any(before["metadata"][each] != now["metadata"][each] for each in ("uid", "generation")):
            raise UsageError(f"{self._resource.group_resource} has changed meanwhile: run the migration again")
        version = now["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "status": {"storedVersions": [self._resource.version]}}
        definitions = self._client.resource(_DEFINITIONS)
        stored = document_of(await definitions.status.patch(self._resource.group_resource, patch))
        self.report.stored_versions = tuple(stored["status"]["storedVersions"])


def _served(definition: Mapping[str, Any]) -> frozenset[str]:
    group = definition["spec"]["group"]
    return frozenset(f"{group}/{each['name']}" for each in definition["spec"]["versions"] if each["served"])


def _stale(document: Mapping[str, Any], served: frozenset[str]) -> list[dict[str, Any]]:
    """Return the entries of managed fields in versions that are not served."""
    entries = document["metadata"].get("managedFields") or ()
    return [each for each in entries if each.get("apiVersion") not in served]


def _seconds_since(definition: Mapping[str, Any]) -> float:
    """Return for how long the definition has not changed, by the clock of this machine."""
    metadata = definition["metadata"]
    entries = metadata.get("managedFields") or ()
    times = [each["time"] for each in entries if each.get("time") and not each.get("subresource")]
    latest = max([*times, metadata["creationTimestamp"]])
    return (datetime.now(UTC) - datetime.fromisoformat(latest)).total_seconds()
