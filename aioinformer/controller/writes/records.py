"""The writes of one key that the caches may not show yet. No I/O."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.controller.writes.targets import read
from aioinformer.resources.versions import is_older, version_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

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
        """Return what to read if the answer is not known."""
        target, query = self.target, dict(self._request.query)
        if target.verb == "deletecollection":
            return Unread(target, query.get("labelSelector", ""), query.get("fieldSelector", ""), complete=False)
        if target.name:
            return Unread(target)
        metadata = read(self._request.body).metadata
        labels = {name: value or "" for name, value in (metadata.labels or {}).items()}
        return Unread(target._replace(name=metadata.name or ""), {} if metadata.name else labels)


class Unread(NamedTuple):
    """Objects to read, since it is not known what a write has done: one by its name, or all that match.

    Attributes:
        target: with the name of the object, "" for all that match.
        labels: a label selector.
        fields: a field selector.
        write: the version of the object that was awaited before, None for none.
        deleted: the objects that were deleted.
        complete: no others were deleted.
    """

    target: Target
    labels: str | Mapping[str, str] = ""
    fields: str = ""
    write: Write | None = None
    deleted: tuple[Write, ...] = ()
    complete: bool = True

    @property
    def id(self) -> Hashable:
        """Equal for reads that replace each other."""
        labels = self.labels if isinstance(self.labels, str) else tuple(sorted(self.labels.items()))
        return (*self.target[1:6], labels, self.fields, self.complete, self.deleted)


class Awaited(NamedTuple):
    """A state of an object that some informers do not show yet.

    Attributes:
        target: its resource and namespace.
        write: its key, uid and version. A key without a name stands for the whole collection.
        gone: the object must go, and not only reach the version.
        missing: the informers, and what proves that they show it.
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
        caches = (
            f"the {each.name} is at {each.last_sync_resource_version or 'no version'}" for each, _ in self.missing
        )
        return f"{state} of {self.target.what} {self.write.key}, {', '.join(caches)}"


class Writes:
    """The writes of one key.

    Attributes:
        flights: those under way.
        awaited: those whose result is known, one for each object: by group, plural, key and uid.
        unread: those whose result is not known.
    """

    __slots__ = ("awaited", "flights", "unread")

    def __init__(self) -> None:
        self.flights: dict[Flight, None] = {}
        self.awaited: dict[tuple[str, str, str, str], Awaited] = {}
        self.unread: dict[Hashable, Unread] = {}

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

        Args:
            target: its resource and namespace.
            write: its key, uid and version; "" for the version if only the deletion is known.
            obj: the object, for the question of whether informers watch it; None if it is not known.
            informers: must show the state.
            gone: the object must go.
        """
        name = (target.group, target.plural, write.key, write.uid)
        known = self.awaited.get(name)
        if known is not None:
            if not write.version or is_older(write.version, known.write.version):
                write, obj = known.write, None
            gone = gone or known.gone
        missing = [(informer, informer.expect(write, obj, gone=gone)) for informer in informers]
        awaited = self.awaited[name] = Awaited(target, write, gone, missing)
        if not awaited.drop_shown():
            del self.awaited[name]

    def doubt(self, awaited: Awaited) -> None:
        """Require that an object is read again. A version may never arrive: if the server was restored from a backup,
        or if versions have no order and the informer has listed meanwhile."""
        target, write = awaited.target, awaited.write
        name = write.key.rpartition("/")[2]
        if not name and version_number(write.version) >= 0:
            return  # the version of a collection, which does arrive
        del self.awaited[target.group, target.plural, write.key, write.uid]
        if name:
            unread = Unread(target._replace(name=name), write=write, deleted=(write,) if awaited.gone else ())
            self.unread[unread.id] = unread

    def __str__(self) -> str:
        flights = (f"{flight.target} is under way" for flight in self.flights)
        unread = (f"the outcome of {each.target} is not known" for each in self.unread.values())
        return "; ".join([*flights, *unread, *map(str, self.awaited.values())])
