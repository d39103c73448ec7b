"""`OwnWrites`: the writes of each key that the caches may not show yet.

A controller must not decide on a cache that lacks its own earlier writes: it would create a child twice. So the writes
of each key are recorded, and its next run begins when every informer of the controller shows them.

- A write that was answered is awaited by the version in the answer. This sends no request.
- If the outcome is unknown (a lost answer, a cancellation, an error of the server), the object is read by its name: a
  list with a field selector, for which the permissions of the informer suffice. What the server has is awaited; if it
  has nothing, the cached object must go. A create with `generateName` reads all objects with the same labels.
- A write that the server processes after this read is not noticed; no client can know of it.
- Nothing is recorded of resources without an informer, and of dry runs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.waiters import Write
from aioinformer.client.bodies import decode
from aioinformer.client.client import Client
from aioinformer.controller.request import StaleCache
from aioinformer.controller.writes.records import Flight, Unread, Writes
from aioinformer.controller.writes.sender import RecordingSender, WritePolicy
from aioinformer.controller.writes.targets import Metadata, read
from aioinformer.errors import AioinformerError, ApiNotFound, DecodeError
from aioinformer.resources.resource import Resource
from aioinformer.resources.versions import covers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.cache.objects.record import Record
    from aioinformer.client.lists import Page
    from aioinformer.controller.writes.sender import Fence
    from aioinformer.controller.writes.targets import Target
    from aioinformer.informer.reader import InformerCache
    from aioinformer.resources.keys import ObjectName
    from aioinformer.transport import Request, Transport
    from aioinformer.transport.auth.credentials import Connection

#: If a read finds more objects, the version of the list is awaited, for which an idle informer needs a bookmark.
_PAGE: Final = 500
#: How many other keys are checked with each write: they may never run again.
_SWEEP: Final = 2
_OBJECTS: ObjectType[Any] = ObjectType(Resource("", "v1", "objects", ""))


class _Unknown(NamedTuple):
    """An object of which the namespace alone is known, to find out whether an informer watches it."""

    metadata: Metadata


class OwnWrites:
    """The own writes of a controller, by the key of the run that made them.

    Args:
        inputs: (group, plural) -> the informers of the controller for this resource, in any version.
        transport: sends the requests; or a client, whose options all clients here have.
        field_manager: of the clients; None for that of the client, if one is given.
        policy: what is checked before each write.
        timeout: seconds after which `settle` raises.

    Attributes:
        policy: as given.
    """

    def __init__(
        self,
        inputs: Callable[[str, str], Sequence[InformerCache[Any]]],
        transport: Transport | Connection | Client,
        *,
        field_manager: str | None = None,
        policy: WritePolicy | None = None,
        timeout: float = 5.0,
    ) -> None:
        client = transport if isinstance(transport, Client) else Client(transport)
        self.policy = policy or WritePolicy()
        self._client = client if field_manager is None else client.with_options(field_manager=field_manager)
        self._inputs = inputs
        self._timeout = timeout
        self._keys: OrderedDict[ObjectName, Writes] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of keys with writes that the caches may not show yet."""
        return len(self._keys)

    def client(self, key: ObjectName, *, fence: Fence | None = None) -> Client:
        """Return a client that records its writes for a key.

        Args:
            key: of the run.
            fence: instead of that of the policy, such as that of the current term of leadership.
        """
        return self._client.with_sender(lambda sender: RecordingSender(sender, self, key, fence))

    def pending(self, key: ObjectName) -> bool:
        """Return whether a run of the key must await `settle` first. The call is cheap."""
        writes = self._keys.get(key)
        if writes is None:
            return False
        if writes.drop_shown():
            return True
        del self._keys[key]
        return False

    async def settle(self, key: ObjectName) -> None:
        """Wait until the caches show the writes that were made for a key before this call. Nothing is polled.

        Writes under way are awaited, too; later ones are not.

        Raises:
            StaleCache: the caches did not show them in time, an informer has stopped, or the server could not be read.
                The writes stay recorded, and the next call reads what the server has.
        """
        if not self.pending(key):
            return
        writes, limit = self._keys[key], asyncio.timeout(self._timeout)
        try:
            async with limit:
                await self._settle(writes)
        except (TimeoutError, AioinformerError) as error:
            if isinstance(error, TimeoutError) and not limit.expired():
                raise
            reason = f"not within {self._timeout:g} s: {writes}" if limit.expired() else str(error)
            for awaited in list(writes.awaited.values()):
                writes.doubt(awaited)
            raise StaleCache(f"{key}: the caches do not show its own writes: {reason}") from error
        self.pending(key)

    def forget(self, key: ObjectName) -> None:
        """Forget the writes of a key. One that is under way is recorded when it ends."""
        self._keys.pop(key, None)

    async def _settle(self, writes: Writes) -> None:
        for flight in list(writes.flights):
            await flight.ended.wait()
        for unread in list(writes.unread.values()):
            await self._read(writes, unread)
        for awaited in list(writes.awaited.values()):
            for informer, shown in awaited.missing:
                await informer.wait_until_shown(shown)

    async def _read(self, writes: Writes, unread: Unread) -> None:
        """Read what the server has, and await that."""
        target, found = unread.target, set()
        resource = Resource(target.group, target.version, target.plural, "", namespaced=bool(target.namespace))
        fields = {"metadata.name": target.name} if target.name else unread.fields
        objects = self._client.resource(resource)
        page: Page[Any] | None = None
        with suppress(ApiNotFound):  # the resource is not served any more
            page = await objects.list(unread.labels, fields, namespace=target.namespace, limit=_PAGE, timeout=None)
        informers = self._inputs(target.group, target.plural)
        if writes.unread.get(unread.id) is unread:  # otherwise, another write of the object has failed meanwhile
            del writes.unread[unread.id]
        if page is not None and (page.continue_token or not unread.complete):
            collection = Write(f"{target.namespace}/", "", page.resource_version)
            writes.wait_for(target, collection, _place(target), informers)
            return
        for obj in page or ():
            record: Record = obj._record
            known, version = unread.write, record.resource_version
            if known is not None and known.uid == record.uid and known.version and covers(version, known.version):
                version = known.version  # a later one would be a longer wait
            writes.wait_for(target, Write(record.key, record.uid, version), obj, informers)
            found.add(record.uid)
        gone = [*unread.deleted, *(Write(target.key, uid, "") for uid in self._cached_uids(target))]
        for write in gone:
            if write.uid not in found:
                writes.wait_for(target, write, None, informers, gone=True)

    # For the sender.

    def begin(self, key: ObjectName, target: Target, request: Request) -> Flight:
        """Note that a write is about to be sent, and return what `end` takes."""
        flight = Flight(target, request, next(iter(self._cached_uids(target)), ""))
        self._keys.setdefault(key, Writes()).flights[flight] = None
        return flight

    def end(
        self, key: ObjectName, flight: Flight, answer: bytes = b"", *, unknown: bool = False, missing: bool = False
    ) -> None:
        """Note the end of a write.

        Args:
            key: of the run.
            flight: what `begin` has returned.
            answer: the body of the answer, empty after a failure.
            unknown: what the server has must be read.
            missing: the server does not have the object.
        """
        writes = self._keys.setdefault(key, Writes())
        writes.flights.pop(flight, None)
        if answer:
            self._record(writes, flight, answer)
        elif missing:
            self._gone(writes, flight, flight.uid)
        elif unknown:
            self._must_read(writes, flight.unread())
        flight.ended.set()
        self._keys.move_to_end(key)
        for other in list(islice(self._keys, _SWEEP)):
            if self.pending(other):
                self._keys.move_to_end(other)

    def cached(self, target: Target) -> bytes | None:
        """Return the JSON of a cached object, None if there is none."""
        records = (each.get_indexer().store.item(target.key) for each in self._inputs(target.group, target.plural))
        return next((bytes(record.json) for record in records if record is not None), None)

    def _record(self, writes: Writes, flight: Flight, answer: bytes) -> None:
        target, document = flight.target, read(answer)
        informers, metadata = self._inputs(target.group, target.plural), document.metadata
        foreign = bool(target.subresource) and document.kind not in {each.resource.kind for each in informers}
        if target.verb == "deletecollection":
            listed = document.listed
            deleted = tuple(Write(each.key, each.uid or "", "") for each in listed or ())
            self._must_read(writes, flight.unread()._replace(deleted=deleted, complete=listed is not None))
        elif target.verb == "delete" and document.kind == "Status":
            self._gone(writes, flight, document.deleted or flight.uid)
        elif foreign or not (metadata.uid and metadata.resource_version):
            self._must_read(writes, flight.unread())  # an eviction has no object, and a Scale no labels
        else:
            obj = None
            if len(informers) > 1 or flight.uid != metadata.uid:  # otherwise the informer does watch the object
                with suppress(DecodeError):
                    obj = decode(answer, _OBJECTS)
            write = Write(metadata.key, metadata.uid, metadata.resource_version)
            gone = metadata.ended or (target.verb == "delete" and not metadata.deletion_timestamp)
            writes.wait_for(target, write, obj, informers, gone=gone)

    def _gone(self, writes: Writes, flight: Flight, uid: str) -> None:
        target = flight.target
        if uid:
            informers = self._inputs(target.group, target.plural)
            writes.wait_for(target, Write(target.key, uid, ""), None, informers, gone=True)

    def _must_read(self, writes: Writes, unread: Unread) -> None:
        target = unread.target
        if any(each.watches(_place(target)) for each in self._inputs(target.group, target.plural)):
            writes.unread[unread.id] = unread

    def _cached_uids(self, target: Target) -> set[str]:
        informers = self._inputs(target.group, target.plural) if target.name else ()
        records = (informer.get_indexer().store.item(target.key) for informer in informers)
        return {record.uid for record in records if record is not None}


def _place(target: Target) -> _Unknown:
    return _Unknown(Metadata(name="-", namespace=target.namespace))
