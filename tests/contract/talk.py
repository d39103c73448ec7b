"""Plain HTTP with an API server; every exchange is recorded."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.contract.normal import Normal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import aiohttp
    from multidict import CIMultiDictProxy

PATIENCE = 30.0
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
    """What came back.

    Attributes:
        body: decoded JSON; text where it is none; the events of a watch as a list.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: Any

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.body["metadata"]
        return metadata


class Talk:
    """A client that nothing is hidden from, and the protocol of what was said.

    Each exchange is kept, without what differs from server to server by nature (`Normal`). In paths "{ns}" stands for
    the namespace.

    Attributes:
        namespace: made for the test alone. Names of what lies outside of it are to have it in them.
        words: what stands in paths for what only the server knows: "{v}" for a version, once `words["v"]` is set. The
            protocol has the placeholder.
        exchanges: what was said so far.
    """

    def __init__(self, session: aiohttp.ClientSession, server: str, namespace: str) -> None:
        self.namespace = namespace
        self.words: dict[str, str] = {}
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
        kept: bool = True,
        shown: Callable[[Any], Any] | None = None,
        as_text: bool = False,
    ) -> Answer:
        """Sends one request.

        Args:
            body: text and bytes as they are, anything else as JSON.
            content_type: of the body.
            accept: what the answer should be.
            headers: others.
            user: on whose behalf; by default the administrator speaks for himself.
            kept: whether the protocol has it. Preparations that are no part of the row need not be in it.
            shown: what of the body the protocol has; all of it by default.
            as_text: take the body as it is on the wire: how it is written matters.
        """
        async with self._send(method, path, body, content_type, accept, headers, user) as response:
            data = await response.read()
        answer = Answer(response.status, response.headers, data.decode() if as_text else _decoded(data))
        if kept:
            self._keep(method, path, answer if shown is None else replace(answer, body=shown(answer.body)))
        return answer

    async def made(self, path: str, body: Any) -> dict[str, Any]:
        """Creates an object that the row needs; the protocol does not have it."""
        answer = await self("POST", path, body, kept=False)
        assert answer.status == 201, answer.body
        # A list without a version is answered when the cache of the server has all that was written: then reads and
        # watches that are content with less find it there, too.
        await self("GET", path.partition("?")[0], kept=False)
        made: dict[str, Any] = answer.body
        return made

    async def watched(self, path: str, *, events: int | None = None, accept: str = JSON) -> Answer:
        """A watch, with its events: as many as are asked for, or all until the server ends it."""
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
    async def watching(self, path: str, *, accept: str = JSON) -> AsyncIterator[Watching]:
        """A watch that is open while other things are said; the protocol has what was read of it."""
        async with self._send("GET", path, None, JSON, accept, None, None) as response:
            watching = Watching(response)
            yield watching
            response.close()
        self._keep("GET", path, Answer(response.status, response.headers, watching.events))

    async def until(self, path: str, holds: Callable[[Answer], bool], *, kept: bool = True) -> Answer:
        """Reads until something holds; the protocol has the last answer only, or none if it is not kept."""
        async with asyncio.timeout(PATIENCE):
            # A server tells of its own steps to whoever asks; there is nothing else to wait for.
            while not holds(answer := await self("GET", path, kept=False)):  # noqa: ASYNC110
                await asyncio.sleep(_BETWEEN_READS)
        if kept:
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
        for word, meaning in self.words.items():
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


class Watching:
    """An open watch.

    Attributes:
        events: those that were read.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.events: list[Any] = []
        self._lines = _lines(response)

    async def read(self, events: int = 1) -> None:
        """Reads so many events."""
        for _ in range(events):
            self.events.append(json.loads(await anext(self._lines)))

    async def read_until(self, holds: Callable[[Any], bool]) -> None:
        """Reads up to an event that something holds for, or up to the end."""
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
