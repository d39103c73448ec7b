"""A client of server-sent events: it applies what a stream sends to a copy, as a page in a browser does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Client:
    """Applies events to a copy of the objects.

    Attributes:
        copy: resource -> key -> view.
        log: what came, as short texts.
        cursor: the id of the last event, for the next connection.
        retry: milliseconds until the next connection.
        synced: how many `synced` events came.
    """

    def __init__(self) -> None:
        self.copy: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []
        self.cursor = ""
        self.retry = 0
        self.synced = 0
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Apply a piece of a response, of any size."""
        *events, self._rest = (self._rest + chunk).split(b"\n\n")
        for event in events:
            self._apply(event)

    def _apply(self, event: bytes) -> None:
        fields = dict(line.split(": ", 1) for line in event.decode().split("\n") if not line.startswith(":"))
        self.cursor = fields.get("id", self.cursor)
        self.retry = int(fields.get("retry", self.retry))
        if "event" not in fields:
            self.log.append("comment" if event == b":" else "retry")
            return
        data = json.loads(fields["data"])
        kind = fields["event"]
        objects = self.copy.setdefault(data.get("resource", ""), {})
        self.log.append(" ".join((kind, data.get("key", data.get("resource", "")))).strip())
        if kind == "put":
            objects[data["key"]] = data.get("object", data.get("version"))
        elif kind == "delete":
            objects.pop(data["key"], None)
        elif kind == "reset":
            objects.clear()
        else:
            self.synced += 1

    def lose(self) -> None:
        """Forget a half event, as at the end of a connection."""
        self._rest = b""

    def take(self) -> list[str]:
        """Return what came since the last call."""
        taken = self.log
        self.log = []
        return taken


async def read(stream: AsyncIterator[bytes], client: Client, seconds: float = 1.0) -> list[str]:
    """Read a stream for some seconds, and return what came."""
    try:
        async with asyncio.timeout(seconds):
            async for chunk in stream:
                client.feed(chunk)
    except TimeoutError:
        pass
    return client.take()
