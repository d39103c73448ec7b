"""What a request authenticates with, and how it is kept current.

A `Credential` is a value: one token, or one client certificate, or nothing. `Credentials` hand out the current one.
Renewal follows three rules, whatever the source:

* A credential is renewed *before* it expires, by a margin, so that a request never starts with a dying one.
* A refused credential is renewed once. Whoever was refused says with which; if another request has renewed it in the
  meantime, that result is taken, and the source is not asked again.
* One renewal at a time. Those who come during it wait, and take its result, a failure included: fifty informers are
  one run of a plugin.

A token is kept out of every message and `repr`.
"""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aioinformer.errors import TransportError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


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


def bearer(token: str, source: str) -> str:
    """The header's value for a token, without the white space that files end with.

    Raises:
        TransportError: the token cannot be sent in a header; the message names the source, not the token.
    """
    token = token.strip()
    if not token:
        raise TransportError(f"{source} holds no token")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise TransportError(f"{source} holds something that is not one token: it has spaces or control characters")
    return f"Bearer {token}"


class FixedCredentials:
    """One credential for good."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        return self._credential


class RenewedCredentials(ABC):
    """Credentials from a source that has to be asked again: at the end of their life, and when they were refused.

    Args:
        margin: seconds before the expiry from which on the source is asked again; at most a quarter of the lifetime.
        now: wall clock, seconds since the epoch.
    """

    def __init__(self, *, margin: float = 60.0, now: Callable[[], float] = time.time) -> None:
        self._margin = margin
        self._now = now
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: float | None = None
        self._renew_at: float | None = None
        self._rounds = 0
        self._last_failure: TransportError | None = None

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
        return await self._renewed(refused)

    async def _renewed(self, refused: Credential | None) -> Credential:
        seen = self._rounds
        async with self._lock:
            if self._rounds != seen and self._last_failure is not None:
                raise TransportError(str(self._last_failure)) from self._last_failure
            if self._credential is None or (self._is_due() if refused is None else self._credential == refused):
                await self._take(refused)
            assert self._credential is not None
            return self._credential

    def _is_due(self) -> bool:
        return self._renew_at is not None and self._now() >= self._renew_at

    def _is_usable(self) -> bool:
        return self._credential is not None and (self._expires is None or self._now() < self._expires)

    async def _take(self, refused: Credential | None) -> None:
        """Asks the source. What has not expired yet is used as long as the source fails, unless it was refused."""
        try:
            self._credential, self._expires = await self.fetch(refused)
        except TransportError as error:
            if refused is None and self._is_usable():
                # Not with every request until then, for each would wait for the source.
                self._renew_at = self._now() + self._margin / 4
                return
            self._rounds, self._last_failure = self._rounds + 1, error
            raise
        self._rounds, self._last_failure, self._renew_at = self._rounds + 1, None, None
        if self._expires is not None:
            self._renew_at = self._expires - min(self._margin, max(0.0, self._expires - self._now()) / 4)


class TokenFile(RenewedCredentials):
    """A bearer token in a file that somebody else rotates, as kubelet does for service accounts.

    The file is read again when its modification time, size or inode changes, at the latest after 60 s. While it cannot
    be read (it is being replaced), the last token is used; the server has the last word on it.

    Args:
        path: the file; surrounding white space is not part of the token.
        interval: seconds after which it is read again even if it seems unchanged.
        now: monotonic clock, seconds.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, interval: float = 60.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(now=now)
        self._path = Path(path)
        self._interval = interval
        self._stamp: object = None
        self._read_at = 0.0

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self._stamp, self._read_at = stamp_of(self._path), self._now()
        return self._read(), None

    def check(self) -> None:
        """Raises `UsageError` if the file does not hold a token, before anything depends on it."""
        try:
            self._read()
        except TransportError as error:
            raise UsageError(f"{error}; name a readable file with a bearer token in it") from error.__cause__

    def _read(self) -> Credential:
        source = f"token file {self._path}"
        try:
            # A few hundred bytes, most often from a memory file system: a thread would cost more than it saves.
            text = self._path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or "not a text file"
            # A decoding error quotes what it could not decode.
            raise TransportError(f"{source} cannot be read: {reason}") from (
                error if isinstance(error, OSError) else None
            )
        return Credential(authorization=bearer(text, source))

    def _is_due(self) -> bool:
        return self._now() >= self._read_at + self._interval or stamp_of(self._path) != self._stamp


def stamp_of(path: str | os.PathLike[str] | None) -> tuple[int, int, int] | None:
    """What changes when a file's content does; None for a file that is not there. Links are followed."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
