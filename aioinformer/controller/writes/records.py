"""The writes of one key that the caches may not show yet. No I/O."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.client.targets import read
from aioinformer.resources.versions import covers, is_older

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from aioinformer.cache.waiters import ShownWrite, Write
    from aioinformer.client.targets import Target
    from aioinformer.informer.reader import InformerCache
    from aioinformer.transport import HttpRequest


class Flight:
    """A write that is under way: its target, the uid of the object that was cached before, and when it has ended."""

    __slots__ = ("ended", "request", "target", "uid")

    def __init__(self, target: Target, request: HttpRequest, uid: str) -> None:
        self.target = target
        self.request = request
        self.uid = uid
        self.ended = asyncio.Event()

    def unread(self) -> Unread:
        """Return what to read if the answer does not say what the server has."""
        target = self.target
        query = dict(self.request.query)
        if target.verb == "deletecollection":
            return Unread(target, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if target.name:
            return Unread(target)
        metadata = read(self.request.body).metadata
        labels = {name: value or "" for name, value in (metadata.labels or {}).items()}
        return Unread(target._replace(name=metadata.name or ""), {} if metadata.name else labels)


class Unread(NamedTuple):
    """Objects to read: that of the target, or all that match. `write` is what was awaited of the object before."""

    target: Target
    labels: str | Mapping[str, str] = ""
    fields: str = ""
    write: Write | None = None

    @property
    def id(self) -> Hashable:
        """Equal for reads of the same objects."""
        labels = self.labels if isinstance(self.labels, str) else tuple(sorted(self.labels.items()))
        return (*self.target[1:6], labels, self.fields)


class Awaited(NamedTuple):
    """A version of an object, or its deletion, with the informers that do not show it and what proves that they do."""

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
        caches = (f"the {each.name} is at {each.last_sync_resource_version or 'none'}" for each, _ in self.missing)
        return f"{state} of {self.target.what} {self.write.key}, {', '.join(caches)}"


class Writes:
    """The writes of one key: under way, with an unknown result, and with a known one, the latest of each object."""

    __slots__ = ("awaited", "flights", "unread")

    def __init__(self) -> None:
        self.flights: dict[Flight, None] = {}
        self.unread: dict[Hashable, Unread] = {}
        self.awaited: dict[tuple[str, str, str, str], Awaited] = {}

    def drop_shown(self) -> bool:
        """Forget what all informers show; return whether anything is left."""
        for name, awaited in list(self.awaited.items()):
            if not awaited.drop_shown():
                del self.awaited[name]
        return bool(self.flights or self.unread or self.awaited)

    def wait_for(
        self, target: Target, write: Write, obj: Any, informers: Sequence[InformerCache[Any]], *, gone: bool = False
    ) -> None:
        """Await a state of an object instead of its earlier ones. Answers to concurrent writes may have any order.

        Without a version, only the deletion is known. The object says whether informers watch it; None if it is not
        known.
        """
        name = (target.group, target.plural, write.key, write.uid)
        known = self.awaited.get(name)
        if known is not None:
            if not write.version or is_older(write.version, known.write.version):
                write = known.write
                obj = None
            gone = gone or known.gone
        missing = [(informer, informer.expect(write, obj, gone=gone)) for informer in informers]
        if missing:
            self.awaited[name] = Awaited(target, write, gone, missing)

    def skip(self, resource: tuple[str, str], key: str, version: str) -> None:
        """Forget the writes to an object of this group and plural that made this version or an earlier one."""
        stores: tuple[dict[Any, Any], ...] = (self.awaited, self.unread)
        for known in stores:
            for name, each in list(known.items()):
                target = each.target
                write = each.write
                of_object = write is not None and write.key == key and resource == (target.group, target.plural)
                if of_object and write.version and covers(version, write.version):
                    del known[name]

    def doubt(self) -> None:
        """Read all awaited objects again. Their versions may never arrive: if the server was restored from a backup,
        or if versions have no order and the informer has listed meanwhile."""
        for awaited in self.awaited.values():
            name = awaited.write.key.rpartition("/")[2]
            unread = Unread(awaited.target._replace(name=name), write=awaited.write)
            self.unread[unread.id] = unread
        self.awaited.clear()

    def __str__(self) -> str:
        flights = (f"{flight.target} is under way" for flight in self.flights)
        unread = (f"the outcome of {each.target} is not known" for each in self.unread.values())
        return "; ".join([*flights, *unread, *map(str, self.awaited.values())])
