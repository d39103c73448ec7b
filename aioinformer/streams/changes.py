"""Readers of changes: `informer.changes()` is one for your code; a stream to a browser has one for each resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from os import urandom
from typing import Any, Final, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

import msgspec

from aioinformer.errors import UsageError
from aioinformer.streams.cursors import Place, binding_of, read_cursor, write_cursor
from aioinformer.streams.hub import Hub, Part
from aioinformer.streams.log import Position
from aioinformer.streams.selection import Selection

V = TypeVar("V")

#: What a change means for a reader's copy: forget everything, set an object, forget an object, the copy is complete.
ChangeKind: TypeAlias = Literal["reset", "put", "delete", "synced"]


class StreamChange(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """A change of the selected objects, to be applied to your copy of them. It may be applied twice.

    Attributes:
        kind: "put": the object is new or has changed. "delete": it does not exist any more, or has left the selection.
            "reset": forget all objects; all of them follow. "synced": your copy is complete.
        key: of the object, "namespace/name"; "" for "reset" and "synced".
        object: the view; without a view, the version. None unless the kind is "put".
        cursor: pass it as `after` to continue behind this change. It is valid in this process, for the same selection
            and view.
    """

    kind: ChangeKind
    key: str
    object: V | None
    cursor: str


class Step(NamedTuple):
    """What a reader has read.

    Attributes:
        reset: forget everything first.
        before: the position before the changes, of a reader that may have been told some of them.
        part: the changes.
        synced: the reader has everything after them, for the first time since a reset.
    """

    reset: bool
    before: Position
    part: Part
    synced: bool


class Reader:
    """Reads the log of a hub: a position, and what is selected. It never waits.

    Args:
        hub: of the informer and the view.
        selection: what is read.

    Attributes:
        hub: as given.
        selection: what is read. The namespaces of another one must be fewer; see `ChangeLog.leaving`.
        position: None before the first step.
        synced: whether the reader has had everything since the last reset.
    """

    __slots__ = ("_reset", "hub", "position", "selection", "synced")

    def __init__(self, hub: Hub, selection: Selection) -> None:
        self.hub = hub
        self.selection = selection
        self.position: Position | None = None
        self.synced = False
        self._reset = False

    def begin_at(self, epoch: bytes, position: Position) -> bool:
        """Begin at the place of a cursor if the log has what follows, with a reset otherwise; return which one."""
        known = epoch == self.hub.epoch and self.hub.log.has(position)
        self.position = position if known else None
        self._reset = not known
        return known

    def begin_anew(self) -> None:
        """Begin with a reset."""
        self.position = None
        self._reset = True

    def can_begin(self) -> bool:
        """Return whether the reader has begun, or the next step begins."""
        return self.position is not None or not self.hub.behind

    def step(self) -> Step | None:
        """Read on; return None if there is nothing until the hub wakes the reader."""
        hub = self.hub
        position = self.position
        if hub.behind and not self.synced:
            return None
        if self.synced and not self._reset and position == Position.end(hub.log.sequence):
            return None
        if position is not None and not hub.log.has(position):
            self.begin_anew()
            position = None
        if position is None:
            position = Position.begin(hub.log.sequence)
            self.synced = False
        reset = self._reset
        self._reset = False
        part = hub.part(position, self.selection)
        self.position = part.position
        synced = not self.synced and part.complete and hub.settled()
        if synced:
            self.synced = True
        if reset or synced or part.changes or not part.complete:
            return Step(reset, position.after(position.sequence, hub.log.sequence), part, synced)
        return None


_NOTHING: Final[Iterator[Any]] = iter(())


@cache
def secret() -> bytes:
    """Return the secret that signs the cursors of this process."""
    return urandom(32)


class Changes(Generic[V]):
    """The changes of an informer's cache, as an async iterator; `informer.changes()` returns it.

        async with informer.changes(namespace="shop", view=row) as changes:
            async for change in changes:
                print(change.kind, change.key, change.object)

    First, all selected objects in the cache are "put", then "synced" follows, then what changes. Several changes of an
    object that have not been read are one, so a slow reader needs no memory, and delays nothing. It ends when the
    informer stops.
    """

    __slots__ = ("_after", "_binding", "_enter", "_leave", "_reader", "_ready", "_selection")

    def __init__(
        self, enter: Callable[[], Hub], leave: Callable[[Hub], None], selection: Selection, after: str
    ) -> None:
        self._enter: Callable[[], Hub] | None = enter
        self._leave = leave
        self._selection = selection
        self._after = after
        self._binding = binding_of(secret(), "changes", selection.text)
        self._reader: Reader | None = None
        self._ready: Iterator[StreamChange[V]] = _NOTHING

    async def __aenter__(self) -> Self:
        if self._enter is None:
            raise UsageError("changes can be entered once; call informer.changes() again")
        self._reader = Reader(self._enter(), self._selection)
        self._enter = None
        if self._after:
            places = read_cursor(self._binding, self._after, 1)
            place = places[0] if places else Place(b"", Position.begin(0))
            self._reader.begin_at(place.epoch, place.position)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reader is not None:
            self._leave(self._reader.hub)
            self._reader = None
            self._ready = _NOTHING

    def __aiter__(self) -> Self:
        if self._reader is None:
            raise UsageError("enter the changes first: async with informer.changes() as changes")
        return self

    async def __anext__(self) -> StreamChange[V]:
        while (change := next(self._ready, None)) is None:
            self._ready = _NOTHING
            reader = self._reader
            if reader is None:
                raise StopAsyncIteration
            step = reader.step()
            if step is not None:
                self._ready = self._changes(reader, step)
                if not step.part.changes:
                    await asyncio.sleep(0)  # a long part of the log without anything that is selected
            elif reader.hub.ended:
                raise StopAsyncIteration
            else:
                waiter = asyncio.get_running_loop().create_future()
                reader.hub.add_waiter(waiter, reader.synced)
                try:
                    await waiter  # not in a coroutine of its own, whose frame would be the largest part of a reader
                finally:
                    reader.hub.remove_waiter(waiter)
        return change

    def _changes(self, reader: Reader, step: Step) -> Iterator[StreamChange[V]]:
        hub = reader.hub
        if step.reset:
            yield StreamChange("reset", "", None, "")
        for changed in step.part.changes:
            kind: ChangeKind = "delete" if changed.value is None else "put"
            last = changed is step.part.changes[-1]
            reached = step.part.position if last else step.before._replace(sequence=changed.sequence)
            yield StreamChange(kind, changed.key, changed.value, self._cursor(hub, reached))
        if step.synced:
            yield StreamChange("synced", "", None, self._cursor(hub, step.part.position))

    def _cursor(self, hub: Hub, position: Position) -> str:
        return write_cursor(self._binding, [Place(hub.epoch, position)])
