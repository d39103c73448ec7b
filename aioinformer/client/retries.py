"""`Sender` sends the requests of a client, waits for a server that is not ready, and repeats them where that is safe.

A request is repeated only if the server has certainly not processed it, or if processing it twice changes nothing. The
page *Writing objects* has the same table:

| failure | reads and dry runs | writes |
|---|---|---|
| no connection to the server, so that nothing was sent | repeat | repeat |
| an untrusted certificate, an unknown host, failed credentials | raise | raise |
| no slot or no connection within the timeout | `TransportError` | `TransportError`; nothing was written |
| 429 or 503 with `Retry-After`; 500 with it, if the server says that it is starting | repeat | repeat |
| any other answer of 500 and above with `Retry-After` | repeat | raise; it may have been processed |
| the connection broke after the request was sent | repeat | `WriteOutcomeUnknown` |
| the timeout passed after the request was sent | `TransportError` | `WriteOutcomeUnknown` |
| any other answer, 429 without `Retry-After` included | raise | raise |

The precondition of a version does not make a write repeatable: if the server processed the first one, the repetition
answers with a conflict, and the caller would take a success for a failure.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.backoff import retry_after as seconds_to_wait
from aioinformer.client.requests import JSON
from aioinformer.errors import AioinformerError, ApiError, DecodeError, TransportError, WriteOutcomeUnknown
from aioinformer.logs import get_logger
from aioinformer.transport import HttpRequest, Sending
from aioinformer.transport.list_parser import status_error
from aioinformer.transport.messages import hint_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from aioinformer.client.requests import Query, Settings
    from aioinformer.transport import Response, Transport

    T = TypeVar("T")

_log = get_logger("aioinformer.client")

#: The largest answer that is read as a whole, in bytes. The largest object that etcd stores by default has 1.5 MiB.
MAX_ANSWER: Final = 256 * 1024 * 1024
_MAX_STATUS: Final = 1024 * 1024
_PAUSES: Final = BackoffOptions(initial=0.1, factor=2.0, cap=2.0, jitter=0.5)
_MAX_WARNINGS: Final = 1000


def pause_before_repeating(error: AioinformerError, *, safe: bool) -> float | None:
    """Return how long to wait at least before a request is repeated, in seconds; None if it must not be repeated.

    Args:
        safe: processing the request twice changes nothing.
    """
    if isinstance(error, ApiError):
        if error.retry_after is None:
            return None
        refused = error.status in (429, 503) or (error.status == 500 and "server is starting" in error.message)
        return error.retry_after if refused or (safe and error.status >= 500) else None
    if isinstance(error, TransportError) and error.transient and (safe or error.unsent):
        return 0.0
    return None


def new_request(
    settings: Settings,
    method: str,
    path: str,
    query: Query = (),
    body: bytes | None = None,
    content_type: str = JSON,
    *,
    accept: str = JSON,
    lane: str = "",
) -> HttpRequest:
    """Return a request.

    The path is quoted already, and the query is not. The lane is that of `HttpRequest`.
    """
    headers = settings.headers("" if body is None else content_type, accept)
    return HttpRequest(path, query, method, headers, body, settings.timeout, lane=lane, sending=Sending())


class Sender:
    """Sends the requests of a client.

    Args:
        logged: the server's warnings that are in the log already. Several senders may share the set.
    """

    def __init__(
        self,
        transport: Transport,
        random: Callable[[], float] = random_module.random,
        logged: set[str] | None = None,
    ) -> None:
        self.transport = transport
        self.logged = set() if logged is None else logged
        self.random = random

    def outside_ring(self) -> Sender:
        """Return a sender whose writes need not belong to the ring: this one, if it knows of no ring."""
        return self

    async def exchange(self, request: HttpRequest, settings: Settings, *, safe: bool) -> bytes:
        """Send a request, and return the body of the answer.

        Args:
            safe: processing the request twice changes nothing.

        Raises:
            ApiError: the server refused the request.
            TransportError: there is no answer, and the request had no effect.
            WriteOutcomeUnknown: there is no answer, and the request may have had its effect.
            DecodeError: the answer is larger than `MAX_ANSWER`.
        """
        return await self.persist(lambda: self._exchange_once(request), request, settings, safe=safe)

    async def open(self, request: HttpRequest) -> Response:
        """Send a request once, and return the response as soon as its head has arrived. You close it.

        Raises:
            ApiError: the server refused the request.
            TransportError: there is no answer.
        """
        response = await self.transport.request(request)
        if request.sending is not None:
            request.sending.status = response.status
        if "Warning" in response.headers:
            self._log_warnings(response)
        if 200 <= response.status < 300:
            return response
        try:
            body = await _read(response, _MAX_STATUS)
        except (TransportError, DecodeError):
            body = b""  # the status says enough
        finally:
            await response.close()
        wait = seconds_to_wait(response.headers)
        raise status_error(response.status, body, retry_after=wait, hint=hint_of(response))

    async def persist(
        self, attempt: Callable[[], Awaitable[T]], request: HttpRequest, settings: Settings, *, safe: bool
    ) -> T:
        """Call a function that sends the request, until it succeeds or must not be repeated.

        The arguments are those of `exchange`; `attempt` sends the request, and reads the answer.

        Raises:
            AioinformerError: the failure of the last attempt.
        """
        failure: AioinformerError | None = None
        backoff: Backoff | None = None
        waiting = False
        try:
            async with asyncio.timeout(settings.timeout) as limit:
                while True:
                    waiting = False
                    try:
                        return await attempt()
                    except (ApiError, TransportError) as error:
                        failure = error
                    pause = pause_before_repeating(failure, safe=safe) if settings.retry else None
                    if pause is None:
                        break
                    now = asyncio.get_running_loop().time()
                    backoff = backoff or Backoff(_PAUSES, random=self.random)
                    pause = max(pause, backoff.next(now))
                    deadline = limit.when()
                    if deadline is not None and now + pause >= deadline:
                        break
                    waiting = True
                    await asyncio.sleep(pause)
        except TimeoutError:
            if not limit.expired():
                raise  # of the transport
            if not waiting or failure is None:
                passed = f"no answer within {settings.timeout:g} s{request.sending or ''}"
                failure = TransportError(f"{request.method} {request.path}: {passed}")
                failure.unsent = request.check is not None and request.check.unsent
        assert failure is not None
        raise failure if safe else _of_a_write(failure, request)

    async def _exchange_once(self, request: HttpRequest) -> bytes:
        response = await self.open(request)
        try:
            return await _read(response, MAX_ANSWER)
        finally:
            await response.close()

    def _log_warnings(self, response: Response) -> None:
        """Log the warnings of an answer, each text once."""
        headers = response.headers
        get_all = getattr(headers, "getall", None)
        for text in get_all("Warning") if get_all is not None else [headers["Warning"]]:
            if text not in self.logged and len(self.logged) < _MAX_WARNINGS:
                self.logged.add(text)
                _log.warning("the server warns: %s", _warning_text(text))


def _of_a_write(failure: AioinformerError, request: HttpRequest) -> AioinformerError:
    if isinstance(failure, TransportError) and request.sending is not None and request.sending.handed is False:
        failure.unsent = True
    if not isinstance(failure, TransportError) or failure.unsent:
        return failure
    unknown = WriteOutcomeUnknown(
        f"{request.method} {request.path}: the answer was lost, so the server may have processed the request or not: "
        f"{failure}"
    )
    unknown.sent = failure.sent
    unknown.__cause__ = failure
    return unknown


async def _read(response: Response, limit: int) -> bytes:
    chunks = response.chunks()
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in chunks:
            parts.append(chunk)
            size += len(chunk)
            chunk = b""
            if size > limit:
                raise DecodeError(f"the server's answer is larger than {limit} bytes")
    except BaseException:
        parts.clear()  # a traceback could show the answer, which may be a Secret
        raise
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()  # otherwise asyncio closes it later, in a task of its own
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _warning_text(header: str) -> str:
    """Return the text in a header: `299 - "spec.x is deprecated"`."""
    _, quote, rest = header.partition('"')
    return rest.rpartition('"')[0].replace('\\"', '"').replace("\\\\", "\\") if quote and rest else header
