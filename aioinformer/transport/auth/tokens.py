"""Credentials of requests, and how they are kept current.

A `Credential` is a value: a token, a client certificate, or nothing. `Credentials` is a source that returns the current
one. All sources renew credentials by these rules:

* A credential is renewed before it expires, by a margin, so that no request starts with one that is about to expire.
* A refused credential is renewed once. A request states which credential was refused. If another request has renewed it
  in the meantime, that result is used, and the source is not asked again.
* There is one renewal at a time. Requests that come during it wait for it and share its result, even a failure: fifty
  informers run a plugin once.
* A renewal continues when the requests that wait for it time out, because a plugin may take longer than any request. It
  ends by its own timeout, or when the transport is closed.
* If a renewal fails, or gives a credential that is expired or refused again, a pause follows, which grows from one
  second to a minute. During the pause, its result is used: the failure, or the credential, which the server may refuse
  again.

`obtain` turns every exception of a source into a `TransportError`. No message, no `repr` and no local variable of a
frame that raises contains a token.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from aioinformer.concurrency import create_task, shielded
from aioinformer.errors import AioinformerError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport.auth.secret import Secret

MAX_BYTES: Final = 1024 * 1024
"""The most bytes that are read from a source of credentials: a token file, a plugin or a provider."""

_RESET_AFTER: Final = 120.0
_LONGEST_PAUSE: Final = 60.0
_LAST_SECOND: Final = 1e15


@dataclass(frozen=True, slots=True)
class Credential:
    """Authenticates one request.

    Attributes:
        authorization: value of the `Authorization` header, "" for none.
        certificate: PEM chain of a client certificate, "" for none (or for the files in the TLS settings).
        key: its private key, PEM.
    """

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """Return the credential to send, renewed if it is about to expire.

        Raises:
            TransportError: the credential had to be renewed, and that failed. A later call may succeed.
        """
        ...

    async def renew(self, refused: Credential) -> Credential:
        """Return another credential than the refused one if there is one, otherwise an equal one.

        Raises:
            TransportError: as `current`.
        """
        ...


class FixedCredentials:
    """One credential that is never renewed.

    Args:
        credential: the credential; without it, requests are anonymous.
    """

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Return the credential."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Return the credential, the refused one included."""
        return self._credential


