"""Plays one script: an HTTP/1.1 server on loopback that responds as the script states, and records requests.

It uses plain TCP because it must do what HTTP servers prevent: reset a connection, end one within a chunk, delay the
head of a response, stop listening.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.system.oracle.script import decode_event, decode_object, encode, split_step, status

if TYPE_CHECKING:
    from tests.system.oracle.script import Reply, Script

#: A request within this time counts as "at once". The first delay of a backoff is 0.8 s or more.
AT_ONCE = 0.75
#: Three delays of a backoff are shorter than this; a Retry-After of a script is longer.
BACKOFF = 7.0
#: The longest time for a script.
LONGEST = 60.0
_TICK = 0.1


@dataclass(slots=True)
class Asked:
    """A request, and the seconds since the last action of the server."""

    text: str
    gap: float

    def render(self, first: bool) -> str:
        """Return the request in the notation of records."""
        if first:
            return self.text
        pace = "at once" if self.gap < AT_ONCE else "backoff" if self.gap < BACKOFF else "held"
        return f"{pace}: {self.text}"


class Gone(Exception):
    """The connection is closed."""


class Player:
    """Serves one script to one client.

    Attributes:
        asked: the requests, in order.
        lateness: the longest delay by other work of the event loop or the machine.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.lateness = 0.0
        self._problems: list[str] = []
        self._counts: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._port = 0
        #: Bound but not listening: it refuses connections and reserves the port.
        self._socket: socket.socket | None = None
        self._acted_at = self._asked_at = 0.0
        self._holds = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self._listen()
        self._acted_at = _now()
        return self

    async def __aexit__(self, *of_block: object) -> None:
        """End all connections."""
        self._unlisten()
        if self._socket is not None:
            self._socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_for_end(self) -> None:
        """Wait until the script has ended.

        Raises:
            ValueError: the script has no reply for a request.
            TimeoutError: the script did not end.
        """
        try:
            async with asyncio.timeout(LONGEST):
                while not self._is_over():
                    before = _now()
                    await asyncio.sleep(_TICK)
                    self.lateness = max(self.lateness, _now() - before - _TICK)
        except TimeoutError:
            raise TimeoutError(f"{self.script.name} did not end; requests: {self.requests()}") from None
        if self._problems:
            raise ValueError(f"{self.script.name}: {self._problems[0]}")

    def requests(self) -> list[str]:
        """Return the requests of the record."""
        asked = self.asked[: self.script.requests or None]
        return [each.render(position == 0) for position, each in enumerate(asked)]

    def _is_over(self) -> bool:
        if self._problems:
            return True
        quiet = _now() - max(self._acted_at, self._asked_at) >= self.script.settle
        return quiet and (self._holds > 0 or 0 < self.script.requests <= len(self.asked))

    async def _listen(self) -> None:
        bound, self._socket = self._socket or _bound(0), None
        self._server = await asyncio.start_server(self._serve, sock=bound)
        self._port = self._server.sockets[0].getsockname()[1]

    def _unlisten(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    # One connection.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writer.transport.set_write_buffer_limits(1 << 24)
        try:
            while target := await _target(reader):
                kind, text = _describe(target)
                self._asked_at = _now()
                self.asked.append(Asked(text, self._asked_at - self._acted_at))
                reply = self._reply(kind)
                if reply is None:
                    self._problems.append(f"the script has no reply for `{text}`")
                    return
                await _Answer(self, reader, writer).play(reply)
        except (Gone, ConnectionError):
            pass
        except asyncio.CancelledError:
            pass  # at the end; asyncio reports a cancelled connection as an error
        except Exception as error:
            self._problems.append(repr(error))
        finally:
            self._tasks.discard(task)
            writer.close()

    def _reply(self, kind: str) -> Reply | None:
        replies = self.script.replies.get(kind)
        if not replies:
            return None
        self._counts[kind] += 1
        return replies[min(self._counts[kind], len(replies)) - 1]

    # For responses.

    def note_action(self) -> None:
        """Note an action of the server that the client can observe."""
        self._acted_at = _now()

    async def hold(self, reader: asyncio.StreamReader) -> None:
        """Do nothing until the client closes the connection."""
        self._holds += 1
        try:
            with suppress(ConnectionError):
                await reader.read(1)
        finally:
            self._holds -= 1

    def refuse(self, seconds: float) -> None:
        """Refuse connections for some seconds."""
        self._unlisten()
        self._socket = _bound(self._port)
        self._tasks.add(asyncio.create_task(self._listen_after(seconds), name="listen again"))

    async def _listen_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen()


def _bound(port: int) -> socket.socket:
    # asyncio turns Nagle's algorithm off for sockets that name the protocol only. Otherwise, a small second write waits
    # for the acknowledgment of the first, up to 40 ms of real time, and a cut drops it.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


class _Answer:
    """Plays one reply on one connection."""

    def __init__(self, player: Player, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._player = player
        self._reader = reader
        self._writer = writer
        self._headed = False

    async def play(self, reply: Reply) -> None:
        for step in reply:
            await self._step(step)

    async def _step(self, step: str) -> None:
        modifier, verb, argument = split_step(step)
        pause = 0.0
        if modifier == "drip":
            seconds, _, argument = argument.partition(" ")
            pause = float(seconds)
        match verb:
            case "answer":
                await self._write(_refusal(argument))
            case "list":
                whole = _list(argument, pretty=modifier == "pretty")
                await self._write(whole[: -len(whole) // 3] if modifier == "half" else whole, pause)
            case "head":
                await self._head()
            case "send":
                await self._events(argument.split(), modifier, pause)
            case "raw":
                await self._chunk(argument.encode())
            case "wait":
                await asyncio.sleep(float(argument))
                self._check()
            case "hold":
                await self._player.hold(self._reader)
                raise Gone
            case "end":
                await self._write(b"0\r\n\r\n")
            case "eof":
                self._end_connection(reset=False)
            case "cut":
                self._end_connection(reset=True)
            case "refuse":
                self._player.refuse(float(argument))

    async def _events(self, events: list[str], modifier: str, pause: float) -> None:
        indent = 2 if modifier == "pretty" else None
        between = "" if modifier == "join" else "\n"
        whole = "".join(encode(decode_event(event), indent) + between for event in events).encode()
        await self._chunk(whole[: len(whole) * 2 // 3] if modifier == "half" else whole, pause)

    async def _head(self) -> None:
        self._headed = True
        await self._write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def _chunk(self, data: bytes, pause: float = 0.0) -> None:
        if not self._headed:
            await self._head()
        await self._write(b"%x\r\n" % len(data) + data + b"\r\n", pause)

    async def _write(self, data: bytes, pause: float = 0.0) -> None:
        pieces = [data]
        if pause:
            size = len(data) // 10 + 1
            pieces = [data[start : start + size] for start in range(0, len(data), size)]
        for piece in pieces:
            self._acts()
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(pause)

    def _check(self) -> None:
        """Stop if the client has closed the connection."""
        if self._writer.is_closing() or self._reader.at_eof():
            raise Gone

    def _acts(self) -> None:
        self._check()
        self._player.note_action()

    def _end_connection(self, *, reset: bool) -> None:
        self._acts()
        if reset:
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        else:
            self._writer.close()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _target(reader: asyncio.StreamReader) -> str:
    """Return the target of the next request, "" if the client has closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return ""
    return head.split(b" ", 2)[1].decode()


def _describe(target: str) -> tuple[str, str]:
    """Return the kind of a request, and its text in records."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(target).query, keep_blank_values=True).items()}
    version = query.get("resourceVersion", "")
    if query.get("watch") in ("true", "1"):
        kind = "stream" if query.get("sendInitialEvents") in ("true", "1") else "watch"
        return kind, f"{kind} rv={version}"
    limit = f" limit={query['limit']}" if "limit" in query else ""
    if "continue" in query:
        return "page", f"page {query['continue']}{limit}" + (f" rv={version}" if version else "")
    return "list", f"list rv={version}{limit}"


def _message(code: int, body: bytes, content_type: str, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {code} Scripted\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def _refusal(argument: str) -> bytes:
    """Return a response such as `410 reason=Gone`, `429 retry-after=8`, `502 html`, `504 too-large`."""
    code, *options = argument.split()
    named = dict(option.split("=") for option in options if "=" in option)
    headers = f"Retry-After: {named['retry-after']}\r\n" if "retry-after" in named else ""
    if "html" in options:
        page = b"<html><head><title>Gateway</title></head><body>Something went wrong.</body></html>"
        return _message(int(code), page, "text/html", headers)
    cause = "ResourceVersionTooLarge" if "too-large" in options else ""
    retry_after = int(named.get("retry-after", 0))
    failure = status(int(code), reason=named.get("reason", ""), cause=cause, retry_after=retry_after)
    return _message(int(code), json.dumps(failure).encode(), "application/json", headers)


def _list(argument: str, *, pretty: bool) -> bytes:
    """Return a list such as `12 a@10 b@11`, `- kind=Table`, `12 next=token a@10`, `12 gzip bare a@10`, `12 null`."""
    version, *words = argument.split()
    options = dict(word.split("=", 1) for word in words if "@" not in word and "=" in word)
    flags = {word for word in words if "@" not in word and "=" not in word}
    metadata: dict[str, Any] = {} if version == "-" else {"resourceVersion": version}
    if "next" in options:
        metadata["continue"] = options["next"]
    items: Any = None if "null" in flags else [decode_object(word) for word in words if "@" in word]
    if "bare" in flags:
        items = [{name: value for name, value in item.items() if name not in ("apiVersion", "kind")} for item in items]
    head = {
        "apiVersion": options.get("api", "example.com/v1"),
        "kind": options.get("kind", "WidgetList"),
        "metadata": metadata,
    }
    body = encode(head | {"items": items}, 2 if pretty else None).encode()
    if "gzip" in flags:
        return _message(200, gzip.compress(body), "application/json", "Content-Encoding: gzip\r\n")
    return _message(200, body, "application/json")
