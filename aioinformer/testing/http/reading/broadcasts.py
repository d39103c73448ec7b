"""One stream of changes for many watches.

A watch that has sent everything, and that no fault affects, sends the same next line as every other watch of the same
objects in the same form. While this holds, such watches subscribe to one broadcast:

* A change is encoded once and framed for HTTP once; the same bytes go to every connection. No task is woken for it: the
  task of a watch sleeps until it has something of its own to do.
* A broadcast works in rounds. A round brings all subscriptions to the newest change at its start; later changes wait
  for the next round. So a server that is short of time sends fewer and larger pieces.
* Between two rounds all subscriptions are at the same position. A watch that subscribes during a round may be ahead of
  the round's start. It can be sent neither the bytes of the round nor nothing, so its task resumes and finds its
  position in the history by itself.
* When more bytes wait in a connection than asyncio's high-water mark, the task of the watch resumes, and waits until
  the connection takes bytes again. This bounds the cost of a slow reader. If its position has left the history
  meanwhile, the watch ends.
* When a fault starts, all tasks resume. No watch subscribes while a fault is active.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from aioinformer.testing.http.faults import FaultSet
    from aioinformer.testing.http.reading.watches import Watch
    from aioinformer.testing.state.storage import Collection

_AT_ONCE = 100


class Subscription:
    """One watch of a broadcast.

    Args:
        watch: gets its new position when it unsubscribes.
        resume: wakes its task.
    """

    __slots__ = ("_broadcast", "_watch", "position", "resume", "sent", "transport")

    def __init__(
        self, broadcast: Broadcast, watch: Watch, transport: asyncio.Transport, resume: Callable[[], None]
    ) -> None:
        self._broadcast = broadcast
        self._watch = watch
        self.transport = transport
        self.resume = resume
        self.position = watch.position
        self.sent = 0

    def leave(self) -> None:
        """Unsubscribe. Call this once; then the watch sends by itself again."""
        self._broadcast.remove(self)
        self._watch.move(self.position, self.sent)


class Broadcast:
    """The watches that send the same bytes.

    Args:
        on_empty: called when the last one unsubscribes.
    """

    def __init__(self, collection: Collection, watch: Watch, faults: FaultSet, on_empty: Callable[[], None]) -> None:
        self._collection = collection
        self._faults = faults
        self._on_empty = on_empty
        self._watch = watch.twin()
        self._subscriptions: dict[Subscription, None] = {}
        self._round: list[Subscription] = []
        self._start = self._watch.position
        self._bytes = b""
        self._lines = 0
        self._sending = False
        collection.subscribe(self._changed)

    def add(self, watch: Watch, transport: asyncio.Transport, resume: Callable[[], None]) -> Subscription:
        subscription = Subscription(self, watch, transport, resume)
        self._subscriptions[subscription] = None
        return subscription

    def remove(self, subscription: Subscription) -> None:
        del self._subscriptions[subscription]
        if not self._subscriptions:
            self._collection.unsubscribe(self._changed)
            self._on_empty()

    def _changed(self) -> None:
        if not self._sending:
            self._sending = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        if self._collection.closed or self._faults.active():
            return self._resume_all()
        if not self._round and not self._begin_round():
            return self._resume_all()
        end = self._watch.position
        for _ in range(min(_AT_ONCE, len(self._round))):
            subscription = self._round.pop()
            if subscription not in self._subscriptions or subscription.position >= end:
                continue
            transport = subscription.transport
            if subscription.position != self._start or transport.is_closing():
                subscription.resume()
                continue
            if self._bytes:
                transport.write(self._bytes)
                subscription.sent += self._lines
            subscription.position = end
            if transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]:
                subscription.resume()
        self._sending = False
        if self._subscriptions and (self._round or self._watch.behind):
            self._changed()
        return None

    def _begin_round(self) -> bool:
        """Prepare the bytes of the next round. Return False if its start has left the history."""
        self._start = self._watch.position
        before = self._watch.sent
        lines = self._watch.next_lines()
        if lines is None:
            return False
        self._lines = self._watch.sent - before
        body = b"".join(lines)
        self._bytes = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        self._round = list(self._subscriptions)
        return True

    def _resume_all(self) -> None:
        self._sending = False
        for subscription in list(self._subscriptions):
            subscription.resume()


class Broadcasts:
    """The broadcasts of a server."""

    def __init__(self, faults: FaultSet) -> None:
        self._faults = faults
        self._broadcasts: dict[Hashable, Broadcast] = {}

    def subscribe(
        self,
        collection: Collection,
        sort: Hashable,
        watch: Watch,
        transport: asyncio.Transport,
        resume: Callable[[], None],
    ) -> Subscription | None:
        """Let a broadcast send the changes of a watch. Return None if the watch must send by itself.

        Args:
            sort: equal for watches that send the same bytes for the same change.
            watch: must have sent everything.
            transport: its connection; the response on it must be chunked.
            resume: called when it must send by itself; it must unsubscribe before it does.
        """
        if self._faults.active() or collection.closed:
            return None
        key = (collection, sort)
        broadcast = self._broadcasts.get(key)
        if broadcast is None:

            def forget() -> None:
                del self._broadcasts[key]

            broadcast = Broadcast(collection, watch, self._faults, forget)
            self._broadcasts[key] = broadcast
        return broadcast.add(watch, transport, resume)
