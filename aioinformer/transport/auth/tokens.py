"""What a request authenticates with, and how it is kept current.

A `Credential` is a value: one token, or one client certificate, or nothing. `Credentials` hand out the current one.
Renewal follows these rules for all sources:

* A credential is renewed *before* it expires, by a margin, so that a request never starts with a dying one.
* A refused credential is renewed once. A request says which credential was refused; if another request has renewed it
  in the meantime, that result is taken, and the source is not asked again.
* One renewal at a time. Requests that come during it wait and share its result, a failure included: fifty informers are
  one run of a plugin.
* A renewal goes on when requests that wait for it time out: a plugin may take longer than any request. It ends by its
  own time-out, or when the transport closes.
* A renewal in vain (it failed, or the credential was refused or had expired again) is followed by a pause, which grows
  from one second to a minute. During the pause its result stands: the failure, or the credential, which the server may
  refuse once more.

`ask` turns every exception of a source into a `TransportError`. A token is kept out of every message, `repr` and local
variable of a frame that raises.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from aioinformer.errors import AioinformerError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport.auth.secret import Secret

MOST: Final = 1024 * 1024
"""Bytes that a source of credentials may give, at most: a token file, a plugin, a provider."""

_CALM: Final = 120.0
_LONGEST_PAUSE: Final = 60.0
_LAST_SECOND: Final = 1e15


@dataclass(frozen=True, slots=True)
class Credential:
    """What one request proves its identity with.

    Attributes:
        authorization: value of the `Authorization` header, "" for none.
        certificate: client certificate chain, PEM, "" for none (or for the files the TLS settings name).
        key: its private key, PEM.
    """

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


class Credentials(Protocol):
    """Hands out the credential to use now."""

    async def current(self) -> Credential:
        """The credential to send, renewed if it is about to expire.

        Raises:
            TransportError: it had to be renewed, and that failed. Worth another try later.
        """
        ...

    async def renew(self, refused: Credential) -> Credential:
        """Another credential than the refused one if there is any, otherwise an equal one. Raises as `current`."""
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
    """Credentials from a source that has to be asked again: at the end of their life, and when they were refused.

    Args:
        margin: seconds before the expiry from which on the source is asked again; at most a quarter of the lifetime.
        pause: seconds after the first renewal in vain, doubled with each further one; 0 for none.
        longest: seconds after which a renewal ends in vain.
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
        """Asks the source for the credential and the epoch second at which it expires, None if that is unknown.

        Args:
            refused: what the server would not take, so that a source with a memory does not hand it out again.

        Raises:
            TransportError: the source gave nothing.
        """

    async def current(self) -> Credential:
        if self._credential is not None and not self._is_due():
            return self._credential
        return await self._renewed(None)

    async def renew(self, refused: Credential) -> Credential:
        if self._credential is not None and self._credential != refused:
            return self._credential
        return await self._renewed(refused)

    async def _renewed(self, refused: Credential | None) -> Credential:
        if self._renewal is None and (self._pause.is_over() or (self._credential is None and self._failure is None)):
            self._renewal = asyncio.create_task(self._renew(refused), name=f"renewal of {type(self).__name__}")
        if self._renewal is not None:
            await self._wait_for(self._renewal)
        failure = self._failure
        if failure is not None and (refused is not None or not self._is_usable()):
            # A new one for each request that waits: their tracebacks differ.
            raise TransportError(str(failure)) from failure.__cause__
        assert self._credential is not None
        return self._credential

    async def aclose(self) -> None:
        """End the renewal that is under way, if any. Requests that wait for it get a TransportError. Idempotent."""
        renewal = self._renewal
        if renewal is None:
            return
        self._renewal = None
        renewal.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({renewal})

    async def _wait_for(self, renewal: asyncio.Task[None]) -> None:
        await asyncio.wait({renewal})
        if renewal.cancelled():
            raise TransportError(f"{_name(self)} was cancelled")
        renewal.result()

    async def _renew(self, refused: Credential | None) -> None:
        """Ask the source. What has not expired yet is used as long as the source fails, unless it was refused."""
        try:
            failure = await self._fetched(refused)
        finally:
            if self._renewal is asyncio.current_task():
                self._renewal = None
        self._failure = failure
        self._pause.count(in_vain=failure is not None or refused is not None or not self._is_usable())

    async def _fetched(self, refused: Credential | None) -> TransportError | None:
        try:
            async with asyncio.timeout(self._longest) as bound:
                self._credential, expires = await self.fetch(refused)
        except TransportError as error:
            error.__traceback__ = None  # its frames would live as long as the failure
            return error
        except Exception as error:
            if isinstance(error, TimeoutError) and bound.expired():
                return TransportError(f"{_name(self)} gave none within {self._longest:g} s")
            return failure_of(self, error)
        # Beyond what can be said in seconds: not known.
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
    """The time between two renewals, while they are in vain: doubled from `first` with each of them, to a minute.

    Args:
        first: seconds after the first, 0 for no pause ever.
        clock: monotonic, in seconds.
    """

    def __init__(self, first: float, clock: Callable[[], float]) -> None:
        self._first = first
        self._clock = clock
        self._in_a_row = 0
        self._last = self._until = -math.inf

    def is_over(self) -> bool:
        """Whether the source may be asked."""
        return self._clock() >= self._until

    def count(self, *, in_vain: bool) -> None:
        """Count a renewal that has just ended. After two minutes without one, the next is the first again."""
        now = self._clock()
        if not in_vain or now - self._last > _CALM:
            self._in_a_row = 0
        self._last = now
        if in_vain:
            self._until = now + min(self._first * 2.0 ** min(self._in_a_row, 10), _LONGEST_PAUSE)
            self._in_a_row += 1


