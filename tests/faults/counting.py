"""A transport that counts what came of its requests, as an operator of the server would."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport import Request, Response, Transport

#: A watch that ends before it is this old, in seconds, has ended at once.
AT_ONCE = 1.0


class CountingTransport:
    """Passes everything on.

    Attributes:
        vain: what was asked in vain: refused, failed, ended or given up at once; with when, from the first request.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = asyncio.get_running_loop().time
        self._begin: float | None = None
        self.vain: list[tuple[float, str]] = []

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
        """One more was in vain."""
        begin = self._begin if self._begin is not None else self._clock()
        self.vain.append((round(self._clock() - begin, 3), what))

    def restart(self) -> None:
        """Counts from now."""
        self._begin = self._clock()
        self.vain.clear()

    def within(self, seconds: float) -> list[tuple[float, str]]:
        """What was asked in vain in the first seconds."""
        return [entry for entry in self.vain if entry[0] <= seconds]


class CountedResponse:
    """Tells its transport how it ended."""

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
        self._end("given up at once" if self._is_young() else "")
        await self._response.close()

    def _is_young(self) -> bool:
        return asyncio.get_running_loop().time() - self._opened_at < AT_ONCE

    def _end(self, in_vain: str) -> None:
        if in_vain and not self._over:
            self._transport.note(in_vain)
        self._over = True
