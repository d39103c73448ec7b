"""`OwnWrites`: the writes of each key that the caches do not show yet.

A controller must not decide on a cache that lacks its own earlier decisions: it would create a child a second time. So
the writes of a key are recorded, and its next run begins when every informer of the controller shows them.

- A write that the server has answered is awaited by the version in the answer. No request is sent.
- If the outcome is unknown (a lost answer, a cancellation, an error of the server), the object is read by its name
  first: a list with a field selector, which needs no other permission than the informer does. What the server has then
  is awaited. If it has nothing, the cached object must go.
- After a create with `generateName` whose outcome is unknown, all objects with the same labels are read and awaited.
- A write that the server processes after such a read is not found. No client can know of it.
- Resources without an informer are not recorded, and no dry runs.
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
from aioinformer.controller.writes.records import Flight, Unread, Writes, cached_uids
from aioinformer.controller.writes.sender import RecordingSender, WritePolicy
from aioinformer.controller.writes.targets import read
from aioinformer.errors import AioinformerError, ApiNotFound, DecodeError
from aioinformer.resources.resource import Resource
from aioinformer.resources.versions import covers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.cache.objects.record import Record
    from aioinformer.client.lists import Page
    from aioinformer.controller.writes.targets import Metadata, Target
    from aioinformer.informer.reader import InformerCache
    from aioinformer.resources.keys import ObjectName
    from aioinformer.transport import Request, Transport
    from aioinformer.transport.auth.credentials import Connection

#: If more objects than these match, their list is awaited by its version, which may take until the next bookmark.
_PAGE: Final = 500
#: How many other keys are checked with each recorded write: they may never run again.
_SWEEP: Final = 2
_OBJECTS: ObjectType[Any] = ObjectType(Resource("", "v1", "objects", ""))


class _Name(NamedTuple):
    name: str
    namespace: str


class _Unknown(NamedTuple):
    """An object of which only the namespace is known: informers of other namespaces do not watch it."""

    metadata: _Name


class OwnWrites:
    """The own writes of a controller, by the key of the run that made them.

    Args:
        inputs: (group, plural) -> the informers of the controller for this resource, in any version.
        transport: sends the requests; or a client, whose options all clients here have.
        field_manager: of the clients.
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

    def client(self, key: ObjectName, *, fence: Callable[[], float | None] | None = None) -> Client:
        """Return a client that records its writes for a key.

        Args:
            key: of the run.
            fence: instead of that of the policy, such as the one of the current term of leadership.
        """
        return self._client.with_sender(lambda sender: RecordingSender(sender, self, key, fence))

    def pending(self, key: ObjectName) -> bool:
        """Return whether a run of the key must wait in `settle` first. The call is cheap."""
        writes = self._keys.get(key)
        if writes is None:
            return False
        if writes.drop_shown():
            return True
        del self._keys[key]
        return False

    async def settle(self, key: ObjectName) -> None:
        """Wait until the caches show all writes that were made for a key before this call. Nothing is polled.

        A write that is still under way is awaited, too. Later writes are not.

        Raises:
            StaleCache: the caches did not show them in time, or an informer has stopped, or the server could not be
                read. The writes stay recorded, and the next call begins with a live read of what is missing.
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
            missing = f"{key}: the own writes are not in the caches within {self._timeout:g} s: {writes}"
            for awaited in list(writes.awaited.values()):
                writes.doubt(awaited)
            if limit.expired():
                raise StaleCache(missing) from None
            raise StaleCache(f"{key}: the caches cannot show the own writes: {error}") from error
        self.pending(key)

    def forget(self, key: ObjectName) -> None:
        """Forget the writes of a key. One that is under way is still recorded when it ends."""
        self._keys.pop(key, None)

    async def _settle(self, writes: Writes) -> None:
        for flight in list(writes.flights):
            await flight.ended.wait()
        for awaited in list(writes.awaited.values()):
            informers = self._inputs(awaited.target.group, awaited.target.plural)
            if not all(informer in informers for informer, _ in awaited.missing):
                writes.doubt(awaited)  # an informer was replaced
        for unread in list(writes.unread.values()):
            await self._read(writes, unread)
        for awaited in list(writes.awaited.values()):
            for informer, shown in list(awaited.missing):
                await informer.wait_until_shown(shown)

    # For the sender.

    def cached(self, target: Target) -> bytes | None:
        """Return the JSON of a cached object, None if there is none."""
        for informer in self._inputs(target.group, target.plural):
            if (record := informer.get_indexer().store.item(target.key)) is not None:
                return bytes(record.json)
        return None

    def begin(self, key: ObjectName, target: Target, request: Request) -> Flight | None:
        """Note that a write is about to be sent. Return what `end` takes; None if no informer watches the resource."""
        informers = self._inputs(target.group, target.plural)
        if not informers:
            return None
        flight = Flight(target, request, next(cached_uids(informers, target.key), ""))
        self._keys.setdefault(key, Writes()).flights[flight] = None
        return flight

    def end(
        self,
        key: ObjectName,
        flight: Flight,
        answer: bytes | None = None,
        *,
        unknown: bool = False,
        missing: bool = False,
    ) -> None:
        """Note the end of a write.

        Args:
            key: of the run.
            flight: what `begin` has returned.
            answer: the body of the answer, None for a failure.
            unknown: the server may have processed the write that failed.
            missing: the write failed, since the server does not have the object.
        """
        writes = self._keys.setdefault(key, Writes())
        writes.flights.pop(flight, None)
        if answer is not None:
            self._record(writes, flight, answer)
        elif missing and flight.uid:
            self._gone(writes, flight.target, flight.uid)
        elif unknown:
            self._doubt(writes, flight.unread())
        flight.ended.set()
        self._keys.move_to_end(key)
        for other in list(islice(self._keys, _SWEEP)):
            if self.pending(other):
                self._keys.move_to_end(other)

    def _record(self, writes: Writes, flight: Flight, answer: bytes) -> None:
        target, document = flight.target, read(answer)
        metadata = document.metadata
        informers = self._inputs(target.group, target.plural)
        if target.verb == "deletecollection":
            items = [each.metadata for each in document.items or ()]
            deleted = tuple(Write(_key(each), each.uid or "", "") for each in items)
            self._doubt(writes, flight.unread()._replace(deleted=deleted, complete=document.items is not None))
        elif target.verb == "delete" and document.kind == "Status" and not target.subresource:
            self._gone(writes, target, document.uid or flight.uid)
        elif not (document.uid and document.version) or (
            target.subresource and document.kind not in {informer.resource.kind for informer in informers}
        ):
            self._doubt(writes, flight.unread())  # an eviction, or a Scale, which has no labels
        else:
            write = Write(_key(metadata), document.uid, document.version)
            gone = target.verb == "delete" and not metadata.deletion_timestamp
            try:
                obj = decode(answer, _OBJECTS)
            except DecodeError:
                obj = None
            writes.add(target, write, obj, informers, gone=gone)

    def _gone(self, writes: Writes, target: Target, uid: str) -> None:
        if uid:
            writes.add(target, Write(target.key, uid, ""), None, self._inputs(target.group, target.plural), gone=True)

    def _doubt(self, writes: Writes, unread: Unread) -> None:
        target = unread.target
        if any(informer.watches(_place(target)) for informer in self._inputs(target.group, target.plural)):
            writes.add_unread(unread)

    # Reading.

    async def _read(self, writes: Writes, unread: Unread) -> None:
        """Read what the server has, and await that."""
        target = unread.target
        fields = {"metadata.name": target.name} if target.name else unread.fields
        objects = self._client.resource(target.resource)
        listing = objects.list(unread.labels, fields, namespace=target.namespace, limit=_PAGE, timeout=None)
        page: Page[Any] | None = None
        with suppress(ApiNotFound):  # the resource is not served any more
            page = await listing
        informers = self._inputs(target.group, target.plural)
        if page is not None and (page.continue_token or not unread.complete):
            everything = Write(f"{target.namespace}/", "", page.resource_version)
            writes.add(target, everything, _place(target), informers)
        else:
            found = set()
            for obj in page or ():
                record: Record = obj._record
                found.add(record.uid)
                writes.add(target, _least(unread.write, record), obj, informers)
            gone = set(unread.deleted)
            if target.name:
                gone |= {Write(target.key, uid, "") for uid in cached_uids(informers, target.key)}
            for write in gone:
                if write.uid not in found:
                    writes.add(target, write, None, informers, gone=True)
        if writes.unread.get(unread.id) is unread:
            del writes.unread[unread.id]


def _place(target: Target) -> _Unknown:
    return _Unknown(_Name("-", target.namespace))


def _key(metadata: Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name or ""


def _least(known: Write | None, record: Record) -> Write:
    """Return what to await of an object that was read: its version, or the earlier one that was awaited before."""
    version = record.resource_version
    if known is not None and known.uid == record.uid and known.version and covers(version, known.version):
        version = known.version
    return Write(record.key, record.uid, version)
