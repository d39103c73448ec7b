"""A transport that counts failed requests, as seen by an operator of the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport import Request, Response, Transport

#: A watch that ends earlier than this, in seconds, counts as ended at once.
AT_ONCE = 1.0


class CountingTransport:
    """Passes requests on and counts failures.

    Attributes:
        failures: requests that were refused or failed, and responses that ended or were closed at once, each with its
            time since the first request.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = asyncio.get_running_loop().time
        self._begin: float | None = None
        self.failures: list[tuple[float, str]] = []

    async def request(self, request: Request) -> CountedResponse:
        if self._begin is None:
            self._begin = self._clock()
        try:
            response = await self._transport.request(request)
        except Exception as error:
            self.note(str(error))
            raise
        if response.status != 200:
            self.note(str(response.status))
        return CountedResponse(response, self, is_watch=("watch", "true") in request.query)

    def note(self, what: str) -> None:
        """Count a failure."""
        begin = self._begin if self._begin is not None else self._clock()
        self.failures.append((round(self._clock() - begin, 3), what))

    def restart(self) -> None:
        """Restart counting from now."""
        self._begin = self._clock()
        self.failures.clear()

    def within(self, seconds: float) -> list[tuple[float, str]]:
        """Return the failures of the first seconds."""
        return [entry for entry in self.failures if entry[0] <= seconds]


class CountedResponse:
    """A response that reports to its transport how it ended."""

    def __init__(self, response: Response, transport: CountingTransport, *, is_watch: bool) -> None:
        self._response = response
        self._transport = transport
        self._is_watch = is_watch
        self._opened_at = asyncio.get_running_loop().time()
        self._over = response.status != 200

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.chunks():
                yield chunk
        except Exception as error:
            self._end(str(error))
            raise
        self._end("the watch ended at once" if self._is_watch and self._is_young() else "")

    async def close(self) -> None:
        self._end("closed at once" if self._is_young() else "")
        await self._response.close()

    def _is_young(self) -> bool:
        return asyncio.get_running_loop().time() - self._opened_at < AT_ONCE

    def _end(self, failure: str) -> None:
        if failure and not self._over:
            self._transport.note(failure)
        self._over = True
