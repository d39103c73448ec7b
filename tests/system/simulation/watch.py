"""A watch in the model server: what was sent, what is next, and the faults that affect it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.system.simulation.faults import STREAMS
from tests.system.simulation.words import bookmark, failure, line

if TYPE_CHECKING:
    from tests.system.simulation.collection import Collection, Event
    from tests.system.simulation.faults import Fault
    from tests.system.simulation.model_server import ModelServer

BOOKMARK_INTERVAL = 55.0


class Watch:
    """Decides what a watch sends.

    Args:
        server: the model server, with its faults.
        version: after which it starts.
        head: the first events.
        opened: virtual time of its start.
        lasts: seconds after which it ends.
        bookmarks: whether the client requested bookmarks.
    """

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
                self._own_versions = True
                return data, None
