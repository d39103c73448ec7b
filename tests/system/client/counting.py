"""A transport that records the requests of a client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer import (
        HttpTransport,
    )
    from aioinformer.transport import HttpRequest, Response


class Counting:
    """A transport that records the requests; `before` is called before each."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self.requests: list[HttpRequest] = []
        self.before: Callable[[HttpRequest], Any] | None = None

    async def request(self, request: HttpRequest) -> Response:
        self.requests.append(request)
        if self.before is not None:
            self.before(request)
        return await self._transport.request(request)

    async def close(self) -> None:
        """The owner closes the transport."""

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    def body(self, at: int = -1) -> Any:
        return json.loads(self.requests[at].body or b"null")