class RenewedCredentials(ABC):
    """Base class of sources whose credentials expire or may be refused, and are then fetched again.

    Args:
        margin: seconds before the expiry at which the credential is renewed; at most a quarter of its lifetime.
        pause: seconds of the pause after the first failed renewal, doubled with each further one; 0 for none.
        longest: the timeout of a renewal in seconds.
        now: wall clock, seconds since the epoch.
        clock: monotonic clock, seconds.
    """

    def __init__(
        self,
        *,
        margin: float = 60.0,
        pause: float = 1.0,
        longest: float = 120.0,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._margin = margin
        self._longest = longest
        self._now = now
        self._pause = Pause(pause, clock)
        self._credential: Credential | None = None
        self._expires: float | None = None
        self._renew_at: float | None = None
        self._failure: TransportError | None = None
        self._renewal: asyncio.Task[None] | None = None

    @abstractmethod
    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        """Return the credential, and the epoch second at which it expires, None if that is unknown.

        Args:
            refused: the credential that the server refused, None if it refused none. A source that remembers
                credentials must not return this one again.

        Raises:
            TransportError: the source has no credential.
        """

    async def current(self) -> Credential:
        """Return the credential, renewed if it is about to expire; see `Credentials`."""
        if self._credential is not None and not self._is_due():
            return self._credential
        return await self._renewed(None)

    async def renew(self, refused: Credential) -> Credential:
        """Return a new credential, unless another request has renewed the refused one already; see `Credentials`."""
        if self._credential is not None and self._credential != refused:
            return self._credential
        return await self._renewed(refused)

    async def _renewed(self, refused: Credential | None) -> Credential:
        if self._renewal is None and (self._pause.is_over() or (self._credential is None and self._failure is None)):
            self._renewal = create_task(self._renew(refused), name=f"renewal of {type(self).__name__}")
        if self._renewal is not None:
            await self._wait_for(self._renewal)
        failure = self._failure
        if failure is not None and (refused is not None or not self._is_usable()):
            # A new error for each request that waits: their tracebacks differ.
            raise TransportError(str(failure)) from failure.__cause__
        assert self._credential is not None
        return self._credential

    async def aclose(self) -> None:
        """Cancel a renewal that is running; requests that wait for it get a `TransportError`. May be repeated."""
        renewal = self._renewal
        if renewal is None:
            return
        self._renewal = None
        renewal.cancel()
        with shielded():
            await asyncio.wait({renewal})

    async def _wait_for(self, renewal: asyncio.Task[None]) -> None:
        await asyncio.wait({renewal})
        if renewal.cancelled():
            raise TransportError(f"{_name(self)} was cancelled")
        renewal.result()

    async def _renew(self, refused: Credential | None) -> None:
        """Fetch a credential. If that fails, an old one that is neither expired nor refused stays in use."""
        try:
            failure = await self._fetched(refused)
        finally:
            if self._renewal is asyncio.current_task():
                self._renewal = None
        self._failure = failure
        self._pause.count(success=failure is None and refused is None and self._is_usable())

    async def _fetched(self, refused: Credential | None) -> TransportError | None:
        try:
            async with asyncio.timeout(self._longest) as bound:
                self._credential, expires = await self.fetch(refused)
        except TransportError as error:
            error.__traceback__ = None  # its frames would stay in memory as long as the error
            return error
        except Exception as error:
            if isinstance(error, TimeoutError) and bound.expired():
                return TransportError(f"{_name(self)} returned no credential within {self._longest:g} s")
            return failure_of(self, error)
        # A time beyond all dates is treated as unknown.
        self._expires = expires if expires is not None and abs(expires) < _LAST_SECOND else None
        self._renew_at = None
        if self._expires is not None:
            self._renew_at = self._expires - min(self._margin, max(0.0, self._expires - self._now()) / 4)
        return None

    def _is_due(self) -> bool:
        return self._renew_at is not None and self._now() >= self._renew_at

    def _is_usable(self) -> bool:
        return self._credential is not None and (self._expires is None or self._now() < self._expires)


class Pause:
    """The pause after failed renewals: doubled from `first` with each failure in a row, up to a minute.

    Args:
        first: seconds after the first failure, 0 for no pauses.
    """

    def __init__(self, first: float, clock: Callable[[], float]) -> None:
        self._first = first
        self._clock = clock
        self._failures = 0
        self._last = -math.inf
        self._until = -math.inf

    def is_over(self) -> bool:
        """Return whether the source may be asked again."""
        return self._clock() >= self._until

    def count(self, *, success: bool) -> None:
        """Count a renewal that has just ended. A success, or two minutes without a renewal, resets the pause."""
        now = self._clock()
        if success or now - self._last > _RESET_AFTER:
            self._failures = 0
        self._last = now
        if not success:
            self._until = now + min(self._first * 2.0 ** min(self._failures, 10), _LONGEST_PAUSE)
            self._failures += 1


async def obtain(credentials: Credentials, refused: Credential | None = None) -> Credential:
    """Return a credential from a source. Transports call sources only through this function.

    Args:
        refused: the credential that the server refused, None for a new request.

    Raises:
        TransportError: the source raised an exception of any type, or returned something else than a credential. For
            foreign exceptions, the message has type and place only, because their messages may contain a token.
    """
    try:
        answer: object = await (credentials.current() if refused is None else credentials.renew(refused))
    except TransportError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        failure = TransportError(f"{_name(credentials)} was cancelled")
    except Exception as error:
        failure = failure_of(credentials, error)
    else:
        if isinstance(answer, Credential) and (flaw := _flaw(answer)) is None:
            return answer
        if isinstance(answer, Credential):
            reason = flaw
        else:
            reason = f"returned an object of type {type(answer).__name__}"
        del answer  # it may be the bare token, and tracebacks may show local variables
        failure = TransportError(f"{_name(credentials)} {reason}; it must return a Credential")
    # Not in an `except` block: the caught error would become the context.
    raise failure


async def close(credentials: Credentials) -> None:
    """End the background work of a source of credentials, if it has any."""
    if isinstance(credentials, RenewedCredentials):
        await credentials.aclose()


def failure_of(source: object, error: Exception) -> TransportError:
    """Return the error to raise for an unexpected exception of a source of credentials."""
    if isinstance(error, AioinformerError):
        return TransportError(str(error))
    return TransportError(f"{_name(source)} raised {type(error).__name__}{place_of(error)}")


def place_of(error: Exception) -> str:
    """Return the place that raised an exception, as " at file.py:31"; "" if it is unknown."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        return f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return ""


def bearer(token: Secret, source: str) -> str:
    """Return the value of the `Authorization` header for a token, without surrounding white space.

    Raises:
        TransportError: the token cannot be sent in a header. The message names the source, not the token.
    """
    if (flaw := bearer_flaw(token.text)) is not None:
        raise TransportError(f"{source} {flaw}")
    return f"Bearer {token.text.strip()}"


def bearer_flaw(token: str) -> str | None:
    """Return why a token cannot be sent in a header, None if it can. Never raises: a local variable holds the token."""
    token = token.strip()
    if not token:
        return "holds no token"
    if not token.isascii() or not token.isprintable() or " " in token:
        return "holds something that is not one token: it contains spaces, control characters or non-ASCII characters"
    return None


def _name(source: object) -> str:
    return f"the source of credentials {type(source).__name__}"


def _flaw(credential: Credential) -> str | None:
    texts: list[object] = [credential.authorization, credential.certificate, credential.key]
    if not all(isinstance(text, str) for text in texts):
        return "returned a Credential whose fields are not all of type str"
    if not credential.authorization.isprintable():
        return "returned an authorization with control characters or line breaks"
    return None