async def ask(credentials: Credentials, refused: Credential | None = None) -> Credential:
    """Ask a source for a credential: the only place that does.

    Args:
        credentials: the source.
        refused: what the server has refused, None if a credential is needed for a new request.

    Raises:
        TransportError: the source raised an exception of any type, or gave something that is no credential. Of a
            foreign exception the message has the type and the place, and not the words, which may hold a token.
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
        reason = flaw if isinstance(answer, Credential) else f"gave an object of type {type(answer).__name__}"
        del answer  # it may be the bare token, and tracebacks may show local variables
        failure = TransportError(f"{_name(credentials)} {reason}; it must give a Credential")
    # Not in a handler, or what was raised would be the context of this.
    raise failure


async def close(credentials: Credentials) -> None:
    """End what a source of credentials does in the background, if it does something."""
    if isinstance(credentials, RenewedCredentials):
        await credentials.aclose()


def failure_of(source: object, error: Exception) -> TransportError:
    """The error to raise for one that a source of credentials did not foresee."""
    if isinstance(error, AioinformerError):
        return TransportError(str(error))
    return TransportError(f"{_name(source)} raised {type(error).__name__}{place_of(error)}")


def place_of(error: Exception) -> str:
    """Where an exception was raised, as " at file.py:31"."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""


def bearer(token: Secret, source: str) -> str:
    """The header's value for a token, without the white space that files end with.

    Raises:
        TransportError: the token cannot be sent in a header; the message names the source, not the token.
    """
    if (flaw := bearer_flaw(token.text)) is not None:
        raise TransportError(f"{source} {flaw}")
    return f"Bearer {token.text.strip()}"


def bearer_flaw(token: str) -> str | None:
    """Why a token cannot be sent in a header, None if it can. Raises nothing, for the token is an argument here."""
    token = token.strip()
    if not token:
        return "holds no token"
    if not token.isascii() or not token.isprintable() or " " in token:
        return "holds something that is not one token: it has spaces or control characters"
    return None


def _name(source: object) -> str:
    return f"the source of credentials {type(source).__name__}"


def _flaw(credential: Credential) -> str | None:
    texts: list[object] = [credential.authorization, credential.certificate, credential.key]
    if not all(isinstance(text, str) for text in texts):
        return "gave a Credential whose fields are not all of type str"
    if not credential.authorization.isprintable():
        return "gave an authorization with control characters or line breaks"
    return None
