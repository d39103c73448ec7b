"""A transport whose answers a test states, and which records the requests."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from multidict import CIMultiDict

from aioinformer.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport import HttpRequest

#: A config map, which every verb accepts as its answer.
OBJECT = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
}


class Answer:
    """One answer, with its body in pieces; a piece may be an error to raise."""

    def __init__(self, status: int = 200, *pieces: bytes | Exception, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers: CIMultiDict[str] = CIMultiDict(headers or {})
        self.closed = False
        self._pieces = pieces or (json.dumps(OBJECT).encode(),)

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def close(self) -> None:
        self.closed = True


def refusal(status: int, reason: str = "", message: str = "", *, after: int | None = None, **details: Any) -> Answer:
    """Return an answer with a Status."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
    return Answer(status, json.dumps(body).encode(), headers={} if after is None else {"Retry-After": str(after)})


def unreachable(*, unsent: bool = True, transient: bool = True) -> TransportError:
    """Return the error of a server that refuses connections, or the one that these attributes describe."""
    error = TransportError("no connection")
    error.unsent, error.transient = unsent, transient
    return error


#: What happens to one request: an answer, an error, or None for silence.
Step: TypeAlias = Answer | Exception | None


class Scripted:
    """Answers the first requests by a script, and all later ones with `OBJECT`.

    Attributes:
        requests: the requests so far.
        times: when they came.
    """

    def __init__(self, *script: Step) -> None:
        self._script = list(script)
        self.requests: list[HttpRequest] = []
        self.times: list[float] = []

    async def request(self, request: HttpRequest) -> Answer:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        step = self._script.pop(0) if self._script else Answer()
        if step is None:
            await asyncio.Event().wait()
        if isinstance(step, Exception):
            raise step
        assert step is not None
        return step
