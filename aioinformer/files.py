"""Write files whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes], *, private: bool = False) -> None:
    """Write a file, completely or not at all: a reader gets the former content or the new one.

    The content is written to another file in the same folder, and is on the disk when that file takes the name. If this
    fails, the former file is as it was, and nothing else is left.

    Args:
        path: a file of this name is replaced.
        parts: the content. An iterator keeps secrets out of the local variables of tracebacks.
        private: only the owner can read the new file, whatever the mode of the former one, and a symbolic link is
            replaced. Otherwise, the new file has the mode of the former one, and a link stays and points to it.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(os.path.abspath(path) if private else os.path.realpath(path))
    draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}")
    former = None if private else _mode_of(target)
    is_public = not private and former is None
    # O_EXCL: neither a file nor a link of another user takes the content.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if is_public else 0o600)
    try:
        with open(descriptor, "wb") as file:
            if former is not None:
                os.chmod(draft, former)
            file.writelines(parts)
            file.flush()
            os.fsync(descriptor)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
