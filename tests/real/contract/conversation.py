"""A conversation with an API server over plain HTTP, which records every exchange."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.support.normal import Normal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import aiohttp
    from multidict import CIMultiDictProxy

PATIENCE = 120.0
_BETWEEN_READS = 0.05
JSON = "application/json"
YAML = "application/yaml"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """A response.

    Attributes:
        body: decoded JSON; other bodies are text; the events of a watch are a list.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: Any

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.body["metadata"]
        return metadata


class Conversation:
    """A client that records its requests and the responses.

    Values that differ between servers have placeholders (`Normal`). In paths, "{ns}" is the namespace.

    Attributes:
        namespace: of this test. Names of cluster-scoped objects should contain it.
        variables: values that only the server knows, for paths: "{v}" is `variables["v"]`. The recording has "{v}".
        exchanges: the recording so far.
    """

    def __init__(self, session: aiohttp.ClientSession, server: str, namespace: str) -> None:
        self.namespace = namespace
        self.variables: dict[str, str] = {}
        self.exchanges: list[dict[str, Any]] = []
        self._session = session
        self._server = server
        self._normal = Normal({server: "<server>", namespace: "<namespace>"})

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        user: str | None = None,
        recorded: bool = True,
        shown: Callable[[Any], Any] | None = None,
    ) -> Answer:
        """Send a request.

        Args:
            method: of the request.
            path: of the request, with its query.
            body: text and bytes are sent unchanged, other values as JSON.
            content_type: of the body.
            accept: the header Accept.
            headers: further headers.
            user: the user to impersonate; by default the administrator.
            recorded: whether to record the exchange. Preparations need not be recorded.
            shown: returns the part of the body to record; by default all of it.
        """
        async with self._send(method, path, body, content_type, accept, headers, user) as response:
            data = await response.read()
        answer = Answer(response.status, response.headers, _decoded(data))
        if recorded:
            self._keep(method, path, answer if shown is None else replace(answer, body=shown(answer.body)))
        return answer

    async def create(self, path: str, body: Any) -> dict[str, Any]:
        """Create an object that the row needs, without recording it."""
        answer = await self("POST", path, body, recorded=False)
        assert answer.status == 201, answer.body
        # A list without a version waits until the watch cache has all writes. Later reads and watches that accept
        # older versions then find the object too.
        await self("GET", path.partition("?")[0], recorded=False)
        made: dict[str, Any] = answer.body
        return made

    async def watch(self, path: str, *, events: int | None = None, accept: str = JSON) -> Answer:
        """Watch, and return a number of events, or all until the server ends the watch."""
        async with self._send("GET", path, None, JSON, accept, None, None) as response:
            if response.status != 200:
                answer = Answer(response.status, response.headers, _decoded(await response.read()))
            else:
                read: list[Any] = []
                async for line in _lines(response):
                    read.append(json.loads(line))
                    if len(read) == events:
                        response.close()
                        break
                answer = Answer(response.status, response.headers, read)
        self._keep("GET", path, answer)
        return answer

    @asynccontextmanager
    async def open_watch(self, path: str, *, accept: str = JSON) -> AsyncIterator[OpenWatch]:
        """Open a watch for the length of a block; its recording has the events that were read."""
        async with self._send("GET", path, None, JSON, accept, None, None) as response:
            watching = OpenWatch(response)
            yield watching
            response.close()
        self._keep("GET", path, Answer(response.status, response.headers, watching.events))

    async def poll(self, path: str, holds: Callable[[Answer], bool], *, recorded: bool = True) -> Answer:
        """Read until a condition holds, and record the last response only."""
        async with asyncio.timeout(PATIENCE):
            # Only a read shows whether the server has got so far.
            while not holds(answer := await self("GET", path, recorded=False)):  # noqa: ASYNC110
                await asyncio.sleep(_BETWEEN_READS)
        if recorded:
            self._keep("GET", path, answer)
        return answer

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str,
        accept: str,
        headers: Mapping[str, str] | None,
        user: str | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        sent = {"Accept": accept, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = content_type
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
            body = io.BytesIO(body.encode() if isinstance(body, str) else body)
        if user is not None:
            sent["Impersonate-User"] = user
        url = self._server + path.replace("{ns}", self.namespace)
        for word, meaning in self.variables.items():
            url = url.replace(f"{{{word}}}", meaning)
        request = self._session.request(method, url, data=body, headers=sent, allow_redirects=False)
        async with asyncio.timeout(PATIENCE), request as response:
            yield response

    def _keep(self, method: str, path: str, answer: Answer) -> None:
        self.exchanges.append(
            {
                "request": self._normal.text(f"{method} {path.replace('{ns}', self.namespace)}"),
                "status": answer.status,
                "headers": self._normal.headers(answer.headers),
                "body": self._normal.value(answer.body),
            }
        )


class OpenWatch:
    """An open watch.

    Attributes:
        events: those read so far.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.events: list[Any] = []
        self._lines = _lines(response)

    async def read(self, events: int = 1) -> None:
        """Read a number of events."""
        for _ in range(events):
            self.events.append(json.loads(await anext(self._lines)))

    async def read_until(self, holds: Callable[[Any], bool]) -> None:
        """Read up to an event that fulfils a condition, or up to the end."""
        async for line in self._lines:
            self.events.append(json.loads(line))
            if holds(self.events[-1]):
                return


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    pending = b""
    async for chunk in response.content.iter_any():
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line
