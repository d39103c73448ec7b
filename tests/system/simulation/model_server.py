"""An API server in memory that implements `Transport`: requests in, chunks of bytes out, with faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from aioinformer.errors import TransportError
from tests.system.simulation.answers import (
    HTML,
    REFUSALS,
    TOO_LARGE,
    Answer,
    Body,
    Stream,
    Watch,
    added,
    bookmark,
    failure,
    line,
)
from tests.system.simulation.scenario import ACTS

if TYPE_CHECKING:
    from random import Random

    from aioinformer.transport import HttpRequest
    from tests.system.simulation.collection import Collection, Snapshot, Stored
    from tests.system.simulation.scenario import Fault
    from tests.system.simulation.world import Story

_JSON = {"Content-Type": "application/json"}
#: Seconds that a client waits for the head of a response, except for watches.
_HEADER_TIMEOUT = 30.0
#: Seconds until TCP keepalive notices lost packets; a hanging server still acknowledges it.
_KEEPALIVE = 90.0


@dataclass
class Asked:
    """A request: a "list", a later "page" of one, a "stream" or a "watch"."""

    at: float
    verb: str
    refused: bool = False
    status: int = 0


class Promise(NamedTuple):
    """A Retry-After of the server."""

    at: float
    until: float


class ModelServer:
    """Implements `Transport`.

    Attributes:
        struck: how often each fault took effect.
        promises: each Retry-After.
        open: responses that are not closed.
        undone: writes that the last restore undid.
    """

    def __init__(self, collection: Collection, story: Story, random: Random) -> None:
        self.collection = collection
        self.story = story
        self.random = random
        self.asked: list[Asked] = []
        self.struck: Counter[str] = Counter()
        self.refusals = 0
        self.refused_at = 0.0
        self.promises: list[Promise] = []
        self.open: list[Answer] = []
        self.restores = 0
        self.undone: list[Stored] = []
        self._faults: list[Fault] = []
        self._tokens: dict[str, tuple[Snapshot, int]] = {}
        self._stale_before = False

    # Faults.

    def start(self, fault: Fault) -> None:
        """Start a fault."""
        now = self._now()
        if fault.name in ACTS:
            self.struck[fault.name] += 1
        self._faults = [known for known in self._faults if not known.over(now)]
        match fault.name:
            case "outage":
                self.break_all()
                self._faults.append(fault)
            case "restart":
                self.break_all()
                if not fault.params["keep"]:
                    self.collection.compact(self.collection.version)
                    self._tokens.clear()
            case "compaction":
                self.collection.compact(self.collection.version - fault.params["keep"])
                self._tokens.clear()
            case "restore":
                self.restores += 1
                self._tokens.clear()
                self.undone = self.collection.restore(fault.params["back"], bump=fault.params["bump"])
                self.break_all()
            case _:
                self._faults.append(fault)
                self.poke()

    def heal(self) -> None:
        """End all faults."""
        self._faults.clear()
        for answer in self.open:
            if isinstance(answer, Stream):
                answer.watch.spare()
        self.poke()

    def break_all(self) -> None:
        """Break every connection."""
        for answer in list(self.open):
            answer.break_off()

    def poke(self) -> None:
        """Wake the watches after a write."""
        now = self._now()
        for answer in self.open:
            if isinstance(answer, Stream):
                answer.watch.wake_at(now)
                answer.wake()

    def closed(self, answer: Answer) -> None:
        """Note that the client has closed a response."""
        self.open.remove(answer)

    def strike(self, name: str, what: Any) -> Fault | None:
        """Return the active fault with a name if it takes effect now. Stream faults affect each watch once."""
        now = self._now()
        for fault in self._faults:
            if fault.name != name or fault.over(now):
                continue
            verb = getattr(what, "verb", "watch")
            if verb not in fault.verbs:
                continue
            if isinstance(what, Watch):
                if id(fault) in what.struck:
                    continue
                what.struck.add(id(fault))
            if self.random.random() < fault.share:
                fault.strikes += 1
                self.struck[name] += 1
                return fault
        return None

    # Responses.

    async def request(self, request: HttpRequest) -> Answer:
        """Send a request, as a `Transport`."""
        query = dict(request.query)
        watch = "watch" in query
        verb = "stream" if "sendInitialEvents" in query else "watch" if watch else "list"
        verb = "page" if "continue" in query else verb
        asked = Asked(self._now(), verb)
        self.asked.append(asked)
        version, rest = query.get("resourceVersion", '""'), ", further page" if verb == "page" else ""
        self.story.tell("informer", "asks: %s from version %s%s", verb, version, rest)
        restores, refusals = self.restores, self.refusals
        try:
            answer = await self._answer(query, verb, "watch" if watch else "list")
            if restores != self.restores:
                raise TransportError("the connection broke")
        except TransportError as error:
            self._refused("%s", error)
            raise
        finally:
            asked.refused = refusals != self.refusals
        asked.status = answer.status
        if answer.leave_alone:
            self.promises.append(Promise(self._now(), self._now() + answer.leave_alone))
        self.open.append(answer)
        return answer

    async def _answer(self, query: dict[str, str], verb: str, kind: str) -> Answer:
        target = _Target(kind)
        await asyncio.sleep(self.random.choice((0.0, 0.0, 0.001, 0.02)))
        if (late := self.strike("latency", target)) is not None:
            await asyncio.sleep(late.params["seconds"])
        if self.strike("black_hole", target) is not None or self.strike("no_answer", target) is not None:
            hangs = self.random.choice((_KEEPALIVE, 1e6))
            await asyncio.sleep(hangs if kind == "watch" else _HEADER_TIMEOUT)
            raise TransportError("no answer in time")
        if kind == "watch" and self.strike("hang", target) is not None:
            await asyncio.sleep(1e6)
        if self.strike("outage", target) is not None or self.strike("refuse", target) is not None:
            raise TransportError("cannot connect: Connection refused")
        if (refusal := self._refusal(target, verb)) is not None:
            return refusal
        if verb == "stream":
            return self._stream(query)
        return self._watch(query) if verb == "watch" else self._list(query)

    def _refusal(self, target: _Target, verb: str) -> Answer | None:
        for name in REFUSALS:
            fault = self.strike(name, target)
            if fault is not None:
                return self._refuse(fault, target.verb, verb)
        if verb == "stream" and self.strike("refuse_streams", target) is not None:
            return self._status(failure(422, "Invalid", "sendInitialEvents is forbidden for watch"), target.verb)
        if verb == "stream" and (busy := self.strike("busy_streams", target)) is not None:
            return self._status(failure(429, "TooManyRequests"), target.verb, busy.params["retry_after"])
        return None

    def _refuse(self, fault: Fault, kind: str, verb: str) -> Answer:
        if fault.name == "html":
            self._refused("a web page, %d", fault.params["status"])
            return Body(self, fault.params["status"], {"Content-Type": "text/html"}, HTML, kind)
        if fault.name == "server_error_text":
            self._refused("500 as text")
            return Body(self, 500, {"Content-Type": "text/plain"}, b"internal server error\n", kind)
        status = REFUSALS[fault.name]
        if kind == "watch" and fault.name in ("too_large", "expired") and self.random.random() < 0.5:
            self._refused("%d as an event", status["code"])
            return Body(self, 200, _JSON, line("ERROR", status), kind)
        return self._status(status, kind, fault.params.get("retry_after", 0), dated=fault.params.get("dated", False))

    def _status(self, status: dict[str, Any], kind: str, seconds: int = 0, *, dated: bool = False) -> Answer:
        headers = dict(_JSON)
        if seconds:
            # The server's clock is wrong, which must not matter: dates are relative to its header Date.
            headers["Date"] = "Fri, 13 Feb 2009 23:31:30 GMT"
            headers["Retry-After"] = f"Fri, 13 Feb 2009 23:{31 + (30 + seconds) // 60}:{(30 + seconds) % 60:02} GMT"
            if not dated:
                headers["Retry-After"] = str(seconds)
        self._refused("%d %s%s", status["code"], status["reason"], f", Retry-After {seconds} s" if seconds else "")
        answer = Body(self, status["code"], headers, msgspec.json.encode(status), kind)
        answer.leave_alone = seconds
        return answer

    def _refused(self, what: str, *details: object) -> None:
        self.refusals += 1
        self.refused_at = self._now()
        self.story.tell("server", "refuses: " + what, *details)

    def _list(self, query: dict[str, str]) -> Answer:
        token, limit, version = query.get("continue", ""), int(query.get("limit", 0)), query.get("resourceVersion", "")
        begin = 0
        if token:
            if token not in self._tokens:
                return self._status(failure(410, "Expired", "the continue token is too old"), "list")
            snapshot, begin = self._tokens[token]
        elif version.isdigit() and int(version) > self.collection.version:
            return self._status(TOO_LARGE, "list", 1)
        else:
            snapshot = self._state(version)
            limit = 0 if version == "0" else limit
        objects = list(self.collection.visible(snapshot).values())
        page = objects[begin : begin + limit] if limit else objects
        metadata: dict[str, Any] = {"resourceVersion": str(snapshot.version)}
        if begin + len(page) < len(objects):
            metadata["continue"] = f"{self.restores}-{snapshot.version}-{begin + limit}-{self.random.randrange(10**6)}"
            self._tokens[metadata["continue"]] = (snapshot, begin + limit)
            metadata["remainingItemCount"] = len(objects) - begin - len(page)
        else:
            self.collection.history.show(snapshot.moment)
        items = b",".join(obj.body(kind=False) for obj in page)
        head, meta = b'"kind":"PodList","apiVersion":"v1"', b'"metadata":' + msgspec.json.encode(metadata)
        parts = [head, meta, b'"items":[' + items + b"]"]
        if self.random.random() < 0.1:
            parts = [head, parts[2], meta]
        body = b"{" + b",".join(parts) + b"}"
        self.story.tell("server", "lists %d of %d objects at version %d", len(page), len(objects), snapshot.version)
        ends = None
        if self.strike("half_page", _Target("list")) is not None:
            ends = (self.random.randrange(len(body)), self.random.random() < 0.7)
        return Body(self, 200, _JSON, body, "list", ends)

    def _state(self, version: str) -> Snapshot:
        """Return the state that a list shows: the current one, or an older one of a replica that is behind."""
        now = self.collection.now()
        back = 0
        if version == "0":
            back = self.random.choice((0, 1, 3))
        elif not self._stale_before and (fault := self.strike("stale", _Target("list"))) is not None:
            back = fault.params["back"]
        self._stale_before = back > 0 and version != "0"
        snapshots = self.collection.snapshots
        then = snapshots[-min(back + 1, len(snapshots))]
        if back and self.collection.oldest <= then.version <= now.version:
            self.story.tell("server", "answers from a replica that is %d writes behind", back)
            return then
        return now

    def _watch(self, query: dict[str, str]) -> Answer:
        version = int(query["resourceVersion"])
        if version < self.collection.oldest:
            self._refused("410, the version is too old")
            status = failure(410, "Expired", f"too old resource version: {version} ({self.collection.oldest})")
            if self.random.random() < 0.3:
                return self._status(status, "watch")
            return Body(self, 200, _JSON, line("ERROR", status), "watch")
        if version > self.collection.version:
            return self._watch_of_the_future(version, query)
        return self._open(version, b"", query)

    def _watch_of_the_future(self, version: int, query: dict[str, str]) -> Answer:
        match self.random.randrange(3):
            case 0:
                return self._status(TOO_LARGE, "watch", 1)
            case 1:
                self._refused("504 as an event, the version is in the future")
                return Body(self, 200, _JSON, line("ERROR", TOO_LARGE), "watch")
            case _:
                return self._open(version, b"", query)

    def _stream(self, query: dict[str, str]) -> Answer:
        version = query.get("resourceVersion", "")
        if version.isdigit() and int(version) > self.collection.version:
            return self._status(TOO_LARGE, "watch", 1)
        snapshot = self._state("")
        visible = self.collection.visible
        if self.strike("ignore_streams", _Target("watch")) is not None:
            self.story.tell("server", "takes a streaming list for an ordinary watch")
            if version.isdigit():
                return self._watch(query)
            return self._open(snapshot.version, b"".join(map(added, visible(snapshot).values())), query)
        if self.strike("endless_streams", _Target("watch")) is not None:
            self.story.tell("server", "streams a list without an end")
            return self._open(snapshot.version, b"".join(map(added, visible(snapshot).values())), {})
        self.collection.history.show(snapshot.moment)
        lines = self._initial_events(snapshot, int(version) if version.isdigit() else 0)
        self.story.tell("server", "streams %d initial events at version %d", len(lines), snapshot.version)
        head = b"".join(lines) + bookmark(snapshot.version, initial_events_end=True)
        return self._open(snapshot.version, head, query)

    def _initial_events(self, snapshot: Snapshot, since: int) -> list[bytes]:
        """Return initial events of a possibly older state, and the events since."""
        collection = self.collection
        then = collection.snapshots[-min(self.random.choice((1, 1, 2, 5)), len(collection.snapshots))]
        readable = all(obj.readable for obj in snapshot.objects.values())
        if not readable or not max(since, collection.oldest) <= then.version < snapshot.version:
            then = snapshot
        lines = [added(obj) for obj in collection.visible(then).values()]
        return lines + [event.line for event in collection.events if then.version < event.version <= snapshot.version]

    def _open(self, version: int, head: bytes, query: dict[str, str]) -> Answer:
        self.story.tell("server", "opens a watch from version %d", version)
        bookmarks = "allowWatchBookmarks" in query
        watch = Watch(self, version, head, self._now(), int(query.get("timeoutSeconds", 1800)), bookmarks=bookmarks)
        return Stream(self, watch)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _Target(NamedTuple):
    verb: str
