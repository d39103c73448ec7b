"""One open watch on the wire: its lines, bookmarks, timeout, and the faults that affect it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.logs import get_logger
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.statuses import StatusError, expired
from aioinformer.testing.http.reading.watches import Watch, error_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from aiohttp import web

    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.faults import Fault, FaultSet
    from aioinformer.testing.http.reading.broadcasts import Broadcasts, Subscription
    from aioinformer.testing.http.reading.list_options import Options
    from aioinformer.testing.state.storage import Collection, Record

_log = get_logger("aioinformer.testing")

_BEFORE_TIMEOUT = 2.0
#: Seconds until a conversion that has failed is repeated.
_AGAIN = 1.0


@dataclass(slots=True)
class BookmarkMaker:
    """The bookmarks of one watch.

    Attributes:
        make: returns the line for a version, and whether it ends the initial events.
        interval: seconds between two bookmarks.
        initial_end: whether the end of the initial events is marked.
    """

    make: Callable[[int, bool], bytes]
    interval: float
    initial_end: bool = True


class WatchStream:
    """Send one watch until it times out, the server stops, or the client disconnects.

    Args:
        response: prepared, nothing written yet.
        timeout: seconds after which the watch ends.
        broadcasts: send its changes while it needs nothing of its own.
        sort: equal for watches that send the same bytes for the same change; None for a watch that shares none.
        prepare: converts objects before they are sent; None if that is not necessary.

    Attributes:
        ended: set when nothing more is sent.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        target: Target,
        served: Served,
        collection: Collection,
        watch: Watch,
        options: Options,
        bookmarks: BookmarkMaker,
        current: Callable[[], int],
        faults: FaultSet,
        timeout: float,
        broadcasts: Broadcasts,
        sort: Hashable | None,
        prepare: Callable[[list[Record]], Awaitable[None]] | None,
    ) -> None:
        self.target = target
        self.ended = asyncio.Event()
        self._request = request
        self._response = response
        self._served = served
        self._collection = collection
        self._watch = watch
        self._options = options
        self._bookmarks = bookmarks
        self._current = current
        self._faults = faults
        self._timeout = timeout
        self._broadcasts = broadcasts
        self._sort = sort
        self._prepare = prepare
        self._subscription: Subscription | None = None
        self._wake = asyncio.Event()
        self._stopped = False
        self._disruptions: list[Fault] = []
        for fault in faults.matching("stream", target):
            self.disrupt(fault)

    def disrupt(self, fault: Fault) -> None:
        """Let a stream fault strike this watch as soon as enough events have been sent."""
        fault.strike()
        self._disruptions.append(fault)
        self._resume()

    def stop(self) -> None:
        """End the watch cleanly."""
        self._stopped = True
        self._resume()

    def wake(self) -> None:
        """Check again whether there is something to send."""
        self._resume()

    async def run(self) -> None:
        """Send until the watch is over. The body of the response is complete then, unless the connection broke."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        deadline = now + self._timeout
        ends_initial = self._options.bookmarks and self._options.starts_with_state and self._bookmarks.initial_end
        due = self._next_bookmark(now, deadline)
        # If the resource is no longer served, its deletions are sent first.
        while not self._stopped and (not self._collection.closed or self._watch.behind):
            self._wake.clear()
            slow = self._faults.standing("slow_reader", self.target)
            if slow is not None and not self._watch.has_initial:
                if self._watch.backlog >= int(slow.params["backlog"]):
                    slow.strike()
                    return
                if not await self._woken(deadline):
                    return
                continue
            limit = self._events_left()
            if limit == 0:
                if not await self._strike(self._disruptions.pop(0)):
                    return
                continue
            if self._prepare is not None and not await self._prepared(self._prepare, deadline):
                return
            lines = self._watch.next_lines(max(limit, 0))
            if lines is None:
                return
            if lines:
                await self._write(b"".join(lines))
                # A write that the socket takes at once does not yield to the event loop.
                await asyncio.sleep(0)
                if loop.time() >= deadline:
                    return
                continue
            if self._watch.behind:
                continue
            if ends_initial:
                ends_initial = False
                await self._bookmark(True)
                continue
            now = loop.time()
            if now >= deadline:
                return
            if now >= due:
                await self._bookmark(False)
                due = self._next_bookmark(now, deadline)
            await self._woken(min(due, deadline))

    async def _prepared(self, prepare: Callable[[list[Record]], Awaitable[None]], deadline: float) -> bool:
        """Convert what is sent next; return False if the watch is over before that succeeds."""
        looked_at: list[Record] = []
        reported = False
        try:
            async with asyncio.timeout_at(deadline):
                # More changes may happen meanwhile.
                while (records := self._watch.upcoming()) != looked_at:
                    try:
                        await prepare(records)
                        looked_at = records
                    except StatusError as error:
                        if not reported:
                            _log.warning("a watch of %s waits, and tries again: %s", self._served.resource.gvr, error)
                            reported = True
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_AGAIN):
                                await self._wake.wait()
                        self._wake.clear()
                    if self._stopped or self._is_replaced():
                        return False
        except TimeoutError:
            return False
        return not self._is_replaced()

    def _is_replaced(self) -> bool:
        """Return whether the definition of the resource, and so its conversion, has changed since the watch began."""
        return self._served.webhook is not None and self._served.webhook.replaced

    async def _woken(self, until: float) -> bool:
        """Wait until there may be something to send; return False if time is up. A broadcast may send meanwhile."""
        transport = self._request.transport
        plain = not self._disruptions and self._options.version_number <= self._current()
        if self._sort is not None and plain and transport is not None:
            self._subscription = self._broadcasts.subscribe(
                self._collection, self._sort, self._watch, transport, self._resume
            )
        if self._subscription is None:
            self._collection.subscribe(self._resume)
        try:
            async with asyncio.timeout_at(until):
                await self._wake.wait()
        except TimeoutError:
            woken = False
        else:
            woken = True
        finally:
            self._resume()
            self._collection.unsubscribe(self._resume)
        # A broadcast does not wait for a slow client; its watch waits here.
        await self._request.writer.drain()
        return woken

    def _resume(self) -> None:
        """Leave the broadcast and wake the task."""
        if self._subscription is not None:
            self._subscription.leave()
            self._subscription = None
        self._wake.set()

    def _next_bookmark(self, now: float, deadline: float) -> float:
        if not self._options.bookmarks:
            return deadline
        last = deadline - _BEFORE_TIMEOUT
        regular = now + self._bookmarks.interval
        return min(regular, last) if last > now else regular

    def _events_left(self) -> int:
        """Return the number of events until the next disruption; -1 if none is due."""
        if not self._disruptions:
            return -1
        self._disruptions.sort(key=lambda fault: int(fault.params["events"]))
        return max(0, int(self._disruptions[0].params["events"]) - self._watch.sent)

    async def _bookmark(self, initial_end: bool) -> None:
        version = self._watch.started_at if initial_end else self._watch.bookmark_version(self._current())
        if version is None or self._faults.strike("no_bookmarks", self.target):
            return
        await self._write(self._bookmarks.make(version, initial_end))

    async def _write(self, data: bytes) -> None:
        slow = self._faults.strike("slow", self.target)
        if slow:
            await asyncio.sleep(float(slow.params["seconds"]))
        if self._faults.strike("black_hole", self.target):
            await asyncio.Event().wait()
        await self._response.write(data)

    async def _strike(self, fault: Fault) -> bool:
        """Apply a stream fault; return False if it ends the watch."""
        params = fault.params
        resource = self._served.resource
        names = {"kind": resource.kind, "apiVersion": resource.api_version}
        if fault.name == "watch_close":
            return False
        if fault.name == "cut":
            head = encode_plain({"type": "MODIFIED", "object": {**names, "metadata": {"name": "cut-in-the-middle"}}})
            await self._response.write(head[:-20])
            self.break_connection()
            return False
        if fault.name == "expired":
            message = f"too old resource version: {self._options.version_number} ({self._current()})"
            await self._response.write(error_line(expired(message)))
            return False
        if fault.name == "error_event":
            message = f"{params['reason']}: the stream has failed"
            await self._response.write(error_line(StatusError(int(params["status"]), params["reason"], message)))
            return False
        if fault.name == "garbage":
            await self._response.write(str(params["line"]).encode() + b"\n")
        elif fault.name == "unknown_event_type":
            event = {"type": "SURPRISE", "object": {**names, "metadata": {"resourceVersion": str(self._current())}}}
            await self._response.write(encode_plain(event) + b"\n")
        elif fault.name == "undecodable_object":
            event = {"type": "MODIFIED", "object": {**names, "metadata": _broken_metadata(params)}}
            await self._response.write(encode_plain(event) + b"\n")
        elif fault.name == "huge_line":
            padding = {"annotations": {"padding": "x" * int(params["size"])}}
            version = self._watch.bookmark_version(self._current()) or self._watch.started_at
            event = {"type": "BOOKMARK", "object": {**names, "metadata": {"resourceVersion": str(version), **padding}}}
            await self._response.write(encode_plain(event) + b"\n")
        elif fault.name == "version_only_bookmark":
            version = self._watch.bookmark_version(self._current()) or self._watch.started_at
            event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}
            await self._response.write(encode_plain(event) + b"\n")
        return True

    def break_connection(self) -> None:
        """Close the connection without the end of the body; what was written is still sent."""
        if self._request.transport is not None:
            self._request.transport.close()


def _broken_metadata(params: dict[str, object]) -> object:
    if not params["name"]:
        return "not an object"
    named = {"namespace": params["namespace"], "name": params["name"]}
    return {**{key: value for key, value in named.items() if value}, "labels": "not a mapping", "resourceVersion": 7}
