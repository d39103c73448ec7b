"""Files that only their owner can read. A symbolic link at the path is not followed."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CAREFUL = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))  # Windows has none
_MODE = 0o600


def write_private(path: Path, *parts: bytes) -> None:
    """Write a file with mode 0600, completely or not at all. A file or a link of this name is replaced.

    Raises:
        OSError: it cannot be written.
    """
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600, and a new file
    try:
        with open(descriptor, "wb") as file:
            file.writelines(parts)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def ensure_private(path: Path) -> None:
    """Create an empty file with mode 0600, or give an existing one this mode.

    Raises:
        OSError: it is a link or no regular file, or belongs to another user.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFUL, _MODE)
    try:
        _restrict(descriptor, path)
    finally:
        os.close(descriptor)


def restrict_if_there(path: Path) -> None:
    """Give a file mode 0600 if it exists.

    Raises:
        OSError: as `ensure_private`.
    """
    if os.path.lexists(path):
        ensure_private(path)


def _restrict(descriptor: int, path: Path) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise FileExistsError(f"{path} is no regular file")
    if hasattr(os, "fchmod") and stat.S_IMODE(status.st_mode) != _MODE:
        os.fchmod(descriptor, _MODE)
