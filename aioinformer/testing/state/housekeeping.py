"""The work of controllers: garbage collection, namespaces, objects of definitions.

One task, woken by deletions, works in small steps. An object with finalizers holds back the deletion of its namespace
or definition, and so do finalizers of the namespace itself; the task checks again after each removal of an object, and
after each change of a namespace that is being deleted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aioinformer.concurrency import create_task
from aioinformer.logs import get_logger
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import StatusError

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.deletion import GarbageCollector
    from aioinformer.testing.state.storage import Record

_log = get_logger("aioinformer.testing")

_AT_ONCE = 25
_CRDS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


class Housekeeper:
    """Complete deletions that take more than one step."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        cluster.store.on_cleanup_needed = self._wake.set

    def start(self) -> None:
        self._task = create_task(self._run(), name="aioinformer.testing: housekeeping")

    async def stop(self) -> None:
        """Stop the task. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        await self._wake.wait()
        # Imported on demand: many servers never delete anything.
        from aioinformer.testing.state.deletion import GarbageCollector

        garbage = GarbageCollector(self._cluster)
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._collect_garbage(garbage)
                holds_namespaces = await self._finish_namespaces()
                holds_definitions = await self._finish_definitions()
                self._cluster.store.awaits_removals = holds_namespaces or holds_definitions
            except Exception:
                _log.exception("housekeeping failed; it continues with the next deletion")

    async def _finish_namespaces(self) -> bool:
        """Empty and remove the namespaces that are being deleted; return whether objects hold some of them back."""
        namespaces = self._served("", "v1", "namespaces")
        is_held = False
        for namespace in self._deleting(namespaces):
            left = 0
            for served in self._namespaced():
                left += await self._delete_all(served, namespace.name)
            is_held = is_held or left > 0
            held_by_itself = decode(namespace.body)["metadata"].get("finalizers")
            if left == 0 and not held_by_itself and self._is_current(namespaces, namespace):
                self._cluster.store.remove(namespaces, namespace)
        return is_held

    async def _finish_definitions(self) -> bool:
        """Remove the definitions that are being deleted; return whether objects hold some of them back."""
        from aioinformer.testing.schemas.definitions import is_established

        definitions = self._served(*_CRDS)
        is_held = False
        for definition in self._deleting(definitions):
            obj = decode(definition.body)
            spec = obj["spec"]
            version = next(version["name"] for version in spec["versions"] if version.get("storage"))
            served = self._cluster.store.registry.find(spec["group"], version, spec["names"]["plural"])
            if served is not None and is_established(obj) and await self._delete_all(served, ""):
                is_held = True
                continue
            if self._is_current(definitions, definition):
                if is_established(obj):
                    self._cluster.store.registry.forget(obj)
                self._cluster.store.storage.drop(definition.name)
                self._cluster.store.remove(definitions, definition)
                self._cluster.writer.accept_names(definitions)
        return is_held

    async def _collect_garbage(self, garbage: GarbageCollector) -> None:
        steps = 0
        while garbage.step():
            steps += 1
            if steps % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _delete_all(self, served: Served, namespace: str) -> int:
        """Delete all objects of a resource; return how many finalizers hold back."""
        collection = self._cluster.store.collection(served)
        for index, record in enumerate(collection.records(namespace)):
            try:
                self._cluster.delete(served, record.namespace, record.name)
            except StatusError as error:
                if error.code != 404:
                    raise
            if index % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        return len(collection.records(namespace))

    def _deleting(self, served: Served) -> list[Record]:
        return [
            record
            for record in self._cluster.store.collection(served).records()
            if b'"deletionTimestamp"' in record.body and "deletionTimestamp" in decode(record.body)["metadata"]
        ]

    def _is_current(self, served: Served, record: Record) -> bool:
        return self._cluster.store.collection(served).get(record.key) is record

    def _namespaced(self) -> list[Served]:
        by_collection = {
            served.collection: served
            for served in self._cluster.store.registry
            if served.resource.namespaced and (served.custom or served.is_stored)
        }
        return list(by_collection.values())

    def _served(self, group: str, version: str, plural: str) -> Served:
        served = self._cluster.store.registry.find(group, version, plural)
        assert served is not None
        return served
