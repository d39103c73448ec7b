"""One open stream: what is sent to a client, in which order, and what it may see.

A stream has a position in the log of each of its resources, and one cursor for all. It has no task of its own: it runs
in that of the adapter, and while it waits it is a future.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import uniform
from typing import Any, Final, NamedTuple, Protocol, Self

from aioinformer.authorization.users import User
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.resources.selectors import LabelSelector
from aioinformer.streams.changes import Reader
from aioinformer.streams.cursors import Place, write_cursor
from aioinformer.streams.log import Changed, Position
from aioinformer.streams.selection import Selection, selected
from aioinformer.streams.views import ViewMaker
from aioinformer.web import frames

_log = get_logger("aioinformer.web")

#: Seconds of silence after which a comment is sent.
_HEARTBEAT: Final = 15.0
#: A client that takes nothing for so many seconds is cut off; after the end of the stream, much sooner.
_PATIENCE: Final = 30.0
_PATIENCE_AT_THE_END: Final = 1.0
#: After a time between these, in seconds, a stream ends: the client opens the next one, and proves again who it is.
_LIFETIME: Final = (300.0, 600.0)
#: Seconds after which clients connect again, so that they do not all come at once.
_RETRY: Final = (1.0, 5.0)
#: So many deletions of objects that a user may not see any more are sent at once.
_LEAVING: Final = 256
_NOTHING: Final[Iterator[bytes]] = iter(())


class StreamRequest(NamedTuple):
    """What a client asks for.

    Attributes:
        resources: of the stream.
        namespaces: their names in order; () for all.
        selector: of labels, of all resources.
        after: a cursor, "" for none.
    """

    resources: tuple[Resource[Any], ...]
    namespaces: tuple[str, ...]
    selector: LabelSelector
    after: str


class Keeper(Protocol):
    """What an open stream needs of the streams that it belongs to."""

    @property
    def rights_period(self) -> float:
        """Seconds after which a stream asks for its rights again."""
        ...

    async def visible(self, user: User, resource: Resource[Any], namespaces: tuple[str, ...]) -> frozenset[str] | None:
        """Return in which of the requested namespaces a user may see a resource now; None for all of them."""
        ...

    def closed(self, stream: Opened, account: Hashable) -> None:
        """Forget a stream that has ended."""
        ...


class Feed:
    """The part of a stream that has one resource.

    Args:
        resource: as given.
        requested: the namespaces that the client asked for; () for all, and for cluster-scoped resources.
        selector: of labels.
        informer: of the resource.
        key, maker: of the view, see `SharedIndexInformer.enter_hub`.

    Attributes:
        resource, requested: as given.
        reader: of the hub.
        visible: which of the requested namespaces the user may see; None for all.
    """

    __slots__ = ("_bits", "_informer", "reader", "requested", "resource", "visible")

    def __init__(
        self,
        resource: Resource[Any],
        requested: tuple[str, ...],
        selector: LabelSelector,
        informer: SharedIndexInformer[Any],
        key: Hashable,
        maker: ViewMaker,
    ) -> None:
        self.resource = resource
        self.visible: frozenset[str] | None = None
        self.requested = requested
        #: The visible ones of the names, for cursors.
        self._bits = (1 << len(self._names)) - 1
        self._informer = informer
        self.reader = Reader(informer.enter_hub(key, maker), selected(frozenset(requested) or None, selector))

    def close(self) -> None:
        """Leave the hub."""
        self._informer.leave_hub(self.reader.hub)

    def place(self, position: Position | None = None) -> Place:
        """Return the place of a feed that has begun, for a cursor.

        Args:
            position: by default, that of the reader.
        """
        reached = position or self.reader.position
        assert reached is not None
        return Place(self.reader.hub.epoch, reached, self._bits)

    def go_on(self, place: Place) -> None:
        """Begin where another stream has ended, and with what the user could see then; otherwise with a reset."""
        names = self._names
        visible = frozenset(name for bit, name in enumerate(names) if place.visible >> bit & 1)
        self._set_visible(None if len(visible) == len(names) else visible)
        self.reader.selection = self._selection()
        self.reader.begin_at(place.epoch, place.position)

    def see(self, visible: frozenset[str] | None) -> Iterator[Changed]:
        """Change what the user may see; return the objects that the client has and must forget.

        If there is more to see than before, the feed begins with a reset.
        """
        if visible == self.visible:
            return iter(())
        reader = self.reader
        before = reader.selection
        grows = visible is None or (self.visible is not None and not visible <= self.visible)
        self._set_visible(visible)
        after = self._selection()
        reader.selection = after
        if grows:
            reader.begin_anew()
        if reader.position is None:
            return iter(())
        return reader.hub.log.leaving(reader.position, before, after)

    def _set_visible(self, visible: frozenset[str] | None) -> None:
        names = self._names
        self.visible = visible
        self._bits = sum(1 << place for place, name in enumerate(names) if visible is None or name in visible)

    @property
    def _names(self) -> tuple[str, ...]:
        """What may be visible or not: each of the requested namespaces, or all of them at once."""
        return self.requested or ("",)

    def _selection(self) -> Selection:
        requested = frozenset(self.requested) or None
        return selected(requested if self.visible is None else self.visible, self.reader.selection.selector)


class Opened:
    """An open stream: an async iterator of bytes, each of them whole events.

    Write what it returns, wait until the client has taken it, and ask for more. It ends by itself. Call `aclose` at the
    end in any case, also if it was never iterated.

    Args:
        core: the streams that it belongs to.
        user: who reads it.
        account: counts the streams of the user.
        binding: signs its cursors.
        feeds: its resources.
        abort: aborts the connection.
        is_closing: returns whether the client has gone.

    Attributes:
        headers: of the response, whose status is 200.
    """

    __slots__ = (
        "_abort",
        "_account",
        "_binding",
        "_closed",
        "_core",
        "_ended",
        "_ends",
        "_feeds",
        "_first",
        "_heartbeat",
        "_is_closing",
        "_rights",
        "_synced",
        "_task",
        "_user",
        "_waiter",
        "_written",
    )

    headers: Mapping[str, str] = frames.HEADERS

    def __init__(
        self,
        core: Keeper,
        user: User,
        account: Hashable,
        binding: bytes,
        feeds: Sequence[Feed],
        abort: Callable[[], object] | None,
        is_closing: Callable[[], bool] | None,
    ) -> None:
        now = asyncio.get_running_loop().time()
        self._core = core
        self._user = user
        self._account = account
        self._binding = binding
        self._feeds = tuple(feeds)
        self._abort = abort
        self._is_closing = is_closing
        self._closed = False
        self._ended = False
        self._synced = False
        self._ends = now + uniform(*_LIFETIME)
        self._rights = now + core.rights_period
        self._heartbeat = now + _HEARTBEAT
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        #: Since when the client has something to take.
        self._written: float | None = now
        #: What is sent before events of the logs.
        self._first: Iterator[bytes] = iter((frames.retry(uniform(*_RETRY)),))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._written = None
        while not self._ended:
            now = loop.time()
            if now >= self._rights:
                await self._look_at_rights()
                self._rights = loop.time() + self._core.rights_period
            chunk = None if self._first is _NOTHING else next(self._first, None)
            if chunk is None:
                self._first = _NOTHING
                chunk = self._events()
            if not chunk and now >= self._heartbeat:
                chunk = frames.HEARTBEAT
            if chunk:
                self._heartbeat = now + _HEARTBEAT
                self._written = now
                return chunk
            if chunk is None:
                waiter = self._listen()
                try:
                    await waiter  # not in a coroutine of its own, whose frame would be the largest part of a stream
                finally:
                    self._listen_no_more(waiter)
            else:
                await asyncio.sleep(0)  # a long part of a log without anything for this stream
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the stream, and free its place. May be called again."""
        self._close()

    def _close(self) -> None:
        self._ended = True
        self._written = None
        if not self._closed:
            self._closed = True
            for feed in self._feeds:
                feed.close()
            self._core.closed(self, self._account)

    def go_on(self, places: Sequence[Place], visible: Sequence[frozenset[str] | None]) -> None:
        """Begin where another stream has ended, and delete what the user may not see any more.

        Args:
            places: of the feeds, from a cursor.
            visible: which of the requested namespaces the user may see now, for each feed; None for all.
        """
        for feed, place in zip(self._feeds, places, strict=True):
            feed.go_on(place)
        self._see(visible)

    def begin_anew(self) -> None:
        """Begin with a reset of all resources."""
        for feed in self._feeds:
            feed.reader.begin_anew()

    def end(self) -> None:
        """Let the iterator end after what it has returned."""
        self._ended = True
        self._wake()

    def look(self, now: float) -> None:
        """Wake the stream if something is due; cut it off if the client takes nothing."""
        if self._waiter is not None:
            if self._is_closing is not None and self._is_closing():
                self.end()
            elif now >= min(self._heartbeat, self._rights, self._ends):
                self._ended = self._ended or now >= self._ends
                self._wake()
        elif self._written is not None:
            patience = _PATIENCE_AT_THE_END if self._ended else _PATIENCE
            if now - self._written >= patience:
                self._cut(patience)

    def _cut(self, patience: float) -> None:
        if not self._ended:
            _log.info("%r: a client has taken nothing for %g s; its connection is closed", self._core, patience)
        self._written = None
        self._ended = True
        if self._abort is not None:
            self._abort()
        if self._task is None:  # the adapter has not begun, so it has not to end
            self._close()
        else:
            self._task.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _listen(self) -> asyncio.Future[None]:
        """Return a future that ends when there may be something to send, or something is due."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        for feed in self._feeds:
            feed.reader.hub.add_waiter(waiter, feed.reader.synced)
        return waiter

    def _listen_no_more(self, waiter: asyncio.Future[None]) -> None:
        self._waiter = None
        for feed in self._feeds:
            feed.reader.hub.remove_waiter(waiter)

    def _events(self) -> bytes | None:
        """Return the next events; b"" for none in this part of the logs, and None if there is nothing to read."""
        if not all(feed.reader.can_begin() for feed in self._feeds):  # until then, there is no cursor for all
            self._check_end()
            return None
        steps = [feed.reader.step() for feed in self._feeds]
        if not any(steps):
            self._check_end()
            return None
        found: list[bytes] = []
        events = 0
        for feed, step in zip(self._feeds, steps, strict=True):
            if step is None:
                continue
            if step.reset:
                self._synced = False
                events += 1
                found.append(frames.reset(feed.resource))
            if step.part.changes:
                run = step.part.forms.get("events")
                if run is None:
                    run = frames.run_of(step.part.changes, feed.resource)
                    step.part.forms["events"] = run
                events += len(step.part.changes)
                found.append(run)
        synced = all(feed.reader.synced for feed in self._feeds)
        if synced and not self._synced:
            found.append(frames.SYNCED)
            events += 1
        self._synced = synced
        if not found:
            return b""
        cursor = write_cursor(self._binding, [feed.place() for feed in self._feeds])
        if events == 1:
            return frames.with_cursor(found[0], cursor)
        before = [
            feed.place(None if step is None else step.before) for feed, step in zip(self._feeds, steps, strict=True)
        ]
        return frames.with_cursors(b"".join(found), write_cursor(self._binding, before), cursor)

    def _check_end(self) -> None:
        self._ended = self._ended or any(feed.reader.hub.ended for feed in self._feeds)

    async def _look_at_rights(self) -> None:
        """Ask again what the user may see, and delete what is lost at the client."""
        self._see([await self._core.visible(self._user, feed.resource, feed.requested) for feed in self._feeds])

    def _see(self, visible: Iterable[frozenset[str] | None]) -> None:
        leaving = [(feed, feed.see(now)) for feed, now in zip(self._feeds, visible, strict=True)]
        self._first = _deletions(self._first, leaving)


def _deletions(first: Iterator[bytes], leaving: list[tuple[Feed, Iterator[Changed]]]) -> Iterator[bytes]:
    """Yield what is to be sent first, then the events that delete objects, some at once."""
    yield from first
    for feed, changes in leaving:
        while some := list(islice(changes, _LEAVING)):
            yield frames.run_of(some, feed.resource)
