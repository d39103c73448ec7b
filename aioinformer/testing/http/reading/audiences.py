"""Changes told to many watches at once.

A watch that has sent everything, and that no fault is to strike, has nothing of its own to say: its next line is the
next line of every other watch of the same objects in the same form. While nothing else happens to them, such watches
sit in one audience:

* What happened is looked at once, encoded once, and framed for HTTP once; the same bytes go to every connection. No
  task is woken for that: a watch's task sleeps until it has something of its own to do.
* Telling is done in turns. A turn brings everybody up to the newest change there was when it began; changes that come
  meanwhile wait for the next one. So a server that is short of time sends fewer and larger pieces.
* Between two turns all seats are at the same position. Who took his seat during a turn is further; who can be told
  neither the turn's bytes nor nothing goes back to his task, which finds his place in the history by itself.
* Who does not read is not written to: when more waits in his connection than asyncio's mark, his task takes over, and
  waits until the connection takes bytes again. What a slow reader costs is thereby bounded; if the history has lost his
  place meanwhile, his watch ends.
* A fault, of whatever kind, sends everybody back to his task, and nobody takes a seat while there is one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from aioinformer.testing.http.faults.kinds import FaultSet
    from aioinformer.testing.http.reading.watches import Watch
    from aioinformer.testing.state.storage import Collection

_AT_ONCE = 100


class Seat:
    """The place of one watch in an audience.

    Args:
        audience: that it is in.
        watch: whose position is brought up to date when it leaves.
        transport: its connection.
        rouse: gives it back to its task.
    """

    __slots__ = ("_audience", "_watch", "position", "rouse", "sent", "transport")

    def __init__(
        self, audience: Audience, watch: Watch, transport: asyncio.Transport, rouse: Callable[[], None]
    ) -> None:
        self._audience = audience
        self._watch = watch
        self.transport = transport
        self.rouse = rouse
        self.position = watch.position
        self.sent = 0

    def leave(self) -> None:
        """From now on the watch is on its own again; to be called once."""
        self._audience.remove(self)
        self._watch.move(self.position, self.sent)


class Audience:
    """The watches that are told the same.

    Args:
        collection: what they watch.
        watch: one of them.
        faults: of the server.
        on_empty: called when the last one has left.
    """

    def __init__(self, collection: Collection, watch: Watch, faults: FaultSet, on_empty: Callable[[], None]) -> None:
        self._collection = collection
        self._faults = faults
        self._on_empty = on_empty
        self._watch = watch.twin()
        self._seats: dict[Seat, None] = {}
        self._turn: list[Seat] = []
        self._start = self._watch.position
        self._bytes = b""
        self._lines = 0
        self._telling = False
        collection.subscribe(self._changed)

    def add(self, watch: Watch, transport: asyncio.Transport, rouse: Callable[[], None]) -> Seat:
        seat = Seat(self, watch, transport, rouse)
        self._seats[seat] = None
        return seat

    def remove(self, seat: Seat) -> None:
        del self._seats[seat]
        if not self._seats:
            self._collection.unsubscribe(self._changed)
            self._on_empty()

    def _changed(self) -> None:
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        if self._collection.closed or self._faults.active():
            return self._rouse_all()
        if not self._turn and not self._begin_turn():
            return self._rouse_all()
        end = self._watch.position
        for _ in range(min(_AT_ONCE, len(self._turn))):
            seat = self._turn.pop()
            if seat not in self._seats or seat.position >= end:
                continue
            transport = seat.transport
            if seat.position != self._start or transport.is_closing():
                seat.rouse()
                continue
            if self._bytes:
                transport.write(self._bytes)
                seat.sent += self._lines
            seat.position = end
            if transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]:
                seat.rouse()
        self._telling = False
        if self._seats and (self._turn or self._watch.behind):
            self._changed()
        return None

    def _begin_turn(self) -> bool:
        """Prepares what everybody is told next; False if it has left the history."""
        self._start, before = self._watch.position, self._watch.sent
        lines = self._watch.next_lines()
        if lines is None:
            return False
        self._lines = self._watch.sent - before
        body = b"".join(lines)
        self._bytes = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        self._turn = list(self._seats)
        return True

    def _rouse_all(self) -> None:
        self._telling = False
        for seat in list(self._seats):
            seat.rouse()


class Audiences:
    """The audiences of a server.

    Args:
        faults: of the server.
    """

    def __init__(self, faults: FaultSet) -> None:
        self._faults = faults
        self._audiences: dict[Hashable, Audience] = {}

    def take_seat(
        self,
        collection: Collection,
        sort: Hashable,
        watch: Watch,
        transport: asyncio.Transport,
        rouse: Callable[[], None],
    ) -> Seat | None:
        """Has a watch told what happens; None if it has to do it by itself.

        Args:
            collection: what it watches.
            sort: equal for watches that send the same bytes for the same change.
            watch: it must have sent everything.
            transport: its connection; the answer on it must be chunked.
            rouse: called when it has to go on by itself; it has to leave its seat before it does.
        """
        if self._faults.active() or collection.closed:
            return None
        key = (collection, sort)
        audience = self._audiences.get(key)
        if audience is None:

            def forget() -> None:
                del self._audiences[key]

            audience = self._audiences[key] = Audience(collection, watch, self._faults, forget)
        return audience.add(watch, transport, rouse)
