"""Responses of the model server: their JSON, what a watch sends, and how the bytes arrive: late, in pieces, or not."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.errors import TransportError
from tests.system.simulation.scenario import STREAMS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.system.simulation.collection import Collection, Event, Stored
    from tests.system.simulation.model_server import ModelServer
    from tests.system.simulation.scenario import Fault


def line(kind: str, document: object) -> bytes:
    """Return a line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), msgspec.json.encode(document))


def failure(
    code: int, reason: str, message: str = "", seconds: float = 0, causes: tuple[str, ...] = ()
) -> dict[str, object]:
    """Return a Status."""
    details: dict[str, object] = {}
    if seconds:
        details["retryAfterSeconds"] = seconds
    if causes:
        details["causes"] = [{"reason": cause, "message": cause} for cause in causes]
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return status | {"message": message or reason, "details": details}


def bookmark(version: int, *, initial_events_end: bool = False, bare: bool = False) -> bytes:
    """Return a bookmark; a bare one has a version only."""
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if not bare:
        metadata["creationTimestamp"] = None
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    document: dict[str, object] = {"metadata": metadata}
    return line("BOOKMARK", document if bare else {"kind": "Pod", "apiVersion": "v1"} | document)


def added(obj: Stored) -> bytes:
    """Return the line of an initial event."""
    return b'{"type":"ADDED","object":%b}\n' % obj.body()


HTML = b"<!DOCTYPE html><html><body><h1>Please log in</h1></body></html>\n"
TOO_LARGE = failure(504, "Timeout", "Too large resource version", 1, ("ResourceVersionTooLarge",))
#: The body of each refusing fault; those that are no Status are empty.
REFUSALS: Mapping[str, dict[str, Any]] = {
    "throttle": failure(429, "TooManyRequests"),
    "unavailable": failure(503, "ServiceUnavailable"),
    "server_error": failure(500, "InternalError"),
    "server_error_text": {},
    "unauthorized": failure(401, "Unauthorized"),
    "forbidden": failure(403, "Forbidden"),
    "not_found": failure(404, "NotFound"),
    "not_allowed": failure(405, "MethodNotAllowed"),
    "html": {},
    "too_large": TOO_LARGE,
    "expired": failure(410, "Expired"),
}


BOOKMARK_INTERVAL = 55.0


class Watch:
    """Decides what a watch sends: first events, then events after a version, for some seconds."""

    def __init__(
        self, server: ModelServer, version: int, head: bytes, opened: float, lasts: float, *, bookmarks: bool
    ) -> None:
        self._server = server
        self._version = version
        self._head = head
        self._ends = opened + lasts
        self._bookmarks = bookmarks
        self._bookmark_at = opened + BOOKMARK_INTERVAL * (0.2 + server.random.random())
        self._lag = server.random.choice((0.0, 0.0, 0.0, 0.01, 0.3))
        self._ready_at = opened
        self._last: Event | None = None
        self._brought = 0
        self._doom: Fault | None = None
        self._doomed_after = 0
        self._own_versions = False
        self.struck: set[int] = set()

    @property
    def _collection(self) -> Collection:
        return self._server.collection

    def next_at(self, now: float) -> float:
        """Return the time of the next possible event, unless the watch is woken before."""
        ready = self._ready_at if self._ready_at > now else self._ends
        bookmark = self._bookmark_at if self._bookmarks and self._bookmark_at > now else self._ends
        return min(self._ends, ready, bookmark)

    def wake_at(self, now: float) -> None:
        """Schedule the delivery of an event a little later."""
        if self._ready_at <= now:
            self._ready_at = now + self._lag

    def spare(self) -> None:
        """Cancel the faults that would affect it."""
        self._doom = None

    def news(self, now: float) -> tuple[bytes, bool | None]:
        """Return what to send now, and its end: None for none, False for a clean one, True for a broken connection."""
        self._consider(now)
        head, self._head = self._head, b""
        events: list[Event] = []
        if now >= self._ready_at:
            events = [event for event in self._collection.events if event.version > self._version]
        if len(events) > 3 and self._server.random.random() < 0.3:
            events = events[: self._server.random.randint(1, len(events))]
        if self._doom is not None:
            allowed = max(0, self._doomed_after - self._brought)
            if len(events) >= allowed:
                return self._struck(head, events, allowed, now)
        data = head + self._sent(events)
        if not data and self._bookmarks and now >= max(self._bookmark_at, self._ready_at):
            self._bookmark_at = now + BOOKMARK_INTERVAL
            if self._server.strike("no_bookmarks", None) is None:
                data = bookmark(self._collection.version)
                self._version = max(self._version, self._collection.version)
        if not data and now >= self._ends:
            return b"", False
        return data, None

    def _sent(self, events: list[Event]) -> bytes:
        if events:
            self._version, self._last = events[-1].version, events[-1]
            self._brought += len(events)
        return b"".join(event.own if self._own_versions else event.line for event in events)

    def _consider(self, now: float) -> None:
        if self._doom is None:
            for name in STREAMS:
                fault = self._server.strike(name, self)
                if fault is not None:
                    self._doom, self._doomed_after = fault, self._brought + fault.params.get("events", 0)
                    return

    def _struck(self, head: bytes, events: list[Event], allowed: int, now: float) -> tuple[bytes, bool | None]:
        fault, self._doom = self._doom, None
        assert fault is not None
        good = events[:allowed]
        following = events[allowed].line if len(events) > allowed else line("MODIFIED", {"metadata": {"name": "cut"}})
        data = head + self._sent(good)
        self._server.story.tell("server", "a watch is struck: %s, after %d events", fault.name, self._brought)
        match fault.name:
            case "close":
                return data, False
            case "cut":
                return data + following[: self._server.random.randrange(1, len(following) - 1)], True
            case "end_in_line":
                return data + following[: self._server.random.randrange(1, len(following) - 1)], False
            case "garbage":
                return data + b'{"type":"MODIFIED","object":{"kind\n', None
            case "unknown_type":
                return data + line("HEARTBEAT", {"metadata": {"resourceVersion": "1"}}), None
            case "huge_line":
                return data + b'{"type":"MODIFIED","object":{"pad":"' + b"x" * fault.params["size"] + b'"}}\n', None
            case "error_event":
                return data + line("ERROR", failure(500, "InternalError", "etcd is unwell")), False
            case "expired_event":
                self._collection.compact(self._collection.version)
                return data + line("ERROR", failure(410, "Expired", "too old resource version")), False
            case "bookmark_and_close":
                waiting = any(event.version > self._version for event in self._collection.events)
                version = self._version if waiting else max(self._version, self._collection.version)
                return data + bookmark(version, bare=True), False
            case "double":
                return data + (self._last.line if self._last is not None else b""), None
            case _:
                self._own_versions = self._collection.history.deletions_unversioned = True
                return data, None


