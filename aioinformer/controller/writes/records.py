"""What is known of the writes of one key that the caches do not show yet. No I/O."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.controller.writes.targets import read
from aioinformer.resources.versions import is_older, version_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from aioinformer.cache.waiters import ShownWrite, Write
    from aioinformer.controller.writes.targets import Target
    from aioinformer.informer.reader import InformerCache
    from aioinformer.transport import Request


class Flight:
    """A write that is under way.

    Attributes:
        target: what it is about.
        uid: of the cached object when the write began, "" for none.
        ended: set when the write is recorded.
    """

    __slots__ = ("_request", "ended", "target", "uid")

    def __init__(self, target: Target, request: Request, uid: str) -> None:
        self.target = target
        self.uid = uid
        self.ended = asyncio.Event()
        self._request = request

    def unread(self) -> Unread:
        """Return what must be read to find out about the outcome."""
        target, query = self.target, dict(self._request.query)
        if target.verb == "deletecollection":
            return Unread(target, query.get("labelSelector", ""), query.get("fieldSelector", ""), complete=False)
        if target.name:
            return Unread(target)
        metadata = read(self._request.body).metadata
        labels = {name: value or "" for name, value in (metadata.labels or {}).items()}
        return Unread(target._replace(name=metadata.name or ""), {} if metadata.name else labels)


class Unread(NamedTuple):
    """Objects that must be read, since the outcome of a write is unknown: one by its name, or all that match.

    Attributes:
        target: with the name of the object, "" for all.
        labels: of the objects.
        fields: of the objects.
        write: the known version of the object, None if there is none.
        deleted: the objects whose deletion was requested.
        complete: nothing but `deleted` may have been deleted.
    """

    target: Target
    labels: str | Mapping[str, str] = ""
    fields: str = ""
    write: Write | None = None
    deleted: tuple[Write, ...] = ()
    complete: bool = True

    @property
    def id(self) -> Hashable:
        """Equal for reads of the same objects for the same reason."""
        labels = self.labels if isinstance(self.labels, str) else tuple(sorted(self.labels.items()))
        return (*self.target[1:6], labels, self.fields, self.complete, self.deleted)


class Awaited(NamedTuple):
    """A state of an object that some caches do not show yet.

    Attributes:
        target: its resource and namespace.
        write: its key, uid and version.
        gone: the object must go.
        missing: the informers that do not show it, and what proves that they do.
    """

    target: Target
    write: Write
    gone: bool
    missing: list[tuple[InformerCache[Any], ShownWrite]]

    def drop_shown(self) -> bool:
        """Drop the informers that show the state; return whether any are left."""
        self.missing[:] = [(informer, shown) for informer, shown in self.missing if not informer.shows(shown)]
        return bool(self.missing)

    def __str__(self) -> str:
        state = "the deletion" if self.gone else f"version {self.write.version}"
        caches = ", ".join(
            f"the {informer.name} is at {informer.last_sync_resource_version or 'no version'}"
            for informer, _ in self.missing
        )
        return f"{state} of {self.target.what} {self.write.key}, {caches}"


class Writes:
    """The writes of one key.

    Attributes:
        flights: those under way, in their order.
        awaited: those that were answered, by resource, key and uid: one for each object.
        unread: those whose outcome must be read.
    """

    __slots__ = ("awaited", "flights", "unread")

    def __init__(self) -> None:
        self.flights: dict[Flight, None] = {}
        self.awaited: dict[tuple[str, str, str, str], Awaited] = {}
        self.unread: dict[Hashable, Unread] = {}

    def drop_shown(self) -> bool:
        """Forget what the caches show; return whether anything is left."""
        for known, awaited in list(self.awaited.items()):
            if not awaited.drop_shown():
                del self.awaited[known]
        return bool(self.flights or self.unread or self.awaited)

    def add(
        self,
        target: Target,
        write: Write,
        obj: Any,
        informers: Sequence[InformerCache[Any]],
        *,
        gone: bool = False,
    ) -> None:
        """Await a state of an object, instead of its earlier ones.

        Args:
            target: its resource and namespace.
            write: its key, uid and version; "" for the version of a deletion whose version is not known.
            obj: the object, to find out whether informers watch it; None if it is not known.
            informers: must show it.
            gone: the object must go. Its later states do not count.
        """
        name = (target.group, target.plural, write.key, write.uid)
        known = self.awaited.get(name)
        if known is not None:
            if is_older(write.version, known.write.version):  # the answers to concurrent writes have no order
                if known.gone or not gone:
                    return
                write, obj = known.write, None
            elif not write.version:
                write = known.write
            gone = gone or known.gone
        awaited = Awaited(target, write, gone, [])
        awaited.missing.extend((informer, informer.expect(write, obj, gone=gone)) for informer in informers)
        if awaited.drop_shown():
            self.awaited[name] = awaited
        else:
            self.awaited.pop(name, None)

    def add_unread(self, unread: Unread) -> None:
        """Require a read."""
        self.unread[unread.id] = unread

    def doubt(self, awaited: Awaited) -> None:
        """Require a read of an awaited object: its version may never arrive, since the server has lost it, or since
        its versions have no order and an informer has listed again."""
        target, write = awaited.target, awaited.write
        name = write.key.rpartition("/")[2]
        if not name and version_number(write.version) >= 0:
            return  # the version of a list, which has an order
        del self.awaited[target.group, target.plural, write.key, write.uid]
        if name:
            deleted = (write,) if awaited.gone else ()
            self.add_unread(Unread(target._replace(name=name), write=write, deleted=deleted))

    def __str__(self) -> str:
        flights = (f"{flight.target} is under way" for flight in self.flights)
        unread = (f"the outcome of {each.target} is unknown" for each in self.unread.values())
        return "; ".join([*flights, *unread, *map(str, self.awaited.values())])


def cached_uids(informers: Sequence[InformerCache[Any]], key: str) -> Iterator[str]:
    """Yield the uids that the caches have under a key."""
    for informer in informers:
        record = informer.get_indexer().store.item(key)
        if record is not None and record.uid:
            yield record.uid
