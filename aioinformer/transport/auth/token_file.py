"""Credentials from a file with a bearer token, as kubelet writes one for each pod."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport.auth.secret import Secret
from aioinformer.transport.auth.tokens import MAX_BYTES, Credential, RenewedCredentials, bearer
from aioinformer.transport.failures import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable


class TokenFile(RenewedCredentials):
    """A bearer token in a file that another program rotates, as kubelet does for service accounts.

    The file is read again when its modification time, size or inode changes, and after 60 s at the latest. While it
    cannot be read (it is being replaced), the last token stays in use, until the server refuses it.

    Args:
        path: the file. White space around the token is ignored.
        fallback: the credential to use as long as the file has never been readable, an empty one for none.
        interval: seconds after which the file is read again even if it seems unchanged.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fallback: Credential | None = None,
        interval: float = 60.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(now=now, pause=0.0)
        self._path = Path(path)
        self._fallback = fallback or Credential()
        self._was_read = False
        self._interval = interval
        self._stamp: object = None
        self._read_at = 0.0

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self._stamp = stamp_of(self._path)
        self._read_at = self._now()
        try:
            found = self._read()
        except TransportError:
            if self._was_read or not self._fallback.authorization:
                raise
            return self._fallback, None
        self._was_read = True
        return found, None

    def check(self) -> None:
        """Read the file, to find mistakes before the first request.

        Raises:
            UsageError: the file does not contain a token, and there is no fallback.
        """
        if self._fallback.authorization:
            return
        try:
            self._read()
        except TransportError as error:
            failure = UsageError(f"{error}; name a readable file with a bearer token in it")
            failure.__cause__ = error.__cause__
        else:
            return
        raise failure

    def _read(self) -> Credential:
        source = f"token file {self._path}"
        found = _token_in(self._path)
        if isinstance(found, Secret):
            return Credential(authorization=bearer(found, source))
        if isinstance(found, OSError):
            raise TransportError(f"{source} cannot be read: {os_reason(found)}") from found
        raise TransportError(f"{source} cannot be read: {found}")

    def _is_due(self) -> bool:
        return self._now() >= self._read_at + self._interval or stamp_of(self._path) != self._stamp


def stamp_of(path: str | os.PathLike[str] | None) -> tuple[int, int, int] | None:
    """Return values that change with a file's content; None if the file does not exist. Symbolic links are followed."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _token_in(path: Path) -> Secret | OSError | str:
    """Return the text of a file, or why it cannot be read. Never raises: local variables hold the token."""
    try:
        # Not in a thread: these are a few hundred bytes, most often from a memory file system. O_NONBLOCK: opening a
        # named pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return "it is not a regular file"
        with open(descriptor, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        error.__traceback__ = None
        return error
    if len(content) > MAX_BYTES:
        return f"it has more than {MAX_BYTES} bytes"
    try:
        return Secret(content.decode())
    except UnicodeDecodeError:
        return "it is not a text file"