#: Separates two pieces that arrive at different times.
_APART = 1e-4


class Answer(ABC):
    """A response; implements `Response`. `leave_alone` has the seconds of its header Retry-After."""

    def __init__(self, server: ModelServer, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self.broken = False
        self.leave_alone = 0
        self._server = server
        self._waiter: asyncio.Future[None] | None = None

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._server.closed(self)
            self.wake()

    def break_off(self) -> None:
        """Break the connection; bytes in transit are lost."""
        self.broken = True
        self.wake()

    def wake(self) -> None:
        """Wake the response: there may be new events."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @abstractmethod
    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""

    async def sleep(self, until: float | None) -> None:
        """Wait until a time, or until there may be new events."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_at(until, self.wake) if until is not None else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    async def pause(self, seconds: float) -> None:
        """Wait, and raise if the connection breaks meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self.broken and not self.closed and loop.time() < until:
            await self.sleep(until)
        self.check()

    def check(self) -> None:
        if self.broken:
            raise TransportError("the connection broke")
        if self.closed:
            raise TransportError("the answer was closed")

    async def pieces(self, data: bytes) -> AsyncIterator[bytes]:
        """Yield the data whole, or in pieces with random boundaries."""
        server, random = self._server, self._server.random
        dice = random.random()
        slow = server.strike("slow", self)
        bits = server.strike("bits", self)
        count = random.randint(8, 40) if bits else 1 if dice < 0.75 else random.randint(2, 4)
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(count - 1)) if data else []
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            await self._silence()
            if begin:
                await self.pause(slow.params["seconds"] if slow else _APART * random.randrange(3))
            self.check()
            if begin < end:
                yield data[begin:end]

    async def _silence(self) -> None:
        """Deliver nothing during a black hole; some connections never recover from it."""
        while (hole := self._server.strike("black_hole", self) or self._server.strike("hang", self)) is not None:
            if self._server.random.random() < 0.5:
                await self.pause(1e6)
            await self.pause(hole.until - asyncio.get_running_loop().time())
        self.check()


class Body(Answer):
    """A response with a fixed body, which may break (True) or end (False) after a number of bytes."""

    def __init__(
        self,
        server: ModelServer,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        verb: str = "list",
        ends: tuple[int, bool] | None = None,
    ) -> None:
        super().__init__(server, status, headers)
        self.verb = verb
        self._body = body
        self._ends = ends

    async def chunks(self) -> AsyncIterator[bytes]:
        self.check()
        data = self._body if self._ends is None else self._body[: self._ends[0]]
        async for piece in self.pieces(data):
            yield piece
        if self._ends is not None and self._ends[1]:
            raise TransportError("the connection broke in the middle of the answer")


class Stream(Answer):
    """A response that continues until the watch ends."""

    verb = "watch"

    def __init__(self, server: ModelServer, watch: Watch) -> None:
        super().__init__(server, 200, {"Content-Type": "application/json"})
        self.watch = watch

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while True:
            self.check()
            data, end = self.watch.news(loop.time())
            if data:
                async for piece in self.pieces(data):
                    yield piece
            if end is not None:
                if end:
                    raise TransportError("the connection broke in the middle of a line")
                return
            if not data:
                await self.sleep(self.watch.next_at(loop.time()))
