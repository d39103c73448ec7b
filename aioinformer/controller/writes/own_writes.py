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
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, labels_of
from aioinformer.cache.waiters import Write
from aioinformer.client.bodies import decode
from aioinformer.client.client import Client
from aioinformer.client.targets import Metadata, Target, read
from aioinformer.controller.writes.permits import Fence, Permit
from aioinformer.controller.writes.records import Flight, Unread, Writes
from aioinformer.controller.writes.sender import Log, RecordingSender, WritePolicy
from aioinformer.errors import AioinformerError, ApiNotFound, DecodeError
from aioinformer.informer.reader import InformerCache
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.resources.selectors import label_selector_of
from aioinformer.resources.versions import covers
from aioinformer.transport import HttpRequest, Transport
from aioinformer.transport.clients import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.client.lists import Page

#: With more keys than this, each write checks a few others: they may never run again.
_MANY: Final = 16
_SWEEP: Final = 2
#: How many live reads are sent at a time: after an outage, many keys may need one.
_READS: Final = 4
_OBJECTS: ObjectType[Any] = ObjectType(Resource("", "v1", "objects", ""))


class _InNamespace(NamedTuple):
    """An object of which the namespace alone is known, to find out whether an informer watches it."""

    metadata: Metadata


class StaleCache(AioinformerError):
    """The caches did not have the own writes of a key in time. For a controller, this is no failure of the run."""


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
        on_write: called with the key, the target and the metadata in the answer of each write; None for no call.
        recorded: the writes that the caches may not show yet, by key; usually, those of few keys.
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
        if field_manager is None:
            self._client = client
        else:
            self._client = client.with_options(field_manager=field_manager)
        self._inputs = inputs
        self._timeout = timeout
        self._reading = asyncio.Semaphore(_READS)
        self.on_write: Callable[[ObjectName, Target, Metadata], object] | None = None
        self.recorded: OrderedDict[ObjectName, Writes] = OrderedDict()

    def take_over(self, earlier: OwnWrites) -> None:
        """Go on with the writes of an earlier run of the controller: caches that others use, too, may not show them.

        Args:
            earlier: what it has recorded; ignored if it has another transport, of another cluster maybe.
        """
        if earlier._client.transport is self._client.transport:
            earlier.close()  # its informers may have stopped
            self.recorded = earlier.recorded
            earlier._inputs = self._inputs  # writes under way end there

    def close(self) -> None:
        """Release the informers. What they may not show is read after `take_over`."""
        self._inputs = lambda group, plural: ()
        for writes in self.recorded.values():
            writes.doubt()

    def __len__(self) -> int:
        """Return the number of keys with writes that the caches may not show yet."""
        return len(self.recorded)

    def describe(self, key: ObjectName) -> str:
        """Return the writes of a key that the caches may not show yet; "" for none."""
        writes = self.recorded.get(key)
        return "" if writes is None else str(writes)

    def client(
        self, key: ObjectName, *, fence: Fence | None = None, permit: Permit | None = None, log: Log | None = None
    ) -> Client:
        """Return a client that records its writes for a key.

        The fence, such as that of the current term, and the log are used instead of those of the policy; a permit, such
        as that of a run, instead of any fence.
        """
        begin = partial(self.begin, key)
        fence = fence or self.policy.fence
        if permit is None and fence is not None:
            permit = Permit(fence)
        return self._client.with_sender(
            lambda sender: RecordingSender(sender, self.policy, begin, self.cached, permit, log)
        )

    def pending(self, key: ObjectName) -> bool:
        """Return whether a run of the key must await `settle` first. The call is cheap."""
        writes = self.recorded.get(key)
        if writes is None:
            return False
        if writes.drop_shown():
            return True
        del self.recorded[key]
        return False

    async def settle(self, key: ObjectName, timeout: float | None = None) -> None:  # noqa: ASYNC109 - see StaleCache
        """Wait until the caches show the writes that were made for a key before this call. Nothing is polled.

        Writes under way are awaited, too; later ones are not.

        Args:
            key: of the run.
            timeout: seconds; None for those of this object.

        Raises:
            StaleCache: the caches did not show them in time, an informer has stopped, or the server could not be read.
                The writes stay recorded, and the next call reads what the server has.
        """
        writes = self.recorded.get(key)
        if writes is None:
            return
        seconds = self._timeout if timeout is None else timeout
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self._settle(writes)
        except (TimeoutError, AioinformerError) as error:
            if isinstance(error, TimeoutError) and not limit.expired():
                raise
            reason = f"not within {seconds:g} s: {writes}" if limit.expired() else str(error)
            writes.doubt()
            raise StaleCache(f"{key}: the caches do not show its own writes: {reason}") from error
        if not writes.awaited:  # later writes are not asked for
            self.pending(key)

    def skip(self, key: ObjectName, resource: Resource[Any], version: str) -> None:
        """Forget the writes of a key to its own object, up to a version that a cache has received and cannot decode."""
        if (writes := self.recorded.get(key)) is not None:
            writes.skip((resource.group, resource.plural), str(key), version)

    def forget(self, key: ObjectName) -> None:
        """Forget the writes of a key. One that is under way is recorded when it ends."""
        self.recorded.pop(key, None)

    async def _settle(self, writes: Writes) -> None:
        for flight in list(writes.flights):
            await flight.ended.wait()
        await self._wait(writes)  # first: the cache must have all objects of a collection that was deleted
        for unread in list(writes.unread.values()):
            async with self._reading:
                await self._read(writes, unread)
        await self._wait(writes)

    async def _wait(self, writes: Writes) -> None:
        for name, awaited in list(writes.awaited.items()):
            for informer, shown in tuple(awaited.missing):
                await informer.wait_until_shown(shown)
            if writes.awaited.get(name) is awaited:
                del writes.awaited[name]  # it is proven, and not asked for again

    async def _read(self, writes: Writes, unread: Unread) -> None:
        """Read what the server has, and await that."""
        target = unread.target
        known = unread.write
        if not self._is_watched(target):  # any more
            writes.unread.pop(unread.id, None)
            return
        resource = Resource(target.group, target.version, target.plural, "", namespaced=bool(target.namespace))
        fields = {"metadata.name": target.name} if target.name else unread.fields
        page: Page[Any] | None = None
        with suppress(ApiNotFound):  # the resource is not served any more
            objects = self._client.resource(resource)
            page = await objects.list(unread.labels, fields, namespace=target.namespace, timeout=None)
        if writes.unread.get(unread.id) is unread:  # otherwise, another write has failed meanwhile
            del writes.unread[unread.id]
        informers = self._inputs(target.group, target.plural)
        found: list[Record] = [obj._record for obj in page or ()]
        for record, obj in zip(found, page or (), strict=True):
            version = record.resource_version
            if known is not None and known.uid == record.uid and known.version and covers(version, known.version):
                version = known.version  # to await a later one would take longer
            writes.wait_for(target, Write(record.key, record.uid, version), obj, informers)
        gone = [Write(record.key, record.uid, "") for record in self._cached(unread)]
        for write in gone if known is None else [known, *gone]:
            if all(write.uid != record.uid for record in found):
                writes.wait_for(target, write, None, informers, gone=True)

    def _cached(self, unread: Unread) -> Iterator[Record]:
        """Yield the cached objects that a write may have deleted."""
        target = unread.target
        for informer in self._inputs(target.group, target.plural):
            store = informer.get_indexer().store
            if target.name:
                if (record := store.item(target.key)) is not None:
                    yield record
            elif target.verb == "deletecollection":
                selector = label_selector_of(unread.labels)
                for record in store.items():
                    if record.namespace == target.namespace and selector.matches(labels_of(record)):
                        yield record

    # For the sender.

    def cached(self, target: Target) -> Record | None:
        """Return a cached object, None if there is none."""
        return next(self._cached(Unread(target)), None) if target.name else None

    def begin(self, key: ObjectName, target: Target, request: HttpRequest) -> Callable[..., None]:
        """Note that a write is about to be sent, and return `end` for it."""
        cached = self.cached(target)
        flight = Flight(target, request, "" if cached is None else cached.uid)
        self.recorded.setdefault(key, Writes()).flights[flight] = None
        return partial(self.end, key, flight)

    def end(
        self, key: ObjectName, flight: Flight, answer: bytes = b"", *, unknown: bool = False, missing: bool = False
    ) -> None:
        """Note the end of a write.

        The answer is empty after a failure. If the outcome is `unknown`, what the server has must be read; if the
        object is `missing`, the server does not have it.
        """
        writes = self.recorded.setdefault(key, Writes())
        writes.flights.pop(flight, None)
        if answer:
            metadata = self._record(writes, flight, answer)
            if self.on_write is not None:
                self.on_write(key, flight.target, metadata)
        elif missing:
            self._gone(writes, flight, flight.uid)
        elif unknown:
            self._must_read(writes, flight.unread())
        flight.ended.set()
        if not (writes.flights or writes.unread or writes.awaited):
            self.recorded.pop(key, None)  # such as after a write that was not sent
        if len(self.recorded) > _MANY:
            for other in list(islice(self.recorded, _SWEEP)):
                if self.pending(other):
                    self.recorded.move_to_end(other)

    def _record(self, writes: Writes, flight: Flight, answer: bytes) -> Metadata:
        """Await what the answer says, and return the metadata in it."""
        target = flight.target
        document = read(answer)
        informers = self._inputs(target.group, target.plural)
        metadata = document.metadata
        foreign = bool(target.subresource) and document.kind not in {each.resource.kind for each in informers}
        if target.verb == "delete" and document.kind == "Status":
            self._gone(writes, flight, document.deleted or flight.uid)
        elif foreign or not (metadata.uid and metadata.resource_version):
            self._must_read(writes, flight.unread())  # an eviction, a collection, or a Scale, which has no labels
        else:
            obj = None
            if len(informers) > 1 or flight.uid != metadata.uid:  # otherwise, the informer does watch the object
                with suppress(DecodeError):
                    obj = decode(answer, _OBJECTS)
            write = Write(metadata.key, metadata.uid, metadata.resource_version)
            gone = metadata.ended or (target.verb == "delete" and not metadata.deletion_timestamp)
            writes.wait_for(target, write, obj, informers, gone=gone)
        return metadata

    def _gone(self, writes: Writes, flight: Flight, uid: str) -> None:
        target = flight.target
        if uid:
            informers = self._inputs(target.group, target.plural)
            writes.wait_for(target, Write(target.key, uid, ""), None, informers, gone=True)

    def _must_read(self, writes: Writes, unread: Unread) -> None:
        if self._is_watched(unread.target):
            writes.unread[unread.id] = unread

    def _is_watched(self, target: Target) -> bool:
        place = _InNamespace(Metadata(name="-", namespace=target.namespace))
        return any(informer.watches(place) for informer in self._inputs(target.group, target.plural))
